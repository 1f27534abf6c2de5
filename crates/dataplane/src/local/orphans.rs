//! Finds and kills all processes of an environment, including orphans.
//!
//! A process belongs to an environment if it has its marker variable, is in its control groups or runs as its user. One
//! that has cleared its variables and shares the control plane's user is recognised by the files of the environment
//! that it uses, or by the mounts that it shares with a component. Each is held by a pidfd before it is examined, so
//! that a process with a reused pid is never killed.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use podium_airflow::settings;
use podium_api::DeploymentId;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::cgroups::Cgroups;
use super::isolation::MOUNTED;
use super::process::{group_of, pids};
use crate::blocking::blocking;

/// How long killed processes may take to exit.
pub(super) const VANISHING: Duration = Duration::from_secs(10);
/// How often they are searched for meanwhile.
pub(super) const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// The variable with the component that a process belongs to.
pub(super) const COMPONENT: &str = "PODIUM_COMPONENT";

/// How processes of an environment are recognised.
#[derive(Clone, Debug)]
pub(super) struct OrphanProcesses {
    id: DeploymentId,
    mark: String,
    user: Option<u32>,
    cgroups: Cgroups,
    directory: Option<PathBuf>,
    /// The mount namespaces of its components, if they have their own; held open, so that their ids are not reused.
    mounts: Arc<Vec<File>>,
}

impl OrphanProcesses {
    /// The processes of an environment, which may have its own user.
    pub(super) fn of(id: DeploymentId, user: Option<u32>, cgroups: &Cgroups) -> Self {
        let (name, value) = settings::marker(id);
        let mark = format!("{name}={value}");
        Self { id, mark, user, cgroups: cgroups.clone(), directory: None, mounts: Arc::default() }
    }

    /// Includes processes that use files below the environment's directory.
    pub(super) fn using(mut self, directory: PathBuf) -> Self {
        self.directory = Some(directory);
        self
    }

    /// Includes processes that share the mount namespaces of these running components, if the launcher created them.
    /// Others are shared: after a restart of this service everything that the previous one started shares its
    /// namespace.
    pub(super) fn beside(mut self, pids: impl Iterator<Item = i32>) -> Self {
        let own = mounts_of("self").ok().and_then(|mounts| identity(&mounts));
        let made = pids.filter(|pid| has_launcher_mounts(*pid));
        let others = made.filter_map(|pid| mounts_of(&pid.to_string()).ok());
        self.mounts = Arc::new(others.filter(|mounts| identity(mounts) != own).collect());
        self
    }

    /// Kills all of them and waits until they are gone, however fast they start others.
    pub(super) async fn end(self) {
        let (id, cgroups) = (self.id, self.cgroups.clone());
        cgroups
            .with_no_starts(id, async {
                if let Some(user) = self.user {
                    kill_all_of_user(user).await;
                }
                self.kill_matching(|_| true).await;
            })
            .await;
    }

    /// Kills those in some process groups whose leaders are gone.
    pub(super) async fn kill_groups(self, groups: Vec<i32>) {
        if !groups.is_empty() {
            self.kill_matching(move |pid| group_of(pid).is_some_and(|group| groups.contains(&group))).await;
        }
    }

    /// Kills those that run as the environment's user or work in a directory. Others have the same marker if another
    /// plane on this machine runs the same environment.
    pub(super) async fn kill_in_directory(self, directory: PathBuf) {
        let user = Self { cgroups: Cgroups::None, ..self.clone() };
        self.kill_matching(move |pid| user.runs(pid) || works_in(pid, &directory)).await;
    }

    /// Kills those of a component, except in these process groups.
    pub(super) async fn kill_component(self, component: &str, known: Vec<i32>) {
        let mark = component_marker(component);
        self.kill_matching(move |pid| {
            has_variable(pid, &mark) && group_of(pid).is_some_and(|group| !known.contains(&group))
        })
        .await;
    }

    async fn kill_matching(self, is_selected: impl Fn(i32) -> bool + Clone + Send + 'static) {
        let id = self.id;
        let gone = async {
            loop {
                let (orphans, is_selected) = (self.clone(), is_selected.clone());
                if blocking(move || orphans.kill(is_selected)).await == 0 {
                    return;
                }
                // A killed process may have started another one in the meantime.
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        };
        if tokio::time::timeout(VANISHING, gone).await.is_err() {
            tracing::warn!(%id, "killed processes of an environment have not exited");
        }
    }

    /// Kills the matching processes; returns how many there were.
    pub(super) fn kill(&self, is_selected: impl Fn(i32) -> bool) -> usize {
        let members = self.cgroups.members(self.id);
        let is_killed = |pid: &i32| {
            let Some(held) = Pid::from_raw(*pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok())
            else {
                return false;
            };
            // Zombies have no group here.
            let is_theirs = group_of(*pid).is_some()
                && (members.contains(pid)
                    || has_variable(*pid, &self.mark)
                    || self.runs(*pid)
                    || self.is_confined_to_environment(*pid));
            is_theirs && is_selected(*pid) && pidfd_send_signal(&held, Signal::KILL).is_ok()
        };
        pids().filter(is_killed).count()
    }

    /// Whether a process has `no_new_privs`, like everything that runs code of authors, and belongs to this
    /// environment. Other processes may use an environment's files too: operators, backups, log shippers.
    fn is_confined_to_environment(&self, pid: i32) -> bool {
        let has_to_do = || {
            let mounts = mounts_of(&pid.to_string()).ok().and_then(|mounts| identity(&mounts));
            let is_beside = mounts.is_some() && self.mounts.iter().any(|known| identity(known) == mounts);
            is_beside || self.directory.as_ref().is_some_and(|directory| uses(pid, directory))
        };
        let user = self.user.unwrap_or_else(|| rustix::process::geteuid().as_raw());
        pid != std::process::id().cast_signed()
            && has_no_new_privs(pid)
            && user_of(pid) == Some(user)
            && has_to_do()
    }

    fn runs(&self, pid: i32) -> bool {
        self.user.is_some_and(|user| user_of(pid) == Some(user))
    }
}

fn user_of(pid: i32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let uid = status.lines().find_map(|line| line.strip_prefix("Uid:")?.split_whitespace().next());
    uid?.parse().ok()
}

/// Whether a process has mounts that only the launcher creates.
fn has_launcher_mounts(pid: i32) -> bool {
    let mounts = fs::read_to_string(format!("/proc/{pid}/mountinfo")).unwrap_or_default();
    // After the separator: the file system type and the mount source.
    let source = |line: &str| line.split_once(" - ")?.1.split(' ').nth(1).map(str::to_owned);
    mounts.lines().any(|line| source(line).as_deref() == Some(MOUNTED))
}

/// Kills all processes of a user atomically, which only that user can do.
async fn kill_all_of_user(user: u32) {
    let mut command = tokio::process::Command::new("/bin/sh");
    command.args(["-c", "kill -9 -1"]).current_dir("/").env_clear().uid(user).gid(user);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Err(error) = command.status().await {
        tracing::debug!(%error, user, "killing the processes of a user one by one");
    }
}

fn works_in(pid: i32, directory: &Path) -> bool {
    fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|at| at.starts_with(directory))
}

/// Whether a process uses a directory: as working directory or root, for its program, or with an open file.
fn uses(pid: i32, directory: &Path) -> bool {
    let leads_there = |link: PathBuf| fs::read_link(link).is_ok_and(|to| to.starts_with(directory));
    let of = |name: &str| PathBuf::from(format!("/proc/{pid}/{name}"));
    let files = || fs::read_dir(of("fd")).into_iter().flatten().flatten().map(|entry| entry.path());
    ["cwd", "root", "exe"].into_iter().map(of).chain(files()).any(leads_there)
}

fn has_no_new_privs(pid: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.lines().any(|line| line.strip_prefix("NoNewPrivs:").is_some_and(|value| value.trim() == "1"))
}

fn mounts_of(process: &str) -> io::Result<File> {
    File::open(format!("/proc/{process}/ns/mnt"))
}

fn identity(mounts: &File) -> Option<(u64, u64)> {
    mounts.metadata().ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

/// The marker variable of everything that a component has started.
fn component_marker(component: &str) -> String {
    format!("{COMPONENT}={component}")
}

/// Whether a process belongs to an environment, whoever started it.
pub(super) fn has_marker(pid: i32, id: DeploymentId) -> bool {
    let (name, value) = settings::marker(id);
    has_variable(pid, &format!("{name}={value}"))
}

fn has_variable(pid: i32, mark: &str) -> bool {
    let environment = fs::read(format!("/proc/{pid}/environ"));
    environment.is_ok_and(|text| text.split(|byte| *byte == 0).any(|pair| pair == mark.as_bytes()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt as _;
    use std::process::{Child, Command};

    use super::*;
    use crate::blocking::allow_blocking;
    use crate::local::process::with_process_limit;
    use crate::local::tests::{eventually, eventually_some, fresh_id};

    #[tokio::test]
    async fn orphan_processes_are_recognised_by_their_marker_and_others_are_left_alone() {
        let (id, other) = (fresh_id(), fresh_id());
        let sleeping = |id: DeploymentId| {
            let (name, value) = settings::marker(id);
            let mut sleep = Command::new("sleep");
            sleep.arg("1000").env(name, value).stdin(Stdio::null()).process_group(0).spawn().unwrap()
        };
        let (mut orphan, mut unmeant, mut stranger) = (sleeping(id), sleeping(id), sleeping(other));
        let orphans = || OrphanProcesses::of(id, None, &Cgroups::None);
        orphans().kill_groups(vec![orphan.id().cast_signed()]).await;
        assert!(!orphan.wait().unwrap().success());
        assert_eq!(unmeant.try_wait().unwrap(), None);
        orphans().end().await;
        assert!(!unmeant.wait().unwrap().success());
        assert_eq!(stranger.try_wait().unwrap(), None);
        stranger.kill().unwrap();
        stranger.wait().unwrap();
    }

    /// A process without variables, in its own session, with `no_new_privs`.
    fn nameless(directory: &Path, script: &str) -> Child {
        let mut command = Command::new("setpriv");
        command.args(["--no-new-privs", "env", "-i", "setsid", "/bin/sh", "-c", script]);
        command.current_dir(directory).stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap()
    }

    async fn until_it_says(path: &Path) -> i32 {
        eventually_some(|| fs::read_to_string(path).ok()?.trim().parse().ok()).await
    }

    #[tokio::test]
    async fn a_process_without_variables_is_recognised_by_the_files_that_it_uses() {
        let (directory, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (own, said) = (directory.path().canonicalize().unwrap(), elsewhere.path().join("said"));
        let holding = format!("exec 3>{}/held; echo $$ >{}; exec sleep 1000", own.display(), said.display());
        let mut orphans = [nameless(&own, "exec sleep 1000"), nameless(Path::new("/"), &holding)];
        let stranger = nameless(elsewhere.path(), "exec sleep 1000");
        let operator = Command::new("sleep").arg("1000").current_dir(&own).spawn().unwrap();
        until_it_says(&said).await;
        eventually(|| has_no_new_privs(orphans[0].id().cast_signed())).await;
        OrphanProcesses::of(fresh_id(), None, &Cgroups::None).using(own).end().await;
        orphans.iter_mut().for_each(|orphan| assert!(!orphan.wait().unwrap().success()));
        for mut other in [stranger, operator] {
            assert_eq!(other.try_wait().unwrap(), None);
            other.kill().unwrap();
            other.wait().unwrap();
        }
    }

    #[tokio::test]
    async fn a_user_that_forks_endlessly_is_limited_and_all_its_processes_are_killed() {
        if !rustix::process::geteuid().is_root() {
            // Only root can switch users.
            return;
        }
        // Of no plane, and of no other test of this machine.
        let user = 1_900_000_000 + std::process::id() % 90_000_000;
        let bomb = ["python3", "-I", "-S", "-c", crate::local::tests::BOMB].map(std::ffi::OsString::from);
        let arguments = with_process_limit(&bomb, 40);
        let mut bomb = Command::new(&arguments[0]);
        bomb.args(&arguments[1..])
            .uid(user)
            .gid(user)
            .current_dir("/")
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin");
        let mut bomb = bomb.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let orphans = OrphanProcesses::of(fresh_id(), Some(user), &Cgroups::None);
        let count =
            || allow_blocking(pids).filter(|pid| group_of(*pid).is_some() && orphans.runs(*pid)).count();
        while count() < 40 {
            assert!(bomb.try_wait().unwrap().is_none(), "it runs");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        assert!((0..20).all(|_| count() <= 40));
        orphans.clone().end().await;
        bomb.wait().unwrap();
        assert_eq!(count(), 0);
    }

    /// Kills the orphans of a component with these mounts, which another process shares: returns that process, and
    /// whether it is still running. `None` if this kernel does not allow private mounts.
    async fn ended_with_component(mounting: &str) -> Option<(i32, bool)> {
        let directory = tempfile::tempdir().unwrap();
        let said = directory.path().join("said");
        let script = format!(
            "{mounting} || exit 1; cd /; setpriv --no-new-privs env -i setsid /bin/sh -c 'echo $$ >{}; exec sleep 1000' & \
             exec sleep 1000",
            said.display()
        );
        let mut component = Command::new("unshare");
        component.args(["--user", "--map-root-user", "--mount", "/bin/sh", "-c", &script]);
        let mut component = component.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let orphan = tokio::select! {
            pid = until_it_says(&said) => pid,
            _ = eventually_some(|| component.try_wait().unwrap()) => return None,
        };
        let orphans = OrphanProcesses::of(fresh_id(), None, &Cgroups::None);
        let orphans = orphans.beside(std::iter::once(component.id().cast_signed()));
        component.kill().unwrap();
        component.wait().unwrap();
        orphans.end().await;
        Some((orphan, group_of(orphan).is_some()))
    }

    #[tokio::test]
    async fn a_process_that_shares_the_mounts_of_a_component_belongs_to_it() {
        if let Some((_, is_left)) = ended_with_component("mount -t tmpfs podium /dev/shm").await {
            assert!(!is_left);
        }
    }

    #[tokio::test]
    async fn a_process_that_shares_other_mounts_is_left_alone() {
        if let Some((bystander, is_left)) = ended_with_component("mount -t tmpfs other /dev/shm").await {
            assert!(is_left, "the service before had mounts of its own, and all that it started shares them");
            rustix::process::kill_process(Pid::from_raw(bystander).unwrap(), Signal::KILL).unwrap();
        }
    }

    #[tokio::test]
    async fn a_process_of_another_user_with_an_open_file_is_left_alone() {
        if !rustix::process::geteuid().is_root() {
            // Only root can switch users.
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let own = directory.path().canonicalize().unwrap();
        let mut command = Command::new("setpriv");
        command.args(["--no-new-privs", "--reuid=1999990003", "--clear-groups", "sleep", "1000"]);
        let log = File::create(own.join("log")).unwrap();
        let mut shipper = command.current_dir("/").stdin(log).spawn().unwrap();
        let pid = shipper.id().cast_signed();
        eventually(|| has_no_new_privs(pid) && user_of(pid) == Some(1_999_990_003)).await;
        OrphanProcesses::of(fresh_id(), None, &Cgroups::None).using(own).end().await;
        assert_eq!(shipper.try_wait().unwrap(), None);
        shipper.kill().unwrap();
        shipper.wait().unwrap();
    }
}
