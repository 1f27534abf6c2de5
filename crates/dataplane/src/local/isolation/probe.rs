//! Tests the isolation of environments before the start-up log claims it.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use podium_airflow::settings::Variables;
use rustix::io::Errno;

use super::confinement::{self, SHARED_DIRECTORIES};
use super::{FileAccess, HostIsolation, Mode};

/// A file that is visible in `/tmp` to a process with a private one.
const MARK: &str = "podium-proof";

/// Prints which directories for temporary files are private, the IPC namespace, and which of the given paths are readable.
const SCRIPT: &str = "for place in /tmp /var/tmp; do [ ! -e $place/podium-proof ] || echo \"own $place\"; done; \
                      echo \"ipc $(readlink /proc/self/ns/ipc)\"; \
                      for path; do if [ -d \"$path\" ]; then ls \"$path\"; else cat \"$path\"; fi >/dev/null 2>&1 \
                      && printf 'reads %s\\n' \"$path\"; done; :";

/// What the test of an environment's process has shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ProbeResult {
    /// Whether each has private mounts.
    pub(super) mounts: Mounts,
    /// Directories for temporary files that they share in spite of that: the data directory is below them.
    pub(super) shared: Vec<&'static str>,
    /// Whether each has its own message queues and shared memory.
    pub(super) has_own_ipc: bool,
    /// Whether the ports that it can listen on are restricted.
    pub(super) keeps_ports: bool,
    /// Protected paths that it can read.
    pub(super) readable: Vec<PathBuf>,
    /// The port of the control plane, if tasks may listen on it while it is free.
    pub(super) own_port: Option<u16>,
}

/// Whether environments have private mounts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mounts {
    Own,
    /// They cannot be created, and why.
    Shared(String),
}

impl Default for Mounts {
    fn default() -> Self {
        Self::Shared("they were not tested".into())
    }
}

impl ProbeResult {
    /// What each environment has of its own, as text that follows another.
    pub(super) fn own(&self) -> &'static str {
        match (&self.mounts, self.has_own_ipc) {
            (Mounts::Own, true) => ", with private mounts and IPC",
            (Mounts::Own, false) => ", with private mounts",
            (Mounts::Shared(_), _) => "",
        }
    }

    pub(super) fn limitations(&self, is_landlock: bool) -> Vec<String> {
        let mut but = Vec::new();
        if let Mounts::Shared(why) = &self.mounts {
            let shared = if is_landlock { "/dev/shm" } else { "/tmp, /var/tmp and /dev/shm" };
            but.push(format!("they share {shared} and IPC, because private mounts do not work here ({why})"));
            if is_landlock {
                but.push(
                    "they can reach your user's sockets, such as those of its session and of a key agent"
                        .into(),
                );
            }
        } else if !self.has_own_ipc {
            but.push("they share System V message queues and memory, because IPC namespaces cannot be created on this machine".into());
        }
        if !self.shared.is_empty() {
            let shared = self.shared.join(" and ");
            but.push(format!(
                "they share {shared}, because the data directory is there: choose another with --data-dir"
            ));
        }
        if !self.keeps_ports {
            but.push("a task can listen on any free port: Linux 6.7 and later can prevent that".into());
        }
        if let Some(port) = self.own_port.filter(|_| self.keeps_ports) {
            but.push(format!(
                "a task can take port {port} while this server restarts: it is in the kernel's ephemeral range (ip_local_port_range), in which tasks may listen"
            ));
        }
        if !self.readable.is_empty() {
            let paths: Vec<String> = self.readable.iter().map(|path| path.display().to_string()).collect();
            but.push(format!("every user of this machine can read {}", paths.join(", ")));
        }
        but
    }
}

impl HostIsolation {
    /// Runs a process like those of environments, and tests what it can do.
    pub(super) fn probe(&self, access: &FileAccess, directory: &Path) -> io::Result<ProbeResult> {
        let place = directory.join("proof");
        let made = make(&place).map_err(|error| io::Error::other(format!("{}: {error}", place.display())));
        let tried = made.and_then(|()| {
            let with = |mounts: Mounts| Self {
                probed: ProbeResult { mounts, ..ProbeResult::default() },
                ..self.clone()
            };
            match with(Mounts::Own).run_probe(access, &place) {
                Err(why) if !is_transient(&why.to_string()) => {
                    // Not every kernel allows private mounts.
                    with(Mounts::Shared(why.to_string())).run_probe(access, &place)
                }
                tried => tried,
            }
        });
        let _ = fs::remove_dir_all(&place);
        tried
    }

    fn run_probe(&self, access: &FileAccess, place: &Path) -> io::Result<ProbeResult> {
        let mut access = FileAccess { temporary: place.to_owned(), ..access.clone() };
        access.write.push(place.to_owned());
        let mut arguments = vec!["/bin/sh".into(), "-c".into(), SCRIPT.into(), "sh".into()];
        let protected = self.launcher.iter().flat_map(|launcher| &launcher.protected);
        let files = |path: &PathBuf| {
            let below = fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
            std::iter::once(path.clone()).chain(below.filter(|below| below.is_file())).collect::<Vec<_>>()
        };
        // Directories of environments are next to those that every environment reads; their parent is tested.
        arguments.extend(protected.filter(|path| path.exists()).flat_map(files).map(PathBuf::into_os_string));
        let variables = Variables::from([("PATH".into(), crate::Secret::new("/usr/bin:/bin".into()))]);
        let mut command = self.of_environment(0, &access).command(&arguments, &variables);
        let output = command.current_dir("/").stdin(std::process::Stdio::null()).output();
        let output = output?;
        if !output.status.success() {
            return Err(io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
        }
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let is_apart = !matches!(self.mode, Mode::Trusted(_));
        let has_own = |place: &str| said.lines().any(|line| line.strip_prefix("own ") == Some(place));
        let is_directory = |place: &str| fs::symlink_metadata(place).is_ok_and(|found| found.is_dir());
        // Under Landlock nothing else is written to.
        let places = if self.mode == Mode::Landlock { &SHARED_DIRECTORIES[..1] } else { SHARED_DIRECTORIES };
        let is_shared = |place: &&&str| is_directory(place) && !has_own(place);
        let ours = fs::read_link("/proc/self/ns/ipc")?;
        let ipc = said.lines().find_map(|line| line.strip_prefix("ipc ")).unwrap_or_default();
        Ok(ProbeResult {
            shared: match &self.probed.mounts {
                Mounts::Own => places.iter().filter(is_shared).copied().collect(),
                Mounts::Shared(_) => Vec::new(),
            },
            mounts: self.probed.mounts.clone(),
            has_own_ipc: !ipc.is_empty() && Path::new(ipc) != ours,
            keeps_ports: confinement::confines_ports(),
            own_port: None,
            readable: said
                .lines()
                .filter_map(|line| line.strip_prefix("reads "))
                .filter(|_| is_apart)
                .map(PathBuf::from)
                .collect(),
        })
    }
}

/// Whether a failure is a temporary shortage of resources.
pub(in crate::local) fn is_transient(why: &str) -> bool {
    let most = fs::read_to_string("/proc/sys/user/max_user_namespaces").unwrap_or_default();
    let has_name_spaces = most.trim() != "0";
    let is = |error: Errno| why.contains(&io::Error::from(error).to_string());
    [Errno::AGAIN, Errno::NOMEM, Errno::MFILE, Errno::NFILE].into_iter().any(is)
        || (has_name_spaces && (is(Errno::NOSPC) || is(Errno::USERS)))
}

fn make(place: &Path) -> io::Result<()> {
    fs::create_dir_all(place)?;
    fs::set_permissions(place, fs::Permissions::from_mode(0o755))?;
    fs::write(place.join(MARK), "")?;
    fs::set_permissions(place.join(MARK), fs::Permissions::from_mode(0o644))
}
