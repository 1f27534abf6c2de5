//! Limits on CPU time, memory and processes, where this process may write to the kernel's control groups.

use std::path::{Path, PathBuf};
use std::{fs, io};

use podium_api::DeploymentId;

use super::layout::missing_is_none;
use crate::blocking::{assert_may_block, blocking};

const ROOT: &str = "/sys/fs/cgroup";
/// The period of CPU quotas, in microseconds.
const PERIOD: u64 = 100_000;

/// The file with the maximum number of processes.
const MOST: &str = "pids.max";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    /// Thousandths of a CPU.
    pub(super) millicores: u64,
    pub(super) memory: u64,
    /// Processes and threads; `None` for no limit.
    pub(super) processes: Option<u64>,
}

/// The control group hierarchies of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cgroups {
    /// One unified hierarchy (version 2).
    Unified(PathBuf),
    /// One hierarchy for each controller (version 1).
    Split { cpu: PathBuf, memory: PathBuf, pids: Option<PathBuf> },
    /// No usable control groups.
    None,
}

/// A limit of processes that is restored when this is dropped, also if the work that it was lowered for is cancelled.
struct LoweredLimit {
    file: PathBuf,
    before: String,
    id: DeploymentId,
}

impl Drop for LoweredLimit {
    fn drop(&mut self) {
        // The group may have been removed with its environment.
        if let Err(error) = missing_is_none(fs::write(&self.file, self.before.trim())) {
            tracing::error!(id = %self.id, %error, "an environment cannot start processes until it is applied again");
        }
    }
}

impl Cgroups {
    /// Finds the hierarchies that this process may write to.
    pub(super) fn find() -> Self {
        assert_may_block();
        let root = Path::new(ROOT);
        let unified = root.join("podium");
        let controllers = fs::read_to_string(root.join("cgroup.controllers")).unwrap_or_default();
        let has = |name: &str| controllers.split_whitespace().any(|controller| controller == name);
        let delegated = || {
            fs::create_dir_all(&unified)?;
            [root, &unified]
                .iter()
                .try_for_each(|at| fs::write(at.join("cgroup.subtree_control"), "+cpu +memory"))
        };
        if has("cpu") && has("memory") && delegated().is_ok() {
            let counted = [root, &unified].map(|at| fs::write(at.join("cgroup.subtree_control"), "+pids"));
            if counted.iter().any(Result::is_err) {
                tracing::debug!("processes of environments are not counted by control groups");
            }
            return Self::Unified(unified);
        }
        let (cpu, memory) = (root.join("cpu/podium"), root.join("memory/podium"));
        let are_there = root.join("cpu/cgroup.procs").exists() && root.join("memory/cgroup.procs").exists();
        if are_there && fs::create_dir_all(&cpu).and_then(|()| fs::create_dir_all(&memory)).is_ok() {
            let pids = root.join("pids/podium");
            let is_counted = root.join("pids/cgroup.procs").exists() && fs::create_dir_all(&pids).is_ok();
            return Self::Split { cpu, memory, pids: is_counted.then_some(pids) };
        }
        Self::None
    }

    /// Sets the limits of an environment.
    pub(super) fn bound(&self, id: DeploymentId, bounds: Bounds) -> io::Result<()> {
        assert_may_block();
        let quota = bounds.millicores * PERIOD / 1000;
        let set = |directory: PathBuf, settings: &[(&str, String)]| {
            fs::create_dir_all(&directory)?;
            settings.iter().try_for_each(|(name, value)| fs::write(directory.join(name), value))
        };
        match self {
            Self::Unified(root) => set(
                root.join(id.as_str()),
                &[("cpu.max", format!("{quota} {PERIOD}")), ("memory.max", bounds.memory.to_string())],
            )?,
            Self::Split { cpu, memory, .. } => {
                let period = ("cpu.cfs_period_us", PERIOD.to_string());
                set(cpu.join(id.as_str()), &[period, ("cpu.cfs_quota_us", quota.to_string())])?;
                set(memory.join(id.as_str()), &[("memory.limit_in_bytes", bounds.memory.to_string())])?;
            }
            Self::None => {}
        }
        if let Self::Split { pids: Some(pids), .. } = self {
            fs::create_dir_all(pids.join(id.as_str()))?;
        }
        let most = bounds.processes.map_or_else(|| "max".to_owned(), |most| most.to_string());
        self.counter(id).map_or(Ok(()), |counter| fs::write(counter.join(MOST), most))
    }

    /// The group that counts the processes of an environment, if there is one.
    fn counter(&self, id: DeploymentId) -> Option<PathBuf> {
        let counter = match self {
            Self::Unified(root) => root.join(id.as_str()),
            Self::Split { pids, .. } => pids.as_ref()?.join(id.as_str()),
            Self::None => return None,
        };
        counter.join(MOST).exists().then_some(counter)
    }

    /// Whether a control group limits the number of processes of an environment.
    pub(super) fn counts_processes(&self, id: DeploymentId) -> bool {
        self.counter(id).is_some()
    }

    /// The process limit of an environment, if it has been reached.
    pub(super) fn is_crowded(&self, id: DeploymentId) -> Option<u64> {
        let counter = self.counter(id)?;
        let number = |name: &str| fs::read_to_string(counter.join(name)).ok()?.trim().parse::<u64>().ok();
        number(MOST).filter(|most| number("pids.current").is_some_and(|current| current >= *most))
    }

    /// Prevents an environment from starting processes while some work runs: otherwise it could start them faster than
    /// they are killed.
    pub(super) async fn with_no_starts<T>(&self, id: DeploymentId, work: impl Future<Output = T>) -> T {
        let cgroups = self.clone();
        let limit = blocking(move || {
            let file = cgroups.counter(id)?.join(MOST);
            let lifted = fs::read_to_string(&file).and_then(|before| {
                fs::write(&file, "0")?;
                Ok(LoweredLimit { file, before, id })
            });
            // They are killed all the same, unless they are very fast.
            let failed =
                |error| tracing::warn!(%id, %error, "an environment cannot be kept from starting processes");
            lifted.map_err(failed).ok()
        });
        let limit = limit.await;
        let done = work.await;
        blocking(move || drop(limit)).await;
        done
    }

    /// Moves a process, with everything that it starts from now on, into the control groups of its environment.
    pub(super) fn join(&self, id: DeploymentId, pid: i32) -> io::Result<()> {
        self.groups(id).iter().try_for_each(|group| fs::write(group.join("cgroup.procs"), pid.to_string()))
    }

    /// The processes of an environment, even if their parents are gone.
    pub(super) fn members(&self, id: DeploymentId) -> Vec<i32> {
        let lists = self
            .groups(id)
            .into_iter()
            .filter_map(|group| fs::read_to_string(group.join("cgroup.procs")).ok());
        lists.flat_map(|list| list.lines().filter_map(|pid| pid.parse().ok()).collect::<Vec<i32>>()).collect()
    }

    /// Removes the control groups of an environment that has no processes any more; returns whether none is left. A
    /// killed process counts until it has been reaped.
    pub(super) fn forget(&self, id: DeploymentId) -> bool {
        assert_may_block();
        let is_gone = |group: &PathBuf| missing_is_none(fs::remove_dir(group)).is_ok();
        self.groups(id).iter().filter(|group| !is_gone(group)).count() == 0
    }

    pub(super) fn groups(&self, id: DeploymentId) -> Vec<PathBuf> {
        match self {
            Self::Unified(root) => vec![root.join(id.as_str())],
            Self::Split { cpu, memory, pids } => {
                let all = [cpu, memory].into_iter().chain(pids);
                all.map(|controller| controller.join(id.as_str())).collect()
            }
            Self::None => Vec::new(),
        }
    }
}
