//! The rows of an answer, as they came.

use std::sync::Arc;

use bytes::Bytes;
use tokio_postgres::types::{FromSql, Type};

use crate::{Error, Result, Value};

#[derive(Default)]
pub(super) struct Answer {
    pub(super) columns: Arc<[Type]>,
    pub(super) rows: Vec<Bytes>,
    /// How many rows the statement touched.
    pub(super) touched: u64,
}

/// One row, with the places of its columns.
pub(crate) struct Line<'a> {
    columns: &'a [Type],
    body: &'a [u8],
    places: &'a [Place],
}

/// Where a column begins and how long it is; none of it is NULL.
type Place = (usize, Option<usize>);

impl Answer {
    /// Shows each row, until `visit` has seen enough.
    pub(super) fn each(&self, visit: &mut dyn FnMut(&Line<'_>) -> Result<bool>) -> Result<()> {
        let mut places = Vec::with_capacity(self.columns.len());
        for body in &self.rows {
            find(body, &mut places).ok_or_else(|| Error::other("PostgreSQL sent a row that is cut short"))?;
            if places.len() != self.columns.len() {
                return Err(Error::other("PostgreSQL sent a row with other columns than it had described"));
            }
            if !visit(&Line { columns: &self.columns, body, places: &places })? {
                break;
            }
        }
        Ok(())
    }

    /// The number in the first column of the only row.
    pub(super) fn number(&self) -> Result<Option<i64>> {
        if self.rows.len() != 1 {
            return Ok(None);
        }
        let mut found = None;
        self.each(&mut |line| {
            if let Value::Int(number) = line.column(0)? {
                found = Some(number);
            }
            Ok(false)
        })?;
        Ok(found)
    }
}

/// Finds the columns of a row.
fn find(body: &[u8], places: &mut Vec<Place>) -> Option<()> {
    places.clear();
    let (count, mut rest) = body.split_first_chunk()?;
    let mut at = 2;
    for _ in 0..u16::from_be_bytes(*count) {
        let (length, after) = rest.split_first_chunk()?;
        at += 4;
        let length = usize::try_from(i32::from_be_bytes(*length)).ok();
        places.push((at, length));
        rest = after.get(length.unwrap_or(0)..)?;
        at += length.unwrap_or(0);
    }
    Some(())
}

impl Line<'_> {
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    pub(crate) fn column(&self, index: usize) -> Result<Value<'_>> {
        let (Some((at, length)), Some(kind)) = (self.places.get(index), self.columns.get(index)) else {
            return Err(Error::Other(format!("there is no column {index}")));
        };
        let Some(length) = length else { return Ok(Value::Null) };
        Value::from_sql(kind, &self.body[*at..at + length])
            .map_err(|error| Error::Other(format!("column {index}: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_taken_apart() {
        let body = b"\0\x03\0\0\0\x02ab\xff\xff\xff\xff\0\0\0\x02\0\x07";
        let columns = [Type::TEXT, Type::TEXT, Type::INT2].into();
        let answer = Answer { columns, rows: vec![Bytes::from_static(body)], touched: 1 };
        let mut seen = 0;
        answer
            .each(&mut |line| {
                seen += 1;
                assert_eq!(
                    (line.len(), line.column(0), line.column(1)),
                    (3, Ok(Value::Text("ab")), Ok(Value::Null))
                );
                assert_eq!(line.column(2), Ok(Value::Int(7)));
                assert!(line.column(3).is_err());
                Ok(true)
            })
            .unwrap();
        assert_eq!(seen, 1);
    }

    #[test]
    fn rows_that_are_cut_short_are_errors() {
        for body in [&b"\0"[..], b"\0\x01", b"\0\x01\0\0\0\x02a", b"\0\x02\xff\xff\xff\xff"] {
            let answer = Answer { columns: [Type::TEXT].into(), rows: vec![body.into()], touched: 1 };
            assert!(answer.each(&mut |_| Ok(true)).is_err(), "{body:?}");
        }
    }
}
