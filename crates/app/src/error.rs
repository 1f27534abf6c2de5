//! The errors of endpoints, as one enum. What the caller reads and what the operator reads are separate fields.

use podium_api::FieldError;
use podium_db::Fault;
use podium_domain::{Reason, Refusal};

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("refused: {0:?}")]
    Refused(Refusal),
    /// The caller is not authenticated.
    #[error("unauthenticated: {0:?}")]
    Unauthenticated(Unauthenticated),
    /// Too many calls; retry after this many seconds.
    #[error("too many requests")]
    TooMany { retry_after: u64 },
    /// Too many streams are open; retry after this many seconds.
    #[error("too many streams")]
    TooManyStreams { whose: WhoseStreams, retry_after: u64 },
    /// The first request under this `Idempotency-Key` is still running.
    #[error("still running")]
    StillRunning,
    /// The stored response of an earlier request with the same key.
    #[error("answered before")]
    Replay(Box<Replay>),
    /// Only another node can answer; its name.
    #[error("the deployment runs on node {0}")]
    OtherNode(String),
    /// The disk is full; operators read where.
    #[error("{0}")]
    DiskFull(Reason),
    /// Too much is pending; the text returns what.
    #[error("{0}")]
    TooMuch(String),
    #[error(transparent)]
    Db(#[from] podium_db::Error),
    #[error("{0}")]
    Internal(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhoseStreams {
    Caller,
    Organization,
    Everybody,
}

/// A stored response.
#[derive(Debug)]
pub struct Replay {
    /// The version for the `ETag`.
    pub version: Option<i64>,
    pub body: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unauthenticated {
    Missing,
    /// It was not issued by this server.
    Malformed,
    Expired,
    /// It was deleted, rotated or signed out.
    Revoked,
    Password,
}

impl Unauthenticated {
    pub fn message(self) -> &'static str {
        match self {
            Self::Missing => "The token is missing: send it as `Authorization: Bearer <token>`.",
            Self::Malformed => {
                "The token is malformed: it was not issued by this server, or it is incomplete."
            }
            Self::Expired => "The token is expired: sign in again, or rotate the API token.",
            Self::Revoked => "The token is revoked: it was deleted, rotated or signed out.",
            Self::Password => "The username or password is wrong.",
        }
    }
}

impl Error {
    pub const STALE: Self = Self::Db(podium_db::Error::Stale);

    /// Whether the call lost every race against other changes of the same resource.
    pub fn is_lost(&self) -> bool {
        matches!(self, Self::Db(podium_db::Error::Lost))
    }

    pub fn is_stale(&self) -> bool {
        matches!(self, Self::Db(podium_db::Error::Stale))
    }

    /// Why the database is unavailable, if it is.
    pub fn unavailable(&self) -> Option<&str> {
        if let Self::Db(podium_db::Error::Unavailable(reason)) = self { Some(reason) } else { None }
    }
}

impl Fault for Error {
    fn db(&self) -> Option<&podium_db::Error> {
        if let Self::Db(error) = self { Some(error) } else { None }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<FieldError> for Error {
    fn from(error: FieldError) -> Self {
        Self::Refused(error.into())
    }
}

/// Turns a violated unique index into the conflict that it means.
pub trait OrConflict<T> {
    /// A 409 with this message if the key is taken.
    fn or_conflict(self, message: impl FnOnce() -> String) -> Result<T>;
}

impl<T> OrConflict<T> for podium_db::Result<T> {
    fn or_conflict(self, message: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|error| match error {
            podium_db::Error::Unique(_) => Refusal::Conflict(message()).into(),
            other => other.into(),
        })
    }
}
