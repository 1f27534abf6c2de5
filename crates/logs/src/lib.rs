//! Logs of deployments: append, search newest first, delete.
//!
//! [`LogStore`] takes batches of lines; a search becomes a [`Snapshot`] with a fixed view, from which pages are read.
//! Lines first go to a journal and into memory, and from there into compressed segments, one or more for each
//! deployment and hour, which are searched with an index of words. Access control, the structure of deployments and the
//! current time are the caller's business.
//!
//! Memory is bounded whatever is stored or searched: lines that are in no segment yet are bounded in total, and a
//! search holds a few blocks, the positions of its hits, and one page.

mod block;
mod bytes;
mod count;
mod find;
mod flusher;
mod follow;
mod hour;
mod journal;
mod origins;
mod parallel_scan;
mod query;
mod scan;
mod segment;
mod shared;
mod snapshots;
mod store;
mod tally;
mod view;
mod writer;

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::ops::Range;
use std::path::Path;

use podium_api::enums::LogSource;
use podium_api::{DeploymentId, Timestamp};

pub use count::Counts;
pub use follow::{Follow, Follower, NewLines, Numbered};
pub use origins::Origin;
pub use query::Query;
pub use snapshots::Snapshot;
pub use store::LogStore;

/// A line that a component of a deployment wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub deployment_id: DeploymentId,
    pub source: LogSource,
    pub timestamp: Timestamp,
    /// The text; a very long one is stored as several lines.
    pub text: String,
}

#[derive(Clone, Debug)]
pub struct Search {
    pub deployment_id: DeploymentId,
    /// The time range, excluding its end.
    pub window: Range<Timestamp>,
    /// The components; none gives no lines.
    pub sources: Vec<LogSource>,
    /// The query that lines must match.
    pub query: Query,
    /// The maximum number of results, over all pages.
    pub max_results: u64,
}

#[derive(Clone, Copy, Debug)]
pub struct Page {
    pub offset: u64,
    /// How many lines to read at the most.
    pub limit: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub timestamp: Timestamp,
    pub source: LogSource,
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

/// Turns a missing file into `None`.
fn missing_is_none<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
