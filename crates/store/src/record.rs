//! Rows that are described once: a struct, its columns, and how it is read from them.

use std::str::FromStr;

use podium_api::{Timestamp, TypedId};
use podium_db::{FromColumn, Result, Row};
use podium_domain::UserText;
use podium_domain::alerts::Notices;
use podium_domain::events::Cursor;
use serde::de::DeserializeOwned;

use crate::columns::Columns as _;
use crate::pictures;
use crate::stamp::Stamp;

/// Declares a row: each field with the method of [`Reader`] that reads it, and its columns. The macro that is named lists
/// all of these for a statement, and `read` reads a row that begins with them.
macro_rules! record {
    (
        $(#[$meta:meta])*
        $visibility:vis struct $name:ident as $columns:ident! {
            $(#[$first_doc:meta])* pub $first:ident: $first_type:ty = $first_how:ident $first_column:literal,
            $($(#[$doc:meta])* pub $field:ident: $type:ty = $how:ident $($column:literal)?,)*
        }
    ) => {
        $(#[$meta])*
        $visibility struct $name {
            $(#[$first_doc])* pub $first: $first_type,
            $($(#[$doc])* pub $field: $type,)*
        }

        macro_rules! $columns {
            () => { concat!($first_column $(, ", ", $crate::record::record!(@columns $how $($column)?))*) };
        }

        impl $name {
            fn read(row: &podium_db::Row<'_>) -> podium_db::Result<Self> {
                let mut next = $crate::record::Reader::new(row);
                Ok(Self { $first: next.$first_how()?, $($field: next.$how()?,)* })
            }
        }
    };
    (@columns stamp) => { $crate::stamp::stamp_columns!() };
    (@columns $how:ident $column:literal) => { $column };
}

pub(crate) use record;

/// Reads the columns of a row, one after the other.
pub(crate) struct Reader<'a, 'r> {
    row: &'a Row<'r>,
    next: usize,
}

impl<'a, 'r> Reader<'a, 'r> {
    pub(crate) fn new(row: &'a Row<'r>) -> Self {
        Self { row, next: 0 }
    }

    /// The index of the next columns, of which so many are read.
    fn take(&mut self, columns: usize) -> usize {
        self.next += columns;
        self.next - columns
    }

    pub(crate) fn get<T: FromColumn>(&mut self) -> Result<T> {
        self.row.get(self.take(1))
    }

    pub(crate) fn id<I: TypedId>(&mut self) -> Result<I> {
        self.row.id(self.take(1))
    }

    pub(crate) fn id_opt<I: TypedId>(&mut self) -> Result<Option<I>> {
        self.row.id_opt(self.take(1))
    }

    pub(crate) fn word<T: FromStr>(&mut self) -> Result<T> {
        self.row.word(self.take(1))
    }

    pub(crate) fn word_opt<T: FromStr>(&mut self) -> Result<Option<T>> {
        self.row.word_opt(self.take(1))
    }

    /// The word that was read last.
    pub(crate) fn last<T: FromStr>(&self) -> Result<T> {
        self.row.word(self.next - 1)
    }

    pub(crate) fn reason(&mut self) -> Result<UserText> {
        Ok(UserText::from_stored(self.get()?))
    }

    /// The picture of a user, whose username and name were read last; its own column is not used.
    pub(crate) fn picture(&mut self) -> Result<String> {
        let at = self.take(1);
        Ok(pictures::url(self.row.text(at - 1)?, self.row.text(at - 2)?))
    }

    pub(crate) fn document<T: DeserializeOwned>(&mut self) -> Result<T> {
        self.row.document(self.take(1))
    }

    pub(crate) fn time(&mut self) -> Result<Timestamp> {
        self.row.time(self.take(1))
    }

    pub(crate) fn time_opt(&mut self) -> Result<Option<Timestamp>> {
        self.row.time_opt(self.take(1))
    }

    /// A position in the stream of events, which has two columns.
    pub(crate) fn cursor(&mut self) -> Result<Cursor> {
        Ok(Cursor { transaction_id: self.get()?, sequence: self.get()? })
    }

    /// How many notices may still be sent, which has two columns.
    pub(crate) fn notices(&mut self) -> Result<Notices> {
        Ok(Notices { left: self.get()?, since: self.time()? })
    }

    /// The stamp, whose columns come last.
    pub(crate) fn stamp(&mut self) -> Result<Stamp> {
        Stamp::read(self.row, self.next)
    }
}
