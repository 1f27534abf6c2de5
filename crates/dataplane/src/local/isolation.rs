//! What keeps the code of one environment from everything that is not its own.
//!
//! Code of DAGs is somebody else's code. Where the control plane is root every environment is a user of its own; else
//! the kernel (Landlock) lets its processes reach their own directory, the runtime and the system's programs, and
//! nothing else. Where neither works all authors are trusted, and the start says so.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use landlock::{
    ABI, Access as _, AccessFs, PathBeneath, PathFd, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _,
    RulesetStatus, Scope,
};

use super::settings::Variables;

const SHELL: &str = "/bin/sh";

/// What stands before the names of variables that are data to the launcher: neither it nor its loader heeds them.
const AS_DATA: &str = "PODIUM_SET_";

/// What every program of an environment starts with, whatever the control plane keeps to: what it writes is its own to
/// close, and it may open as many files as servers usually may.
const ORDINARY: &str = "umask 022; limit=$(ulimit -H -n); [ \"$limit\" -le 65536 ] 2>/dev/null || limit=65536; \
                        ulimit -S -n \"$limit\"; exec \"$0\" \"$@\"";

/// What the system itself offers every program; an environment under Landlock reads these and no more.
const SYSTEM: &[&str] =
    &["/bin", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/opt", "/proc", "/sbin", "/sys", "/usr"];

/// What an environment may write outside its own directory.
const SINKS: &[&str] = &["/dev/null", "/dev/full", "/dev/zero", "/dev/tty", "/dev/shm"];

/// How environments of this machine are kept apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Each is a user of its own.
    Users {
        /// The number of the first one; that of an environment's slot is added.
        first: u32,
    },
    /// The kernel confines each to its own files.
    Landlock {
        /// The program that confines itself and then becomes another: this one.
        launcher: PathBuf,
    },
    /// Not at all, and why.
    Trusted(String),
}

/// How the processes of one environment are kept apart from the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Isolation {
    /// Under this user.
    User(u32),
    /// Within these directories, with one of them in the place of `/tmp` where the kernel allows it.
    Landlock { launcher: PathBuf, write: Vec<PathBuf>, read: Vec<PathBuf>, temporary: PathBuf },
    /// Not at all.
    None,
}

impl Mode {
    /// What this machine allows, with an interpreter that environments have to be able to run.
    pub(super) fn of_this_machine(
        python: &Path,
        directory: &Path,
        launcher: Option<&Path>,
        first: u32,
    ) -> Self {
        let users = users_work(python, directory, first);
        match (users, launcher) {
            (Ok(()), _) => Self::Users { first },
            (Err(_), Some(launcher)) if landlock_works() => Self::Landlock { launcher: launcher.to_owned() },
            (Err(why), _) => Self::Trusted(format!("{why}; and the kernel offers no Landlock")),
        }
    }

    /// What to tell the operator at the start.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Users { .. } => "environments are kept apart: each runs under a user of its own".into(),
            Self::Landlock { .. } => {
                "environments are kept apart: the kernel confines each to its own files".into()
            }
            Self::Trusted(why) => format!(
                "environments are NOT kept apart, so every author of DAGs is trusted with everything that this user \
                 can read: {why}"
            ),
        }
    }

    /// The user of an environment, where each has its own.
    pub(super) fn user_of(&self, slot: u32) -> Option<u32> {
        if let Self::Users { first } = self { Some(first + slot) } else { None }
    }

    /// The bounds of one environment: what it writes, and what it reads beside that and the system.
    pub(super) fn of_environment(
        &self,
        slot: u32,
        write: Vec<PathBuf>,
        read: Vec<PathBuf>,
        temporary: PathBuf,
    ) -> Isolation {
        match self {
            Self::Users { first } => Isolation::User(first + slot),
            Self::Landlock { launcher } => {
                Isolation::Landlock { launcher: launcher.clone(), write, read, temporary }
            }
            Self::Trusted(_) => Isolation::None,
        }
    }
}

impl Isolation {
    /// The user that its processes run under, where that is another.
    pub(super) fn user(&self) -> Option<u32> {
        match self {
            Self::User(user) => Some(*user),
            Self::Landlock { .. } | Self::None => None,
        }
    }

    /// A command that runs this within the bounds, with these variables and no others.
    pub(super) fn command(&self, arguments: &[OsString], variables: &Variables) -> Command {
        let ordinary = |mut command: Command| {
            command.args(["-c", ORDINARY]).args(arguments);
            command
        };
        let told = variables.iter().map(|(name, value)| (name.as_str(), value.reveal()));
        match self {
            Self::None => {
                let mut command = ordinary(Command::new(SHELL));
                command.env_clear().envs(told);
                command
            }
            Self::User(user) => {
                let mut command = ordinary(Command::new(SHELL));
                // Without other groups: the standard library drops them with the user.
                command.gid(*user).uid(*user).env_clear().envs(told);
                command
            }
            Self::Landlock { launcher, write, read, temporary } => {
                let mut command = Command::new(launcher);
                // The launcher is not confined yet: what an author sets must not take effect on it.
                command.env_clear().envs(told.map(|(name, value)| (format!("{AS_DATA}{name}"), value)));
                command.arg("confine").arg("--temporary").arg(temporary);
                for (flag, directories) in [("--write", write), ("--read", read)] {
                    directories.iter().for_each(|directory| _ = command.arg(flag).arg(directory));
                }
                command.arg("--").arg(SHELL);
                ordinary(command)
            }
        }
    }

    /// Gives a file or directory to the environment.
    pub(super) fn give(&self, path: &Path) -> io::Result<()> {
        match self {
            Self::User(user) => chown(path, Some(*user), Some(*user)),
            Self::Landlock { .. } | Self::None => Ok(()),
        }
    }

    /// Lets the environment read a directory that stays the control plane's.
    pub(super) fn admit(&self, path: &Path) -> io::Result<()> {
        match self {
            Self::User(user) => chown(path, Some(0), Some(*user)),
            Self::Landlock { .. } | Self::None => Ok(()),
        }
    }
}

/// Whether processes can run under other users here, and reach what they need.
fn users_work(python: &Path, directory: &Path, user: u32) -> Result<(), String> {
    if !rustix::process::geteuid().is_root() {
        return Err("the control plane does not run as root, so it cannot use other users".into());
    }
    // The data directory itself is opened for passing by whoever makes it.
    let above_data = directory.parent().and_then(Path::parent).unwrap_or(directory);
    for path in [python, above_data] {
        let real = fs::canonicalize(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let is_closed = |above: &&Path| fs::metadata(above).is_ok_and(|metadata| metadata.mode() & 0o1 == 0);
        if let Some(closed) = real.ancestors().find(is_closed) {
            return Err(format!("other users cannot enter {}", closed.display()));
        }
    }
    let works = Command::new(python)
        .args(["-c", ""])
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .gid(user)
        .uid(user)
        .status();
    match works {
        Ok(status) if status.success() => Ok(()),
        _ => Err(format!("another user cannot run {}", python.display())),
    }
}

fn landlock_works() -> bool {
    Ruleset::default().handle_access(AccessFs::from_all(ABI::V1)).and_then(Ruleset::create).is_ok()
}

/// Confines this process to some directories and becomes another program, with the variables that were passed as data
/// and no others. Returns only why it could not. It must be called before this process has other threads.
pub fn confine(
    write: &[PathBuf],
    read: &[PathBuf],
    temporary: Option<&Path>,
    arguments: &[OsString],
) -> String {
    let needs_tmp = write.iter().chain(read).any(|path| path.starts_with("/tmp"));
    if let Some(temporary) = temporary.filter(|_| !needs_tmp) {
        // A convenience where the kernel allows it: TMPDIR names the same directory in any case.
        let _ = put_in_place_of_tmp(temporary);
    }
    if let Err(why) = restrict(write, read) {
        return format!("this process cannot be confined: {why}");
    }
    let Some((program, rest)) = arguments.split_first() else { return "nothing to run".into() };
    let told = std::env::vars_os().filter_map(|(name, value)| {
        let name = name.to_str()?.strip_prefix(AS_DATA)?.to_owned();
        Some((name, value))
    });
    let error = Command::new(program).args(rest).env_clear().envs(told).exec();
    format!("{} cannot be run: {error}", program.display())
}

/// Gives this process, and all that it becomes and starts, a `/tmp` of its own.
fn put_in_place_of_tmp(directory: &Path) -> io::Result<()> {
    use rustix::mount::{MountPropagationFlags, mount_bind, mount_change};
    use rustix::process::{getegid, geteuid};
    use rustix::thread::UnshareFlags;

    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    #[expect(deprecated, reason = "its successor is unsafe because of flags that are not used here")]
    rustix::thread::unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNS)?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    mount_bind(directory, "/tmp")?;
    Ok(())
}

fn restrict(write: &[PathBuf], read: &[PathBuf]) -> Result<(), String> {
    let abi = ABI::V6;
    let (reading, all) = (AccessFs::from_read(abi), AccessFs::from_all(abi));
    let (system, sinks) = (SYSTEM.iter().map(PathBuf::from), SINKS.iter().map(PathBuf::from));
    let readable = system.chain(read.iter().cloned()).map(|path| (path, reading));
    let writable = sinks.chain(write.iter().cloned()).map(|path| (path, all));
    let mut rules = Ruleset::default()
        .handle_access(all)
        .and_then(|rules| rules.scope(Scope::from_all(abi)))
        .and_then(Ruleset::create)
        .map_err(|error| error.to_string())?;
    for (path, access) in readable.chain(writable) {
        // What this system lacks needs no rule.
        let Ok(opened) = PathFd::new(&path) else { continue };
        let is_file = fs::metadata(&path).is_ok_and(|metadata| !metadata.is_dir());
        let access = if is_file { access & AccessFs::from_file(abi) } else { access };
        rules = rules.add_rule(PathBeneath::new(opened, access)).map_err(|error| error.to_string())?;
    }
    let status = rules.restrict_self().map_err(|error| error.to_string())?;
    match status.ruleset {
        RulesetStatus::NotEnforced => Err("the kernel offers no Landlock".into()),
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
    }
}

#[cfg(test)]
mod tests;
