//! What the launcher does to itself before it becomes a program of an environment.
//!
//! Whatever happens to environments' files, no program of theirs gains anything by becoming another: set-user-id bits and
//! file capabilities count for nothing, and ports that somebody is waiting for are not theirs to take.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::ops::RangeInclusive;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, CreateRulesetError, NetPort,
    PathBeneath, PathFd, Ruleset, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetError,
    RulesetStatus, Scope,
};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_bind, mount_change};
use rustix::process::{DumpableBehavior, Gid, Uid, getegid, geteuid, set_dumpable_behavior};
use rustix::thread::{
    CapabilitySet, CapabilitySets, UnshareFlags, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs, set_thread_groups,
    set_thread_res_gid, set_thread_res_uid,
};

use super::{VARIABLE_PREFIX, filter, grants};
use crate::local::{network, ports};

/// The newest rules that this program knows; an older kernel keeps those that it knows.
const LANDLOCK_ABI: ABI = ABI::V6;

/// The variable that tells a web server which of its descriptors is the socket in its own network.
const INNER_SOCKET: &str = "PODIUM_INNER_SOCKET";

/// Directories that everybody may write to, which the program gets of its own where the kernel allows it.
const SHARED_DIRECTORIES: &[&str] = &["/tmp", "/var/tmp"];
/// The same in memory.
const SHARED_MEMORY: &str = "/dev/shm";
const QUEUES: &str = "/dev/mqueue";

/// What the launcher's own mounts are of, as the kernel's list of mounts says.
pub(in crate::local) const MOUNTED: &str = "podium";

/// Where services listen that start programs or use keys for whoever is their user.
const SOCKETS: &[&str] = &[
    "/run/user",
    "/run/docker.sock",
    "/var/run/docker.sock",
    "/run/podman",
    "/var/run/podman",
    "/run/containerd",
    "/var/run/containerd",
];
/// The same for root.
const SOCKETS_OF_ROOT: &[&str] = &["/run/dbus", "/run/systemd/private"];

/// What may be written outside the program's own directories.
const SINKS: &[&str] = &["/dev/null", "/dev/full", "/dev/zero", "/dev/tty", SHARED_MEMORY];

/// How a program is to be confined.
#[derive(Clone, Debug, Default)]
pub struct Confinement {
    /// What it may write.
    pub write: Vec<PathBuf>,
    /// What it may read beside that and the system.
    pub read: Vec<PathBuf>,
    /// What it may not read, wherever that is.
    pub kept: Vec<PathBuf>,
    /// What it has in the place of `/tmp`; it is not run where the kernel does not allow that.
    pub temporary: Option<PathBuf>,
    /// The user that it becomes.
    pub user: Option<u32>,
    /// Whether its files are left to whatever its user may do.
    pub any_file: bool,
    /// The ports that it may listen on, beside those that the kernel picks.
    pub ports: Vec<RangeInclusive<u16>>,
    /// The network that it enters, by the kernel's number; it is not run where it cannot.
    pub network: Option<u64>,
    /// The process that holds this network.
    pub holder: Option<i32>,
    /// The control groups that it joins; it is not run where it cannot.
    pub groups: Vec<PathBuf>,
}

impl Confinement {
    /// Confines this process and becomes another program, with the variables that were passed as data and no others.
    /// Returns only why it could not. It must be called before this process has other threads.
    pub fn become_program(&self, arguments: &[OsString]) -> String {
        let confined = self
            .join_groups()
            .and_then(|()| self.enter_network())
            .and_then(|inner| self.confine().map(|()| inner));
        let inner = match confined {
            Ok(inner) => inner,
            Err(why) => return format!("this process cannot be confined: {why}"),
        };
        let Some((program, rest)) = arguments.split_first() else { return "nothing to run".into() };
        let told = std::env::vars_os().filter_map(|(name, value)| {
            let name = name.to_str()?.strip_prefix(VARIABLE_PREFIX)?.to_owned();
            Some((name, value))
        });
        let mut command = Command::new(program);
        command.args(rest).env_clear().envs(told);
        if let Some(inner) = inner {
            command.env(INNER_SOCKET, inner.to_string());
        }
        let error = command.exec();
        format!("{} cannot be run: {error}", program.display())
    }

    /// Joins its control groups, before anything can be started outside of them.
    fn join_groups(&self) -> io::Result<()> {
        let join = |group: &PathBuf| {
            fs::write(group.join("cgroup.procs"), "0")
                .map_err(|error| io::Error::other(format!("its bounds cannot be kept: {error}")))
        };
        self.groups.iter().try_for_each(join)
    }

    /// Enters the network that it is to be in. The answer is the socket in it that a web server serves, too.
    fn enter_network(&self) -> io::Result<Option<i32>> {
        let Some(number) = self.network else { return Ok(None) };
        let entered = network::join(self.holder.unwrap_or_default(), number);
        entered.map_err(|error| io::Error::other(format!("its network cannot be entered: {error}")))
    }

    fn confine(&self) -> io::Result<()> {
        let mut is_user = false;
        if let Some(temporary) = &self.temporary {
            let own =
                |error: io::Error| io::Error::other(format!("no mounts of its own can be made: {error}"));
            if !unshare_namespaces() {
                // Whoever may not leave them alone may leave them as its own master, once it is who it is to be.
                self.become_user()?;
                is_user = true;
                unshare_with_user_namespace().map_err(own)?;
            }
            self.mount_own(temporary).map_err(own)?;
        }
        limit_capabilities();
        set_no_new_privs(true).map_err(io::Error::other)?;
        self.apply_rules()?;
        filter::apply()?;
        if !is_user {
            self.become_user()?;
        }
        let none = CapabilitySet::empty();
        let none = CapabilitySets { effective: none, permitted: none, inheritable: none };
        set_capabilities(None, none).map_err(io::Error::other)
    }

    /// Becomes the user that it is to be, without other groups.
    fn become_user(&self) -> io::Result<()> {
        let Some(number) = self.user else { return Ok(()) };
        let (user, group) = (Uid::from_raw(number), Gid::from_raw(number));
        set_thread_groups(&[])?;
        set_thread_res_gid(group, group, group)?;
        set_thread_res_uid(user, user, user)?;
        // What is told of this process by its files is its own again.
        Ok(set_dumpable_behavior(DumpableBehavior::Dumpable)?)
    }

    /// Whether something that the program needs is below a directory.
    fn needs(&self, directory: &str) -> bool {
        self.write.iter().chain(&self.read).any(|path| path.starts_with(directory))
    }

    /// Gives this process, and all that it becomes and starts, directories for temporary files, shared memory and queues
    /// of its own. What is left in shared memory and queues ends with it.
    fn mount_own(&self, temporary: &Path) -> io::Result<()> {
        // What the operator mounts and unmounts later counts here, too; what is mounted here is seen nowhere else.
        mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)?;
        // Under Landlock nothing else is written to, and the database server's socket may be there.
        let shared = if self.any_file { SHARED_DIRECTORIES } else { &SHARED_DIRECTORIES[..1] };
        for place in shared.iter().filter(|place| !self.needs(place)) {
            // Links, as where one is the other, are left alone.
            if fs::symlink_metadata(place).is_ok_and(|found| found.is_dir()) {
                mount_bind(temporary, *place)?;
            }
        }
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        if !self.needs(SHARED_MEMORY) && Path::new(SHARED_MEMORY).is_dir() {
            mount(MOUNTED, SHARED_MEMORY, "tmpfs", flags, c"mode=1777")?;
        }
        if Path::new(QUEUES).is_dir() {
            // Where queues are everybody's these stay what they are.
            let _ = mount(MOUNTED, QUEUES, "mqueue", flags | MountFlags::NOEXEC, None);
        }
        if self.user.is_none() { self.hide_sockets() } else { Ok(()) }
    }

    /// Hides sockets whose services do for the control plane's user whatever it asks for: no rule for files holds for
    /// connecting to one.
    fn hide_sockets(&self) -> io::Result<()> {
        let of_root = if geteuid().is_root() { SOCKETS_OF_ROOT } else { &[] };
        for place in SOCKETS.iter().chain(of_root).filter_map(|place| fs::canonicalize(place).ok()) {
            if self.write.iter().chain(&self.read).any(|path| path.starts_with(&place)) {
                continue;
            }
            if place.is_dir() {
                let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
                mount(MOUNTED, &place, "tmpfs", flags, c"mode=0755")?;
            } else {
                mount_bind("/dev/null", &place)?;
            }
        }
        Ok(())
    }

    fn apply_rules(&self) -> io::Result<()> {
        let mut rules = Ruleset::default().handle_access(AccessNet::BindTcp).map_err(io::Error::other)?;
        // Signals of one user to another are nobody's to send anyway.
        let scope =
            if self.any_file { Scope::AbstractUnixSocket.into() } else { Scope::from_all(LANDLOCK_ABI) };
        rules = rules.scope(scope).map_err(io::Error::other)?;
        if !self.any_file {
            rules = rules.handle_access(AccessFs::from_all(LANDLOCK_ABI)).map_err(io::Error::other)?;
        }
        let mut rules = rules.create().map_err(io::Error::other)?;
        // The kernel picks a port where none is named. Many programs let it pick one, close it and name it then.
        let ephemeral = ports::ephemeral_range().into_iter().flatten();
        for port in std::iter::once(0).chain(ephemeral).chain(self.ports.iter().cloned().flatten()) {
            rules = rules.add_rule(NetPort::new(port, AccessNet::BindTcp)).map_err(io::Error::other)?;
        }
        if !self.any_file {
            rules = self.grant_files(rules)?;
        }
        let status = rules.restrict_self().map_err(io::Error::other)?;
        match status.ruleset {
            RulesetStatus::NotEnforced if !self.any_file => {
                Err(io::Error::other("the kernel offers no Landlock"))
            }
            _ => Ok(()),
        }
    }

    fn grant_files(&self, mut rules: RulesetCreated) -> io::Result<RulesetCreated> {
        let (reading, all) = (AccessFs::from_read(LANDLOCK_ABI), AccessFs::from_all(LANDLOCK_ABI));
        let around = |path: &PathBuf| grants::named(path, &self.kept);
        let sinks: Vec<PathBuf> = SINKS.iter().map(PathBuf::from).collect();
        let readable = grants::system(&self.kept).into_iter().chain(self.read.iter().flat_map(around));
        let readable = readable.map(|path| (path, reading));
        let writable = sinks.iter().flat_map(around).chain(self.write.iter().flat_map(around));
        let writable = writable.map(|path| (path, all));
        for (path, access) in readable.chain(writable) {
            // What this system lacks needs no rule.
            let Ok(opened) = PathFd::new(&path) else { continue };
            let is_file = fs::metadata(&path).is_ok_and(|metadata| !metadata.is_dir());
            let access = if is_file { access & AccessFs::from_file(LANDLOCK_ABI) } else { access };
            rules = rules.add_rule(PathBeneath::new(opened, access)).map_err(io::Error::other)?;
        }
        Ok(rules)
    }
}

/// Leaves the name spaces of mounts and queues that everybody is in.
fn unshare_namespaces() -> bool {
    // Queues are left too where that is allowed.
    [UnshareFlags::NEWNS | UnshareFlags::NEWIPC, UnshareFlags::NEWNS]
        .into_iter()
        .any(|own| leave(own).is_ok())
}

/// The same for whoever has no right to, with a name space of users in which it is the only one.
fn unshare_with_user_namespace() -> io::Result<()> {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    let own = UnshareFlags::NEWUSER | UnshareFlags::NEWNS;
    leave(own | UnshareFlags::NEWIPC).or_else(|_| leave(own))?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
}

fn leave(own: UnshareFlags) -> io::Result<()> {
    #[expect(deprecated, reason = "its successor is unsafe because of flags that are not used here")]
    Ok(rustix::thread::unshare(own)?)
}

/// Bounds what makes root more than an owner of files, for this process and all that it becomes.
fn limit_capabilities() {
    // Older kernels have no ambient ones, and whoever may not bound the others has none of them anyway.
    let _ = clear_ambient_capability_set();
    for capability in CapabilitySet::all().iter() {
        let _ = remove_capability_from_bounding_set(capability);
    }
}

/// Whether the kernel can confine files.
pub(super) fn confines_files() -> io::Result<bool> {
    let rules = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    match rules.handle_access(AccessFs::from_all(ABI::V1)).and_then(Ruleset::create) {
        Ok(_) => Ok(true),
        Err(RulesetError::CreateRuleset(CreateRulesetError::CreateRulesetCall { source, .. })) => {
            Err(io::Error::other(format!("Landlock: {source}")))
        }
        Err(_) => Ok(false),
    }
}

/// The port of a URL, where it is one that tasks may listen on because the kernel picks from it.
pub(super) fn open_port(url: &str) -> Option<u16> {
    let authority = url.split_once("://").map_or(url, |(_, rest)| rest).split('/').next()?;
    let port = authority.rsplit_once(':')?.1.parse().ok()?;
    ports::ephemeral_range()?.contains(&port).then_some(port)
}

/// Whether the kernel can keep ports from programs.
pub(super) fn confines_ports() -> bool {
    let rules = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    rules.handle_access(AccessNet::BindTcp).and_then(Ruleset::create).is_ok()
}
