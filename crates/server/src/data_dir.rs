//! The data directory, readable by its owner only.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use podium_api::NodeId;
use podium_app::secrets::Secrets;
use podium_app::world::World;

use crate::failure::Failure;

/// The file of the embedded database.
pub(crate) const DATABASE: &str = "podium.db";
/// The directory of deployments' logs.
pub(crate) const LOGS: &str = "logs";
/// The directory of uploaded files.
pub(crate) const OBJECTS: &str = "objects";
/// The directory of environments that run on this machine: the only one that other users may pass through.
pub(crate) const LOCAL: &str = "local";
/// The directory of the simulated data plane.
pub(crate) const SIMULATED: &str = "simulated";
pub(crate) const SECRET_KEY: &str = "secret-key";
/// Where a restore unpacks, until all of it is checked.
pub(crate) const RESTORING: &str = ".restoring";
pub const OWNER_TOKEN: &str = "owner-token";
/// The socket of the operator of this machine.
pub const SOCKET: &str = "podium.sock";
/// What whoever uses that socket must know, new with every start.
pub const OPERATOR_KEY: &str = "operator-key";
/// The file with the id of this machine among the nodes of an installation.
pub(crate) const NODE_ID: &str = "node-id";

pub(crate) struct DataDir(PathBuf);

impl DataDir {
    /// Opens the directory, creating it if needed.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let made = fs::create_dir_all(path).and_then(|()| close(path));
        made.map_err(|error| format!("the data directory {} cannot be used: {error}", path.display()))?;
        Ok(Self(path.to_owned()))
    }

    /// The key of this installation's secrets, created at the first start.
    pub(crate) fn secret_key(&self, world: &World) -> Result<String, Failure> {
        let path = self.0.join(SECRET_KEY);
        match fs::read_to_string(&path) {
            Ok(key) => Ok(key),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let key = Secrets::new_key(world);
                write_private(&path, &key)?;
                Ok(key.to_string())
            }
            Err(error) => Err(format!("the key file {} cannot be read: {error}", path.display()).into()),
        }
    }

    /// Whether the directory was used before, even if its database is missing.
    pub(crate) fn was_used(&self) -> bool {
        let has_entries =
            |path: &str| fs::read_dir(self.0.join(path)).is_ok_and(|mut all| all.next().is_some());
        // Written after everything else; an interrupted first start leaves only the key.
        self.0.join(OWNER_TOKEN).exists()
            || self.0.join(NODE_ID).exists()
            || has_entries("local/environments")
    }

    /// Refuses a directory with an unfinished restore.
    pub(crate) fn refuse_unfinished(&self) -> Result<(), Failure> {
        match self.0.join(RESTORING).exists() {
            true => Err(format!(
                "a restore to {} was interrupted: delete that directory and restore again",
                self.0.display()
            )
            .into()),
            false => Ok(()),
        }
    }

    /// The id of this machine among the nodes of an installation, created once.
    pub(crate) fn node_id(&self, world: &World) -> Result<NodeId, Failure> {
        let path = self.0.join(NODE_ID);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(text
                .trim()
                .parse()
                .map_err(|_| format!("{} does not contain a node id", path.display()))?),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let id = world.id();
                write_private(&path, &format!("{id}\n"))?;
                Ok(id)
            }
            Err(error) => Err(format!("{} cannot be read: {error}", path.display()).into()),
        }
    }

    pub(crate) fn keep_owner_token(&self, token: &str) -> Result<PathBuf, Failure> {
        let path = self.0.join(OWNER_TOKEN);
        write_private(&path, token)?;
        Ok(path)
    }
}

pub(crate) fn existing_key(data_dir: &Path) -> Result<String, Failure> {
    let path = data_dir.join(SECRET_KEY);
    Ok(fs::read_to_string(&path)
        .map_err(|error| format!("the key file {} cannot be read: {error}", path.display()))?)
}

/// Restricts everything in the directory to its owner. Other users may pass through it, because environments on this
/// machine run as their own users.
fn close(path: &Path) -> std::io::Result<()> {
    rustix::process::umask(rustix::fs::Mode::from_bits_truncate(0o077));
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let mode = match entry.file_type()? {
            kind if kind.is_symlink() => continue,
            kind if kind.is_dir() && entry.file_name() == LOCAL => 0o711,
            kind if kind.is_dir() => 0o700,
            _ => 0o600,
        };
        match fs::set_permissions(entry.path(), fs::Permissions::from_mode(mode)) {
            // It may be gone: the files of the database come and go.
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    fs::set_permissions(path, fs::Permissions::from_mode(0o711))
}

/// Replaces a file that only its owner can read, in one step.
pub(crate) fn replace_private(path: &Path, text: &str) -> Result<(), Failure> {
    let temporary = path.with_extension("new");
    write_private(&temporary, text)?;
    let renamed = fs::rename(&temporary, path)
        .and_then(|()| path.parent().map_or(Ok(()), |parent| fs::File::open(parent)?.sync_all()));
    Ok(renamed.map_err(|error| format!("{} cannot be written: {error}", path.display()))?)
}

/// Writes a file that only its owner can read, and syncs it to disk.
fn write_private(path: &Path, text: &str) -> Result<(), Failure> {
    let written = (|| {
        let mut file =
            fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        path.parent().map_or(Ok(()), |parent| fs::File::open(parent)?.sync_all())
    })();
    Ok(written.map_err(|error| format!("{} cannot be written: {error}", path.display()))?)
}
