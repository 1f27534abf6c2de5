//! What a change of a deployment does to the processes that run it.

use podium_api::enums::PlannedEffectType;
use podium_api::plans::{PlannedChange, PlannedEffect};

/// Settings that every component of an environment is started with.
const ALL: &str =
    "environmentVariables executor runtimeVersion airflowVersion workloadIdentity resourceQuota";
const SCHEDULER: &str =
    "schedulerSize schedulerCpu schedulerMemory schedulerAu schedulerReplicas isHighAvailability";
const TASKS: &str = "defaultTaskPod taskPodNodePoolId";
const QUEUES: &str = "workerQueues";

pub fn restart_of_all() -> PlannedEffect {
    let message = "All components restart; workers and the scheduler first wait for running tasks, up to the deployment's grace period.";
    restart(vec!["all".to_owned()], message)
}

fn restart(names: Vec<String>, message: &str) -> PlannedEffect {
    let (message, count) = (message.to_owned(), Some(names.len() as u64));
    PlannedEffect { kind: PlannedEffectType::Restart, message, names, count, observed_at: None }
}

/// What restarts or stops because of these changes of a deployment.
pub fn of_deployment(changes: &[PlannedChange]) -> Vec<PlannedEffect> {
    let is_any = |prefixes: &str| {
        changes.iter().any(|change| prefixes.split(' ').any(|prefix| change.path.starts_with(prefix)))
    };
    if is_any(ALL) {
        return vec![restart_of_all()];
    }
    let mut names = Vec::new();
    if is_any(SCHEDULER) || is_any(TASKS) {
        names.push("scheduler".to_owned());
    }
    names.extend(
        changes.iter().filter_map(|change| queue(&change.path)).map(|queue| format!("worker {queue}")),
    );
    names.dedup();
    if names.is_empty() {
        return Vec::new();
    }
    let message = "These components restart after their running tasks have ended, at the latest after the deployment's grace period.";
    vec![restart(names, message)]
}

/// The queue that a path is about: `workerQueues[default].maxWorkerCount`.
fn queue(path: &str) -> Option<&str> {
    path.strip_prefix(QUEUES)?.strip_prefix('[')?.split(']').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(paths: &[&str]) -> Vec<String> {
        let change = |path: &&str| PlannedChange { path: (*path).to_owned(), from: None, to: None };
        let changes: Vec<_> = paths.iter().map(change).collect();
        of_deployment(&changes).into_iter().flat_map(|effect| effect.names).collect()
    }

    #[test]
    fn what_restarts_follows_from_what_changes() {
        assert_eq!(names(&["name", "description", "contactEmails"]), [""; 0]);
        let both = ["environmentVariables[A].value", "workerQueues[default].maxWorkerCount"];
        assert_eq!(names(&both), ["all"]);
        let queues = ["workerQueues[a].id", "workerQueues[a].x", "workerQueues[b]"];
        assert_eq!(names(&queues), ["worker a", "worker b"]);
        assert_eq!(names(&["schedulerSize", "schedulerCpu"]), ["scheduler"]);
    }
}
