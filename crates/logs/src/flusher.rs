//! The thread that brings lines into segments, merges small segments, and drops what has had its time.
//!
//! It does one thing after the other, in the order in which the writer asks; so a file of the journal is dropped only
//! after everything in it is in segments. While nothing is asked it merges segments of hours that are over.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use podium_api::{DeploymentId, Timestamp};

use crate::hour::Hour;
use crate::segment::{Builder, Encoder, Name};
use crate::shared::Shared;
use crate::tails::Cut;
use crate::writer::{Done, send_result};
use crate::{journal, merge, missing_is_none};

/// How long to wait after a write that failed, at first and at the most.
const WAIT: Duration = Duration::from_millis(100);
const MOST_WAIT: Duration = Duration::from_secs(10);

/// What the thread is asked to do.
pub(crate) enum Task {
    /// Bring a piece of a tail into a segment.
    Flush(Arc<Cut>),
    /// Drop the files of the journal up to this one.
    DropJournal(u64),
    /// Drop the lines of a deployment that are below a number.
    Remove { deployment_id: DeploymentId, below: u64, done: Done },
    /// Drop days that were over by then, at this moment.
    Expire { before: Timestamp, now: Timestamp, done: Done },
    /// Say that everything before is done.
    Barrier(Done),
}

/// Starts the thread; it ends when nobody can ask for anything any more, or at once where it is told to stop.
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
    /// Deployments whose segments are still to be looked through.
    to_merge: VecDeque<DeploymentId>,
    /// The hour in which everything was looked through last.
    hour: Option<Hour>,
}

impl Flusher {
    fn run(mut self, tasks: &Receiver<Task>) {
        while let Some(task) = self.next(tasks) {
            if self.shared.stops() {
                // The journal has everything that is left.
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
                    send_result(vec![done], &self.remove(deployment_id, below));
                }
                Task::Expire { before, now, done } => send_result(vec![done], &self.expire(before, now)),
                Task::Barrier(done) => send_result(vec![done], &Ok(())),
            }
        }
    }

    /// What to do next; while nothing is asked segments are merged.
    fn next(&mut self, tasks: &Receiver<Task>) -> Option<Task> {
        loop {
            match tasks.try_recv() {
                Ok(task) => return Some(task),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) => {}
            }
            let Some(id) = self.to_merge.pop_front() else { return tasks.recv().ok() };
            let now = self.hour;
            let over = |name: &Name| now.is_some_and(|now| name.hour < now);
            if let Err(error) = merge::merge_finished_hours(&self.shared, &mut self.encoder, id, over) {
                tracing::warn!(%error, deployment = %id, "log segments cannot be merged yet");
            }
        }
    }

    /// Brings a piece into a segment, however long it takes: the journal cannot go on without.
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
        if let Err(error) = merge::merge_small(&self.shared, &mut self.encoder, cut.key) {
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
        // What came since, or something else, may lie there; then the directory stays.
        let _ = fs::remove_dir(directory);
        Ok(())
    }

    /// Drops what is over; once an hour, because days are dropped whole and all directories have to be listed.
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
}
