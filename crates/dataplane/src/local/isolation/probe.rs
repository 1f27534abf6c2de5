//! Tries out what keeps environments apart before the start says that they are.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::{FileAccess, HostIsolation, Mode, confinement};
use crate::local::settings::Variables;

/// A file that is seen in `/tmp` by whoever has one of its own.
const MARK: &str = "podium-proof";

/// Says whether `/tmp` is its own, and which of the paths that it is told it can read.
const SCRIPT: &str = "[ ! -e /tmp/podium-proof ] || echo own; \
                      for path; do if [ -d \"$path\" ]; then ls \"$path\"; else cat \"$path\"; fi >/dev/null 2>&1 \
                      && printf 'reads %s\\n' \"$path\"; done; :";

/// What an environment's process was found to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ProbeResult {
    /// Whether each has directories for temporary files of its own.
    pub(super) has_own_temporary: bool,
    /// Whether ports are kept from it.
    pub(super) keeps_ports: bool,
    /// What it can read although it is kept.
    pub(super) readable: Vec<PathBuf>,
    /// The port of the control plane, where tasks may listen on it while nobody else does.
    pub(super) own_port: Option<u16>,
}

impl ProbeResult {
    /// What is lacking, for people.
    pub(super) fn limitations(&self, is_landlock: bool) -> Vec<String> {
        let mut but = Vec::new();
        if !self.has_own_temporary {
            let shared = if is_landlock { "/dev/shm" } else { "/tmp, /var/tmp and /dev/shm" };
            but.push(format!("they share {shared}, because no name spaces can be made here"));
            if is_landlock {
                but.push(
                    "sockets of your own user can be reached, such as those of its session and of an agent for keys"
                        .into(),
                );
            }
        }
        if !self.keeps_ports {
            but.push("a task can listen on any free port: Linux 6.7 and later can prevent that".into());
        }
        if let Some(port) = self.own_port.filter(|_| self.keeps_ports) {
            but.push(format!(
                "a task can take port {port} while this server restarts: the kernel picks from ports around it \
                 (ip_local_port_range), so tasks may listen there"
            ));
        }
        if !self.readable.is_empty() {
            let paths: Vec<String> = self.readable.iter().map(|path| path.display().to_string()).collect();
            but.push(format!("everybody on this machine can read {}", paths.join(", ")));
        }
        but
    }
}

impl HostIsolation {
    /// Runs a process as those of environments are run, and lets it try.
    pub(super) fn probe(&self, access: &FileAccess, directory: &Path) -> io::Result<ProbeResult> {
        let place = directory.join("proof");
        let made = make(&place).map_err(|error| io::Error::other(format!("{}: {error}", place.display())));
        let tried = made.and_then(|()| {
            let with_own = ProbeResult { has_own_temporary: true, ..ProbeResult::default() };
            match (Self { probed: with_own, ..self.clone() }).run_probe(access, &place) {
                Err(why) if !is_transient(&why.to_string()) => {
                    // Not every kernel lets everybody have mounts of its own.
                    Self { probed: ProbeResult::default(), ..self.clone() }.run_probe(access, &place)
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
        let kept = self.launcher.iter().flat_map(|launcher| &launcher.kept);
        let files = |path: &PathBuf| {
            let below = fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
            std::iter::once(path.clone()).chain(below.filter(|below| below.is_file())).collect::<Vec<_>>()
        };
        // Directories of environments are beside those that everybody reads; they are tried as what they are in.
        arguments.extend(kept.filter(|path| path.exists()).flat_map(files).map(PathBuf::into_os_string));
        let variables = Variables::from([("PATH".into(), crate::Secret::new("/usr/bin:/bin".into()))]);
        let mut command = self.of_environment(0, &access).command(&arguments, &variables);
        let output = command.current_dir("/").stdin(std::process::Stdio::null()).output();
        let output = output?;
        if !output.status.success() {
            return Err(io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
        }
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let is_apart = !matches!(self.mode, Mode::Trusted(_));
        Ok(ProbeResult {
            has_own_temporary: said.lines().any(|line| line == "own"),
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

/// Whether something failed for want of what may be there in a moment.
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
