//! The writer thread: lines go to the journal and into the tails. Waiting batches are written together.
//!
//! A batch is acknowledged once it is written, without fsync: it survives a crash of this process. A power failure
//! loses what the operating system has not written to disk yet, a few seconds' worth.
//!
//! Lines have numbers, assigned in the order of writing and never reused. A file counts how often the store was opened;
//! each opening starts a new range of numbers. So nothing has to be saved for each line, and a number that a reader has
//! stored stays below everything that is written later.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;
use std::{fs, io};

use podium_api::{DeploymentId, Timestamp};
use tokio::sync::{mpsc, oneshot};

use crate::block::{number_of, pieces};
use crate::flusher::Task;
use crate::hour::{Hour, Key};
use crate::journal::{self, Frames, Journal, Record};
use crate::origins::Origins;
use crate::segment::Name;
use crate::shared::{Cut, Shared, TailsWriter};
use crate::{Line, Origin, missing_is_none, replace};

/// How many batches can wait before appends block.
const WAITING: usize = 256;
/// The approximate maximum of lines, and of bytes, that are written together.
const TOGETHER: usize = 20_000;
const BYTES_TOGETHER: usize = 4 * 1024 * 1024;
/// A journal file is rotated at this length.
const LONG_JOURNAL: u64 = 24 * 1024 * 1024;

pub(crate) enum Command {
    /// Append these lines; reports whether they are new.
    Append(Batch, Added),
    Remove(DeploymentId, Done),
    /// Delete days that ended before a time.
    Expire {
        before: Timestamp,
        now: Timestamp,
        done: Done,
    },
    Flush(Done),
}

/// Lines that are written together, with their origin if repetitions are to be detected.
pub(crate) struct Batch {
    pub(crate) lines: Vec<Line>,
    pub(crate) origin: Option<Origin>,
}

/// Reports whether lines were added.
pub(crate) type Added = oneshot::Sender<io::Result<bool>>;
pub(crate) type Done = oneshot::Sender<io::Result<()>>;

/// Replays the journal and starts the thread; it ends when all senders are dropped.
pub(crate) fn start(
    shared: Arc<Shared>,
    tasks: Sender<Task>,
) -> io::Result<(mpsc::Sender<Command>, JoinHandle<()>)> {
    let (sender, receiver) = mpsc::channel(WAITING);
    let journal = Journal::open(shared.journal())?;
    let origins = Origins::load(&shared.root)?;
    let mut writer =
        Writer { shared, tasks, origins, journal, frames: Frames::new(), next: 0, has_begun: false };
    writer.recover()?;
    let thread = std::thread::Builder::new().name("logs".into()).spawn(move || writer.run(receiver))?;
    Ok((sender, thread))
}

struct Writer {
    shared: Arc<Shared>,
    tasks: Sender<Task>,
    journal: Journal,
    frames: Frames,
    origins: Origins,
    next: u64,
    /// Whether the current range of numbers has been saved.
    has_begun: bool,
}

impl Writer {
    /// Loads the journal into the tails, except lines that are already in segments.
    fn recover(&mut self) -> io::Result<()> {
        let shared = Arc::clone(&self.shared);
        let mut flushed: HashMap<DeploymentId, HashMap<Hour, u64>> = HashMap::new();
        let mut highest = 0;
        journal::replay(&shared.journal(), |record| {
            match record {
                // Numbers only grow; one that does not is the result of damage.
                Record::Line { number, .. } | Record::Removal { number, .. } if number <= highest => {}
                Record::Line { number, deployment_id, millis, source, text } => {
                    highest = number;
                    let hour = Hour::of(Timestamp::from_millis(millis));
                    let of_deployment = match flushed.entry(deployment_id) {
                        Entry::Occupied(known) => known.into_mut(),
                        Entry::Vacant(new) => new.insert(flushed_in(&shared, deployment_id)?),
                    };
                    if of_deployment.get(&hour).is_none_or(|last| number > *last) {
                        let mut tails = shared.tails.writer();
                        tails.push((deployment_id, hour), millis, number, number_of(source), text);
                        let cuts = std::mem::take(&mut tails.cuts);
                        drop(tails);
                        self.hand_over(cuts);
                    }
                }
                Record::Batch { number, origin } => {
                    if number > highest {
                        self.origins.note(&origin, number);
                    }
                }
                Record::Removal { number, deployment_id } => {
                    highest = number;
                    self.origins.forget(deployment_id);
                    shared.tails.remove(deployment_id);
                    let (done, _) = oneshot::channel();
                    let _ = self.tasks.send(Task::Remove { deployment_id, below: number, done });
                }
            }
            Ok(())
        })?;
        self.next = next_range(&self.shared, highest)?;
        self.shared.publish(self.next);
        if highest > 0 {
            // The journal must not grow with every crash.
            self.rotate_journal();
        }
        Ok(())
    }

    fn run(mut self, mut commands: mpsc::Receiver<Command>) {
        while let Some(command) = commands.blocking_recv() {
            let (mut batches, mut waiting) = (Vec::new(), Vec::new());
            let (mut lines, mut bytes) = (0, 0);
            let mut next = Some(command);
            while let Some(Command::Append(batch, done)) = next {
                lines += batch.lines.len();
                bytes += batch.lines.iter().map(|line| line.text.len()).sum::<usize>();
                batches.push(batch);
                waiting.push(done);
                let has_room = lines < TOGETHER && bytes < BYTES_TOGETHER;
                next = if has_room { commands.try_recv().ok() } else { None };
            }
            if !waiting.is_empty() {
                self.answer(&mut batches, waiting);
            }
            match next {
                Some(Command::Remove(id, done)) => self.remove(id, done),
                Some(Command::Expire { before, now, done }) => {
                    self.shared.tails.forget(|hour| hour.day_ends() <= before);
                    let _ = self.tasks.send(Task::Expire { before, now, done });
                }
                Some(Command::Flush(done)) => {
                    self.rotate_journal();
                    let _ = self.tasks.send(Task::Barrier(done));
                }
                Some(Command::Append(..)) | None => {}
            }
        }
    }

    fn number(&mut self) -> io::Result<u64> {
        if !self.has_begun {
            begin_range(&self.shared, self.next)?;
            self.has_begun = true;
        }
        Ok(self.next)
    }

    /// Appends batches, except those that were added before, and reports the results.
    fn answer(&mut self, batches: &mut [Batch], waiting: Vec<Added>) {
        let mut sent: Vec<Origin> = Vec::new();
        let mut are_new = Vec::with_capacity(batches.len());
        for batch in batches.iter_mut() {
            let is_new = batch.origin.as_ref().is_none_or(|origin| {
                let is_same = |other: &Origin| {
                    (other.deployment_id, other.sender) == (origin.deployment_id, origin.sender)
                };
                let again = sent.iter().any(|other| is_same(other) && other.sequence >= origin.sequence);
                !again && self.origins.is_new(origin)
            });
            if !is_new {
                batch.lines.clear();
                batch.origin = None;
            }
            sent.extend(batch.origin);
            are_new.push(is_new);
        }
        let outcome = self.append(batches);
        for (added, is_new) in waiting.into_iter().zip(are_new) {
            let told = outcome.as_ref().map(|()| is_new);
            let _ = added.send(told.map_err(|error| io::Error::new(error.kind(), error.to_string())));
        }
    }

    fn append(&mut self, batches: &[Batch]) -> io::Result<()> {
        self.shared.has_room()?;
        let first = self.number()?;
        let mut number = first;
        let mut origins = Vec::new();
        for Batch { lines, origin } in batches {
            if let Some(origin) = origin {
                origins.push((*origin, number));
                self.frames.batch(&mut number, origin, lines);
                continue;
            }
            lines.iter().for_each(|line| self.frames.line(&mut number, line));
        }
        self.next = number;
        self.journal.write(&mut self.frames)?;
        origins.iter().for_each(|(origin, number)| self.origins.note(origin, *number));
        let lines = || batches.iter().flat_map(|batch| &batch.lines);
        let cuts = {
            let mut tails = self.shared.tails.writer();
            let mut number = first;
            lines().for_each(|line| push(&mut tails, &mut number, line));
            std::mem::take(&mut tails.cuts)
        };
        self.shared.publish(number);
        self.hand_over(cuts);
        if self.journal.length >= LONG_JOURNAL {
            self.rotate_journal();
        }
        let mut notified = None;
        let ids = lines().map(|line| line.deployment_id);
        self.shared.notifier.notify(ids.filter(|id| notified.replace(*id) != Some(*id)));
        Ok(())
    }

    /// Rotates the journal. Complete files are deleted once everything in them is in segments.
    fn rotate_journal(&mut self) {
        let cuts = self.shared.tails.cut_all();
        self.hand_over(cuts);
        let complete = self.journal.rotate();
        match self.origins.save(&self.shared.root) {
            Ok(()) => drop(self.tasks.send(Task::DropJournal(complete))),
            Err(error) => tracing::warn!(%error, "a file of the log journal cannot be deleted yet"),
        }
    }

    fn hand_over(&self, cuts: Vec<Arc<Cut>>) {
        for cut in cuts {
            self.shared.wait_for(cut.weight);
            let _ = self.tasks.send(Task::Flush(cut));
        }
    }

    fn remove(&mut self, deployment_id: DeploymentId, done: Done) {
        let noted = self.number().and_then(|below| {
            self.frames.removal(below, deployment_id);
            self.next = below + 1;
            self.journal.write(&mut self.frames).map(|()| below)
        });
        match noted {
            Ok(below) => {
                self.origins.forget(deployment_id);
                self.shared.tails.remove(deployment_id);
                self.shared.notifier.close(deployment_id);
                let _ = self.tasks.send(Task::Remove { deployment_id, below, done });
            }
            Err(error) => drop(done.send(Err(error))),
        }
    }
}

fn push(tails: &mut TailsWriter<'_>, number: &mut u64, line: &Line) {
    let key: Key = (line.deployment_id, Hour::of(line.timestamp));
    for text in pieces(&line.text) {
        tails.push(key, line.timestamp.millis(), *number, number_of(line.source), text);
        *number += 1;
    }
}

/// The number of the last line in segments, for each hour of a deployment.
fn flushed_in(shared: &Shared, deployment_id: DeploymentId) -> io::Result<HashMap<Hour, u64>> {
    let mut flushed = HashMap::new();
    for name in Name::list_all(&shared.directory(deployment_id))? {
        let last = flushed.entry(name.hour).or_insert(name.last);
        *last = name.last.max(*last);
    }
    Ok(flushed)
}

const FILE: &str = "stretch";
/// The number of bits of a number within a range.
const BITS: u32 = 40;

/// The first number of the next range: no line has this number or a higher one.
fn next_range(shared: &Shared, highest_seen: u64) -> io::Result<u64> {
    let noted = missing_is_none(fs::read_to_string(shared.root.join(FILE)))?;
    let noted = match noted.map(|text| text.trim().parse::<u64>()) {
        Some(Ok(noted)) => noted,
        // The file is lost: the names of segments show which numbers were used.
        Some(Err(_)) | None => highest_in_segments(shared)? >> BITS,
    };
    Ok((noted.max(highest_seen >> BITS) + 1) << BITS)
}

/// Saves that the range of a number has started.
fn begin_range(shared: &Shared, first: u64) -> io::Result<()> {
    fs::create_dir_all(&shared.root)?;
    replace(&shared.root.join(FILE), format!("{}\n", first >> BITS).as_bytes())
}

fn highest_in_segments(shared: &Shared) -> io::Result<u64> {
    let mut highest = 0;
    for id in shared.deployments()? {
        let names = Name::list_all(&shared.directory(id))?;
        highest = names.iter().map(|name| name.last).fold(highest, u64::max);
    }
    Ok(highest)
}
