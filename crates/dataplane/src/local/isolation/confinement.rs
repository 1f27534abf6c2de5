//! How the launcher confines itself before it executes a program of an environment.
//!
//! No program of an environment gains privileges through exec: set-user-id bits and file capabilities have no effect,
//! and it cannot listen on ports that clients of other services use.
//!
//! The port rules cover TCP only: a Multipath TCP or SMC socket could bind any port, and operations queued through
//! io_uring bypass seccomp filters. So the system calls that make these are filtered.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use clap::Args;
use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, CreateRulesetError, NetPort,
    PathBeneath, PathFd, Ruleset, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetError,
    RulesetStatus, Scope,
};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_bind, mount_change};
use rustix::process::geteuid;
use rustix::thread::{
    CapabilitySet, UnshareFlags, clear_ambient_capability_set, remove_capability_from_bounding_set,
    set_no_new_privs,
};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter,
};

use super::{VARIABLE_PREFIX, grants};
use crate::local::privileges::{become_user, drop_capabilities, unshare, unshare_as_user};
use crate::local::{network, sockets};
use crate::ports;

/// The newest Landlock ABI that this program uses; an older kernel enforces what it supports.
const LANDLOCK_ABI: ABI = ABI::V6;

/// The variable with the descriptor number of a web server's socket in its own network.
const INNER_SOCKET: &str = "PODIUM_INNER_SOCKET";

/// World-writable directories, of which the program gets private ones if the kernel allows it.
pub(super) const SHARED_DIRECTORIES: &[&str] = &["/tmp", "/var/tmp"];
/// The same in memory.
const SHARED_MEMORY: &str = "/dev/shm";
const QUEUES: &str = "/dev/mqueue";

/// The source of the launcher's mounts, as it appears in mountinfo.
pub(in crate::local) const MOUNTED: &str = "podium";

/// Sockets of services that start programs or use keys on behalf of their user.
const SOCKETS: &[&str] = &[
    "/run/user",
    "/run/docker.sock",
    "/var/run/docker.sock",
    "/run/podman",
    "/var/run/podman",
    "/run/containerd",
    "/var/run/containerd",
];
const SOCKETS_OF_ROOT: &[&str] = &["/run/dbus", "/run/systemd/private"];

/// What the program may write outside its own directories.
const SINKS: &[&str] = &["/dev/null", "/dev/full", "/dev/zero", "/dev/tty", SHARED_MEMORY];

/// How to confine a program. The plane writes it as the arguments of its launcher, which reads it again.
#[derive(Clone, Debug, Default, Args)]
pub struct Confinement {
    /// Directory that may be written; may be repeated.
    #[arg(long)]
    pub write: Vec<PathBuf>,
    /// Directory that may be read; may be repeated.
    #[arg(long)]
    pub read: Vec<PathBuf>,
    /// Path that may not be read, even below a readable directory; may be repeated.
    #[arg(long = "kept", value_name = "KEPT")]
    pub protected: Vec<PathBuf>,
    /// Directory to mount as /tmp; if the kernel does not allow that, nothing is run.
    #[arg(long)]
    pub temporary: Option<PathBuf>,
    /// Id of the user to run as.
    #[arg(long)]
    pub user: Option<u32>,
    /// Leave file access to the permissions of the user.
    #[arg(long)]
    pub any_file: bool,
    /// Ports to listen on, in addition to ephemeral ones; may be repeated.
    #[arg(long, value_parser = ports)]
    pub ports: Vec<RangeInclusive<u16>>,
    /// Inode number of the network namespace to enter; if that is not possible, nothing is run.
    #[arg(long)]
    pub network: Option<u64>,
    /// Holder process of this network.
    #[arg(long)]
    pub holder: Option<i32>,
    /// Control group to join before anything else; may be repeated. If that is not possible, nothing is run.
    #[arg(long = "group", value_name = "GROUP")]
    pub groups: Vec<PathBuf>,
}

impl Confinement {
    /// Confines this process and executes another program, with the variables that were passed through and no others.
    /// Returns only if that fails, and says why. It must be called while this process has a single thread.
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

    /// Joins the control groups before anything can be started outside of them.
    fn join_groups(&self) -> io::Result<()> {
        let join = |group: &PathBuf| {
            fs::write(group.join("cgroup.procs"), "0")
                .map_err(|error| io::Error::other(format!("its control group cannot be joined: {error}")))
        };
        self.groups.iter().try_for_each(join)
    }

    /// Enters the network. Returns the socket inside it that a web server serves as well.
    fn enter_network(&self) -> io::Result<Option<i32>> {
        let Some(number) = self.network else { return Ok(None) };
        let entered = network::join(self.holder.unwrap_or_default(), number);
        entered.map_err(|error| io::Error::other(format!("its network cannot be entered: {error}")))
    }

    fn confine(&self) -> io::Result<()> {
        let mut is_user = false;
        if let Some(temporary) = &self.temporary {
            let own =
                |error: io::Error| io::Error::other(format!("private mounts cannot be created: {error}"));
            if !unshare_namespaces() {
                // Without the privilege, a user namespace makes it possible, once the process runs as its final user.
                become_user(self.user, false)?;
                is_user = true;
                unshare_with_user_namespace().map_err(own)?;
            }
            self.mount_own(temporary).map_err(own)?;
        }
        limit_capabilities();
        set_no_new_privs(true).map_err(io::Error::other)?;
        self.apply_rules()?;
        filter_calls()?;
        if !is_user {
            become_user(self.user, false)?;
        }
        drop_capabilities()
    }

    /// Whether the program needs something below a directory.
    fn needs(&self, directory: &str) -> bool {
        self.write.iter().chain(&self.read).any(|path| path.starts_with(directory))
    }

    /// Gives this process and its descendants private directories for temporary files, shared memory and message
    /// queues. Shared memory and queues end with them.
    fn mount_own(&self, temporary: &Path) -> io::Result<()> {
        // Later mounts of the operator propagate to here; mounts made here are private.
        mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)?;
        // Under Landlock nothing else is written to, and the database server's socket may be there.
        let shared = if self.any_file { SHARED_DIRECTORIES } else { &SHARED_DIRECTORIES[..1] };
        for place in shared.iter().filter(|place| !self.needs(place)) {
            // Links, as when one directory is a link to the other, are left alone.
            if fs::symlink_metadata(place).is_ok_and(|found| found.is_dir()) {
                mount_bind(temporary, *place)?;
            }
        }
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        if !self.needs(SHARED_MEMORY) && Path::new(SHARED_MEMORY).is_dir() {
            mount(MOUNTED, SHARED_MEMORY, "tmpfs", flags, c"mode=1777")?;
        }
        if Path::new(QUEUES).is_dir() {
            // Without an IPC namespace of its own this fails, and queues stay shared.
            let _ = mount(MOUNTED, QUEUES, "mqueue", flags | MountFlags::NOEXEC, None);
        }
        if self.user.is_none() { self.hide_sockets() } else { Ok(()) }
    }

    /// Hides sockets of services that act on behalf of the control plane's user: file rules do not cover connecting to
    /// a socket.
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
        // Users cannot signal each other's processes anyway.
        let scope =
            if self.any_file { Scope::AbstractUnixSocket.into() } else { Scope::from_all(LANDLOCK_ABI) };
        rules = rules.scope(scope).map_err(io::Error::other)?;
        if !self.any_file {
            rules = rules.handle_access(AccessFs::from_all(LANDLOCK_ABI)).map_err(io::Error::other)?;
        }
        let mut rules = rules.create().map_err(io::Error::other)?;
        // Port 0 lets the kernel assign a port. Many programs get one that way, close it and then bind it by number.
        let ephemeral = sockets::ephemeral_range().into_iter().flatten();
        for port in std::iter::once(0).chain(ephemeral).chain(self.ports.iter().cloned().flatten()) {
            rules = rules.add_rule(NetPort::new(port, AccessNet::BindTcp)).map_err(io::Error::other)?;
        }
        if !self.any_file {
            rules = self.grant_files(rules)?;
        }
        let status = rules.restrict_self().map_err(io::Error::other)?;
        match status.ruleset {
            RulesetStatus::NotEnforced if !self.any_file => {
                Err(io::Error::other("the kernel does not support Landlock"))
            }
            _ => Ok(()),
        }
    }

    fn grant_files(&self, mut rules: RulesetCreated) -> io::Result<RulesetCreated> {
        let (reading, all) = (AccessFs::from_read(LANDLOCK_ABI), AccessFs::from_all(LANDLOCK_ABI));
        let around = |path: &PathBuf| grants::named(path, &self.protected);
        let sinks: Vec<PathBuf> = SINKS.iter().map(PathBuf::from).collect();
        let readable = grants::system(&self.protected).into_iter().chain(self.read.iter().flat_map(around));
        let readable = readable.map(|path| (path, reading));
        let writable = sinks.iter().flat_map(around).chain(self.write.iter().flat_map(around));
        let writable = writable.map(|path| (path, all));
        for (path, access) in readable.chain(writable) {
            // Paths that do not exist need no rule.
            let Ok(opened) = PathFd::new(&path) else { continue };
            let is_file = fs::metadata(&path).is_ok_and(|metadata| !metadata.is_dir());
            let access = if is_file { access & AccessFs::from_file(LANDLOCK_ABI) } else { access };
            rules = rules.add_rule(PathBeneath::new(opened, access)).map_err(io::Error::other)?;
        }
        Ok(rules)
    }
}

/// Enters a new mount namespace, and a new IPC namespace if that is allowed.
fn unshare_namespaces() -> bool {
    // With an IPC namespace if that is allowed.
    [UnshareFlags::NEWNS | UnshareFlags::NEWIPC, UnshareFlags::NEWNS]
        .into_iter()
        .any(|own| unshare(own).is_ok())
}

/// The same without privileges, in a new user namespace.
fn unshare_with_user_namespace() -> io::Result<()> {
    let own = UnshareFlags::NEWUSER | UnshareFlags::NEWNS;
    unshare_as_user(|| unshare(own | UnshareFlags::NEWIPC).or_else(|_| unshare(own)))
}

/// Drops all capabilities from the bounding and ambient sets, for this process and everything that it executes.
fn limit_capabilities() {
    // Older kernels have no ambient set, and a process that may not change the bounding set has no capabilities anyway.
    let _ = clear_ambient_capability_set();
    for capability in CapabilitySet::all().iter() {
        let _ = remove_capability_from_bounding_set(capability);
    }
}

/// Whether the kernel supports Landlock rules for files.
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

/// The port of a URL, if it is in the ephemeral range, where tasks may listen.
pub(super) fn open_port(url: &str) -> Option<u16> {
    let authority = url.split_once("://").map_or(url, |(_, rest)| rest).split('/').next()?;
    let port = authority.rsplit_once(':')?.1.parse().ok()?;
    sockets::ephemeral_range()?.contains(&port).then_some(port)
}

/// Whether the kernel supports Landlock rules for ports.
pub(super) fn confines_ports() -> bool {
    let rules = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    rules.handle_access(AccessNet::BindTcp).and_then(Ruleset::create).is_ok()
}

/// Protocols of the internet families that fall back to TCP: SMC and Multipath TCP.
const OVER_TCP: [u64; 2] = [256, 262];
const FAMILIES: [i32; 2] = [libc::AF_INET, libc::AF_INET6];
/// The family of SMC, which falls back to TCP.
const SMC: u64 = 43;
/// The offset of the x32 ABI's system call numbers on x86_64.
const X32: i64 = 0x4000_0000;

/// Filters system calls that bypass the rules, for this process and its descendants. They need `no_new_privs`.
fn filter_calls() -> io::Result<()> {
    let Ok(arch) = TargetArch::try_from(std::env::consts::ARCH) else {
        // The port rules still apply, with these gaps.
        return Ok(());
    };
    let rules = |call: i64, rules: Vec<SeccompRule>| {
        let numbers = if std::env::consts::ARCH == "x86_64" { vec![call, call | X32] } else { vec![call] };
        numbers.into_iter().map(|number| (number, rules.clone())).collect::<BTreeMap<_, _>>()
    };
    // Programs handle both errors and fall back to ordinary calls.
    let filters = [
        (rules(libc::SYS_socket, sockets()?), libc::EPROTONOSUPPORT),
        (rules(libc::SYS_io_uring_setup, Vec::new()), libc::ENOSYS),
    ];
    for (rules, answer) in filters {
        let refusal = SeccompAction::Errno(answer.unsigned_abs());
        let filter = SeccompFilter::new(rules, SeccompAction::Allow, refusal, arch);
        let program = filter.and_then(BpfProgram::try_from).map_err(io::Error::other)?;
        apply_filter(&program).map_err(io::Error::other)?;
    }
    Ok(())
}

fn sockets() -> io::Result<Vec<SeccompRule>> {
    let is = |argument: u8, value: u64| {
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
    };
    let mut rules = vec![SeccompRule::new(vec![is(0, SMC).map_err(io::Error::other)?])];
    for (family, protocol) in FAMILIES.iter().flat_map(|family| OVER_TCP.map(|protocol| (family, protocol))) {
        let conditions = [is(0, u64::from(family.unsigned_abs())), is(2, protocol)];
        let conditions = conditions.into_iter().collect::<Result<_, _>>().map_err(io::Error::other)?;
        rules.push(SeccompRule::new(conditions));
    }
    rules.into_iter().collect::<Result<_, _>>().map_err(io::Error::other)
}
