//! Tables and details for people.

use comfy_table::{Attribute, Cell, Color, ContentArrangement, Table, presets::NOTHING};
use serde_json::Value;

use super::ending::printable;

/// A table that is written in pages: the first page decides how wide its columns are at least.
#[derive(Default)]
pub(crate) struct Pages {
    widths: Option<Vec<usize>>,
}

impl Pages {
    /// The text of the next page; the first one has a header.
    pub(crate) fn next(&mut self, columns: &[(String, String)], items: &[Value], is_styled: bool) -> String {
        let mut table = plain(is_styled);
        let head: Vec<String> = columns.iter().map(|(head, _)| head.clone()).collect();
        let is_first = self.widths.is_none();
        if is_first {
            table.add_row(head.iter().map(|head| bold(head, is_styled)));
        }
        for item in items {
            let cells = columns.iter().enumerate().map(|(index, (_, field))| {
                let text = cell(item, field);
                let width = self.widths.as_ref().map_or(0, |widths| widths[index]);
                colored(field, &format!("{text:<width$}"), is_styled)
            });
            table.add_row(cells.collect::<Vec<_>>());
        }
        pad(&mut table);
        if is_first {
            self.widths = Some(table.column_max_content_widths().into_iter().map(usize::from).collect());
        }
        trimmed(&table)
    }
}

/// One thing: a line for each column.
pub(crate) fn details(columns: &[(String, String)], item: &Value, is_styled: bool) -> String {
    let mut table = plain(is_styled);
    for (head, field) in columns {
        let text = cell(item, field);
        table.add_row(vec![bold(head, is_styled), colored(field, &text, is_styled)]);
    }
    pad(&mut table);
    trimmed(&table)
}

fn plain(is_styled: bool) -> Table {
    let mut table = Table::new();
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    match is_styled {
        true => table.enforce_styling(),
        false => table.force_no_tty(),
    };
    table
}

fn pad(table: &mut Table) {
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
}

fn trimmed(table: &Table) -> String {
    let lines = table.lines().map(|line| format!("{}\n", line.trim_end()));
    lines.collect()
}

fn bold(text: &str, is_styled: bool) -> Cell {
    let cell = Cell::new(text);
    if is_styled { cell.add_attribute(Attribute::Bold) } else { cell }
}

/// A status is green, red or yellow.
fn colored(field: &str, text: &str, is_styled: bool) -> Cell {
    let cell = Cell::new(text);
    if !is_styled || !field.to_lowercase().contains("status") || field.contains("Reason") {
        return cell;
    }
    match text.trim() {
        "-" => cell,
        "HEALTHY" | "ACTIVE" | "DEPLOYED" | "CREATED" => cell.fg(Color::Green),
        text if text.contains("FAILED") || matches!(text, "UNHEALTHY" | "BANNED") => cell.fg(Color::Red),
        _ => cell.fg(Color::Yellow),
    }
}

/// The text of a field, such as `createdBy.username`.
pub(crate) fn cell(item: &Value, field: &str) -> String {
    let found = field.split('.').try_fold(item, |value, name| value.get(name));
    match text(found.unwrap_or(&Value::Null)) {
        text if text.is_empty() => "-".into(),
        text => printable(&text).replace('\n', " "),
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(list) => list.iter().map(text).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}
