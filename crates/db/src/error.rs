//! Errors, reduced to what a caller can act on.
//!
//! The messages are for operators. What a user reads is decided far above this crate.

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a statement or a unit of work failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A unique index refused the row: the constraint's name (PostgreSQL) or its columns (SQLite).
    #[error("unique constraint violated: {0}")]
    Unique(String),
    /// A row refers to a missing row, or is still referred to.
    #[error("foreign key constraint violated")]
    ForeignKey,
    /// The unit's guard no longer holds.
    #[error("the guard of this unit no longer holds")]
    Stale,
    /// Another writer was faster: the unit has to be retried.
    #[error("lost a race against another writer")]
    Lost,
    /// The database cannot be reached, is full or has too much to do.
    #[error("database unavailable: {0}")]
    Unavailable(String),
    /// A unit of work panicked: a defect, with the message of the panic.
    #[error("a unit of work panicked: {0}")]
    Panicked(String),
    /// A defect in a statement, a unit or the data.
    #[error("database error: {0}")]
    Other(String),
}

impl Error {
    pub(crate) fn other(message: impl std::fmt::Display) -> Self {
        Self::Other(message.to_string())
    }

    pub(crate) fn unavailable(message: impl std::fmt::Display) -> Self {
        Self::Unavailable(message.to_string())
    }
}

/// An error that a unit of work may fail with: it can wrap an [`Error`] and expose it.
///
/// Retries depend on the exposed error, so an implementation must not hide [`Error::Lost`].
pub trait Fault: From<Error> + Send + 'static {
    /// The database error inside, if that is what this is.
    fn db(&self) -> Option<&Error>;
}

impl Fault for Error {
    fn db(&self) -> Option<&Error> {
        Some(self)
    }
}
