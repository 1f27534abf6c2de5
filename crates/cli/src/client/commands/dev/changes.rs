//! Which files of a project were saved. Files are compared by time and size, so it works on every file system, also where
//! the system sends no notices of changes, and looks at exactly the files that are deployed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::client::commands::deploys;
use crate::client::commands::{Failed, Outcome};
use crate::client::project::VALUES;

/// How often files are looked at.
const PACE: Duration = Duration::from_millis(300);

/// The files of a project, with time and size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Snapshot(BTreeMap<String, Option<(SystemTime, u64)>>);

impl Snapshot {
    pub(super) async fn take(folder: &Path) -> Outcome<Self> {
        let folder: PathBuf = folder.to_owned();
        let taken = tokio::task::spawn_blocking(move || {
            let mut stamps: BTreeMap<_, _> = deploys::stamps(&folder)?.into_iter().collect();
            // It is not deployed, but has values of variables.
            if let Ok(found) = std::fs::metadata(folder.join(VALUES)) {
                stamps.insert(VALUES.into(), found.modified().ok().map(|time| (time, found.len())));
            }
            Ok(Self(stamps))
        });
        taken.await.map_err(|error| Failed::because(error.to_string()))?
    }

    /// Returns once a file is different.
    pub(super) async fn is_outdated(&self, folder: &Path) {
        loop {
            tokio::time::sleep(PACE).await;
            // A folder that cannot be read for a moment is being changed.
            if Self::take(folder).await.is_ok_and(|now| now != *self) {
                return;
            }
        }
    }

    /// The files as they are once nothing has changed for a moment: editors write in several steps.
    pub(super) async fn settled(&self, folder: &Path) -> Outcome<Self> {
        let mut last = Self::take(folder).await?;
        loop {
            tokio::time::sleep(PACE).await;
            let now = Self::take(folder).await?;
            if now == last {
                return Ok(now);
            }
            last = now;
        }
    }

    pub(super) fn differences(&self, before: &Self) -> Vec<String> {
        let is_new = |(name, stamp): &(&String, &Option<_>)| before.0.get(*name) != Some(*stamp);
        let saved = self.0.iter().filter(is_new).map(|(name, _)| name.clone());
        let gone = before.0.keys().filter(|name| !self.0.contains_key(*name));
        saved.chain(gone.map(|name| format!("{name} (deleted)"))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saved_and_deleted_files_are_named() {
        let stamp = |size| Some((SystemTime::UNIX_EPOCH, size));
        let snapshot = |files: &[(&str, u64)]| {
            Snapshot(files.iter().map(|(name, size)| ((*name).to_owned(), stamp(*size))).collect())
        };
        let before = snapshot(&[("a.py", 1), ("b.py", 1), ("c.py", 1)]);
        let now = snapshot(&[("a.py", 1), ("b.py", 2), ("d.py", 1)]);
        assert_eq!(now.differences(&before), ["b.py", "d.py", "c.py (deleted)"]);
        assert_eq!(now.differences(&now), [""; 0]);
    }
}
