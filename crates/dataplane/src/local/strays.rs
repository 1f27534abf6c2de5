//! Everything that an environment has running, whatever became of its parents.
//!
//! A process belongs to an environment if it carries its mark, is within its bounds or runs under its user. Each is held
//! by a descriptor of the kernel before it is looked at, so that a number that was given to somebody else is never hit.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use podium_api::Id;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::cgroups::Cgroups;
use super::process::{group_of, numbers};
use super::settings;

/// How long killed processes may take to vanish.
pub(super) const VANISHING: Duration = Duration::from_secs(10);
/// How often they are looked for meanwhile.
pub(super) const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// The variable that names the component which something belongs to.
pub(super) const COMPONENT: &str = "PODIUM_COMPONENT";

/// How processes of an environment are known.
#[derive(Clone, Debug)]
pub(super) struct Strays {
    id: Id,
    mark: String,
    user: Option<u32>,
    cgroups: Cgroups,
}

impl Strays {
    /// Those of an environment, which may have a user of its own.
    pub(super) fn of(id: Id, user: Option<u32>, cgroups: &Cgroups) -> Self {
        let (name, value) = settings::mark(id);
        Self { id, mark: format!("{name}={value}"), user, cgroups: cgroups.clone() }
    }

    /// Ends all of them, and waits until they are gone.
    pub(super) async fn end(self) {
        self.end_those(|_| true).await;
    }

    /// Ends those of some process groups, whose leaders are gone.
    pub(super) async fn end_groups(self, groups: Vec<i32>) {
        if !groups.is_empty() {
            self.end_those(move |pid| group_of(pid).is_some_and(|group| groups.contains(&group))).await;
        }
    }

    /// Ends those that run under the environment's user or within a directory. Others carry the same mark where the
    /// same environment runs on this machine for another plane.
    pub(super) async fn end_within(self, directory: PathBuf) {
        let user = Self { cgroups: Cgroups::None, ..self.clone() };
        self.end_those(move |pid| {
            let directory_of = fs::read_link(format!("/proc/{pid}/cwd"));
            user.runs(pid) || directory_of.is_ok_and(|at| at.starts_with(&directory))
        })
        .await;
    }

    /// Ends those of a component, unless they are of these process groups.
    pub(super) async fn end_component(self, component: &str, known: Vec<i32>) {
        let mark = component_mark(component);
        self.end_those(move |pid| {
            carries(pid, &mark) && group_of(pid).is_some_and(|group| !known.contains(&group))
        })
        .await;
    }

    async fn end_those(self, are_meant: impl Fn(i32) -> bool + Clone + Send + 'static) {
        let id = self.id;
        let gone = async {
            loop {
                let (strays, are_meant) = (self.clone(), are_meant.clone());
                let found = tokio::task::spawn_blocking(move || strays.kill(are_meant)).await;
                if found.unwrap_or(0) == 0 {
                    return;
                }
                // What is killed may have started another meanwhile.
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        };
        if tokio::time::timeout(VANISHING, gone).await.is_err() {
            tracing::warn!(%id, "killed processes of an environment do not vanish");
        }
    }

    /// Kills whatever is there; tells how many that were.
    pub(super) fn kill(&self, are_meant: impl Fn(i32) -> bool) -> usize {
        let members = self.cgroups.members(self.id);
        let is_killed = |pid: &i32| {
            let Some(held) = Pid::from_raw(*pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok())
            else {
                return false;
            };
            // Remains that wait for their parent to notice are in no group.
            let is_theirs = group_of(*pid).is_some()
                && (members.contains(pid) || carries(*pid, &self.mark) || self.runs(*pid));
            is_theirs && are_meant(*pid) && pidfd_send_signal(&held, Signal::KILL).is_ok()
        };
        numbers().filter(is_killed).count()
    }

    fn runs(&self, pid: i32) -> bool {
        let status = || fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        self.user.is_some_and(|user| {
            let status = status();
            let uid = status.lines().find_map(|line| line.strip_prefix("Uid:")?.split_whitespace().next());
            uid.and_then(|uid| uid.parse().ok()) == Some(user)
        })
    }
}

/// The mark of everything that a component has started.
fn component_mark(component: &str) -> String {
    format!("{COMPONENT}={component}")
}

/// Whether a process belongs to an environment, whoever started it.
pub(super) fn carries_mark(pid: i32, id: Id) -> bool {
    let (name, value) = settings::mark(id);
    carries(pid, &format!("{name}={value}"))
}

fn carries(pid: i32, mark: &str) -> bool {
    let environment = fs::read(format!("/proc/{pid}/environ"));
    environment.is_ok_and(|text| text.split(|byte| *byte == 0).any(|pair| pair == mark.as_bytes()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt as _;
    use std::process::{Command, Stdio};

    use super::*;
    use crate::local::tests::fresh_id;

    #[tokio::test]
    async fn strays_are_known_by_their_mark_and_others_are_let_be() {
        let (id, other) = (fresh_id(), fresh_id());
        let sleeping = |id: Id| {
            let (name, value) = settings::mark(id);
            let mut sleep = Command::new("sleep");
            sleep.arg("1000").env(name, value).stdin(Stdio::null()).process_group(0).spawn().unwrap()
        };
        let (mut stray, mut unmeant, mut stranger) = (sleeping(id), sleeping(id), sleeping(other));
        let strays = || Strays::of(id, None, &Cgroups::None);
        strays().end_groups(vec![stray.id().cast_signed()]).await;
        assert!(!stray.wait().unwrap().success());
        assert_eq!(unmeant.try_wait().unwrap(), None);
        strays().end().await;
        assert!(!unmeant.wait().unwrap().success());
        assert_eq!(stranger.try_wait().unwrap(), None);
        stranger.kill().unwrap();
        stranger.wait().unwrap();
    }
}
