//! Bounds on processor time, memory and processes, where the kernel's control groups can be written here.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use podium_api::DeploymentId;

use crate::blocking::{assert_may_block, blocking};

const ROOT: &str = "/sys/fs/cgroup";
/// The period that quotas of processor time are counted in, in microseconds.
const PERIOD: u64 = 100_000;

/// The file that says how many processes there may be.
const MOST: &str = "pids.max";

/// What an environment may use at the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    /// Thousandths of a processor.
    pub(super) millicores: u64,
    /// Bytes of memory.
    pub(super) memory: u64,
    /// Processes and threads; as many as it likes where nobody says.
    pub(super) processes: Option<u64>,
}

/// How this machine keeps to bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cgroups {
    /// One hierarchy for everything.
    Unified(PathBuf),
    /// One hierarchy each.
    Split { cpu: PathBuf, memory: PathBuf, pids: Option<PathBuf> },
    /// Not at all.
    None,
}

impl Cgroups {
    /// What can be written here.
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

    /// Sets the bounds of an environment.
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

    /// Where the processes of an environment are counted, if they are.
    fn counter(&self, id: DeploymentId) -> Option<PathBuf> {
        let counter = match self {
            Self::Unified(root) => root.join(id.as_str()),
            Self::Split { pids, .. } => pids.as_ref()?.join(id.as_str()),
            Self::None => return None,
        };
        counter.join(MOST).exists().then_some(counter)
    }

    /// Whether control groups bound how many processes an environment has.
    pub(super) fn counts_processes(&self, id: DeploymentId) -> bool {
        self.counter(id).is_some()
    }

    /// How many processes an environment may have, where it has all of them.
    pub(super) fn is_crowded(&self, id: DeploymentId) -> Option<u64> {
        let counter = self.counter(id)?;
        let number = |name: &str| fs::read_to_string(counter.join(name)).ok()?.trim().parse::<u64>().ok();
        number(MOST).filter(|most| number("pids.current").is_some_and(|current| current >= *most))
    }

    /// Lets an environment start no process while somebody works: else it could start them faster than they are ended.
    pub(super) async fn with_no_starts<T>(&self, id: DeploymentId, work: impl Future<Output = T>) -> T {
        let cgroups = self.clone();
        let before = blocking(move || {
            let most = cgroups.counter(id)?.join(MOST);
            let before = fs::read_to_string(&most).ok()?;
            let _ = fs::write(&most, "0");
            Some((most, before))
        });
        let before = before.await;
        let done = work.await;
        if let Some((most, before)) = before {
            let _ = blocking(move || fs::write(most, before.trim())).await;
        }
        done
    }

    /// Puts a process, and all that it starts from now on, within the bounds of its environment.
    pub(super) fn join(&self, id: DeploymentId, pid: i32) -> io::Result<()> {
        self.groups(id).iter().try_for_each(|group| fs::write(group.join("cgroup.procs"), pid.to_string()))
    }

    /// The processes of an environment, whatever became of their parents.
    pub(super) fn members(&self, id: DeploymentId) -> Vec<i32> {
        let lists = self
            .groups(id)
            .into_iter()
            .filter_map(|group| fs::read_to_string(group.join("cgroup.procs")).ok());
        lists.flat_map(|list| list.lines().filter_map(|pid| pid.parse().ok()).collect::<Vec<i32>>()).collect()
    }

    /// Forgets the bounds of an environment that has no processes any more; tells whether nothing is left. What was
    /// just killed counts until its parent has noticed.
    pub(super) fn forget(&self, id: DeploymentId) -> bool {
        assert_may_block();
        let is_gone = |group: &PathBuf| match fs::remove_dir(group) {
            Ok(()) => true,
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
        self.groups(id).iter().filter(|group| !is_gone(group)).count() == 0
    }

    /// Where the bounds of an environment are written.
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
