//! One row of a result, read by position. Columns are never looked up by name: the statement lists them.

use std::cell::RefCell;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::LazyLock;

use xxhash_rust::xxh3::xxh3_128_with_secret;

use crate::{Error, JoinedRow, Result, RowsRead, Value};

/// Size of the per-thread buffer for hashing a row.
const KEPT: usize = 64 * 1024;

/// Known to this process alone: without it nobody can construct two rows with the same fingerprint.
static SECRET: LazyLock<[u8; 192]> = LazyLock::new(|| {
    let random = RandomState::new();
    let mut secret = [0; 192];
    for (number, word) in secret.chunks_exact_mut(8).enumerate() {
        word.copy_from_slice(&random.hash_one(number).to_le_bytes());
    }
    secret
});

/// A row, valid while its closure runs.
pub struct Row<'r>(pub(crate) Kind<'r>);

pub(crate) enum Kind<'r> {
    /// With the last commit that it is certain to have seen, if changes of rows are reported.
    Sqlite(&'r rusqlite::Row<'r>, Option<u64>),
    Postgres(&'r crate::postgres::Line<'r>),
}

impl Row<'_> {
    /// The column at a position, starting at 0.
    pub fn get<T: FromColumn>(&self, index: usize) -> Result<T> {
        let value = self.value(index)?;
        T::from_column(value).ok_or_else(|| mismatch(index, std::any::type_name::<T>(), value))
    }

    pub fn text(&self, index: usize) -> Result<&str> {
        match self.value(index)? {
            Value::Text(text) => Ok(text),
            value => Err(mismatch(index, "text", value)),
        }
    }

    /// Bytes without a copy.
    pub fn bytes(&self, index: usize) -> Result<&[u8]> {
        match self.value(index)? {
            Value::Blob(bytes) => Ok(bytes),
            value => Err(mismatch(index, "bytes", value)),
        }
    }

    /// A hash of all columns: rows that differ in anything have different ones.
    ///
    /// It is keyed, because callers choose the texts of rows: with a public hash they could construct two rows that share
    /// one, and hide a change from everybody who reads a cache. It means nothing to another process.
    pub fn fingerprint(&self) -> Result<u128> {
        thread_local! {
            static BYTES: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
        }
        BYTES.with_borrow_mut(|bytes| {
            bytes.clear();
            for index in 0..self.len() {
                self.append(index, bytes)?;
            }
            let print = fingerprint_of(bytes);
            bytes.shrink_to(KEPT);
            Ok(print)
        })
    }

    /// How many bytes of text and binary data it holds.
    pub fn size(&self) -> Result<usize> {
        (0..self.len()).try_fold(0, |size, index| {
            Ok(size
                + match self.value(index)? {
                    Value::Text(text) => text.len(),
                    Value::Blob(blob) => blob.len(),
                    _ => 0,
                })
        })
    }

    /// The rows that this one was joined from, for [`Conn::unchanged`](crate::Conn::unchanged); `None` if their changes are
    /// not reported, or if a joined row is missing that may still be inserted.
    pub fn rows_read(&self, joined: &[JoinedRow]) -> Result<Option<RowsRead>> {
        let Kind::Sqlite(_, Some(at)) = self.0 else { return Ok(None) };
        let mut rows = RowsRead::new(at);
        for row in joined {
            match (self.value(row.key)?, self.get::<Option<i64>>(row.rowid)?) {
                (Value::Null, _) => {}
                (_, Some(rowid)) => rows.push(crate::sqlite::slot(row.table, rowid))?,
                (_, None) => return Ok(None),
            }
        }
        Ok(Some(rows))
    }

    /// Appends a column so that different rows give different bytes.
    fn append(&self, index: usize, bytes: &mut Vec<u8>) -> Result<()> {
        let (kind, number, text): (u8, i64, &[u8]) = match self.value(index)? {
            Value::Null => (0, 0, &[]),
            Value::Int(number) => (1, number, &[]),
            Value::Bool(truth) => (2, truth.into(), &[]),
            Value::Text(text) => (3, text.len() as i64, text.as_bytes()),
            Value::Blob(blob) => (4, blob.len() as i64, blob),
            value => return Err(mismatch(index, "a column", value)),
        };
        bytes.push(kind);
        bytes.extend_from_slice(&number.to_le_bytes());
        bytes.extend_from_slice(text);
        Ok(())
    }

    fn len(&self) -> usize {
        match self.0 {
            Kind::Sqlite(row, _) => row.as_ref().column_count(),
            Kind::Postgres(row) => row.len(),
        }
    }

    fn value(&self, index: usize) -> Result<Value<'_>> {
        match self.0 {
            Kind::Sqlite(row, _) => crate::sqlite::column(row, index),
            Kind::Postgres(row) => row.column(index),
        }
    }
}

fn fingerprint_of(bytes: &[u8]) -> u128 {
    xxh3_128_with_secret(bytes, &*SECRET)
}

/// Names only the kinds: the value of a column may be secret.
fn mismatch(index: usize, wanted: &str, found: Value<'_>) -> Error {
    let found = match found {
        Value::Null => "null",
        Value::Int(_) => "a number",
        Value::Bool(_) => "a boolean",
        Value::Text(_) => "text",
        Value::Blob(_) => "bytes",
        Value::Texts(_) | Value::Strings(_) => "a list",
    };
    Error::Other(format!("column {index}: expected {wanted}, found {found}"))
}

/// A type that a column can be read as.
pub trait FromColumn: Sized {
    /// The column's value as this type; `None` if it is of another kind.
    fn from_column(value: Value<'_>) -> Option<Self>;
}

impl FromColumn for String {
    fn from_column(value: Value<'_>) -> Option<Self> {
        if let Value::Text(text) = value { Some(text.to_owned()) } else { None }
    }
}

impl FromColumn for i64 {
    fn from_column(value: Value<'_>) -> Option<Self> {
        if let Value::Int(number) = value { Some(number) } else { None }
    }
}

impl FromColumn for i32 {
    fn from_column(value: Value<'_>) -> Option<Self> {
        i64::from_column(value)?.try_into().ok()
    }
}

impl FromColumn for u32 {
    fn from_column(value: Value<'_>) -> Option<Self> {
        i64::from_column(value)?.try_into().ok()
    }
}

impl FromColumn for bool {
    fn from_column(value: Value<'_>) -> Option<Self> {
        match value {
            Value::Bool(truth) => Some(truth),
            Value::Int(0) => Some(false),
            Value::Int(1) => Some(true),
            _ => None,
        }
    }
}

impl FromColumn for Vec<u8> {
    fn from_column(value: Value<'_>) -> Option<Self> {
        if let Value::Blob(bytes) = value { Some(bytes.to_vec()) } else { None }
    }
}

impl<T: FromColumn> FromColumn for Option<T> {
    fn from_column(value: Value<'_>) -> Option<Self> {
        if matches!(value, Value::Null) { Some(None) } else { T::from_column(value).map(Some) }
    }
}

#[cfg(test)]
mod tests {
    use xxhash_rust::xxh3::xxh3_128;

    #[test]
    fn fingerprints_cannot_be_computed_without_the_secret() {
        for length in [0, 1, 16, 128, 240, 4096] {
            let bytes = vec![b'a'; length];
            assert_eq!(super::fingerprint_of(&bytes), super::fingerprint_of(&bytes));
            assert_ne!(super::fingerprint_of(&bytes), xxh3_128(&bytes), "{length}");
        }
    }
}
