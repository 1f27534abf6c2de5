//! Bounds on processor time and memory, where the kernel's control groups can be written here.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use podium_api::Id;

const ROOT: &str = "/sys/fs/cgroup";
/// The period that quotas of processor time are counted in, in microseconds.
const PERIOD: u64 = 100_000;

/// What an environment may use at the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    /// Thousandths of a processor.
    pub(super) millicores: u64,
    /// Bytes of memory.
    pub(super) memory: u64,
}

/// How this machine keeps to bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cgroups {
    /// One hierarchy for everything.
    Unified(PathBuf),
    /// One hierarchy each.
    Split { cpu: PathBuf, memory: PathBuf },
    /// Not at all.
    None,
}

impl Cgroups {
    /// What can be written here.
    pub(super) fn find() -> Self {
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
            return Self::Unified(unified);
        }
        let (cpu, memory) = (root.join("cpu/podium"), root.join("memory/podium"));
        let are_there = root.join("cpu/cgroup.procs").exists() && root.join("memory/cgroup.procs").exists();
        if are_there && fs::create_dir_all(&cpu).and_then(|()| fs::create_dir_all(&memory)).is_ok() {
            return Self::Split { cpu, memory };
        }
        Self::None
    }

    /// Sets the bounds of an environment.
    pub(super) fn bound(&self, id: Id, bounds: Bounds) -> io::Result<()> {
        let quota = bounds.millicores * PERIOD / 1000;
        let set = |directory: PathBuf, settings: &[(&str, String)]| {
            fs::create_dir_all(&directory)?;
            settings.iter().try_for_each(|(name, value)| fs::write(directory.join(name), value))
        };
        match self {
            Self::Unified(root) => set(
                root.join(id.as_str()),
                &[("cpu.max", format!("{quota} {PERIOD}")), ("memory.max", bounds.memory.to_string())],
            ),
            Self::Split { cpu, memory } => {
                let period = ("cpu.cfs_period_us", PERIOD.to_string());
                set(cpu.join(id.as_str()), &[period, ("cpu.cfs_quota_us", quota.to_string())])?;
                set(memory.join(id.as_str()), &[("memory.limit_in_bytes", bounds.memory.to_string())])
            }
            Self::None => Ok(()),
        }
    }

    /// Puts a process, and all that it starts from now on, within the bounds of its environment.
    pub(super) fn join(&self, id: Id, pid: i32) -> io::Result<()> {
        self.groups(id).iter().try_for_each(|group| fs::write(group.join("cgroup.procs"), pid.to_string()))
    }

    /// The processes of an environment, whatever became of their parents.
    pub(super) fn members(&self, id: Id) -> Vec<i32> {
        let lists = self
            .groups(id)
            .into_iter()
            .filter_map(|group| fs::read_to_string(group.join("cgroup.procs")).ok());
        lists.flat_map(|list| list.lines().filter_map(|pid| pid.parse().ok()).collect::<Vec<i32>>()).collect()
    }

    /// Forgets the bounds of an environment that has no processes any more; tells whether nothing is left. What was
    /// just killed counts until its parent has noticed.
    pub(super) fn forget(&self, id: Id) -> bool {
        let is_gone = |group: &PathBuf| match fs::remove_dir(group) {
            Ok(()) => true,
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
        self.groups(id).iter().filter(|group| !is_gone(group)).count() == 0
    }

    /// Where the bounds of an environment are written.
    pub(super) fn groups(&self, id: Id) -> Vec<PathBuf> {
        match self {
            Self::Unified(root) => vec![root.join(id.as_str())],
            Self::Split { cpu, memory } => vec![cpu.join(id.as_str()), memory.join(id.as_str())],
            Self::None => Vec::new(),
        }
    }
}
