//! Resource limits of this process.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Raises the limit of open files to its maximum and returns it. Every connection is an open file.
pub(crate) fn raise_open_files() -> Option<u64> {
    let mut limit = getrlimit(Resource::Nofile);
    let before = limit.current;
    if before == limit.maximum {
        return before;
    }
    limit.current = limit.maximum;
    match setrlimit(Resource::Nofile, limit) {
        Ok(()) => {
            tracing::debug!(?before, now = ?limit.current, "raised the limit of open files");
            limit.current
        }
        Err(error) => {
            tracing::warn!(%error, ?before, "the limit of open files cannot be raised");
            before
        }
    }
}

/// The connection limit for a limit of open files: the rest is for the database, logs and connections to environments.
pub(crate) fn connections(wanted: usize, files: Option<u64>) -> usize {
    let Some(files) = files.and_then(|files| usize::try_from(files).ok()) else { return wanted };
    let most = files.saturating_sub((files / 4).max(256)).max(16);
    if wanted > most {
        tracing::warn!(
            wanted,
            most,
            files,
            "fewer connections are accepted than configured: raise the limit of open files"
        );
    }
    wanted.min(most)
}

#[cfg(test)]
mod tests {
    use super::connections;

    #[test]
    fn connections_leave_files_for_everything_else() {
        assert_eq!(connections(10_000, None), 10_000);
        assert_eq!(connections(10_000, Some(1 << 20)), 10_000);
        assert_eq!(connections(10_000, Some(4096)), 3072);
        assert_eq!(connections(10_000, Some(1024)), 768);
        assert_eq!(connections(10_000, Some(256)), 16);
    }
}
