//! Origins of batches: senders number their batches, so that a repeated one is not added again.
//!
//! The last batch of each sender is written to the journal together with its lines, and all of them are saved to a file
//! before a journal file is deleted.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;
use std::{fs, io};

use podium_api::DeploymentId;
use xxhash_rust::xxh3::xxh3_64;

use crate::{missing_is_none, replace};

const FILE: &str = "senders";
/// How many senders are tracked; the least recently active ones are dropped.
const MOST: usize = 100_000;

/// A batch of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The deployment that all lines belong to.
    pub deployment_id: DeploymentId,
    pub(crate) sender: u64,
    /// The sequence number of the batch: later ones have higher numbers.
    pub sequence: u64,
}

impl Origin {
    /// The batch of this number of a sender of a deployment.
    pub fn new(deployment_id: DeploymentId, sender: &str, sequence: u64) -> Self {
        Self { deployment_id, sender: xxh3_64(sender.as_bytes()), sequence }
    }
}

/// The last batch of a sender, and the number of its first line.
#[derive(Clone, Copy)]
struct Last {
    sequence: u64,
    number: u64,
}

/// The last batch of every sender.
#[derive(Default)]
pub(crate) struct Origins {
    known: HashMap<(DeploymentId, u64), Last>,
    is_changed: bool,
}

impl Origins {
    pub(crate) fn load(root: &Path) -> io::Result<Self> {
        let text = missing_is_none(fs::read_to_string(root.join(FILE)))?.unwrap_or_default();
        let read = |line: &str| {
            let mut words = line.split(' ');
            let id: DeploymentId = words.next()?.parse().ok()?;
            let mut number = || words.next()?.parse::<u64>().ok();
            Some(((id, number()?), Last { sequence: number()?, number: number()? }))
        };
        Ok(Self { known: text.lines().filter_map(read).collect(), is_changed: false })
    }

    /// Whether a batch has not been added yet.
    pub(crate) fn is_new(&self, origin: &Origin) -> bool {
        let last = self.known.get(&(origin.deployment_id, origin.sender));
        last.is_none_or(|last| origin.sequence > last.sequence)
    }

    /// Records that a batch has been added, with lines from this number on.
    pub(crate) fn note(&mut self, origin: &Origin, number: u64) {
        self.is_changed = true;
        let last = Last { sequence: origin.sequence, number };
        self.known.insert((origin.deployment_id, origin.sender), last);
        if self.known.len() > MOST {
            let mut numbers: Vec<u64> = self.known.values().map(|last| last.number).collect();
            let (_, middle, _) = numbers.select_nth_unstable(MOST / 2);
            let middle = *middle;
            self.known.retain(|_, last| last.number >= middle);
        }
    }

    pub(crate) fn forget(&mut self, deployment_id: DeploymentId) {
        self.known.retain(|(id, _), _| *id != deployment_id);
        self.is_changed = true;
    }

    /// Saves changes to the file.
    pub(crate) fn save(&mut self, root: &Path) -> io::Result<()> {
        if !self.is_changed {
            return Ok(());
        }
        let mut text = String::new();
        for ((id, sender), last) in &self.known {
            let _ = writeln!(text, "{id} {sender} {} {}", last.sequence, last.number);
        }
        replace(&root.join(FILE), text.as_bytes())?;
        self.is_changed = false;
        Ok(())
    }
}
