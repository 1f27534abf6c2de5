//! Where everything of the local plane is, below one directory.

use std::fs;
use std::io;
use std::ops::Range;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use podium_api::DeploymentId;

use super::isolation::Isolation;
use super::users;
use crate::blocking::not_on_a_worker;

/// The directories of the plane.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    root: PathBuf,
    users: Range<u32>,
}

impl Layout {
    /// Makes the directories that everything else stands in. Users of environments may pass, and not look around.
    pub(super) fn make(root: &Path) -> io::Result<Self> {
        fs::create_dir_all(root)?;
        // Absolute, for processes that run elsewhere.
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
        layout.users = users::of_plane(&layout.root, !layout.known()?.is_empty())?;
        Ok(layout)
    }

    /// The directories of a plane that is not opened.
    pub(super) fn at(root: &Path) -> Self {
        Self { root: root.to_owned(), users: 0..0 }
    }

    /// The number below those of the users of environments. It is the plane's own: whoever ends what runs under a user
    /// of one plane must not hit another plane of the same machine.
    pub(super) fn first_user(&self) -> u32 {
        self.users.start
    }

    /// Everybody whom an environment of this plane may run under.
    pub(super) fn users(&self) -> Range<u32> {
        self.users.clone()
    }

    /// A slot for a new environment, which no other had before.
    pub(super) fn take_slot(&self, taken: &[u32]) -> io::Result<u32> {
        users::take_slot(&self.root, &self.users, taken)
    }

    /// Programs that install runtimes.
    pub(super) fn tools(&self) -> PathBuf {
        self.root.join("tools")
    }

    /// Installed runtimes, shared by all environments, which only read them.
    pub(super) fn runtimes(&self) -> PathBuf {
        self.root.join("runtimes")
    }

    /// What Airflow needs to know of this plane, in Python.
    pub(super) fn support(&self) -> PathBuf {
        self.root.join("support")
    }

    /// Writes a file of it; environments read it.
    pub(super) fn write_support(&self, name: &str, text: &str) -> io::Result<()> {
        let path = self.support().join(name);
        if let Some(above) = path.parent() {
            directory_with(above, 0o755)?;
        }
        write_whole(&path, text.as_bytes(), 0o644)
    }

    /// Environments that another machine runs by now.
    pub(super) fn aside(&self) -> PathBuf {
        self.root.join("set-aside")
    }

    /// The database server of the plane's own.
    pub(super) fn postgres(&self) -> PathBuf {
        self.root.join("postgres")
    }

    /// Where environments are.
    pub(super) fn environments(&self) -> PathBuf {
        self.root.join("environments")
    }

    /// Where an environment is.
    pub(super) fn environment(&self, id: DeploymentId) -> Place {
        Place { root: self.environments().join(id.as_str()) }
    }

    /// The environments that there are.
    pub(super) fn known(&self) -> io::Result<Vec<DeploymentId>> {
        not_on_a_worker();
        let mut ids = Vec::new();
        for entry in fs::read_dir(self.environments())? {
            ids.extend(entry?.file_name().to_str().and_then(|name| name.parse::<DeploymentId>().ok()));
        }
        ids.sort_unstable();
        Ok(ids)
    }
}

/// The directories of one environment.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) root: PathBuf,
}

impl Place {
    /// Makes them: what the environment owns, and what it only reads.
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

    /// What the environment writes. Everything above these stays the control plane's, so that no link that an
    /// environment puts there leads the control plane astray.
    pub(super) fn own(&self) -> Vec<PathBuf> {
        let logs = [self.task_logs(), self.parser_logs()];
        let other = [self.user_home(), self.database(), self.temporary(), self.status()];
        other.into_iter().chain(logs).collect()
    }

    /// What the environment only reads.
    pub(super) fn read(&self) -> Vec<PathBuf> {
        vec![self.home(), self.code(), self.control()]
    }

    /// What of it is measured, by name: all that grows with what its authors and tasks do.
    pub(super) fn measured(&self) -> Vec<(String, PathBuf)> {
        let all = [
            self.code(),
            self.home(),
            self.logs(),
            self.user_home(),
            self.database(),
            self.temporary(),
            self.status(),
        ];
        let named =
            |path: PathBuf| (path.file_name().unwrap_or_default().to_string_lossy().into_owned(), path);
        all.into_iter().map(named).collect()
    }

    /// The slot that its files tell, where nothing else does: that of the user whose they are.
    pub(super) fn slot_by_owner(&self, users: &std::ops::Range<u32>) -> Option<u32> {
        let owner = std::os::unix::fs::MetadataExt::uid(&fs::symlink_metadata(self.user_home()).ok()?);
        users.contains(&owner).then(|| owner - users.start)
    }

    /// What the plane remembers of it.
    pub(super) fn state(&self) -> PathBuf {
        self.root.join("state.json")
    }

    /// What its supervisor asks of its components.
    pub(super) fn control(&self) -> PathBuf {
        self.root.join("control")
    }

    /// The file whose presence asks the executor to take no further tasks.
    pub(super) fn drain(&self) -> PathBuf {
        self.control().join("drain")
    }

    /// What its components say of themselves to their supervisor.
    pub(super) fn status(&self) -> PathBuf {
        self.root.join("status")
    }

    /// How far its logs were read.
    pub(super) fn offsets(&self) -> PathBuf {
        self.root.join("offsets")
    }

    /// The home of the user that it runs under.
    pub(super) fn user_home(&self) -> PathBuf {
        self.root.join("user")
    }

    /// Airflow's home, with bundles at their mount paths.
    pub(super) fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    /// Versions of DAGs and bundles.
    pub(super) fn code(&self) -> PathBuf {
        self.root.join("code")
    }

    /// What its components and tasks write.
    pub(super) fn logs(&self) -> PathBuf {
        self.root.join("logs")
    }

    /// The file that a component appends to.
    pub(super) fn component_log(&self, component: &str) -> PathBuf {
        self.root.join("logs").join(format!("{component}.log"))
    }

    /// Logs of tasks.
    pub(super) fn task_logs(&self) -> PathBuf {
        self.logs().join("tasks")
    }

    /// Logs of those who read DAGs.
    pub(super) fn parser_logs(&self) -> PathBuf {
        self.logs().join("dag-processor")
    }

    /// Its metadata database as a backup had it, until it is brought back to the server.
    pub(super) fn saved_metadata(&self) -> PathBuf {
        self.root.join("metadata.dump")
    }

    /// The directory of its metadata database.
    pub(super) fn database(&self) -> PathBuf {
        self.root.join("database")
    }

    /// The file of its metadata database.
    pub(super) fn database_file(&self) -> PathBuf {
        self.database().join("airflow.db")
    }

    /// A directory for temporary files.
    pub(super) fn temporary(&self) -> PathBuf {
        self.root.join("tmp")
    }
}

fn directory_with(path: &Path, mode: u32) -> io::Result<()> {
    not_on_a_worker();
    fs::create_dir_all(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

/// Writes a file that is there as a whole or not at all.
pub(super) fn write_whole(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    not_on_a_worker();
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

/// Puts a file that was written under another name in its place: as a whole or not at all, whatever happens to the
/// machine.
pub(super) fn rename_whole(draft: &Path, path: &Path) -> io::Result<()> {
    fs::File::open(draft)?.sync_all()?;
    rename(draft, path)
}

/// Renames a file or directory durably: syncs the directory that holds it.
pub(super) fn rename(draft: &Path, path: &Path) -> io::Result<()> {
    fs::rename(draft, path)?;
    path.parent().map_or(Ok(()), |directory| fs::File::open(directory)?.sync_all())
}
