//! Follows a deployment: lines in the order in which they are written.
//!
//! A follower holds no lines. It is woken by a notification and reads from the store after the last line that it has
//! seen; a slow one reads later and misses nothing.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use podium_api::DeploymentId;
use podium_api::enums::LogSource;
use tokio::sync::watch;

use crate::block::{Summary, source_bits};
use crate::hour::Hour;
use crate::scan::Scan;
use crate::shared::Shared;
use crate::view::View;
use crate::{Entry, Query};

/// The approximate maximum of lines, and of bytes of text, that are read at once.
const AT_ONCE: usize = 500;
const BYTES_AT_ONCE: usize = 1024 * 1024;

#[derive(Clone, Debug)]
pub struct Follow {
    pub deployment_id: DeploymentId,
    /// The components; none gives no lines.
    pub sources: Vec<LogSource>,
    /// The query that lines must match.
    pub query: Query,
}

#[derive(Debug)]
pub struct Follower {
    pub(crate) search: Follow,
    pub(crate) after: u64,
    wakeups: watch::Receiver<()>,
}

/// A line with its number, which is higher than that of every line written before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbered {
    pub number: u64,
    pub entry: Entry,
}

#[derive(Debug)]
pub struct NewLines {
    /// The lines, in the order of writing.
    pub lines: Vec<Numbered>,
    /// Everything up to this number has been read, whether it matched or not.
    pub seen: u64,
    pub has_more: bool,
}

impl Follower {
    pub(crate) fn new(search: Follow, after: u64, wakeups: watch::Receiver<()>) -> Self {
        Self { search, after, wakeups }
    }

    /// The number up to which everything has been seen.
    pub fn seen(&self) -> u64 {
        self.after
    }

    /// Records that new lines have been seen.
    pub fn advance(&mut self, news: &NewLines) {
        self.after = self.after.max(news.seen);
    }

    /// Waits until something has been written since the last call; `false` if nothing will follow.
    pub async fn woken(&mut self) -> bool {
        self.wakeups.changed().await.is_ok()
    }
}

/// Reads what was written after a number.
pub(crate) fn new_lines(shared: &Shared, search: &Follow, after: u64) -> io::Result<NewLines> {
    let below = shared.next();
    let everything = below.saturating_sub(1).max(after);
    let sources = source_bits(&search.sources);
    let mut view = View::new(shared, search.deployment_id, Some(after), |_| true)?;
    let words = search.query.words_to_look_up();
    let fits = |summary: &Summary| {
        summary.numbers.1 > after && summary.numbers.0 < below && summary.sources & sources != 0
    };
    let hours: Vec<Hour> = view.hours.keys().copied().collect();
    let mut candidates = Vec::new();
    for hour in hours {
        candidates.extend(view.candidates(hour, &words, fits)?);
    }
    candidates.sort_by_key(|candidate| candidate.summary.numbers.0);
    let mut scan = Scan::new(&search.query);
    let mut pending: BTreeMap<u64, Entry> = BTreeMap::new();
    let mut bytes = 0;
    // Lines from here on are left for the next call.
    let mut left = below;
    for candidate in candidates {
        if candidate.summary.numbers.0 >= left {
            break;
        }
        let Some(block) = view.block(&candidate.place)? else { continue };
        let fits = |index: usize| {
            let number = block.numbers[index];
            number > after && number < below && sources & 1 << block.sources[index] != 0
        };
        scan.lines(&block, fits, |index| {
            let number = block.numbers[index];
            if number >= left {
                return;
            }
            if let Some(entry) = block.entry(index) {
                bytes += entry.text.len();
                pending.insert(number, entry);
            }
            while pending.len() > AT_ONCE || bytes > BYTES_AT_ONCE && pending.len() > 1 {
                let Some((number, dropped)) = pending.pop_last() else { break };
                bytes -= dropped.text.len();
                left = number;
            }
        });
    }
    let has_more = left < below;
    let seen = if has_more { left - 1 } else { everything };
    let lines = pending.into_iter().map(|(number, entry)| Numbered { number, entry }).collect();
    Ok(NewLines { lines, seen, has_more })
}

/// One channel for each deployment that is followed.
#[derive(Default)]
pub(crate) struct Notifier(Mutex<HashMap<DeploymentId, watch::Sender<()>>>);

impl Notifier {
    fn lock(&self) -> MutexGuard<'_, HashMap<DeploymentId, watch::Sender<()>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn subscribe(&self, deployment_id: DeploymentId) -> watch::Receiver<()> {
        let mut senders = self.lock();
        senders.retain(|_, sender| sender.receiver_count() > 0);
        senders.entry(deployment_id).or_insert_with(|| watch::channel(()).0).subscribe()
    }

    pub(crate) fn notify(&self, deployments: impl Iterator<Item = DeploymentId>) {
        let senders = self.lock();
        if senders.is_empty() {
            return;
        }
        for sender in deployments.filter_map(|id| senders.get(&id)) {
            sender.send_replace(());
        }
    }

    /// Closes the channel of a deployment: its followers learn that nothing follows.
    pub(crate) fn close(&self, deployment_id: DeploymentId) {
        self.lock().remove(&deployment_id);
    }
}
