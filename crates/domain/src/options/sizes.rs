//! Machines, sizes and the bounds of what a deployment can request.

use podium_api::enums::{DeploymentType, Executor, SchedulerSize, WorkerMachineName};

use super::amounts::{Cpu, Memory};

/// Minimum, default and maximum of an amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds<T> {
    pub floor: T,
    pub default: T,
    pub ceiling: T,
}

impl<T: Copy + PartialOrd> Bounds<T> {
    pub fn contains(&self, value: T) -> bool {
        self.floor <= value && value <= self.ceiling
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub cpu: Cpu,
    pub memory: Memory,
}

impl Size {
    /// Processors with the memory that goes with them.
    const fn of(cpu: u64) -> Self {
        let cpu = Cpu::from_thousandths(cpu * 1000);
        Self { cpu, memory: cpu.memory() }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Machine {
    pub name: WorkerMachineName,
    pub size: Size,
    /// How many tasks it runs at once.
    pub concurrency: Bounds<u32>,
}

const fn worker(name: WorkerMachineName, cpu: u64, default: u32) -> Machine {
    Machine { name, size: Size::of(cpu), concurrency: Bounds { floor: 1, default, ceiling: 3 * default } }
}

const MACHINES: [Machine; 7] = [
    worker(WorkerMachineName::A5, 1, 5),
    worker(WorkerMachineName::A10, 2, 10),
    worker(WorkerMachineName::A20, 4, 20),
    worker(WorkerMachineName::A40, 8, 40),
    worker(WorkerMachineName::A60, 12, 60),
    worker(WorkerMachineName::A120, 24, 120),
    worker(WorkerMachineName::A160, 32, 160),
];

/// Every machine of workers, the smallest first.
pub fn machines() -> &'static [Machine] {
    &MACHINES
}

pub const fn machine(name: WorkerMachineName) -> &'static Machine {
    &MACHINES[name as usize]
}

pub const fn scheduler(size: SchedulerSize) -> Size {
    match size {
        SchedulerSize::Small => Size::of(1),
        SchedulerSize::Medium => Size::of(2),
        SchedulerSize::Large => Size::of(4),
        SchedulerSize::ExtraLarge => Size::of(8),
    }
}

/// One unit of a hybrid deployment's scheduler.
pub const AU: Size = Size { cpu: Cpu::from_thousandths(100), memory: Memory::from_thousandths(375) };

/// So many units of a hybrid deployment's scheduler.
pub const fn au(units: u32) -> Size {
    Size {
        cpu: Cpu::from_thousandths(AU.cpu.thousandths() * units as u64),
        memory: Memory::from_thousandths(AU.memory.thousandths() * units as u64),
    }
}

/// The units of one scheduler of a hybrid deployment.
pub const AU_PER_SCHEDULER: Bounds<u32> = Bounds { floor: 5, default: 5, ceiling: 24 };
/// The schedulers of a hybrid deployment.
pub const SCHEDULER_REPLICAS: Bounds<u32> = Bounds { floor: 1, default: 1, ceiling: 4 };
/// The workers of a queue that are always there.
pub const MIN_WORKERS: Bounds<u32> = Bounds { floor: 0, default: 0, ceiling: 200 };
pub const MAX_WORKERS: Bounds<u32> = Bounds { floor: 1, default: 10, ceiling: 200 };
/// The tasks that a worker runs at once; a machine has bounds of its own within these.
pub const WORKER_CONCURRENCY: Bounds<u32> = Bounds { floor: 1, default: 5, ceiling: 480 };
pub const DEFAULT_STORAGE: &str = "10Gi";

/// Bounds of processors; memory has twice these.
#[derive(Clone, Copy, Debug)]
pub struct Resources {
    pub cpu: Bounds<Cpu>,
}

impl Resources {
    /// Bounds of the memory that goes with the processors.
    pub const fn memory(&self) -> Bounds<Memory> {
        let Bounds { floor, default, ceiling } = self.cpu;
        Bounds { floor: floor.memory(), default: default.memory(), ceiling: ceiling.memory() }
    }
}

const fn resources(floor: u64, default: u64, ceiling: u64) -> Resources {
    let cpu = Cpu::from_thousandths;
    Resources { cpu: Bounds { floor: cpu(floor), default: cpu(default), ceiling: cpu(ceiling) } }
}

/// A task pod that does not say what it needs: at most, the largest machine.
pub const POD: Resources = resources(250, 250, 32_000);
/// All task pods of a deployment together.
pub const QUOTA: Resources = resources(250, 10_000, 1_600_000);

pub const fn executors(deployment_type: DeploymentType) -> &'static [Executor] {
    match deployment_type {
        DeploymentType::Standard | DeploymentType::Dedicated => Executor::ALL,
        DeploymentType::Hybrid => &[Executor::Celery, Executor::Kubernetes],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_are_as_the_price_list_says() {
        let table = [
            ("A5", "1", "2Gi", 5, 15),
            ("A10", "2", "4Gi", 10, 30),
            ("A20", "4", "8Gi", 20, 60),
            ("A40", "8", "16Gi", 40, 120),
            ("A60", "12", "24Gi", 60, 180),
            ("A120", "24", "48Gi", 120, 360),
            ("A160", "32", "64Gi", 160, 480),
        ];
        assert_eq!(table.len(), WorkerMachineName::ALL.len());
        for ((word, cpu, memory, default, ceiling), name) in table.into_iter().zip(WorkerMachineName::ALL) {
            let Machine { name: found, size, concurrency } = machine(*name);
            assert_eq!((word, *found), (name.as_str(), *name));
            assert_eq!(format!("{} {}", size.cpu, size.memory), format!("{cpu} {memory}"), "{name}");
            assert_eq!(*concurrency, Bounds { floor: 1, default, ceiling }, "{name}");
            assert!(WORKER_CONCURRENCY.contains(concurrency.ceiling));
        }
    }

    #[test]
    fn schedulers_are_as_the_price_list_says() {
        let sizes = ["1 2Gi", "2 4Gi", "4 8Gi", "8 16Gi"];
        for (expected, size) in sizes.into_iter().zip(SchedulerSize::ALL) {
            let Size { cpu, memory } = scheduler(*size);
            assert_eq!(format!("{cpu} {memory}"), expected);
        }
        let Size { cpu, memory } = au(AU_PER_SCHEDULER.default);
        assert_eq!((cpu.to_string(), memory.to_string()), ("0.5".into(), "1.875Gi".into()));
        assert_eq!((AU.cpu.to_string(), AU.memory.to_string()), ("0.1".into(), "0.375Gi".into()));
    }

    #[test]
    fn pods_fit_their_quota() {
        let usual = |of: Resources| format!("{} {}", of.cpu.default, of.memory().default);
        assert_eq!((usual(POD), usual(QUOTA)), ("0.25 0.5Gi".into(), "10 20Gi".into()));
        assert!(POD.cpu.default <= QUOTA.cpu.floor && POD.cpu.ceiling <= QUOTA.cpu.ceiling);
    }

    #[test]
    fn hybrid_deployments_have_no_executor_of_the_platform() {
        assert_eq!(executors(DeploymentType::Hybrid), [Executor::Celery, Executor::Kubernetes]);
        assert_eq!(executors(DeploymentType::Standard).len(), 3);
    }
}
