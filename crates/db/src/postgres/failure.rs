//! What can go wrong on a connection, and what that means to a caller.

use tokio_postgres::error::SqlState;

use crate::Error;

/// Why a statement has no answer.
#[derive(Debug)]
pub(super) enum Failure {
    /// The connection is gone, or of no further use.
    Lost(String),
    Refused(Refusal),
    /// The parameters do not fit the statement.
    Unfit(String),
    /// The guard does not hold.
    Stale,
}

#[derive(Debug, Default)]
pub(super) struct Refusal {
    code: String,
    message: String,
    constraint: String,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl Failure {
    pub(super) fn lost(error: &std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut => {
                Self::Lost("PostgreSQL does not respond".to_owned())
            }
            _ => Self::Lost(error.to_string()),
        }
    }

    /// Reads the fields of a refusal: a letter and a text each.
    pub(super) fn refused(body: &[u8]) -> Self {
        let mut refusal = Refusal::default();
        for field in body.split(|byte| *byte == 0) {
            let Some((letter, text)) = field.split_first() else { continue };
            let text = || String::from_utf8_lossy(text).into_owned();
            match letter {
                b'C' => refusal.code = text(),
                b'M' => refusal.message = text(),
                b'n' => refusal.constraint = text(),
                _ => {}
            }
        }
        Self::Refused(refusal)
    }

    /// Whether the connection is of no further use: gone, or remembering statements that the server does not.
    pub(super) fn is_loss(&self) -> bool {
        match self {
            Self::Lost(_) => true,
            Self::Refused(Refusal { code, message, .. }) => {
                let forgotten = code == "26000" || code == "0A000" && message.contains("cached plan");
                forgotten || code.starts_with("08") || code.starts_with("57P")
            }
            Self::Unfit(_) | Self::Stale => false,
        }
    }

    /// What it means to a caller.
    pub(super) fn into_error(self) -> Error {
        let is_loss = self.is_loss();
        match self {
            Self::Lost(message) => Error::Unavailable(message),
            Self::Refused(Refusal { code, message, constraint }) => {
                if let Some(meaning) = meaning(&SqlState::from_code(&code), &constraint) {
                    meaning
                } else if is_loss || code.starts_with("53") || code.starts_with("57") {
                    Error::Unavailable(format!("{code}: {message}"))
                } else {
                    Error::Other(format!("{code}: {message}"))
                }
            }
            Self::Unfit(message) => Error::Other(message),
            Self::Stale => Error::Stale,
        }
    }
}

/// What callers tell apart.
fn meaning(code: &SqlState, constraint: &str) -> Option<Error> {
    if *code == SqlState::UNIQUE_VIOLATION {
        Some(Error::Unique(constraint.to_owned()))
    } else if *code == SqlState::FOREIGN_KEY_VIOLATION || *code == SqlState::RESTRICT_VIOLATION {
        Some(Error::ForeignKey)
    } else if *code == SqlState::T_R_SERIALIZATION_FAILURE || *code == SqlState::T_R_DEADLOCK_DETECTED {
        Some(Error::Lost)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_told_apart() {
        let error = |code: &str| {
            let body = format!("SERROR\0C{code}\0Mno such luck\0nitems_pkey\0\0");
            let failure = Failure::refused(body.as_bytes());
            (failure.is_loss(), failure.into_error())
        };
        assert_eq!(error("23505"), (false, Error::Unique("items_pkey".into())));
        assert_eq!(error("23503"), (false, Error::ForeignKey));
        assert_eq!(error("40001"), (false, Error::Lost));
        assert_eq!(error("57014"), (false, Error::Unavailable("57014: no such luck".into())));
        assert_eq!(error("57P01"), (true, Error::Unavailable("57P01: no such luck".into())));
        assert_eq!(error("42P01"), (false, Error::Other("42P01: no such luck".into())));
    }
}
