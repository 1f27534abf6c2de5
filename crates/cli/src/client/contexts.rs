//! Contexts: the servers that a person signed in to, in a file that only they can read.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File};
use std::io::Write as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy as _;
use podium_api::OrganizationId;
use serde::{Deserialize, Serialize};

use super::ending::{Failed, Outcome};

/// A server, and as whom to call it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Context {
    pub(crate) url: String,
    pub(crate) token: String,
    /// The name of the user or token, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) subject: Option<String>,
    /// The organization to use unless another one is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) organization_id: Option<OrganizationId>,
    /// Certificates to trust, a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ca_certificate: Option<PathBuf>,
    /// Whether the token is a session that `podium login` started, and `podium logout` ends.
    #[serde(default)]
    pub(crate) is_session: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Contexts {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) current: Option<String>,
    #[serde(default)]
    pub(crate) contexts: BTreeMap<String, Context>,
}

impl Contexts {
    /// Reads the file; none is like an empty one.
    pub(crate) fn read() -> Outcome<Self> {
        Self::read_from(&directory()?)
    }

    /// Changes the file, while no other command does.
    pub(crate) fn change<T>(change: impl FnOnce(&mut Self) -> Outcome<T>) -> Outcome<T> {
        Self::change_in(&directory()?, change)
    }

    pub(crate) fn named(&self, name: &str) -> Outcome<&Context> {
        self.contexts.get(name).ok_or_else(|| {
            let names: Vec<&str> = self.contexts.keys().map(String::as_str).collect();
            let known = if names.is_empty() { "none".into() } else { names.join(", ") };
            Failed::new(super::ending::Exit::NotFound, format!("there is no context named {name:?}"))
                .hint(format!("Contexts: {known}"))
        })
    }

    fn read_from(directory: &Path) -> Outcome<Self> {
        let path = directory.join("contexts.json");
        let unusable = |error: &dyn std::fmt::Display| {
            Failed::because(format!("{} cannot be read: {error}", path.display()))
        };
        match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| unusable(&error)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(unusable(&error)),
        }
    }

    fn change_in<T>(directory: &Path, change: impl FnOnce(&mut Self) -> Outcome<T>) -> Outcome<T> {
        let unwritable = |error: std::io::Error| {
            Failed::because(format!("{} cannot be written: {error}", directory.display()))
        };
        DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(unwritable)?;
        let lock = File::create(directory.join("contexts.lock")).map_err(unwritable)?;
        lock.lock().map_err(unwritable)?;
        let mut contexts = Self::read_from(directory)?;
        let done = change(&mut contexts)?;
        contexts.write_to(directory).map_err(unwritable)?;
        Ok(done)
    }

    /// Replaces the file in one step; it has mode 0600 from the start.
    fn write_to(&self, directory: &Path) -> std::io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(directory)?;
        serde_json::to_writer_pretty(&mut file, self)?;
        file.write_all(b"\n")?;
        file.as_file().sync_all()?;
        file.persist(directory.join("contexts.json"))?;
        File::open(directory)?.sync_all()
    }
}

fn directory() -> Outcome<PathBuf> {
    if let Some(directory) = std::env::var_os("PODIUM_CONFIG_DIR").filter(|text| !text.is_empty()) {
        return Ok(directory.into());
    }
    let base = etcetera::choose_base_strategy()
        .map_err(|_| Failed::because("there is no home directory: set PODIUM_CONFIG_DIR"))?;
    Ok(base.config_dir().join("podium"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(token: &str) -> Context {
        Context { url: "http://127.0.0.1:8080".into(), token: token.into(), ..Context::default() }
    }

    #[test]
    fn a_change_is_kept_and_private() {
        use std::os::unix::fs::PermissionsExt as _;
        let temporary = tempfile::tempdir().unwrap();
        let directory = temporary.path().join("a/podium");
        assert_eq!(Contexts::read_from(&directory).unwrap(), Contexts::default());
        for name in ["one", "two"] {
            let add = |all: &mut Contexts| {
                all.contexts.insert(name.into(), context(name));
                Ok(())
            };
            Contexts::change_in(&directory, add).unwrap();
        }
        let all = Contexts::read_from(&directory).unwrap();
        assert_eq!(all.contexts.keys().collect::<Vec<_>>(), ["one", "two"]);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&directory.join("contexts.json")), 0o600);
        assert_eq!(mode(&directory), 0o700);
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 2, "nothing temporary stays");
    }

    #[test]
    fn a_refused_change_leaves_the_file_alone() {
        let temporary = tempfile::tempdir().unwrap();
        let refused = Contexts::change_in::<()>(temporary.path(), |all| {
            all.current = Some("gone".into());
            Err(Failed::usage("no"))
        });
        assert!(refused.is_err());
        assert_eq!(Contexts::read_from(temporary.path()).unwrap(), Contexts::default());
        fs::write(temporary.path().join("contexts.json"), "{").unwrap();
        assert!(Contexts::read_from(temporary.path()).is_err());
    }
}
