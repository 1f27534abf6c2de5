//! Columns as the product's own types.

use std::str::FromStr;

use podium_api::{Named, Timestamp, TypedId};
use podium_db::{Error, Result, Row};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Reads ids, times and words from a row.
pub(crate) trait Columns {
    fn id<I: TypedId>(&self, index: usize) -> Result<I> {
        self.word(index)
    }
    /// An id, or `None` if the column is null or empty.
    fn id_opt<I: TypedId>(&self, index: usize) -> Result<Option<I>>;
    /// A word of a closed set.
    fn word<T: FromStr>(&self, index: usize) -> Result<T>;
    /// A value of an enumeration, or `None`.
    fn word_opt<T: FromStr>(&self, index: usize) -> Result<Option<T>>;
    fn document<T: DeserializeOwned>(&self, index: usize) -> Result<T>;
    fn time(&self, index: usize) -> Result<Timestamp>;
    /// A time, or `None`.
    fn time_opt(&self, index: usize) -> Result<Option<Timestamp>>;
}

impl Columns for Row<'_> {
    fn id_opt<I: TypedId>(&self, index: usize) -> Result<Option<I>> {
        self.word_opt(index)
    }

    fn word<T: FromStr>(&self, index: usize) -> Result<T> {
        parse(self.text(index)?, index)
    }

    fn word_opt<T: FromStr>(&self, index: usize) -> Result<Option<T>> {
        let text: Option<String> = self.get(index)?;
        text.filter(|text| !text.is_empty()).map(|text| parse(&text, index)).transpose()
    }

    fn document<T: DeserializeOwned>(&self, index: usize) -> Result<T> {
        serde_json::from_str(self.text(index)?)
            .map_err(|error| Error::Other(format!("column {index} holds no such document: {error}")))
    }

    fn time(&self, index: usize) -> Result<Timestamp> {
        Ok(Timestamp::from_millis(self.get(index)?))
    }

    fn time_opt(&self, index: usize) -> Result<Option<Timestamp>> {
        Ok(self.get::<Option<i64>>(index)?.map(Timestamp::from_millis))
    }
}

pub(crate) fn texts(ids: &[impl ToString]) -> Vec<String> {
    ids.iter().map(ToString::to_string).collect()
}

pub(crate) fn named<I: TypedId>(ids: &[Named<I>]) -> Vec<&str> {
    ids.iter().map(Named::as_str).collect()
}

pub(crate) fn document(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|error| Error::Other(error.to_string()))
}

fn parse<T: FromStr>(text: &str, index: usize) -> Result<T> {
    text.parse().map_err(|_| Error::Other(format!("column {index} holds no {}", std::any::type_name::<T>())))
}
