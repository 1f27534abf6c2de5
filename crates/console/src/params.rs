//! Names and values of a query or a form.

use std::str::FromStr;

use crate::answer::Result;
use crate::calls::Problem;

/// Names and values, in the order in which they were sent.
#[derive(Clone, Debug, Default)]
pub struct Params(Vec<(String, String)>);

impl Params {
    /// Reads a query, or the body of a form.
    pub fn read(text: &str) -> Self {
        Self(form_urlencoded::parse(text.as_bytes()).into_owned().collect())
    }

    /// The first value of a name; empty if there is none.
    pub fn get(&self, name: &str) -> &str {
        self.opt(name).unwrap_or_default()
    }

    pub fn opt(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// A value that is not empty, without the spaces around it.
    pub fn filled(&self, name: &str) -> Option<&str> {
        self.opt(name).map(str::trim).filter(|value| !value.is_empty())
    }

    /// The first value of a name, without the spaces around it.
    pub(crate) fn text(&self, name: &str) -> String {
        self.get(name).trim().to_owned()
    }

    /// A value of the kind that an endpoint asks for; none if it is empty.
    pub(crate) fn parsed<T: FromStr>(&self, name: &str) -> Result<Option<T>> {
        self.filled(name).map(|text| from_text(name, text)).transpose()
    }

    pub(crate) fn required<T: FromStr>(&self, name: &str) -> Result<T> {
        self.parsed(name)?.ok_or_else(|| Problem::in_field(name, "required", "is required"))
    }

    /// Every value of a name that is not empty.
    pub(crate) fn parsed_all<T: FromStr>(&self, name: &str) -> Result<Vec<T>> {
        self.all(name).filter(|text| !text.is_empty()).map(|text| from_text(name, text)).collect()
    }

    /// The words of a text: addresses, types or whatever else has no spaces in it.
    pub(crate) fn words(&self, name: &str) -> Vec<String> {
        self.get(name).split_whitespace().map(str::to_owned).collect()
    }

    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub fn is_on(&self, name: &str) -> bool {
        self.opt(name).is_some()
    }

    /// A number that is not negative, and small enough to count on from it; 0 if it is none.
    pub fn number(&self, name: &str) -> u64 {
        self.get(name).parse::<u64>().unwrap_or_default().min(1 << 53)
    }

    /// The same with one value changed, as a query.
    pub fn with(&self, name: &str, value: &str) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(self.0.iter().filter(|(key, _)| key != name && key != "done"));
        if !value.is_empty() {
            query.append_pair(name, value);
        }
        query.finish()
    }
}

/// What no page of the console sends, but for a number that is none.
fn from_text<T: FromStr>(name: &str, text: &str) -> Result<T> {
    text.parse().map_err(|_| Problem::in_field(name, "format", "is not what this field takes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_read_and_changed() {
        let query = Params::read("state=FAILED&state=RUNNING&page=2&q=a+b%26c&done=saved");
        assert_eq!(query.get("q"), "a b&c");
        assert_eq!(query.all("state").collect::<Vec<_>>(), ["FAILED", "RUNNING"]);
        assert_eq!((query.number("page"), query.number("q"), query.opt("nothing")), (2, 0, None));
        assert_eq!(query.with("page", "3"), "state=FAILED&state=RUNNING&q=a+b%26c&page=3");
        assert_eq!(query.with("state", ""), "page=2&q=a+b%26c");
    }
}
