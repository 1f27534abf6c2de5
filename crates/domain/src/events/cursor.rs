//! The position of a reader: everything up to it has been read.

use std::fmt;

use podium_api::FieldError;

/// A position in the stream of events. On the wire it is an opaque text, which is also the id of the event there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor {
    /// The transaction that wrote the event; 0 where one process writes, in the order of the sequence.
    pub transaction_id: i64,
    pub sequence: i64,
}

impl Cursor {
    /// Reads a cursor that a caller sent.
    pub fn parse(field: &str, text: &str) -> Result<Self, FieldError> {
        let number = |digits: &str| {
            let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.is_empty();
            digits.parse().ok().filter(|_| is_plain)
        };
        let numbers = text.trim().split_once('-');
        let read = numbers.and_then(|(transaction, sequence)| {
            Some(Self { transaction_id: number(transaction)?, sequence: number(sequence)? })
        });
        read.ok_or_else(|| {
            FieldError::new(field, "format", "must be the id of an event, or the `nextCursor` of a page")
        })
    }

    /// The position just before an event.
    pub const fn before(self) -> Self {
        Self { sequence: self.sequence - 1, ..self }
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.transaction_id, self.sequence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_was_written_and_nothing_else_is() {
        for cursor in [Cursor::default(), Cursor { transaction_id: 731, sequence: i64::MAX }] {
            assert_eq!(Cursor::parse("cursor", &cursor.to_string()), Ok(cursor));
        }
        for wrong in
            ["", "7", "-", "1-", "-1", "1-2-3", "+1-2", "1--2", "1-2x", "1-99999999999999999999", "a-b"]
        {
            let error = Cursor::parse("cursor", wrong).unwrap_err();
            assert_eq!((error.field.as_str(), error.code.as_str()), ("cursor", "format"), "{wrong}");
        }
    }

    #[test]
    fn cursors_are_in_the_order_of_transactions_and_then_of_numbers() {
        let at = |transaction_id, sequence| Cursor { transaction_id, sequence };
        assert!(at(1, 9) < at(2, 3) && at(2, 3) < at(2, 4));
        assert!(at(2, 4).before() < at(2, 4) && at(2, 4).before() >= at(2, 3));
    }
}
