//! The one thread that writes files. Batches that wait are written together, one frame for each file.
//!
//! A batch is acknowledged once the operating system has it: it survives the end of this process at any moment, not a
//! loss of power. A write that fails leaves nothing half-written behind.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::sync::Arc;

use podium_api::{Id, Timestamp};
use tokio::sync::{mpsc, oneshot};

use crate::Line;
use crate::backwards;
use crate::day::Day;
use crate::day_files::{DayFiles, Key, missing_is_none};
use crate::frame::frames;

/// How many files are kept open to write.
const OPEN: usize = 64;
/// How many batches can wait before those who bring them have to.
const WAITING: usize = 256;
/// How many lines are written together.
const TOGETHER: usize = 20_000;

/// What the writer is told.
pub(crate) enum Command {
    /// Write these lines.
    Append(Vec<Line>, Done),
    /// Forget a deployment.
    Remove(Id, Done),
    /// Forget days that were over by then.
    Expire(Timestamp, Done),
}

/// Where the writer says that it has done so.
pub(crate) type Done = oneshot::Sender<io::Result<()>>;

/// Starts the thread; it ends when nobody can tell it anything any more.
pub(crate) fn start(files: Arc<DayFiles>) -> io::Result<mpsc::Sender<Command>> {
    let (sender, receiver) = mpsc::channel(WAITING);
    let writer = Writer { files, open: HashMap::new(), turn: 0 };
    std::thread::Builder::new().name("logs".into()).spawn(move || writer.run(receiver))?;
    Ok(sender)
}

struct Writer {
    files: Arc<DayFiles>,
    open: HashMap<Key, Open>,
    turn: u64,
}

/// A file that is being written.
struct Open {
    file: File,
    length: u64,
    latest: i64,
    used: u64,
}

impl Writer {
    fn run(mut self, mut commands: mpsc::Receiver<Command>) {
        while let Some(command) = commands.blocking_recv() {
            let (mut lines, mut waiting) = (Vec::new(), Vec::new());
            let mut next = Some(command);
            while let Some(Command::Append(batch, done)) = next {
                lines.extend(batch);
                waiting.push(done);
                next = if lines.len() < TOGETHER { commands.try_recv().ok() } else { None };
            }
            if !waiting.is_empty() {
                tell(waiting, &self.append(lines));
            }
            match next {
                Some(Command::Remove(id, done)) => tell(vec![done], &self.remove(id)),
                Some(Command::Expire(before, done)) => tell(vec![done], &self.expire(before)),
                Some(Command::Append(..)) | None => {}
            }
        }
    }

    fn append(&mut self, lines: Vec<Line>) -> io::Result<()> {
        let mut by_file: BTreeMap<Key, Vec<Line>> = BTreeMap::new();
        for line in lines {
            by_file.entry((line.deployment_id, Day::of(line.timestamp))).or_default().push(line);
        }
        let mut failure = Ok(());
        for (key, lines) in by_file {
            if let Err(error) = self.append_to(key, &lines) {
                // The file is opened again next time, and what is not whole is cut off then.
                self.close(key);
                failure = Err(error);
            }
        }
        failure
    }

    fn append_to(&mut self, key: Key, lines: &[Line]) -> io::Result<()> {
        self.turn += 1;
        let turn = self.turn;
        if !self.open.contains_key(&key) {
            self.open(key)?;
        }
        let Some(open) = self.open.get_mut(&key) else { return Ok(()) };
        open.used = turn;
        for (bytes, latest) in frames(lines, open.latest) {
            open.file.write_all(&bytes)?;
            open.length += bytes.len() as u64;
            open.latest = latest;
            self.files.note(key, open.length);
        }
        Ok(())
    }

    fn open(&mut self, key: Key) -> io::Result<()> {
        if self.open.len() >= OPEN
            && let Some(idle) = self.open.iter().min_by_key(|(_, open)| open.used).map(|(key, _)| *key)
        {
            self.close(idle);
        }
        let path = key.1.path(self.files.root(), key.0);
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory)?;
        }
        let file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
        let (length, latest) = backwards::whole(&file)?;
        if file.metadata()?.len() > length {
            file.set_len(length)?;
        }
        self.files.note(key, length);
        self.open.insert(key, Open { file, length, latest, used: self.turn });
        Ok(())
    }

    fn close(&mut self, key: Key) {
        self.open.remove(&key);
        self.files.forget(key);
    }

    fn remove(&mut self, deployment_id: Id) -> io::Result<()> {
        let own: Vec<Key> = self.open.keys().filter(|(id, _)| *id == deployment_id).copied().collect();
        own.into_iter().for_each(|key| self.close(key));
        missing_is_none(fs::remove_dir_all(self.files.root().join(deployment_id.as_str())))?;
        Ok(())
    }

    fn expire(&mut self, before: Timestamp) -> io::Result<()> {
        for deployment_id in self.files.deployments()? {
            let days = self.files.days(deployment_id)?;
            let over = days.iter().filter(|day| day.ends() <= before);
            let mut left = days.len();
            for day in over {
                self.close((deployment_id, *day));
                missing_is_none(fs::remove_file(day.path(self.files.root(), deployment_id)))?;
                left -= 1;
            }
            if left == 0 {
                // Something else may lie there; then the directory stays.
                let _ = fs::remove_dir(self.files.root().join(deployment_id.as_str()));
            }
        }
        Ok(())
    }
}

/// Tells everybody who waits; who waits no longer is not told.
fn tell(waiting: Vec<Done>, answer: &io::Result<()>) {
    for done in waiting {
        let told = answer.as_ref().map_err(|error| io::Error::new(error.kind(), error.to_string()));
        let _ = done.send(told.copied());
    }
}
