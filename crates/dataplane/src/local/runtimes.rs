//! Runtimes: each version of Airflow is installed once, from a frozen list of packages, and shared by all environments.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use podium_domain::options::Version;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;
use tokio::sync::{Mutex as AsyncMutex, OnceCell, watch};

use super::ground::Ground;
use super::layout::{Layout, write_whole};
use super::locks;
use super::python::{Python, installer, readable_by_all};
use super::unused;

/// Written last: a runtime without it is not whole.
pub(super) const READY: &str = "podium-ready";
pub(super) const TEMPLATE: &str = "template.db";

/// An installed runtime.
#[derive(Clone, Debug)]
pub(super) struct Runtime {
    /// Its version.
    pub(super) version: Version,
    directory: PathBuf,
}

impl Runtime {
    /// A runtime that somebody says is there.
    #[cfg(test)]
    pub(super) fn at(version: Version, directory: PathBuf) -> Self {
        Self { version, directory }
    }

    /// The directory of its programs.
    pub(super) fn programs(&self) -> PathBuf {
        self.directory.join("bin")
    }

    /// A program of it.
    pub(super) fn program(&self, name: &str) -> PathBuf {
        self.programs().join(name)
    }

    /// A migrated database to copy.
    pub(super) fn template(&self) -> PathBuf {
        self.directory.join(TEMPLATE)
    }
}

/// The runtimes of this machine.
pub(super) struct Runtimes {
    layout: Layout,
    reserve: u64,
    installer: OnceCell<PathBuf>,
    known: Mutex<HashMap<Version, Arc<Known>>>,
}

/// A runtime that somebody asked for.
struct Known {
    turn: AsyncMutex<()>,
    progress: watch::Sender<String>,
}

impl Runtimes {
    pub(super) fn new(layout: Layout, reserve: u64) -> Self {
        Self { layout, reserve, installer: OnceCell::new(), known: Mutex::default() }
    }

    /// The runtime of this version, installed if it is not yet; meanwhile `tell` hears how far that got.
    pub(super) async fn ensure(
        &self,
        ground: &Ground,
        version: &str,
        tell: impl Fn(String),
    ) -> Result<Runtime, String> {
        let parsed: Version = version.parse().map_err(|()| format!("{version} is no version"))?;
        let runtime = Runtime { version: parsed, directory: self.layout.runtimes().join(version) };
        let lock = locks::of(version).ok_or_else(|| {
            format!("there is no list of packages for Apache Airflow {version}: this server cannot run it")
        })?;
        let known = self.known(parsed);
        let mut progress = known.progress.subscribe();
        let installed = async {
            let _turn = known.turn.lock().await;
            let say = |text: String| drop(known.progress.send_replace(text));
            if !is_ready(&runtime, lock, &ground.python) {
                unused::room_for_one(&self.layout.runtimes(), self.reserve)?;
                self.install(ground, &runtime, lock, say).await?;
            }
            unused::note_use(&runtime.directory);
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

    async fn install(
        &self,
        ground: &Ground,
        runtime: &Runtime,
        lock: &str,
        say: impl Fn(String),
    ) -> Result<(), String> {
        let what = format!("installing Apache Airflow {}", runtime.version);
        let fail = |why: String| format!("{what} failed: {why}");
        say(format!("{what}: looking for the installer"));
        let tools = self.layout.tools();
        let installer = self.installer.get_or_try_init(|| installer(&tools, &ground.pythons)).await?;
        remove(&runtime.directory).map_err(|error| fail(error.to_string()))?;
        let cache = tools.join("cache");
        let uv = |arguments: &[&str]| {
            let mut command = readable_by_all(installer);
            command.args(arguments).env("UV_CACHE_DIR", &cache).env("UV_PYTHON_DOWNLOADS", "never");
            command.env_remove("VIRTUAL_ENV").env_remove("PYTHONDONTWRITEBYTECODE");
            command
        };
        let mut make = uv(&["venv", "--python"]);
        make.arg(&ground.python.path).arg(&runtime.directory);
        run(make, |_| {}).await.map_err(fail)?;
        let list = runtime.directory.join("packages.txt");
        fs::write(&list, lock).map_err(|error| fail(error.to_string()))?;
        let packages = lock.lines().count();
        say(format!("{what}: {packages} packages"));
        let mut install =
            uv(&["pip", "install", "--no-deps", "--compile-bytecode", "--color", "never", "--python"]);
        install.arg(runtime.program("python")).arg("-r").arg(&list);
        run(install, |line| say(format!("{what}: {line}"))).await.map_err(fail)?;
        say(format!("{what}: preparing the database"));
        prepare_template(runtime).await.map_err(fail)?;
        write_whole(&runtime.directory.join(READY), seal(lock, &ground.python).as_bytes(), 0o644)
            .map_err(|error| fail(error.to_string()))
    }
}

impl Runtimes {
    /// Removes runtimes that nobody has used for so long; those in use are used now.
    pub(super) async fn remove_unused(&self, in_use: &BTreeSet<Version>, kept_for: Duration) {
        for version in unused::installed(&self.layout.runtimes()) {
            let directory = self.layout.runtimes().join(version.to_string());
            if in_use.contains(&version) {
                unused::note_use(&directory);
                continue;
            }
            let known = self.known(version);
            // Somebody who is installing it uses it.
            let Ok(_turn) = known.turn.try_lock() else { continue };
            if unused::for_how_long(&directory).is_some_and(|idle| idle > kept_for) {
                let removed = tokio::task::spawn_blocking(move || unused::remove(&directory)).await;
                match removed.map_err(io::Error::other).flatten() {
                    Ok(()) => tracing::info!(%version, "a runtime that nothing uses was removed"),
                    Err(error) => {
                        tracing::warn!(%version, %error, "a runtime that nothing uses cannot be removed");
                    }
                }
            }
        }
    }

    fn known(&self, version: Version) -> Arc<Known> {
        let mut all = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let new =
            || Arc::new(Known { turn: AsyncMutex::default(), progress: watch::Sender::new(String::new()) });
        Arc::clone(all.entry(version).or_insert_with(new))
    }
}

/// Migrates an empty database once; environments begin with a copy.
async fn prepare_template(runtime: &Runtime) -> Result<(), String> {
    let home = runtime.directory.join("template");
    fs::create_dir_all(&home).map_err(|error| error.to_string())?;
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
    run(migrate, |_| {}).await?;
    remove(&home).map_err(|error| error.to_string())
}

fn is_ready(runtime: &Runtime, lock: &str, python: &Python) -> bool {
    fs::read_to_string(runtime.directory.join(READY)).is_ok_and(|text| text == seal(lock, python))
}

/// Which packages and interpreter a runtime was made of.
pub(super) fn seal(lock: &str, python: &Python) -> String {
    let hash: String = digest(&SHA256, lock.as_bytes()).as_ref().iter().map(|b| format!("{b:02x}")).collect();
    format!("{hash} {}\n", python.path.display())
}

fn remove(directory: &Path) -> io::Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Runs a command to its end; what it says on the way is told, and its last words where it fails.
pub(super) async fn run(mut command: Command, tell: impl Fn(&str)) -> Result<(), String> {
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let mut last = String::new();
    if let Some(said) = child.stderr.take() {
        let mut lines = BufReader::new(said).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            if !line.trim().is_empty() {
                last = line.trim().chars().take(300).collect();
                tell(&last);
            }
        }
    }
    let status = child.wait().await.map_err(|error| error.to_string())?;
    if status.success() { Ok(()) } else { Err(format!("{last} ({status})")) }
}
