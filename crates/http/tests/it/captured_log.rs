//! Captures what this process logs, so that a test can search it.

use std::io::Write;
use std::sync::{Mutex, OnceLock, PoisonError};

static LOG: Mutex<Vec<u8>> = Mutex::new(Vec::new());

struct Log;

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        LOG.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Everything that this process logs from now on is kept.
pub(crate) fn capture_log() {
    static KEPT: OnceLock<()> = OnceLock::new();
    KEPT.get_or_init(|| {
        tracing_subscriber::fmt().with_max_level(tracing::Level::DEBUG).with_writer(|| Log).init();
    });
}

/// What was logged so far.
pub(crate) fn logged() -> Vec<u8> {
    LOG.lock().unwrap_or_else(PoisonError::into_inner).clone()
}
