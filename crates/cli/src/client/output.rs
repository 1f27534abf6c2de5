//! How things are shown: for people as tables, for programs as the JSON of the wire.
//!
//! Data goes to standard output, text for people to standard error. A list is written page by page.

use std::io::{BufWriter, IsTerminal, Stdout, Write};

use clap::{Args, ValueEnum};
use podium_api::text::escaped_json;
use serde_json::Value;

use super::ending::{Failed, Outcome, one_line};
use super::table;

/// A format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// Table for people.
    #[default]
    Table,
    /// Table for people, with more columns.
    Wide,
    /// JSON as in the API; a list is an array.
    Json,
    /// The same in YAML.
    Yaml,
    /// Only names, one on each line.
    Name,
    /// JSON as in the API, one item on each line.
    Jsonl,
}

/// How to show it.
#[derive(Args, Clone, Default)]
#[command(next_help_heading = "Output")]
pub(crate) struct Format {
    /// Format of the output.
    #[arg(long, short, global = true, value_enum, default_value_t = Output::Table, value_name = "FORMAT")]
    output: Output,
    /// Fields to show as columns, such as name,status,createdBy.username.
    #[arg(long, global = true, value_delimiter = ',', value_name = "FIELDS")]
    columns: Vec<String>,
}

/// Which part of a list, and in which order.
#[derive(Args, Clone, Default)]
pub(crate) struct Listing {
    /// Fields to sort by, such as name or createdAt:desc.
    #[arg(long, value_delimiter = ',', value_name = "FIELDS")]
    sort: Vec<String>,
    /// Maximum number of items to show.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) limit: Option<u64>,
}

impl Listing {
    /// The sort keys, as the API takes them.
    pub(crate) fn sorts(&self) -> Vec<String> {
        let with_order = |key: &String| if key.contains(':') { key.clone() } else { format!("{key}:asc") };
        self.sort.iter().map(with_order).collect()
    }
}

/// What people see of a resource. Columns are written as `HEAD field, TWO WORDS field.of.it`.
pub(crate) struct View {
    /// The field that holds its name.
    pub(crate) name: &'static str,
    pub(crate) columns: &'static str,
    /// The columns that are shown where there is room.
    pub(crate) wide: &'static str,
}

impl View {
    /// The same columns everywhere.
    pub(crate) const fn plain(name: &'static str, columns: &'static str) -> Self {
        Self { name, columns, wide: "" }
    }
}

impl Format {
    pub(crate) fn output(&self) -> Output {
        self.output
    }

    /// Whether it is for people.
    pub(crate) fn is_table(&self) -> bool {
        matches!(self.output, Output::Table | Output::Wide) && self.columns.is_empty()
    }

    pub(crate) fn printer(&self, view: &View) -> Outcome<Printer<BufWriter<Stdout>>> {
        Printer::new(BufWriter::new(std::io::stdout()), self, view, is_styled())
    }
}

/// Whether standard output takes colours.
pub(crate) fn is_styled() -> bool {
    takes_colours(&std::io::stdout())
}

fn takes_colours(out: &impl IsTerminal) -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    out.is_terminal() && !is_set("NO_COLOR") && !is_dumb
}

/// Says on standard error what must not be overlooked.
pub(crate) fn shout(line: &str) {
    match takes_colours(&std::io::stderr()) {
        true => eprintln!("\u{1b}[1;31m{line}\u{1b}[0m"),
        false => eprintln!("{line}"),
    }
}

pub(crate) struct Printer<W: Write> {
    out: W,
    output: Output,
    columns: Vec<(String, String)>,
    name: &'static str,
    is_styled: bool,
    table: table::Pages,
    count: u64,
    /// The wanted fields that no item had so far.
    unseen: Vec<String>,
}

impl<W: Write> Printer<W> {
    fn new(out: W, format: &Format, view: &View, is_styled: bool) -> Outcome<Self> {
        let columns: Vec<(String, String)> = match format.columns.as_slice() {
            [] => {
                let wide = if format.output == Output::Wide { view.wide } else { "" };
                let all = view.columns.split(", ").chain(wide.split(", "));
                all.filter_map(|column| column.rsplit_once(' '))
                    .map(|(head, field)| (head.into(), field.into()))
                    .collect()
            }
            fields => fields.iter().map(|field| (field.to_uppercase(), field.trim().to_owned())).collect(),
        };
        if !format.columns.is_empty() && !matches!(format.output, Output::Table | Output::Wide) {
            return Err(Failed::usage("--columns goes with --output table or wide"));
        }
        Ok(Self {
            out,
            output: format.output,
            columns,
            name: view.name,
            is_styled,
            table: table::Pages::default(),
            count: 0,
            unseen: format.columns.iter().map(|field| field.trim().to_owned()).collect(),
        })
    }

    /// Writes the next items of a list.
    pub(crate) fn page(&mut self, items: &[Value]) -> std::io::Result<()> {
        match self.output {
            Output::Table | Output::Wide if items.is_empty() => {}
            Output::Table | Output::Wide => {
                let text = self.table.next(&self.columns, items, self.is_styled);
                self.out.write_all(text.as_bytes())?;
            }
            Output::Json => {
                for (index, item) in items.iter().enumerate() {
                    let start = if self.count == 0 && index == 0 { "[\n" } else { ",\n" };
                    write!(self.out, "{start}{}", indented(&escaped_json(format!("{item:#}"))))?;
                }
            }
            Output::Yaml => {
                for item in items {
                    self.out.write_all(yaml(&[item])?.as_bytes())?;
                }
            }
            Output::Name => {
                for item in items {
                    writeln!(self.out, "{}", table::cell(item, self.name))?;
                }
            }
            Output::Jsonl => {
                for item in items {
                    writeln!(self.out, "{}", escaped_json(item.to_string()))?;
                }
            }
        }
        self.count += items.len() as u64;
        self.unseen.retain(|field| !items.iter().any(|item| has(item, field)));
        self.out.flush()
    }

    pub(crate) fn finish(&mut self) -> std::io::Result<()> {
        match (self.output, self.count) {
            (Output::Table | Output::Wide, 0) => eprintln!("No results."),
            (Output::Json | Output::Yaml, 0) => writeln!(self.out, "[]")?,
            (Output::Json, _) => writeln!(self.out, "\n]")?,
            _ => self.tell_unseen(),
        }
        self.out.flush()
    }

    /// Says which of the wanted fields nothing has: they may be misspelt.
    fn tell_unseen(&self) {
        for field in &self.unseen {
            eprintln!("No item has the field {}. To see all fields: --output json", one_line(field));
        }
    }

    /// Writes one thing that is no list.
    pub(crate) fn one(&mut self, item: &Value) -> std::io::Result<()> {
        self.unseen.retain(|field| !has(item, field));
        self.tell_unseen();
        match self.output {
            Output::Table | Output::Wide => {
                let text = table::details(&self.columns, item, self.is_styled);
                self.out.write_all(text.as_bytes())?;
            }
            Output::Json => writeln!(self.out, "{}", escaped_json(format!("{item:#}")))?,
            Output::Yaml => self.out.write_all(yaml(item)?.as_bytes())?,
            Output::Name => writeln!(self.out, "{}", table::cell(item, self.name))?,
            Output::Jsonl => writeln!(self.out, "{}", escaped_json(item.to_string()))?,
        }
        self.out.flush()
    }
}

/// Whether something has a field; dots lead into objects.
fn has(item: &Value, field: &str) -> bool {
    field.split('.').try_fold(item, |value, name| value.get(name)).is_some()
}

fn yaml(value: &(impl serde::Serialize + ?Sized)) -> std::io::Result<String> {
    let mut text = serde_saphyr::to_string(&value).map_err(std::io::Error::other)?;
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const VIEW: View = View { name: "name", columns: "NAME name, STATUS status", wide: "BY by.name" };

    fn printed(output: Output, columns: &[&str], pages: &[Value]) -> String {
        let columns = columns.iter().map(|&field| field.to_owned()).collect();
        let mut bytes = Vec::new();
        let mut printer = Printer::new(&mut bytes, &Format { output, columns }, &VIEW, false).unwrap();
        for page in pages {
            printer.page(page.as_array().unwrap()).unwrap();
        }
        printer.finish().unwrap();
        drop(printer);
        String::from_utf8(bytes).unwrap()
    }

    fn pages() -> [Value; 2] {
        [
            json!([{ "name": "a", "status": "HEALTHY", "by": { "name": "Ada" } }]),
            json!([{ "name": "longer \u{1b}[31m", "status": null }]),
        ]
    }

    #[test]
    fn a_table_goes_on_page_by_page() {
        let table = "NAME  STATUS\na     HEALTHY\nlonger \u{fffd}[31m  -\n";
        assert_eq!(printed(Output::Table, &[], &pages()), table);
        let wide = "NAME  STATUS   BY\na     HEALTHY  Ada\nlonger \u{fffd}[31m  -        -\n";
        assert_eq!(printed(Output::Wide, &[], &pages()), wide);
        assert_eq!(printed(Output::Table, &["by.name"], &pages()), "BY.NAME\nAda\n-\n");
        assert_eq!(printed(Output::Table, &[], &[]), "");
    }

    #[test]
    fn programs_get_the_wire() {
        let json: Value = serde_json::from_str(&printed(Output::Json, &[], &pages())).unwrap();
        assert_eq!(json, json!([pages()[0][0], pages()[1][0]]));
        assert_eq!(printed(Output::Json, &[], &[]), "[]\n");
        let lines = printed(Output::Jsonl, &[], &pages());
        assert_eq!(lines.lines().count(), 2);
        assert_eq!(lines.lines().next().unwrap(), pages()[0][0].to_string());
        let yaml: Value = serde_saphyr::from_str(&printed(Output::Yaml, &[], &pages())).unwrap();
        assert_eq!(yaml, json);
        assert_eq!(printed(Output::Name, &[], &pages()[..1]), "a\n");
    }

    #[test]
    fn columns_go_with_tables_only() {
        let format = Format { output: Output::Json, columns: vec!["name".into()] };
        assert!(Printer::new(Vec::new(), &format, &VIEW, false).is_err());
    }
}
