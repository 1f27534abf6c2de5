//! Reads what environments say about their DAG runs and tasks, from the spool that their listener writes to.
//!
//! How far it was read is stored with the events, in one transaction, so that each line is stored once, whenever this
//! process ends. An environment that says too much is read more slowly; its spool fills up, and its listener counts what
//! it drops.
//!
//! A segment is removed when it was read and that is stored. Untrusted code owns the directory: files are opened without
//! following links, and only regular ones.

use std::fs::{self, File, Metadata};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use podium_airflow::spool::{
    DROPPED, Found, MOST_ENTRIES, Next, Segment, allowed_events, most_lines, segment_name, segment_number,
};
use podium_api::{DeploymentId, Timestamp};
use podium_domain::events::{SpoolPosition, SpoolState};
use rustix::io::Errno;

use super::layout::missing_is_none;
use super::tail::{open_below, restarting};
use super::trees;
use crate::blocking::{assert_may_block, blocking};
use crate::{Claims, Clock, Fault};

const PACE: Duration = Duration::from_secs(1);

/// Reads the spool of an environment until it is dropped, despite errors and panics.
pub(super) async fn follow(id: DeploymentId, spool: PathBuf, claims: Arc<dyn Claims>, clock: Clock) {
    let read = || {
        let reader =
            Reader { id, spool: spool.clone(), claims: Arc::clone(&claims), clock: Arc::clone(&clock) };
        async move {
            let Err(fault) = reader.run().await;
            tracing::warn!(%id, %fault, "the events of an environment cannot be stored yet");
        }
    };
    restarting(read, |error| {
        tracing::error!(%id, %error, "reading the events of an environment failed and restarts");
    })
    .await;
}

struct Reader {
    id: DeploymentId,
    spool: PathBuf,
    claims: Arc<dyn Claims>,
    clock: Clock,
}

impl Reader {
    async fn run(self) -> Result<std::convert::Infallible, Fault> {
        let mut state = self.claims.state(self.id).await?;
        loop {
            let Some((next, has_events)) = self.step(state).await? else {
                tokio::time::sleep(PACE).await;
                continue;
            };
            state = next;
            // What is no event is not charged to the environment, so it must not be read as fast as it is written.
            if !has_events {
                tokio::time::sleep(PACE).await;
            }
        }
    }

    /// Stores what is new, and says whether there were events in it; `None` if there is nothing, or the environment may say
    /// no more for now.
    async fn step(&self, state: SpoolState) -> Result<Option<(SpoolState, bool)>, Fault> {
        let now = (self.clock)();
        let allowed = allowed_events(&state, now);
        // A scan may empty the spool, and what it counts would be lost.
        if allowed == 0 {
            return Ok(None);
        }
        let (spool, from) = (self.spool.clone(), state.position);
        let found = blocking(move || scan(&spool, from, most_lines(allowed), now)).await;
        let has_events = found.has_events();
        let Some(batch) = found.batch(from) else { return Ok(None) };
        match self.claims.record(self.id, batch).await? {
            Some(next) => Ok(Some((next, has_events))),
            None => Err(Fault::Failed("somebody else has read them, or the deployment is gone".into())),
        }
    }
}

/// How many entries are removed at a time.
const REMOVED: u64 = 20_000;

/// Reads at most so many lines from a position on, and removes what is before it. What cannot be read now is left for later.
pub(super) fn scan(spool: &Path, from: SpoolPosition, most: usize, now: Timestamp) -> Found {
    assert_may_block();
    let mut found = Found::from(from);
    if let Err(error) = missing_is_none(find(spool, from, most, now, &mut found)) {
        tracing::warn!(path = %spool.display(), %error, "a spool cannot be read yet");
    }
    found
}

fn find(spool: &Path, from: SpoolPosition, most: usize, now: Timestamp, found: &mut Found) -> io::Result<()> {
    let Some(segments) = segments(spool)? else {
        trees::clear(spool, None, REMOVED)?;
        found.dropped += 1;
        return Ok(());
    };
    count_dropped(spool, found)?;
    let Some(newest) = segments.last().copied() else { return Ok(()) };
    // The spool was emptied, and its numbers have begun anew.
    let from = if newest < from.segment { SpoolPosition::default() } else { from };
    for segment in segments {
        let path = spool.join(segment_name(segment));
        if segment < from.segment {
            trees::remove(&path)?;
            continue;
        }
        let Some((file, metadata)) = open(spool, &path)? else {
            trees::remove(&path)?;
            found.dropped += 1;
            continue;
        };
        let offset = if segment == from.segment { from.read_bytes } else { 0 };
        let changed = Timestamp::from_millis(metadata.mtime().saturating_mul(1000));
        let open = Segment::new(segment, metadata.len(), changed, newest, now);
        let bytes = |part: Range<u64>| {
            let mut bytes = vec![0; usize::try_from(part.end - part.start).unwrap_or_default()];
            let length = file.read_at(&mut bytes, part.start)?;
            bytes.truncate(length);
            Ok::<_, io::Error>(bytes)
        };
        if open.read(offset, most, found, bytes)? == Next::Later {
            break;
        }
    }
    Ok(())
}

/// The numbers of the segments in order; `None` if there is more than a listener makes.
fn segments(spool: &Path) -> io::Result<Option<Vec<u64>>> {
    let (mut numbers, mut count) = (Vec::new(), 0);
    for entry in fs::read_dir(spool)? {
        let name = entry?.file_name();
        numbers.extend(name.to_str().and_then(segment_number));
        count += 1;
        if count > MOST_ENTRIES {
            return Ok(None);
        }
    }
    numbers.sort_unstable();
    Ok(Some(numbers))
}

/// Notes how many events were dropped since the last time.
fn count_dropped(spool: &Path, found: &mut Found) -> io::Result<()> {
    let path = spool.join(DROPPED);
    let file = missing_is_none(fs::symlink_metadata(&path))?.filter(Metadata::is_file);
    let size = file.map_or(0, |metadata| metadata.len());
    if found.count_dropped(size) { trees::remove(&path) } else { Ok(()) }
}

/// Opens a segment; `None` if it is none that a listener has written.
fn open(spool: &Path, path: &Path) -> io::Result<Option<(File, Metadata)>> {
    let name = path.strip_prefix(spool).unwrap_or(path);
    let opened = match open_below(spool, name) {
        Ok(opened) => opened,
        Err(error) => {
            let foreign = [Errno::LOOP, Errno::NXIO, Errno::ACCESS, Errno::PERM].map(Errno::raw_os_error);
            return if error.raw_os_error().is_some_and(|it| foreign.contains(&it)) {
                Ok(None)
            } else {
                Err(error)
            };
        }
    };
    let metadata = opened.metadata()?;
    Ok((metadata.is_file() && metadata.nlink() == 1).then_some((opened, metadata)))
}

#[cfg(test)]
mod tests;
