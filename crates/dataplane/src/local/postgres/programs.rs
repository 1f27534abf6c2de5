//! The installed PostgreSQL server programs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use podium_domain::{Reason, UserText};

use crate::blocking::assert_may_block;
use crate::local::command::searched;

/// Where distributions install them, below a version directory or directly.
const PLACES: &[(&str, &str)] = &[("/usr/lib/postgresql", "bin"), ("/usr/local/pgsql", "bin")];

/// The programs of one major version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::local) struct Programs {
    pub(in crate::local) major: u32,
    directory: PathBuf,
}

impl Programs {
    /// A program of it.
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
        let told = Command::new(&server).arg("--version").env_clear().stdin(Stdio::null()).output().ok()?;
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
