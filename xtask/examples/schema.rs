//! Prints the tables and columns that the migrations make, for `contract/schema.txt`.
//!
//! It is an example and no part of `xtask`, so that `cargo xtask` can be built without a database engine. SQLite
//! speaks for both engines: a test of the store compares the two.

#![expect(clippy::print_stdout, reason = "what it prints is what it is for")]

use podium_db::{Options, Target};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = std::env::temp_dir().join(format!("podium-schema-{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    let printed = print(directory.join("schema.db")).await;
    std::fs::remove_dir_all(&directory)?;
    printed
}

#[expect(clippy::disallowed_methods, reason = "the schema is what opening a database makes")]
async fn print(file: std::path::PathBuf) -> Result<(), Box<dyn std::error::Error>> {
    let (db, _) = podium_store::open(Options::new(Target::Sqlite(file))).await?;
    let tables = db.schema().await?;
    let columns = || tables.iter().flat_map(|table| &table.columns);
    let width = columns().map(|column| column.name.len()).max().unwrap_or_default();
    println!("# Tables and columns, the same on SQLite and PostgreSQL; `?` may be null.");
    for table in &tables {
        println!("\n{}", table.name);
        for column in &table.columns {
            let null = if column.nullable { "?" } else { "" };
            println!("  {:width$}  {}{null}", column.name, column.kind);
        }
    }
    db.close().await;
    Ok(())
}
