//! Limits that the system sets, as far as this process may raise them.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Lets this process have as many files open as it may. Every connection is one.
pub(crate) fn raise_open_files() {
    let mut limit = getrlimit(Resource::Nofile);
    let before = limit.current;
    if before == limit.maximum {
        return;
    }
    limit.current = limit.maximum;
    match setrlimit(Resource::Nofile, limit) {
        Ok(()) => tracing::debug!(?before, now = ?limit.current, "more files may be open"),
        Err(error) => tracing::warn!(%error, ?before, "the limit of open files cannot be raised"),
    }
}
