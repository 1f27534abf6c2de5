//! Finds the installed server programs, creates a cluster with them, owned by the user that it runs as, and closes its
//! databases that belong to no environment.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, lchown};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::{fs, io};

use podium_domain::{Reason, UserText};
use tokio::process::Command;

use super::{ADMIN, Cluster};
use crate::blocking::{assert_may_block, blocking_exclusive};
use crate::local::command::{run, run_sql, searched};
use crate::local::layout::{rename, write_whole};

/// The text for users if it cannot be created.
const NOT_MADE: &str = "the metadata database cluster cannot be created";

impl Cluster {
    /// Creates the cluster atomically if there is none.
    pub(super) async fn make(self: &Arc<Self>, programs: &Programs) -> Result<(), Reason> {
        let fail = |error: io::Error| Reason::of_io(NOT_MADE, &error);
        let cluster = Arc::clone(self);
        let begun = blocking_exclusive(&self.directory, move || cluster.begin()).await;
        let Some((secret, maker)) = begun? else { return Ok(()) };
        let (data, draft) = (self.data(), self.draft());
        let mut initdb = self.command(&programs.program("initdb"), maker);
        initdb.args(["--username", ADMIN, "--auth", "scram-sha-256", "--encoding", "UTF8"]);
        initdb.args(["--locale", "C", "--pwfile"]).arg(&secret).arg("--pgdata").arg(&draft);
        let mut initdb = Command::from(initdb);
        initdb.kill_on_drop(true);
        let made = run(initdb, |_| {}).await;
        let cluster = Arc::clone(self);
        let settled = blocking_exclusive(&self.directory, move || {
            fs::remove_file(&secret)?;
            if made.is_ok() {
                cluster.give_all(&draft)?;
                rename(&draft, &data)?;
            }
            Ok(made)
        });
        settled.await.map_err(fail)?.map_err(|error| Reason::new(NOT_MADE, error))
    }

    /// Prepares the creation of a cluster; `None` if there is one already. Returns the password file and the user that
    /// creates it.
    fn begin(&self) -> Result<Option<(PathBuf, Option<u32>)>, Reason> {
        let fail = |error: io::Error| Reason::of_io(NOT_MADE, &error);
        let (data, draft) = (self.data(), self.draft());
        fs::create_dir_all(&self.directory).map_err(fail)?;
        fs::set_permissions(&self.directory, fs::Permissions::from_mode(0o711)).map_err(fail)?;
        self.give(&self.directory).map_err(fail)?;
        if data.join("PG_VERSION").exists() {
            self.give_all(&data).map_err(fail)?;
            return Ok(None);
        }
        if draft.exists() {
            fs::remove_dir_all(&draft).map_err(fail)?;
        }
        let maker = self.user.map(|_| named_user()).transpose()?;
        fs::create_dir(&draft).map_err(fail)?;
        fs::set_permissions(&draft, fs::Permissions::from_mode(0o700)).map_err(fail)?;
        let secret = self.directory.join("password");
        write_whole(&secret, self.password.reveal().as_bytes(), 0o600).map_err(fail)?;
        for path in [&draft, &secret] {
            maker.map_or(Ok(()), |maker| lchown(path, Some(maker), Some(maker))).map_err(fail)?;
        }
        Ok(Some((secret, maker)))
    }

    fn draft(&self) -> PathBuf {
        self.directory.join("draft")
    }

    fn give(&self, path: &Path) -> io::Result<()> {
        self.user.map_or(Ok(()), |user| lchown(path, Some(user), Some(user)))
    }

    /// Changes the owner of a cluster that came from elsewhere to the user that it runs as here.
    fn give_all(&self, path: &Path) -> io::Result<()> {
        let Some(user) = self.user.filter(|user| fs::metadata(path).is_ok_and(|found| found.uid() != *user))
        else {
            return Ok(());
        };
        let mut left = vec![path.to_owned()];
        let mut all = Vec::new();
        while let Some(next) = left.pop() {
            if fs::symlink_metadata(&next)?.is_dir() {
                for entry in fs::read_dir(&next)? {
                    left.push(entry?.path());
                }
            }
            all.push(next);
        }
        // The directory itself last: its owner shows whether all of it was changed.
        all.iter().rev().try_for_each(|path| lchown(path, Some(user), Some(user)))
    }
}

/// A user with an entry in /etc/passwd: initdb requires one, the server does not.
fn named_user() -> Result<u32, Reason> {
    let known = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let user = |name: &str| {
        let line = known.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.split(':').nth(1)?.parse().ok().filter(|user| *user != 0)
    };
    ["postgres", "nobody"]
        .into_iter()
        .find_map(user)
        .ok_or_else(|| Reason::from("this machine has no user `postgres` or `nobody`").within(NOT_MADE))
}

impl Cluster {
    /// Lets environments connect to no database but their own, with new servers and with those of earlier versions:
    /// whoever is connected to a template keeps others from getting a copy of it.
    pub(super) async fn close_to_environments(self: &Arc<Self>, programs: &Programs) {
        let closed = async {
            let url = self.url().await.map_err(|why| why.to_string())?;
            run_sql(&programs.program("psql"), url.reveal(), include_str!("closing.sql"))
                .await
                .map_err(|error| error.to_string())
        };
        if let Err(why) = closed.await {
            tracing::warn!(%why, "databases of the environments' server that belong to none of them stay open to them");
        }
    }
}

/// Where distributions install them, below a version directory or directly.
const PLACES: &[(&str, &str)] = &[("/usr/lib/postgresql", "bin"), ("/usr/local/pgsql", "bin")];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::local) struct Programs {
    pub(in crate::local) major: u32,
    directory: PathBuf,
}

impl Programs {
    pub(in crate::local) fn program(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// The versions on this machine, the newest first.
    pub(in crate::local) fn find() -> Vec<Self> {
        assert_may_block();
        let mut directories: Vec<PathBuf> = searched().collect();
        for (place, below) in PLACES {
            directories.push(Path::new(place).join(below));
            let versions = fs::read_dir(place).into_iter().flatten().flatten();
            directories.extend(versions.map(|entry| entry.path().join(below)));
        }
        let mut found: Vec<Self> = directories.iter().filter_map(|directory| Self::at(directory)).collect();
        found.sort_by(|one, other| (other.major, &one.directory).cmp(&(one.major, &other.directory)));
        found.dedup();
        found
    }

    /// The programs in a directory. Links are resolved to find the other programs.
    fn at(directory: &Path) -> Option<Self> {
        let server = fs::canonicalize(directory.join("postgres")).ok()?;
        let directory = server.parent()?.to_owned();
        if !directory.join("initdb").is_file() {
            return None;
        }
        let told = std::process::Command::new(&server)
            .arg("--version")
            .env_clear()
            .stdin(Stdio::null())
            .output()
            .ok()?;
        Some(Self { major: major(&String::from_utf8_lossy(&told.stdout))?, directory })
    }

    /// The programs for a cluster of this major version; an error says what to install.
    pub(super) fn of(major: u32, found: &[Self]) -> Result<Self, Reason> {
        found.iter().find(|programs| programs.major == major).cloned().ok_or_else(|| {
            let there = found.iter().map(|programs| UserText::filled("{}", &[&programs.major]));
            let there = if found.is_empty() { "none".into() } else { UserText::joined(there, ", ") };
            let told = UserText::filled(
                "the metadata databases were created with PostgreSQL {}, which is no longer installed (installed: {}): install postgresql-{}",
                &[&major, &there, &major],
            );
            told.into()
        })
    }
}

/// The major version in the output of `postgres --version`, such as `postgres (PostgreSQL) 15.4 (Debian)`.
fn major(told: &str) -> Option<u32> {
    let version = told.split_once(") ")?.1;
    version.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_parsed_as_servers_print_them() {
        for (told, expected) in [
            ("postgres (PostgreSQL) 15.4 (Debian 15.4-1)\n", Some(15)),
            ("postgres (PostgreSQL) 17beta1\n", Some(17)),
            ("something else", None),
        ] {
            assert_eq!(major(told), expected, "{told}");
        }
    }

    #[test]
    fn a_cluster_is_served_by_its_own_major_version_only() {
        let programs = |major| Programs { major, directory: format!("/pg/{major}").into() };
        let found = [programs(17), programs(15)];
        assert_eq!(Programs::of(15, &found), Ok(programs(15)));
        let missing = Programs::of(14, &found).unwrap_err().user_text().to_string();
        assert!(
            missing.contains("installed: 17, 15") && missing.ends_with("install postgresql-14"),
            "{missing}"
        );
        assert!(Programs::of(14, &[]).unwrap_err().user_text().as_str().contains("installed: none"));
    }
}
