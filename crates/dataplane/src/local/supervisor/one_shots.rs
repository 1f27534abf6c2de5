//! How programs that answer once are run in an environment: with its isolation and its limits.

use std::ffi::OsString;
use std::sync::Arc;

use super::Supervisor;
use crate::blocking::blocking;
use crate::local::isolation::Isolation;
use crate::local::process::with_process_limit;

impl Supervisor {
    /// The isolation of such a program: that of the environment, in its control groups.
    pub(super) async fn one_shot_isolation(&self) -> Isolation {
        let (plane, id, isolation) = (Arc::clone(&self.plane), self.id, self.isolation.clone());
        blocking(move || {
            let groups = plane.cgroups.groups(id).into_iter().filter(|group| group.exists());
            isolation.in_groups(groups.collect())
        })
        .await
    }

    /// Its command line; without a control group, a limit of the environment's user bounds its processes.
    pub(super) async fn one_shot_arguments(&self, arguments: &[OsString]) -> Vec<OsString> {
        let (plane, id) = (Arc::clone(&self.plane), self.id);
        let is_counted = blocking(move || plane.cgroups.counts_processes(id)).await;
        match self.plane.options.environment_processes.filter(|_| self.isolation.user().is_some()) {
            Some(most) if !is_counted => with_process_limit(arguments, most),
            _ => arguments.into(),
        }
    }
}
