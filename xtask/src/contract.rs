//! `cargo xtask contract`: the files in `contract/`, written from the code.
//!
//! They are committed so that a reviewer sees in a diff what a change does to the API. Nobody edits them.

use std::fmt::Write as _;
use std::fs;
use std::process::{Command, Stdio};

use podium_api::openapi::{Document, PREFIX};
use podium_api::{Access, ENDPOINTS};

use crate::outcome::{Outcome, While};
use crate::workspace::{cargo, must, root, target};

/// The generated files: path and content.
fn files() -> Outcome<Vec<(&'static str, String)>> {
    Ok(vec![
        ("contract/openapi.json", openapi()?),
        ("contract/declarations.schema.json", declarations()?),
        ("contract/operations.txt", operations()),
        ("contract/permissions.txt", podium_domain::roles::matrix()),
        ("contract/schema.txt", schema()?),
    ])
}

pub(crate) fn write() -> Outcome {
    for (path, content) in files()? {
        let file = root().join(path);
        if fs::read_to_string(&file).is_ok_and(|old| old == content) {
            continue;
        }
        if let Some(parent) = file.parent() {
            fs::create_dir_all(parent).doing(path)?;
        }
        fs::write(&file, content).doing(path)?;
        println!("wrote {path}");
    }
    Ok(())
}

/// Writes a database of the newest schema, from which later versions are upgraded in the tests.
pub(crate) fn write_snapshot() -> Outcome {
    let test = "coverage::upgrades::a_snapshot_can_be_made_and_started_on";
    let arguments = ["test", "--package", "podium-http", "--test", "it", "--", "--exact", test];
    must(cargo(&arguments).env("PODIUM_WRITE_SNAPSHOT", "1"))
}

/// Compares the committed files with the code.
pub(crate) fn check() -> Outcome {
    let mut differences = Vec::new();
    for (path, wanted) in files()? {
        let committed = fs::read_to_string(root().join(path)).unwrap_or_default();
        differences.extend(difference(&committed, &wanted).map(|hint| format!("{path}:{hint}")));
    }
    if differences.is_empty() {
        return Ok(());
    }
    Err(format!(
        "the code and contract/ differ; run `cargo xtask contract` and look at the diff\n{}",
        differences.join("\n")
    ))
}

/// The first line in which two texts differ.
fn difference(committed: &str, wanted: &str) -> Option<String> {
    if committed == wanted {
        return None;
    }
    let (mut old, mut new) = (committed.split('\n'), wanted.split('\n'));
    let mut number = 1;
    loop {
        match (old.next(), new.next()) {
            (Some(old), Some(new)) if old == new => number += 1,
            (old, new) => {
                let show =
                    |line: Option<&str>| line.map_or("(nothing)".into(), |line| line.trim().to_owned());
                return Some(format!("{number}\n  - {}\n  + {}", show(old), show(new)));
            }
        }
    }
}

fn openapi() -> Outcome<String> {
    let document = Document::collect().to_json(PREFIX);
    Ok(serde_json::to_string_pretty(&document).doing("writing the document")? + "\n")
}

/// The schema of files of declarations.
fn declarations() -> Outcome<String> {
    let schema = podium_api::declarations::Declarations::json_schema();
    Ok(serde_json::to_string_pretty(&schema).doing("writing the schema")? + "\n")
}

/// One line an endpoint: id, method, path, who may call it, audited or not.
fn operations() -> String {
    let rows: Vec<[&str; 5]> = ENDPOINTS
        .iter()
        .map(|endpoint| {
            let access = match endpoint.access {
                Access::Public => "public",
                Access::Token => "token",
                Access::Member => "member",
                Access::Agent => "agent",
                Access::Permission(permission) => permission,
            };
            [
                endpoint.id,
                endpoint.method.as_str(),
                endpoint.path,
                access,
                if endpoint.audited { "audited" } else { "-" },
            ]
        })
        .collect();
    table(&rows)
}

/// Tables and columns. A separate program lists them, because it needs a database engine, which this one must not
/// depend on. Built with the features of the whole workspace, it shares what the tests have compiled.
fn schema() -> Outcome<String> {
    must(&mut cargo(&["build", "--quiet", "--workspace", "--example", "schema"]))?;
    let program = target()?.join("debug/examples/schema");
    let output = Command::new(&program).stderr(Stdio::inherit()).output().doing("listing the schema")?;
    if !output.status.success() {
        return Err(format!("listing the schema failed: {}", output.status));
    }
    String::from_utf8(output.stdout).doing("listing the schema")
}

/// Rows in aligned columns.
fn table(rows: &[[&str; 5]]) -> String {
    let widths: [usize; 5] = std::array::from_fn(|i| rows.iter().map(|row| row[i].len()).max().unwrap_or(0));
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(widths) {
            let _ = write!(line, "{cell:width$}  ");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_the_first_difference() {
        assert_eq!(difference("a\nb\n", "a\nb\n"), None);
        assert_eq!(difference("a\nb\n", "a\n c\n").unwrap(), "2\n  - b\n  + c");
        assert_eq!(difference("", "a\n").unwrap(), "1\n  - \n  + a");
        assert_eq!(difference("a", "a\nb").unwrap(), "2\n  - (nothing)\n  + b");
    }

    #[test]
    fn aligns_columns() {
        let rows =
            [["ListTeams", "GET", "/teams", "x.get", "-"], ["Get", "DELETE", "/t", "public", "audited"]];
        assert_eq!(
            table(&rows),
            "ListTeams  GET     /teams  x.get   -\nGet        DELETE  /t      public  audited\n"
        );
    }

    #[test]
    fn every_endpoint_is_listed_once() {
        assert_eq!(operations().lines().count(), ENDPOINTS.len());
    }
}
