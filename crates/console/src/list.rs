//! Pages that list resources: a table, filters, pages.

use askama::Template;
use podium_api::Shown;
use podium_api::page::{Page, SortKeys};
use serde::de::DeserializeOwned;

use crate::answer::{Answer, Result};
use crate::form::Choice;
use crate::shell::Shell;
use crate::view::Html;
use crate::visit::OrganizationVisit;

pub(crate) const PAGE: u32 = 50;

#[derive(Debug, Template)]
#[template(path = "list.html")]
pub(crate) struct ListPage {
    pub(crate) shell: Shell,
    pub(crate) lead: &'static str,
    /// The one thing to do here: label and link.
    pub(crate) action: Option<(&'static str, String)>,
    pub(crate) filters: Vec<Filter>,
    pub(crate) table: Table,
}

#[derive(Debug, Default)]
pub(crate) struct Table {
    pub(crate) columns: Vec<&'static str>,
    pub(crate) rows: Vec<Row>,
    pub(crate) pager: Option<Pager>,
    pub(crate) empty: Empty,
}

/// What is shown where nothing is listed.
#[derive(Debug, Default)]
pub(crate) struct Empty {
    pub(crate) title: &'static str,
    pub(crate) text: &'static str,
    /// A command to paste.
    pub(crate) command: String,
}

#[derive(Debug, Default)]
pub(crate) struct Row {
    pub(crate) cells: Vec<Cell>,
    /// Links at its end: label and target.
    pub(crate) actions: Vec<(&'static str, String)>,
}

#[derive(Debug)]
pub(crate) enum Cell {
    Text(String),
    Link {
        text: String,
        href: String,
        sub: String,
    },
    Html(Html),
    Mono(String),
    /// A text with a second line below it.
    Lines(String, String),
}

/// A choice that narrows the list; the query names it.
#[derive(Debug)]
pub(crate) struct Filter {
    pub(crate) name: &'static str,
    pub(crate) label: &'static str,
    pub(crate) choices: Vec<Choice>,
}

#[derive(Debug)]
pub(crate) struct Pager {
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) total: u64,
    pub(crate) previous: Option<String>,
    pub(crate) next: Option<String>,
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<Option<Html>> for Cell {
    fn from(html: Option<Html>) -> Self {
        html.map_or_else(|| Self::Text(String::new()), Self::Html)
    }
}

impl From<Html> for Cell {
    fn from(html: Html) -> Self {
        Self::Html(html)
    }
}

impl Cell {
    pub(crate) fn link(text: impl Into<String>, href: String) -> Self {
        Self::Link { text: text.into(), href, sub: String::new() }
    }

    /// A link with a second line below it.
    pub(crate) fn named(text: impl Into<String>, href: String, sub: impl Into<String>) -> Self {
        Self::Link { text: text.into(), href, sub: sub.into() }
    }
}

impl Filter {
    /// A choice among words of the API.
    pub(crate) fn words(
        visit: &OrganizationVisit<'_>,
        name: &'static str,
        label: &'static str,
        words: impl IntoIterator<Item = &'static str>,
    ) -> Self {
        let chosen = visit.query().get(name);
        let any = Choice::new("", "Any", chosen.is_empty());
        let choice = |word: &'static str| Choice::new(word, crate::view::words(word), chosen == word);
        Self { name, label, choices: std::iter::once(any).chain(words.into_iter().map(choice)).collect() }
    }
}

impl Pager {
    /// The place of a page in a list.
    pub(crate) fn new(visit: &OrganizationVisit<'_>, shown: usize, total: u64) -> Option<Self> {
        let (offset, most) = (visit.query().number("offset"), u64::from(PAGE));
        let shown = u64::try_from(shown).unwrap_or_default();
        let last_page = total.saturating_sub(1) / most * most;
        let at = |offset: u64| {
            let offset = if offset == 0 { String::new() } else { offset.to_string() };
            format!("?{}", visit.query().with("offset", &offset))
        };
        (total > shown || offset > 0).then(|| Self {
            first: (offset + 1).min(total),
            last: offset + shown,
            total,
            // From beyond the end it leads to the last page.
            previous: (offset > 0).then(|| at(offset.saturating_sub(most).min(last_page))),
            next: (offset + shown < total).then(|| at(offset + most)),
        })
    }

    /// The last page, for somebody who is beyond it.
    pub(crate) fn last_page(&self) -> Option<&String> {
        self.previous.as_ref().filter(|_| self.total > 0)
    }

    /// The same on a page at another path than the one that was read.
    pub(crate) fn at(self, path: &str) -> Self {
        let there = |query: Option<String>| query.map(|query| format!("{path}{query}"));
        Self { previous: there(self.previous), next: there(self.next), ..self }
    }
}

impl Row {
    /// A row without links at its end.
    pub(crate) fn of(cells: Vec<Cell>) -> Self {
        Self { cells, actions: Vec::new() }
    }
}

impl Table {
    /// The table of a page that the query names.
    pub(crate) fn paged(
        visit: &OrganizationVisit<'_>,
        columns: impl Into<Vec<&'static str>>,
        rows: impl IntoIterator<Item = Row>,
        total: u64,
    ) -> Self {
        let table = Self::whole(columns, rows);
        Self { pager: Pager::new(visit, table.rows.len(), total), ..table }
    }

    /// A table with everything there is.
    pub(crate) fn whole(columns: impl Into<Vec<&'static str>>, rows: impl IntoIterator<Item = Row>) -> Self {
        Self { columns: columns.into(), rows: rows.into_iter().collect(), ..Self::default() }
    }

    /// What it says where it has no rows.
    pub(crate) fn or(self, title: &'static str, text: &'static str) -> Self {
        Self { empty: Empty { title, text, command: String::new() }, ..self }
    }

    pub(crate) fn with_command(mut self, command: impl Into<String>) -> Self {
        self.empty.command = command.into();
        self
    }
}

impl ListPage {
    pub(crate) fn new(shell: Shell, lead: &'static str, table: Table) -> Self {
        Self { shell, lead, action: None, filters: Vec::new(), table }
    }

    /// Offers the one thing to do here to those who may.
    pub(crate) fn offer(self, may: bool, label: &'static str, href: String) -> Self {
        Self { action: may.then_some((label, href)), ..self }
    }

    /// Adds a choice that narrows the list.
    pub(crate) fn narrowed_by(mut self, filter: Filter) -> Self {
        self.filters.push(filter);
        self
    }

    pub(crate) fn answer(&self) -> Result {
        Answer::page(self)
    }
}

impl OrganizationVisit<'_> {
    /// The page of a list that the query names.
    pub(crate) fn page<K: SortKeys>(&self) -> Page<K> {
        Page { offset: self.query().number("offset"), ..Page::first(PAGE) }
    }
}

/// What the person may see of a list: of what is only named, nothing.
pub(crate) fn readable<T: DeserializeOwned>(listed: Vec<Shown<T>>) -> Vec<T> {
    listed.into_iter().filter_map(|shown| shown.into_value().ok()).collect()
}
