//! How to open a database: where the data is, and how many connections and queued units to allow.

use std::path::PathBuf;
use std::sync::Arc;

use crate::Change;

/// Which engine is behind a [`Db`](crate::Db): for diagnostics, never for decisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// One file, one process.
    Sqlite,
    /// A server, any number of replicas.
    Postgres,
}

#[derive(Clone, PartialEq, Eq)]
pub enum Target {
    /// A file, made if it is missing.
    Sqlite(PathBuf),
    Postgres(String),
}

impl Target {
    /// A `postgres://` or `postgresql://` URL, or else the path of a file (`sqlite:` before it is ignored).
    pub fn parse(text: &str) -> Self {
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Self::Postgres(text.to_owned());
        }
        let path = text.strip_prefix("sqlite://").or_else(|| text.strip_prefix("sqlite:")).unwrap_or(text);
        Self::Sqlite(path.into())
    }
}

/// Shows no URL: it may hold a password.
impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Sqlite(path) => f.debug_tuple("Sqlite").field(path).finish(),
            Self::Postgres(_) => f.write_str("Postgres(..)"),
        }
    }
}

/// Called with committed changes before the unit is acknowledged. It runs on the committing thread: keep it short.
pub type OnCommit = Arc<dyn Fn(&[Change]) + Send + Sync>;

#[derive(Clone)]
pub struct Options {
    pub target: Target,
    /// PostgreSQL connections, or how many SQLite scans run at a time.
    pub connections: usize,
    /// How many units may wait; further ones are refused as unavailable.
    pub queue: usize,
    /// Called with every committed change.
    pub on_commit: OnCommit,
}

impl Options {
    /// The defaults: 16 connections to PostgreSQL, a scan of SQLite for each core, 4096 waiting units, no listener.
    pub fn new(target: Target) -> Self {
        let connections = if matches!(target, Target::Postgres(_)) { 16 } else { cores() };
        Self { target, connections, queue: 4096, on_commit: Arc::new(|_| {}) }
    }
}

/// The number of cores, and at least two: one scan must not block all others.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from).max(2)
}

#[cfg(test)]
mod tests {
    use super::Target;

    #[test]
    fn targets() {
        assert_eq!(Target::parse("postgres://a@b/c"), Target::Postgres("postgres://a@b/c".to_owned()));
        assert_eq!(Target::parse("postgresql://a@b/c"), Target::Postgres("postgresql://a@b/c".to_owned()));
        assert_eq!(Target::parse("./data/podium.db"), Target::Sqlite("./data/podium.db".into()));
        assert_eq!(Target::parse("sqlite:///var/podium.db"), Target::Sqlite("/var/podium.db".into()));
        assert_eq!(format!("{:?}", Target::parse("postgres://u:secret@h/d")), "Postgres(..)");
    }
}
