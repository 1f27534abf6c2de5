//! The thread that waits for the disk: syncs the log after each group and then answers the group's units, while the writer
//! runs the next ones.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender};

use super::durable::Durable;
use super::files;
use crate::unit::{Unit, publish};
use crate::{Change, Error, OnCommit, Result};

/// The write-ahead log, as far as it has to get to the disk.
pub(super) struct Log {
    /// Returns when everything that was written to it is on disk.
    pub(super) sync: Box<dyn FnMut() -> io::Result<()> + Send>,
    /// Whether SQLite may sync it by itself, where nobody waits behind a unit.
    pub(super) may_sync_itself: bool,
}

/// Units that were committed together, and what they changed.
pub(super) struct Group {
    pub(super) number: u64,
    pub(super) units: Vec<Unit>,
    pub(super) changes: Vec<Change>,
}

/// The writer's end. At most one group is on its way to the disk at a time.
pub(super) struct Syncer {
    groups: Sender<Group>,
    /// Hears of the end of each sync.
    pub(super) ended: Receiver<()>,
    in_flight: bool,
    thread: JoinHandle<()>,
}

impl Syncer {
    pub(super) fn start(log: Log, durable: Arc<Durable>, on_commit: OnCommit) -> Result<Self> {
        let (groups, incoming) = crossbeam_channel::bounded(1);
        let (end, ended) = crossbeam_channel::bounded(1);
        let mut work = Work { groups: incoming, end, log, durable, on_commit };
        let thread =
            std::thread::Builder::new().name("podium-syncer".to_owned()).spawn(move || work.run()).map_err(
                |error| Error::unavailable(format_args!("cannot start the syncing thread: {error}")),
            )?;
        Ok(Self { groups, ended, in_flight: false, thread })
    }

    /// Whether a group is on its way to the disk.
    pub(super) const fn in_flight(&self) -> bool {
        self.in_flight
    }

    /// Notes that a message came out of `ended`.
    pub(super) const fn note_end(&mut self) {
        self.in_flight = false;
    }

    /// Waits for the group that is on its way.
    pub(super) fn wait(&mut self) {
        if self.in_flight {
            // The thread ends after the writer does, so that there is an answer.
            let _ = self.ended.recv();
            self.in_flight = false;
        }
    }

    /// Hands a committed group over; the one before must have ended.
    pub(super) fn hand_over(&mut self, group: Group) {
        match self.groups.send(group) {
            Ok(()) => self.in_flight = true,
            Err(lost) => refuse(lost.into_inner().units, &Error::unavailable("the syncing thread has ended")),
        }
    }

    /// Waits for everything that was handed over to be answered.
    pub(super) fn finish(self) {
        drop(self.groups);
        if self.thread.join().is_err() {
            tracing::error!("the syncing thread did not end well");
        }
    }
}

struct Work {
    groups: Receiver<Group>,
    end: Sender<()>,
    log: Log,
    durable: Arc<Durable>,
    on_commit: OnCommit,
}

impl Work {
    fn run(&mut self) {
        while let Ok(group) = self.groups.recv() {
            let Group { number, units, changes } = group;
            let synced = (self.log.sync)();
            match &synced {
                Ok(()) => {
                    self.durable.reached(number);
                    publish(&self.on_commit, &changes);
                }
                Err(error) => self.durable.fail(unsynced(error)),
            }
            // The writer need not wait for the answers: waking hundreds of callers takes a while.
            let _ = self.end.send(());
            match self.durable.failure() {
                None => units.into_iter().for_each(Unit::answer),
                Some(error) => refuse(units, &error),
            }
        }
    }
}

pub(super) fn refuse(units: Vec<Unit>, error: &Error) {
    units.into_iter().for_each(|unit| unit.refuse(error.clone()));
}

/// What callers and the operator are told of a failed sync.
pub(super) fn unsynced(error: &dyn std::fmt::Display) -> Error {
    tracing::error!(
        %error,
        "the database cannot be synced to disk: nothing is read or written any more until the server is started again"
    );
    Error::Unavailable(format!(
        "the database could not be synced to disk: {error}; check the disk, then start again"
    ))
}

impl Log {
    /// The log of a database that is open.
    ///
    /// The file is opened once, before anything is written: the kernel reports a failed write to every descriptor that was
    /// open when it failed. SQLite removes the log when its last connection is closed, and the writer's is not.
    pub(super) fn of(database: &Path) -> Result<Self> {
        let path = files::beside(database, "-wal");
        let file = File::open(&path).map_err(|error| files::cannot_open(&path, &error))?;
        let directory = database.parent().unwrap_or(Path::new("/"));
        File::open(directory)
            .and_then(|directory| directory.sync_all())
            .map_err(|error| files::cannot_open(directory, &error))?;
        let sync = move || {
            file.sync_data()?;
            if file.metadata()?.nlink() == 0 {
                return Err(io::Error::other("somebody removed its write-ahead log"));
            }
            Ok(())
        };
        Ok(Self { sync: Box::new(sync), may_sync_itself: true })
    }
}
