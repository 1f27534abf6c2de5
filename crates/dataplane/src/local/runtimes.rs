//! Runtimes: each version of Airflow is installed once, from a locked list of packages, and shared by all environments.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::{fs, io};

use aws_lc_rs::digest::{SHA256, digest};
use podium_domain::options::Version;
use podium_domain::{Given, Reason, UserText};
use rustix::fs::{AtFlags, FileType, Mode, chmodat};
use tokio::sync::{Mutex as AsyncMutex, OnceCell, watch};

use super::command::run;
use super::host::{Host, Python, installer, readable_by_all};
use super::layout::{Layout, missing_is_none, write_whole};
use super::packages::normalized;
use super::{trees, unused_runtimes};
use crate::blocking::{assert_may_block, blocking, blocking_exclusive};

macro_rules! locks {
    ($($version:literal),* $(,)?) => {
        const LOCKS: &[(&str, &str)] = &[$(($version, include_str!(concat!("locks/", $version, ".txt")))),*];
    };
}

locks![
    "2.9.0", "2.9.1", "2.9.2", "2.9.3", "2.10.0", "2.10.1", "2.10.2", "2.10.3", "2.10.4", "2.10.5", "2.11.0",
    "2.11.1", "2.11.2", "3.0.0", "3.0.1", "3.0.2", "3.0.3", "3.0.4", "3.0.6", "3.1.0", "3.1.1", "3.1.2",
    "3.1.3", "3.1.5", "3.1.6", "3.1.7", "3.1.8", "3.2.0", "3.2.1", "3.2.2", "3.3.0", "3.3.1", "3.3.2",
];

/// Written last: a runtime without it is incomplete.
pub(super) const READY: &str = "podium-ready";
pub(super) const TEMPLATE: &str = "template.db";
/// The installer's own.
const LOCK: &str = ".lock";
const WRITTEN_BY_OTHERS: u32 = 0o022;

#[derive(Clone, Debug)]
pub(super) struct Runtime {
    pub(super) version: Version,
    directory: PathBuf,
}

impl Runtime {
    /// A runtime that is assumed to exist.
    #[cfg(test)]
    pub(super) fn at(version: Version, directory: PathBuf) -> Self {
        Self { version, directory }
    }

    pub(super) fn programs(&self) -> PathBuf {
        self.directory.join("bin")
    }

    pub(super) fn program(&self, name: &str) -> PathBuf {
        self.programs().join(name)
    }

    /// Identifies its packages and its interpreter.
    pub(super) fn seal(&self) -> io::Result<String> {
        assert_may_block();
        fs::read_to_string(self.directory.join(READY))
    }

    pub(super) fn site_packages(&self) -> io::Result<Option<PathBuf>> {
        assert_may_block();
        for entry in missing_is_none(fs::read_dir(self.directory.join("lib")))?.into_iter().flatten() {
            let path = entry?.path().join("site-packages");
            if path.is_dir() {
                return Ok(Some(path));
            }
        }
        Ok(None)
    }

    /// Wheels that describe its packages, once there are any.
    pub(super) fn wheels(&self) -> PathBuf {
        self.directory.join("wheels")
    }

    pub(super) fn packages(&self) -> io::Result<BTreeSet<String>> {
        let Some(directory) = self.site_packages()? else { return Ok(BTreeSet::new()) };
        let mut names = BTreeSet::new();
        for entry in fs::read_dir(directory)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            let package = name.strip_suffix(".dist-info").and_then(|name| name.split_once('-'));
            names.extend(package.map(|(name, _)| normalized(name)));
        }
        Ok(names)
    }

    /// A migrated database to copy.
    pub(super) fn template(&self) -> PathBuf {
        self.directory.join(TEMPLATE)
    }
}

pub(super) struct Runtimes {
    layout: Layout,
    reserve: u64,
    installer: OnceCell<PathBuf>,
    known: Mutex<HashMap<Version, Arc<Known>>>,
}

struct Known {
    turn: AsyncMutex<()>,
    progress: watch::Sender<Reason>,
}

impl Runtimes {
    pub(super) fn new(layout: Layout, reserve: u64) -> Self {
        Self { layout, reserve, installer: OnceCell::new(), known: Mutex::default() }
    }

    /// Returns the runtime of this version, installing it if needed; `tell` gets the progress.
    pub(super) async fn ensure(
        &self,
        host: &Host,
        version: &str,
        tell: impl Fn(Reason),
    ) -> Result<Runtime, Reason> {
        let parsed: Version = version
            .parse()
            .map_err(|()| UserText::filled("{} is not a version", &[&Given::word(version)]))?;
        let runtime = Runtime { version: parsed, directory: self.layout.runtimes().join(version) };
        let lock = lock_of(version).ok_or_else(|| {
            let told = "there is no list of packages for Apache Airflow {}: this server cannot run it";
            UserText::filled(told, &[&parsed])
        })?;
        let known = self.known(parsed);
        let mut progress = known.progress.subscribe();
        let installed = async {
            let _turn = known.turn.lock().await;
            let say = |how_far: Reason| drop(known.progress.send_replace(how_far));
            let (seal, directory) = (seal(lock, &host.python), runtime.directory.clone());
            if !blocking(move || is_ready(&directory, &seal)).await {
                let (runtimes, reserve) = (self.layout.runtimes(), self.reserve);
                blocking(move || unused_runtimes::check_space_for_runtime(&runtimes, reserve)).await?;
                self.install(host, &runtime, lock, say).await?;
            }
            let directory = runtime.directory.clone();
            blocking(move || unused_runtimes::note_use(&directory)).await;
            Ok(runtime)
        };
        let mut installed = std::pin::pin!(installed);
        loop {
            tokio::select! {
                biased;
                done = &mut installed => return done,
                Ok(()) = progress.changed() => tell(progress.borrow_and_update().clone()),
            }
        }
    }

    /// The program that installs packages, with its path.
    pub(super) async fn installer(&self, host: &Host) -> Result<&Path, Reason> {
        let tools = self.layout.tools();
        let found = self.installer.get_or_try_init(|| installer(&tools, &host.pythons)).await?;
        Ok(found)
    }

    async fn install(
        &self,
        host: &Host,
        runtime: &Runtime,
        lock: &str,
        say: impl Fn(Reason),
    ) -> Result<(), Reason> {
        let told = |template| UserText::filled(template, &[&runtime.version]);
        let failed = || told("installing Apache Airflow {} failed");
        let broken = |error: io::Error| Reason::of_io(failed(), &error);
        say(told("installing Apache Airflow {}: looking for the installer").into());
        let tools = self.layout.tools();
        let installer = self.installer(host).await?;
        let directory = runtime.directory.clone();
        blocking_exclusive(&directory.clone(), move || remove(&directory)).await.map_err(broken)?;
        let cache = tools.join("cache");
        let uv = |arguments: &[&str]| {
            let mut command = readable_by_all(installer);
            command.args(arguments).env("UV_CACHE_DIR", &cache).env("UV_PYTHON_DOWNLOADS", "never");
            command.env_remove("VIRTUAL_ENV").env_remove("PYTHONDONTWRITEBYTECODE");
            command
        };
        let mut make = uv(&["venv", "--python"]);
        make.arg(&host.python.path).arg(&runtime.directory);
        run(make, |_| {}).await.map_err(|error| Reason::new(failed(), error))?;
        let list = runtime.directory.join("packages.txt");
        let (path, text) = (list.clone(), lock.to_owned());
        blocking(move || fs::write(path, text)).await.map_err(broken)?;
        let packages = lock.lines().count();
        let progress =
            UserText::filled("installing Apache Airflow {}: {} packages", &[&runtime.version, &packages]);
        say(progress.clone().into());
        let mut install =
            uv(&["pip", "install", "--no-deps", "--compile-bytecode", "--color", "never", "--python"]);
        install.arg(runtime.program("python")).arg("-r").arg(&list);
        let installed = run(install, |line| say(Reason::new(progress.clone(), line))).await;
        installed.map_err(|error| Reason::new(failed(), error))?;
        say(told("installing Apache Airflow {}: preparing the database").into());
        prepare_template(runtime).await.map_err(|why| why.within(failed()))?;
        let (directory, seal) = (runtime.directory.clone(), seal(lock, &host.python));
        let sealed = blocking(move || {
            close(&directory)?;
            write_whole(&directory.join(READY), seal.as_bytes(), 0o644)
        });
        sealed.await.map_err(broken)
    }

    /// Closes those that earlier versions have installed.
    pub(super) async fn close_installed(&self) {
        let runtimes = self.layout.runtimes();
        for version in blocking(move || unused_runtimes::installed(&runtimes)).await {
            let known = self.known(version);
            // It is being installed.
            let Ok(_turn) = known.turn.try_lock() else { continue };
            let directory = self.layout.runtimes().join(version.to_string());
            if let Err(error) = blocking(move || close(&directory)).await {
                tracing::warn!(%version, %error, "environments may be able to write to a runtime");
            }
        }
    }

    /// Removes runtimes that have been unused for longer than this, and marks those in use.
    pub(super) async fn remove_unused(&self, in_use: &BTreeSet<Version>, kept_for: Duration) {
        let runtimes = self.layout.runtimes();
        for version in blocking(move || unused_runtimes::installed(&runtimes)).await {
            let directory = self.layout.runtimes().join(version.to_string());
            if in_use.contains(&version) {
                blocking(move || unused_runtimes::note_use(&directory)).await;
                continue;
            }
            let known = self.known(version);
            // It is being installed.
            let Ok(_turn) = known.turn.try_lock() else { continue };
            match blocking(move || unused_runtimes::remove_if_idle(&directory, kept_for)).await {
                Ok(false) => {}
                Ok(true) => tracing::info!(%version, "removed an unused runtime"),
                Err(error) => tracing::warn!(%version, %error, "an unused runtime cannot be removed"),
            }
        }
    }

    fn known(&self, version: Version) -> Arc<Known> {
        let mut all = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Arc::new(Known { turn: AsyncMutex::default(), progress: watch::Sender::default() });
        Arc::clone(all.entry(version).or_insert_with(new))
    }
}

/// Lets nobody else write to a runtime, which environments share outside of their quotas: the installer leaves a lock in it
/// that everybody may write to.
fn close(directory: &Path) -> io::Result<()> {
    assert_may_block();
    missing_is_none(fs::remove_file(directory.join(LOCK)))?;
    trees::each(directory, |seen| {
        let mode = seen.stat.st_mode;
        if FileType::from_raw_mode(mode) == FileType::Symlink || mode & WRITTEN_BY_OTHERS == 0 {
            return Ok(());
        }
        let mode = Mode::from_raw_mode(mode & 0o7777 & !WRITTEN_BY_OTHERS);
        chmodat(seen.above, seen.name, mode, AtFlags::empty())
    })
}

/// Migrates an empty database once; environments start with a copy.
async fn prepare_template(runtime: &Runtime) -> Result<(), Reason> {
    let broken = |error: io::Error| Reason::of_io("its files cannot be written", &error);
    let home = runtime.directory.join("template");
    let made = home.clone();
    blocking(move || fs::create_dir_all(made)).await.map_err(broken)?;
    let mut migrate = readable_by_all(runtime.program("airflow"));
    let database = format!("sqlite:///{}", runtime.template().display());
    migrate
        .args(["db", "migrate"])
        .current_dir(&home)
        .env_clear()
        .env("PATH", runtime.programs())
        .env("HOME", &home)
        .env("AIRFLOW_HOME", &home)
        .env("AIRFLOW__CORE__LOAD_EXAMPLES", "False")
        .env("AIRFLOW__DATABASE__LOAD_DEFAULT_CONNECTIONS", "False")
        .env("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", database);
    run(migrate, |_| {}).await.map_err(|error| Reason::new("an empty database cannot be migrated", error))?;
    blocking(move || remove(&home)).await.map_err(broken)
}

fn is_ready(directory: &Path, seal: &str) -> bool {
    assert_may_block();
    fs::read_to_string(directory.join(READY)).is_ok_and(|text| text == seal)
}

/// Identifies the packages and the interpreter of a runtime.
pub(super) fn seal(lock: &str, python: &Python) -> String {
    let hash = podium_api::hex(digest(&SHA256, lock.as_bytes()).as_ref());
    format!("{hash} {}\n", python.path.display())
}

fn remove(directory: &Path) -> io::Result<()> {
    assert_may_block();
    missing_is_none(fs::remove_dir_all(directory)).map(drop)
}

/// The locked packages of a runtime, one per line: every machine installs the same versions.
pub(super) fn lock_of(version: &str) -> Option<&'static str> {
    LOCKS.iter().find(|(known, _)| *known == version).map(|(_, lock)| *lock)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_runtime_of_the_catalogue_has_its_packages() {
        for runtime in podium_domain::options::runtimes() {
            let lock = lock_of(&runtime.name).unwrap_or_else(|| panic!("no packages of {}", runtime.name));
            let itself = format!("apache-airflow=={}", runtime.name);
            assert!(lock.lines().any(|line| line == itself), "{itself}");
        }
    }
}
