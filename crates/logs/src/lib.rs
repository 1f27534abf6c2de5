//! Logs of deployments: append, search newest first, forget.
//!
//! The face ([`LogStore`]) takes batches of lines; a search becomes a [`Snapshot`] that fixes what it sees, and pages are
//! read from it. Behind it, lines go to a journal and into memory first, and from there into compressed segments, one or
//! more for each deployment and hour, which are searched by an index of words. It refuses to know who may read, what a
//! deployment is made of, and what time it is: all of that is given.
//!
//! Memory is bounded whatever is stored and asked: lines that are in no segment yet are bounded together, and a search
//! holds a few blocks, the places of what it found, and one page.

mod bells;
mod block;
mod bytes;
mod find;
mod follow;
mod hour;
mod journal;
mod lock;
mod merge;
mod numbers;
mod origins;
mod query;
mod scan;
mod search_team;
mod segment;
mod settle;
mod shared;
mod snapshots;
mod store;
mod tails;
mod tokens;
mod view;
mod writer;

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::ops::Range;
use std::path::Path;

use podium_api::enums::LogSource;
use podium_api::{DeploymentId, Timestamp};

pub use follow::{Follow, Follower, News, Numbered};
pub use origins::Origin;
pub use query::Query;
pub use snapshots::Snapshot;
pub use store::LogStore;

/// A line that a component of a deployment wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The deployment.
    pub deployment_id: DeploymentId,
    /// The component.
    pub source: LogSource,
    /// When it was written.
    pub timestamp: Timestamp,
    /// What was written; a very long text is kept as several lines.
    pub text: String,
}

/// What to look for.
#[derive(Clone, Debug)]
pub struct Search {
    /// The deployment.
    pub deployment_id: DeploymentId,
    /// From when, and until before when.
    pub window: Range<Timestamp>,
    /// The components; none gives no lines.
    pub sources: Vec<LogSource>,
    /// What the lines must say.
    pub query: Query,
    /// How many lines are found at the most, over all pages.
    pub max_results: u64,
}

/// Which part of what was found.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// How many lines to skip.
    pub offset: u64,
    /// How many lines to read at the most.
    pub limit: u64,
}

/// A line that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// When it was written.
    pub timestamp: Timestamp,
    /// The component.
    pub source: LogSource,
    /// What was written.
    pub text: String,
}

/// Replaces a file atomically and durably.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let unfinished = path.with_extension("unfinished");
    let mut file = File::create(&unfinished)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(unfinished, path)?;
    path.parent().map_or(Ok(()), |directory| File::open(directory)?.sync_all())
}

/// What may be gone by now is not there.
fn missing_is_none<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
