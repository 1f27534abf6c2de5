//! The thread that flushes lines to segments, merges small segments, and deletes expired ones.
//!
//! It runs tasks in the order in which the writer sends them; so a journal file is deleted only after everything in it
//! is in segments. While it is idle it merges segments of past hours, so that a search opens few files: well filled
//! blocks are copied as they are stored; small ones are unpacked and combined. Merged segments are replaced under a
//! lock, so that a list of segments is made before or after, never in between.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use std::{fs, io};

use podium_api::{DeploymentId, Timestamp};

use crate::block::{Block, FULL};
use crate::hour::{Hour, Key};
use crate::segment::{Blocks, Builder, Encoder, MAX_BLOCKS, Name, Segment, Unpacker};
use crate::shared::{Cut, Shared};
use crate::writer::Done;
use crate::{journal, missing_is_none};

/// The pause after a failed write, at first and at most.
const WAIT: Duration = Duration::from_millis(100);
const MOST_WAIT: Duration = Duration::from_secs(10);

/// How many segments of similar size are merged.
const SEVERAL: usize = 8;
/// The smallest size class; each further one is [`SEVERAL`] times as large.
const SMALLEST: u64 = 8 * 1024;
/// The maximum file size of a merged segment.
const LARGEST: u64 = 24 * 1024 * 1024;
/// A block with this much text is copied as it is.
const WELL_FILLED: usize = FULL / 2;

pub(crate) enum Task {
    /// Flush a piece of a tail to a segment.
    Flush(Arc<Cut>),
    /// Delete the journal files up to this one.
    DropJournal(u64),
    /// Delete the lines of a deployment below a number.
    Remove { deployment_id: DeploymentId, below: u64, done: Done },
    /// Delete days that ended before a time.
    Expire { before: Timestamp, now: Timestamp, done: Done },
    /// Report that all earlier tasks are done.
    Barrier(Done),
}

/// Starts the thread; it ends when the senders are dropped, or immediately when the store is closed.
pub(crate) fn start(shared: Arc<Shared>) -> io::Result<(Sender<Task>, JoinHandle<()>)> {
    let (sender, tasks) = channel();
    let flusher = Flusher { shared, encoder: Encoder::new()?, to_merge: VecDeque::new(), hour: None };
    let thread =
        std::thread::Builder::new().name("log segments".into()).spawn(move || flusher.run(&tasks))?;
    Ok((sender, thread))
}

struct Flusher {
    shared: Arc<Shared>,
    encoder: Encoder,
    /// Deployments whose segments are still to be merged.
    to_merge: VecDeque<DeploymentId>,
    /// The hour in which expiry last ran.
    hour: Option<Hour>,
}

impl Flusher {
    fn run(mut self, tasks: &Receiver<Task>) {
        while let Some(task) = self.next(tasks) {
            if self.shared.stops() {
                // Everything else is in the journal.
                return;
            }
            match task {
                Task::Flush(cut) => self.flush(&cut),
                Task::DropJournal(generation) => {
                    if let Err(error) = journal::drop_up_to(&self.shared.journal(), generation) {
                        tracing::warn!(%error, "a file of the log journal cannot be deleted yet");
                    }
                }
                Task::Remove { deployment_id, below, done } => {
                    let _ = done.send(self.remove(deployment_id, below));
                }
                Task::Expire { before, now, done } => drop(done.send(self.expire(before, now))),
                Task::Barrier(done) => drop(done.send(Ok(()))),
            }
        }
    }

    /// The next task; segments are merged while there is none.
    fn next(&mut self, tasks: &Receiver<Task>) -> Option<Task> {
        loop {
            match tasks.try_recv() {
                Ok(task) => return Some(task),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) => {}
            }
            let Some(id) = self.to_merge.pop_front() else { return tasks.recv().ok() };
            if let Err(error) = self.merge_finished_hours(id) {
                tracing::warn!(%error, deployment = %id, "log segments cannot be merged yet");
            }
        }
    }

    /// Flushes a piece to a segment, retrying until it succeeds: the journal depends on it.
    fn flush(&mut self, cut: &Arc<Cut>) {
        let mut wait = WAIT;
        while let Err(error) = self.write(cut) {
            tracing::error!(%error, "a log segment cannot be written; retrying");
            self.shared.failed(&error);
            if self.shared.stops() {
                return;
            }
            std::thread::park_timeout(wait);
            wait = (wait * 2).min(MOST_WAIT);
        }
        self.shared.tails.remove_flushed(cut);
        self.shared.flushed(cut.weight);
        if let Err(error) = self.merge_small(cut.key) {
            tracing::warn!(%error, deployment = %cut.key.0, "log segments cannot be merged yet");
        }
    }

    fn write(&mut self, cut: &Cut) -> io::Result<()> {
        let (id, hour) = cut.key;
        let mut segment = Builder::new(&mut self.encoder, &self.shared.directory(id), hour)?;
        for block in &cut.blocks {
            segment.add(block)?;
        }
        let Some(segment) = segment.finish(false)? else { return Ok(()) };
        let name = segment.name;
        segment.publish(name)
    }

    fn remove(&self, deployment_id: DeploymentId, below: u64) -> io::Result<()> {
        let directory = self.shared.directory(deployment_id);
        for name in Name::list_all(&directory)?.iter().filter(|name| name.first < below) {
            missing_is_none(fs::remove_file(directory.join(name.to_string())))?;
        }
        Name::drop_unfinished(&directory)?;
        // The directory stays if it contains newer segments or other files.
        let _ = fs::remove_dir(directory);
        Ok(())
    }

    /// Deletes expired days; once an hour, because whole days are deleted and all directories have to be listed.
    fn expire(&mut self, before: Timestamp, now: Timestamp) -> io::Result<()> {
        if self.hour == Some(Hour::of(now)) {
            return Ok(());
        }
        let deployments = self.shared.deployments()?;
        for id in &deployments {
            let directory = self.shared.directory(*id);
            let names = Name::list_all(&directory)?;
            let mut left = names.len();
            for name in names.iter().filter(|name| name.hour.day_ends() <= before) {
                missing_is_none(fs::remove_file(directory.join(name.to_string())))?;
                left -= 1;
            }
            if left == 0 {
                Name::drop_unfinished(&directory)?;
                let _ = fs::remove_dir(directory);
            }
        }
        self.hour = Some(Hour::of(now));
        self.to_merge = deployments.into();
        Ok(())
    }

    /// Merges the newest segments of an hour if there are several of similar size.
    fn merge_small(&mut self, key: Key) -> io::Result<()> {
        let directory = self.shared.directory(key.0);
        let mut names = Name::list(&directory)?;
        names.retain(|name| name.hour == key.1);
        if names.len() < SEVERAL {
            return Ok(());
        }
        let found = candidates(&directory, &names)?;
        let mut size = SMALLEST;
        while size <= LARGEST {
            let small = found.iter().rev().take_while(|one| one.length <= size).count();
            let run = &found[found.len() - small..];
            if small >= SEVERAL {
                return self.merge_runs(key.0, run);
            }
            size *= SEVERAL as u64;
        }
        Ok(())
    }

    /// Merges the segments of past hours as far as they fit together.
    fn merge_finished_hours(&mut self, id: DeploymentId) -> io::Result<()> {
        let (directory, now) = (self.shared.directory(id), self.hour);
        drop_covered(&directory)?;
        let mut names = Name::list(&directory)?;
        names.retain(|name| now.is_some_and(|now| name.hour < now));
        for hour in names.chunk_by(|left, right| left.hour == right.hour).filter(|hour| hour.len() > 1) {
            self.merge_runs(id, &candidates(&directory, hour)?)?;
        }
        Ok(())
    }

    /// Merges adjacent segments as long as they fit into one.
    fn merge_runs(&mut self, id: DeploymentId, found: &[Candidate]) -> io::Result<()> {
        let mut run: Vec<Name> = Vec::new();
        let (mut length, mut blocks) = (0, 0);
        for one in found {
            if length + one.length > LARGEST || blocks + one.blocks > MAX_BLOCKS {
                self.merge(id, &run)?;
                run.clear();
                (length, blocks) = (0, 0);
            }
            run.push(one.name);
            length += one.length;
            blocks += one.blocks;
        }
        self.merge(id, &run)
    }

    /// Replaces adjacent segments by one.
    fn merge(&mut self, id: DeploymentId, run: &[Name]) -> io::Result<()> {
        let [first, .., last] = run else { return Ok(()) };
        let directory = self.shared.directory(id);
        let mut builder = Builder::new(&mut self.encoder, &directory, first.hour)?;
        let mut unpacker = Unpacker::default();
        let mut small = Block::default();
        for name in run {
            let segment = Segment::open(&directory.join(name.to_string()))?;
            let mut filled = Blocks::NONE;
            let is_sound = segment.is_sound()?;
            for (number, header) in segment.headers().enumerate() {
                if is_sound && header.packed as usize >= WELL_FILLED {
                    filled.add(number);
                    continue;
                }
                let Some(block) = segment.block(number, &mut unpacker)? else { continue };
                for index in 0..block.len() {
                    let text = block.text_of(index);
                    if small.is_full_for(text.len()) {
                        builder.add(&std::mem::take(&mut small))?;
                    }
                    small.push(block.millis[index], block.numbers[index], block.sources[index], text);
                }
            }
            if !filled.is_empty() {
                builder.copy(&segment, &filled)?;
            }
        }
        if !small.is_empty() {
            builder.add(&small)?;
        }
        // If everything is damaged, there is nothing to replace them with.
        let Some(merged) = builder.finish(true)? else { return Ok(()) };
        let _alone = self.shared.names.write().unwrap_or_else(PoisonError::into_inner);
        merged.publish(Name { hour: first.hour, first: first.first, last: last.last })?;
        for name in run {
            missing_is_none(fs::remove_file(directory.join(name.to_string())))?;
        }
        Ok(())
    }
}

struct Candidate {
    name: Name,
    length: u64,
    blocks: usize,
}

/// Deletes segments that were merged by a process that ended before it could delete them.
fn drop_covered(directory: &Path) -> io::Result<()> {
    let kept = Name::list(directory)?;
    for name in Name::list_all(directory)?.iter().filter(|name| !kept.contains(name)) {
        missing_is_none(fs::remove_file(directory.join(name.to_string())))?;
    }
    Ok(())
}

fn candidates(directory: &Path, names: &[Name]) -> io::Result<Vec<Candidate>> {
    let candidate = |name: &Name| {
        let path = directory.join(name.to_string());
        let blocks = Segment::open(&path)?.len();
        Ok(Candidate { name: *name, length: fs::metadata(&path)?.len(), blocks })
    };
    names.iter().map(candidate).collect()
}
