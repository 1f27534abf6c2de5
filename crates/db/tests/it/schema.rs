//! What the database says about itself and about statements.

use podium_db::{Error, Sql};

use crate::support::{Bed, STATEMENTS, on_both_engines};

on_both_engines!(valid_statements_prepare, invalid_statements_are_named);

async fn valid_statements_prepare(bed: Bed) {
    assert_eq!(bed.db.prepare(STATEMENTS).await, vec![]);
}

async fn invalid_statements_are_named(bed: Bed) {
    static WRONG: Sql = Sql::new("SELECT nonsense FROM items");
    static RIGHT: Sql = Sql::new("SELECT id FROM items");
    let failed = bed.db.prepare(&[&WRONG, &RIGHT]).await;
    assert!(
        matches!(&failed[..], [(text, Error::Other(_))] if text == "SELECT nonsense FROM items"),
        "{failed:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn both_engines_tell_the_same() {
    let (sqlite, postgres) = (Bed::sqlite().await, Bed::postgres().await);
    let schema = sqlite.db.schema().await.unwrap();
    assert_eq!(schema, postgres.db.schema().await.unwrap());
    let lines: Vec<String> = schema
        .iter()
        .flat_map(|table| {
            table.columns.iter().map(|column| {
                let null = if column.nullable { " null" } else { "" };
                format!("{}.{} {}{null}", table.name, column.name, column.kind)
            })
        })
        .collect();
    assert_eq!(
        lines,
        [
            "items.body blob null",
            "items.flag boolean null",
            "items.id text",
            "items.note text null",
            "items.number integer null",
            "parts.id text",
            "parts.item_id text",
        ]
    );
}
