//! The packages of projects, as layers over the shared runtimes.
//!
//! Requirements are resolved against the runtime's locked packages, so Airflow and what it runs with never change. What
//! remains is installed from wheels only, because building a package runs code of whoever wrote it, into a directory of
//! its own that is never changed again. Environments with the same packages share it. The resolution of an environment
//! is kept with it: the same `requirements.txt` gives the same packages for as long as the environment exists, also after
//! a rollback.

mod job;
mod layers;
mod pins;

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use podium_airflow::requirements::Requirements;
use podium_domain::Reason;
use tokio::sync::{Mutex as AsyncMutex, OnceCell, Semaphore};

use self::job::{Job, broken, uninstalled, unresolved};
pub(super) use self::layers::recorded_size;
pub(super) use self::pins::{Pins, normalized};
use super::cgroups::Cgroups;
use super::command::run;
use super::host::{Host, readable_by_all};
use super::isolation::{FileAccess, Isolation};
use super::layout::{Layout, rename, write_whole};
use super::orphans::OrphanProcesses;
use super::prepare_error::PrepareError;
use super::runtimes::{Runtime, lock_of};
use super::trees;
use super::unused_runtimes;
use super::users::{PACKAGES_SLOT, has_slot};
use crate::blocking::{blocking, blocking_exclusive};

/// How many jobs run at the same time. An environment has at most one: it resolves, and then it installs.
const JOBS: usize = 2;

#[derive(Clone, Copy)]
pub(super) struct InstallContext<'a> {
    pub(super) host: &'a Host,
    pub(super) uv: &'a Path,
    pub(super) runtime: &'a Runtime,
    /// Is told whether a job waits for others (`true`) or runs.
    pub(super) waiting: &'a (dyn Fn(bool) + Send + Sync),
}

pub(super) struct Packages {
    layout: Layout,
    reserve: u64,
    /// How much disk packages may use.
    most_bytes: u64,
    /// The installer, where its user can run it.
    installer: OnceCell<PathBuf>,
    jobs: Semaphore,
    /// Held while a layer is installed or removed.
    turns: Mutex<HashMap<String, Arc<AsyncMutex<()>>>>,
}

impl Packages {
    /// Packages for environments that may use so much disk.
    pub(super) fn new(layout: Layout, reserve: u64, environment_disk: Option<u64>) -> Self {
        Self {
            layout,
            reserve,
            most_bytes: environment_disk.map_or(job::MOST_BYTES, |most| most.min(job::MOST_BYTES)),
            installer: OnceCell::new(),
            jobs: Semaphore::new(JOBS),
            turns: Mutex::default(),
        }
    }

    /// Resolves requirements to exact packages, as before if this environment has resolved them before. `None` if the
    /// runtime has everything.
    pub(super) async fn resolve(
        &self,
        context: InstallContext<'_>,
        requirements: &Requirements,
        memory: &Path,
    ) -> Result<Option<Pins>, PrepareError> {
        let runtime = context.runtime;
        let (of, text, folder) = (runtime.clone(), requirements.text(), memory.to_owned());
        let known = blocking(move || pins::recall(&folder, &of, &text)).await.map_err(broken)?;
        let pins = match known {
            Some(pins) => pins,
            None => {
                let pins = self.resolve_anew(context, requirements).await?;
                let (of, text, folder) = (runtime.clone(), requirements.text(), memory.to_owned());
                let kept = pins.clone();
                let saved = blocking_exclusive(memory, move || pins::save(&folder, &of, &text, &kept)).await;
                saved.map_err(broken)?;
                pins
            }
        };
        Ok((pins.count() > 0).then_some(pins))
    }

    async fn resolve_anew(
        &self,
        context: InstallContext<'_>,
        requirements: &Requirements,
    ) -> Result<Pins, PrepareError> {
        let runtime = context.runtime;
        let lock = lock_of(&runtime.version.to_string()).unwrap_or_default();
        let described = self.described(runtime).await?;
        let desk = self.desk(context).await?;
        let files = [("requirements.in", requirements.text()), ("constraints.txt", lock.to_owned())];
        desk.write(files).await?;
        let told = "pip compile requirements.in --constraints constraints.txt --only-binary :all: --generate-hashes \
                    --no-header --no-annotate --quiet --output-file pins.txt --python";
        let mut arguments = desk.installer(told);
        arguments.extend([runtime.program("python").into(), "--find-links".into(), described.into()]);
        // Named as arguments, because the one above takes precedence over the operator's variable.
        let links = job::find_links(std::env::var_os("UV_FIND_LINKS").as_deref());
        arguments.extend(links.into_iter().flat_map(|link| ["--find-links".into(), link]));
        desk.job.run(&arguments).await.map_err(|error| unresolved(&error, runtime))?;
        let (output, of) = (desk.job.directory.join("pins.txt"), runtime.clone());
        blocking(move || pins::read_output(&output, &of)).await.map_err(broken)
    }

    /// The directory with wheels that describe the packages of a runtime, some of which have no wheel of their own.
    async fn described(&self, runtime: &Runtime) -> Result<PathBuf, PrepareError> {
        let turn = self.turn(&runtime.version.to_string());
        let _turn = turn.lock().await;
        let (directory, draft) = (runtime.wheels(), runtime.wheels().with_extension("draft"));
        let (of, there, removed) = (runtime.clone(), directory.clone(), draft.clone());
        let site = blocking(move || match there.is_dir() {
            true => Ok(None),
            false => trees::remove(&removed).and_then(|()| of.site_packages()),
        });
        let Some(site) = site.await.map_err(broken)? else { return Ok(directory) };
        let mut describe = readable_by_all(runtime.program("python"));
        describe.arg("-I").arg(self.layout.support().join("podium_wheels.py")).arg(site).arg(&draft);
        let failed = |error| Reason::new("the packages of the runtime cannot be described", error);
        run(describe, |_| {}).await.map_err(|error| ("packages", failed(error)))?;
        let made = directory.clone();
        blocking(move || rename(&draft, &made)).await.map_err(broken)?;
        Ok(directory)
    }

    /// Installs packages as a layer, unless it exists; returns the directory for the Python path.
    pub(super) async fn install(
        &self,
        context: InstallContext<'_>,
        pins: &Pins,
    ) -> Result<PathBuf, PrepareError> {
        let key = pins.key(context.runtime).await.map_err(broken)?;
        let turn = self.turn(&key);
        let _turn = turn.lock().await;
        let layer = self.layout.layers().join(&key);
        let ready = layer.clone();
        if !blocking(move || layers::is_ready(&ready)).await {
            let (layers, reserve) = (self.layout.layers(), self.reserve);
            let has_room = blocking(move || unused_runtimes::check_space_for_runtime(&layers, reserve)).await;
            has_room.map_err(|why| ("packages", why))?;
            self.install_anew(context, pins, &layer).await?;
        }
        let used = layer.clone();
        blocking(move || unused_runtimes::note_use(&used)).await;
        Ok(layers::site(&layer))
    }

    async fn install_anew(
        &self,
        context: InstallContext<'_>,
        pins: &Pins,
        layer: &Path,
    ) -> Result<(), PrepareError> {
        let runtime = context.runtime;
        let desk = self.desk(context).await?;
        desk.write([("pins.txt", pins.text().to_owned())]).await?;
        let told = "pip install --requirements pins.txt --require-hashes --no-deps --only-binary :all: \
                    --compile-bytecode --target site --python";
        let mut arguments = desk.installer(told);
        arguments.push(runtime.program("python").into());
        desk.job.run(&arguments).await.map_err(|error| uninstalled(&error))?;
        let (directory, layer, of) = (desk.job.directory.clone(), layer.to_owned(), runtime.clone());
        blocking(move || layers::place(&directory, &layer, &of)).await.map_err(broken)
    }

    /// Removes layers that have been unused for longer than this, and marks those in use. What is in use is looked up again
    /// before a layer is removed: an environment may have begun to use it meanwhile.
    pub(super) async fn remove_unused(
        &self,
        in_use: &BTreeSet<String>,
        kept_for: Duration,
        look: impl Fn() -> io::Result<BTreeSet<String>> + Clone + Send + 'static,
    ) {
        let layers = self.layout.layers();
        for key in blocking(move || layers::installed(&layers)).await {
            let directory = self.layout.layers().join(&key);
            if in_use.contains(&key) {
                blocking(move || unused_runtimes::note_use(&directory)).await;
                continue;
            }
            let turn = self.turn(&key);
            // It is being installed.
            let Ok(_turn) = turn.try_lock() else { continue };
            let (look, looked_for) = (look.clone(), key.clone());
            let removed = blocking(move || {
                if look()?.contains(&looked_for) {
                    return Ok(false);
                }
                unused_runtimes::remove_if_idle(&directory, kept_for)
            });
            match removed.await {
                Ok(false) => {}
                Ok(true) => tracing::info!(layer = key, "removed unused packages"),
                Err(error) => tracing::warn!(layer = key, %error, "unused packages cannot be removed"),
            }
        }
    }

    /// Occupies every place for a job.
    #[cfg(test)]
    pub(super) async fn occupy(&self) -> tokio::sync::SemaphorePermit<'_> {
        self.jobs.acquire_many(u32::try_from(JOBS).unwrap()).await.unwrap()
    }

    fn turn(&self, key: &str) -> Arc<AsyncMutex<()>> {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        turns.retain(|_, turn| Arc::strong_count(turn) > 1);
        Arc::clone(turns.entry(key.to_owned()).or_default())
    }

    /// A directory for one job, and the right to run it.
    async fn desk(&self, context: InstallContext<'_>) -> Result<Desk<'_>, PrepareError> {
        let InstallContext { host, uv, waiting, .. } = context;
        let permit = match self.jobs.try_acquire() {
            Ok(permit) => permit,
            Err(_) => {
                waiting(true);
                let permit = self.jobs.acquire().await.map_err(|error| broken(io::Error::other(error)))?;
                waiting(false);
                permit
            }
        };
        let (layout, uv, user) = (self.layout.clone(), uv.to_owned(), host.isolation.user_of(PACKAGES_SLOT));
        let prepare = || async {
            end_leftovers(&layout, user).await;
            blocking(move || prepare(&layout, &uv)).await
        };
        let installer = self.installer.get_or_try_init(prepare).await.map_err(broken)?;
        let directory = self.layout.jobs().join(blocking(unused_name).await.map_err(broken)?);
        let mut read = host.read.clone();
        read.extend(job::certificates());
        read.extend(installer.parent().map(Path::to_owned));
        let access = FileAccess { write: vec![directory.clone()], read, temporary: directory.join("tmp") };
        let isolation = host.isolation.of_environment(PACKAGES_SLOT, &access);
        let (made, owner) = (directory.clone(), isolation.clone());
        blocking(move || make_desk(&made, &owner)).await.map_err(broken)?;
        let job = Job { isolation, directory, reserve: self.reserve, most_bytes: self.most_bytes };
        Ok(Desk { _permit: permit, job, installer: installer.clone() })
    }
}

struct Desk<'a> {
    _permit: tokio::sync::SemaphorePermit<'a>,
    job: Job,
    installer: PathBuf,
}

impl Desk<'_> {
    /// The installer with arguments, none of which has spaces in it.
    fn installer(&self, told: &str) -> Vec<OsString> {
        let told = told.split(' ').map(OsString::from);
        std::iter::once(self.installer.clone().into()).chain(told).collect()
    }

    async fn write<const N: usize>(&self, files: [(&'static str, String); N]) -> Result<(), PrepareError> {
        let (directory, isolation) = (self.job.directory.clone(), self.job.isolation.clone());
        let written = blocking(move || {
            files.into_iter().try_for_each(|(name, text)| {
                let path = directory.join(name);
                write_whole(&path, text.as_bytes(), 0o600)?;
                isolation.give(&path)
            })
        });
        written.await.map_err(broken)
    }
}

impl Drop for Desk<'_> {
    /// Removes the directory, also if the job was abandoned.
    fn drop(&mut self) {
        let directory = std::mem::take(&mut self.job.directory);
        tokio::spawn(async move {
            if let Err(error) = blocking(move || trees::remove(&directory)).await {
                tracing::warn!(%error, "the directory of a package installation cannot be removed");
            }
        });
    }
}

/// Creates the directory of a job, which only its user can enter.
fn make_desk(directory: &Path, isolation: &Isolation) -> io::Result<()> {
    trees::remove(directory)?;
    for path in [directory.to_owned(), directory.join("tmp")] {
        fs::create_dir(&path)?;
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
        isolation.give(&path)?;
    }
    Ok(())
}

/// Ends jobs that outlived an earlier control plane: they would write on into directories that are about to go.
async fn end_leftovers(layout: &Layout, user: Option<u32>) {
    // Jobs are in no control group, and those of other planes on this machine have the same marker.
    let jobs = OrphanProcesses::of(job::owner(), user, &Cgroups::None).using(layout.jobs());
    jobs.clone().kill_in_directory(layout.jobs()).await;
    if user.is_some() {
        jobs.end().await;
    }
}

/// A name that no job had before, also under an earlier control plane.
fn unused_name() -> io::Result<String> {
    fs::read_to_string("/proc/sys/kernel/random/uuid").map(|text| text.trim().to_owned())
}

/// Puts the installer where the user of jobs can run it, and removes what earlier jobs left.
fn prepare(layout: &Layout, uv: &Path) -> io::Result<PathBuf> {
    if has_slot(layout, PACKAGES_SLOT)? {
        return Err(io::Error::other(
            "an existing environment has the user that is reserved for package installations",
        ));
    }
    trees::remove(&layout.jobs())?;
    layout.make_packages()?;
    layers::remove_drafts(&layout.layers())?;
    let program = layout.packages().join("bin").join("uv");
    let draft = program.with_extension("draft");
    fs::copy(uv, &draft)?;
    fs::set_permissions(&draft, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    rename(&draft, &program)?;
    Ok(program)
}

#[cfg(test)]
mod attacks;
#[cfg(test)]
mod tests;
