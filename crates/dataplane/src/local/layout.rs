//! The directory layout of the local plane.

use std::ops::Range;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use podium_api::DeploymentId;

use super::isolation::Isolation;
use super::users;
use crate::blocking::assert_may_block;

/// Directories and files below the root of something, each with what it is for.
macro_rules! paths {
    ($owner:ident: $($(#[$about:meta])* $name:ident = $below:literal;)*) => {
        impl $owner {$(
            $(#[$about])*
            pub(super) fn $name(&self) -> PathBuf {
                self.root.join($below)
            }
        )*}
    };
}

#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// The directory of the plane, absolute.
    pub(super) root: PathBuf,
    /// All users that environments of this plane may run as. The range is unique to this plane: killing the processes of a
    /// user must not hit another plane on the same machine.
    pub(super) users: Range<u32>,
}

paths! {
    Layout:
    /// Programs that install runtimes.
    tools = "tools";
    /// Installed runtimes, shared by all environments, which only read them.
    runtimes = "runtimes";
    /// Layers of packages over runtimes. Below the runtimes, which environments read anyway.
    layers = "runtimes/layers";
    /// Where packages of projects are installed before they become layers.
    packages = "packages";
    /// The directories of installations in progress.
    jobs = "packages/jobs";
    /// Python modules that integrate Airflow with this plane.
    support = "support";
    /// Environments that have been set aside.
    aside = "set-aside";
    /// The plane's own database server.
    postgres = "postgres";
    /// The directory of all environments.
    environments = "environments";
}

impl Layout {
    /// Creates the top-level directories. Users of environments may pass through them, but not list them.
    pub(super) fn make(root: &Path) -> io::Result<Self> {
        fs::create_dir_all(root)?;
        // Absolute, for processes with another working directory.
        let mut layout = Self { root: fs::canonicalize(root)?, users: 0..0 };
        for (directory, mode) in [
            (layout.root.clone(), 0o711),
            (layout.tools(), 0o700),
            (layout.runtimes(), 0o755),
            (layout.support(), 0o755),
            (layout.environments(), 0o711),
        ] {
            directory_with(&directory, mode)?;
        }
        layout.make_packages()?;
        layout.users = users::of_plane(&layout.root, !layout.known()?.is_empty())?;
        Ok(layout)
    }

    /// The layout of a plane that is not open.
    pub(super) fn at(root: &Path) -> Self {
        Self { root: root.to_owned(), users: 0..0 }
    }

    /// Creates the directories for packages. Their user may pass through them, but not list them.
    pub(super) fn make_packages(&self) -> io::Result<()> {
        let all = [self.layers(), self.packages(), self.packages().join("bin"), self.jobs()];
        all.iter().try_for_each(|directory| directory_with(directory, 0o711))
    }

    /// Writes a support file, which environments read.
    pub(super) fn write_support(&self, name: &str, text: &str) -> io::Result<()> {
        let path = self.support().join(name);
        if let Some(above) = path.parent() {
            directory_with(above, 0o755)?;
        }
        write_whole(&path, text.as_bytes(), 0o644)
    }

    pub(super) fn environment(&self, id: DeploymentId) -> Place {
        Place { root: self.environments().join(id.as_str()) }
    }

    pub(super) fn known(&self) -> io::Result<Vec<DeploymentId>> {
        assert_may_block();
        let mut ids = Vec::new();
        for entry in fs::read_dir(self.environments())? {
            ids.extend(entry?.file_name().to_str().and_then(|name| name.parse::<DeploymentId>().ok()));
        }
        ids.sort_unstable();
        Ok(ids)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) root: PathBuf,
}

paths! {
    Place:
    /// Its saved state.
    state = "state.json";
    /// The file that says that its operator has stopped it.
    stopped = "stopped";
    /// Requests of its supervisor to its components.
    control = "control";
    /// The file that says since when workers and their broker have been there.
    workers = "control/workers";
    /// The file whose presence asks the executor to accept no further tasks.
    drain = "control/drain";
    /// Status files of its components for their supervisor.
    status = "status";
    /// What it says about its DAG runs, until the control plane has read it.
    spool = "spool";
    /// The offsets up to which its logs were read.
    offsets = "offsets";
    /// The home directory of the user that it runs as.
    user_home = "user";
    /// Airflow's home directory, with bundles at their mount paths.
    home = "home";
    /// Versions of DAGs and bundles.
    code = "code";
    /// Resolved requirements of its projects.
    pins = "code/pins";
    /// The logs of its components and tasks.
    logs = "logs";
    /// Logs of tasks.
    task_logs = "logs/tasks";
    /// Logs of DAG parsing.
    parser_logs = "logs/dag-processor";
    /// The dump of its metadata database from a backup, until it is restored to the server.
    saved_metadata = "metadata.dump";
    /// The directory of its metadata database.
    database = "database";
    /// The file of its metadata database.
    database_file = "database/airflow.db";
    /// A directory for temporary files.
    temporary = "tmp";
}

impl Place {
    /// Creates them: those that the environment owns, and those that it only reads.
    pub(super) fn make(&self, isolation: &Isolation) -> io::Result<()> {
        directory_with(&self.root, 0o750)?;
        isolation.admit(&self.root)?;
        for read in self.read() {
            directory_with(&read, 0o755)?;
        }
        directory_with(&self.logs(), 0o755)?;
        for own in self.own() {
            directory_with(&own, 0o700)?;
            isolation.give(&own)?;
        }
        Ok(())
    }

    /// What the environment writes. The control plane owns everything above these, so that an environment cannot
    /// redirect it with links.
    pub(super) fn own(&self) -> Vec<PathBuf> {
        let logs = [self.task_logs(), self.parser_logs()];
        let other = [self.user_home(), self.database(), self.temporary(), self.status(), self.spool()];
        other.into_iter().chain(logs).collect()
    }

    /// What the environment only reads.
    pub(super) fn read(&self) -> Vec<PathBuf> {
        vec![self.home(), self.code(), self.control()]
    }

    /// The directories that count towards its disk quota, by name: everything that grows through its authors and tasks.
    pub(super) fn measured(&self) -> Vec<(String, PathBuf)> {
        let all = [
            self.code(),
            self.home(),
            self.logs(),
            self.user_home(),
            self.database(),
            self.temporary(),
            self.status(),
            self.spool(),
        ];
        let named =
            |path: PathBuf| (path.file_name().unwrap_or_default().to_string_lossy().into_owned(), path);
        all.into_iter().map(named).collect()
    }

    /// The slot as derived from the owner of its files, if there is no saved state.
    pub(super) fn slot_by_owner(&self, users: &std::ops::Range<u32>) -> Option<u32> {
        let owner = std::os::unix::fs::MetadataExt::uid(&fs::symlink_metadata(self.user_home()).ok()?);
        users.contains(&owner).then(|| owner - users.start)
    }

    pub(super) fn component_log(&self, component: &str) -> PathBuf {
        self.root.join("logs").join(format!("{component}.log"))
    }
}

/// The oldest entries of a directory beyond so many; one of this name is not counted.
pub(super) fn oldest_beyond(directory: &Path, kept: usize, current: &str) -> io::Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_name() != current {
            all.push((entry.metadata()?.modified()?, entry.path()));
        }
    }
    all.sort();
    all.truncate(all.len().saturating_sub(kept));
    Ok(all.into_iter().map(|(_, path)| path).collect())
}

/// Turns what is missing into `None`.
pub(super) fn missing_is_none<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        found => found.map(Some),
    }
}

fn directory_with(path: &Path, mode: u32) -> io::Result<()> {
    assert_may_block();
    fs::create_dir_all(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

pub(super) fn write_whole(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    assert_may_block();
    let draft = path.with_extension("draft");
    {
        let mut options = fs::OpenOptions::new();
        options.write(true).create(true).truncate(true);
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
        let mut file = options.open(&draft)?;
        io::Write::write_all(&mut file, bytes)?;
        file.set_permissions(fs::Permissions::from_mode(mode))?;
        file.sync_data()?;
    }
    rename(&draft, path)
}

/// Moves a file that was written under another name into place, atomically and durably.
pub(super) fn rename_whole(draft: &Path, path: &Path) -> io::Result<()> {
    fs::File::open(draft)?.sync_all()?;
    rename(draft, path)
}

/// Renames a file or directory durably: syncs the directory that holds it.
pub(super) fn rename(draft: &Path, path: &Path) -> io::Result<()> {
    fs::rename(draft, path)?;
    path.parent().map_or(Ok(()), |directory| fs::File::open(directory)?.sync_all())
}
