//! The log: lines are buffered in memory and written a few times a second, so that no request waits for a terminal or a
//! disk. If the process is killed, at most the last moment is lost; a regular stop writes everything.

mod requests;

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::{MakeWriter, format};

use self::requests::Short;
use crate::failure::Failure;

const EVERY: Duration = Duration::from_millis(200);
const FULL: usize = 256 * 1024;

/// How lines look.
#[derive(Clone, Copy, clap::ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// Lines that wait to be written to stderr.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    pub(crate) fn start(filter: &str, format: Format) -> Result<Self, Failure> {
        let filter = EnvFilter::try_new(filter).map_err(|error| format!("--log: {error}"))?;
        let log = Self::default();
        let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(log.clone());
        match format {
            Format::Text => lines
                .with_ansi(io::IsTerminal::is_terminal(&io::stderr()))
                .event_format(Short(format::Format::default()))
                .init(),
            Format::Json => lines.json().flatten_event(true).init(),
        }
        let writer = log.clone();
        std::thread::Builder::new().name("log".into()).spawn(move || {
            loop {
                std::thread::sleep(EVERY);
                writer.write_out();
            }
        })?;
        Ok(log)
    }

    /// Flushes the buffered lines.
    pub(crate) fn write_out(&self) {
        let lines = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        // A broken log is no reason to stop serving.
        let _ = io::stderr().write_all(&lines);
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = &'a Self;

    fn make_writer(&'a self) -> &'a Self {
        self
    }
}

impl Write for &Log {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.extend_from_slice(line);
        let full = lines.len() > FULL;
        drop(lines);
        if full {
            self.write_out();
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
