//! What starts or runs tasks waits until what tasks need answers.
//!
//! A task asks the web server before it begins, and one that gets no answer has lost an attempt; one that cannot be sent
//! to the broker has lost it, too. What already runs keeps running while they are away: its tasks ask again, for longer
//! than it takes to replace either.

use crate::components::runs_tasks;

/// What tasks need in an environment, or what of it answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskNeeds {
    /// Requests of tasks to the web server: tasks of the 2.x line use the database.
    pub task_api: bool,
    /// The environment's own broker.
    pub broker: bool,
}

impl TaskNeeds {
    /// What a component that is not running has to wait for, if it has to.
    pub fn missing_for(self, component: &str, answering: Self) -> Option<&'static str> {
        if !runs_tasks(component) {
            None
        } else if self.broker && !answering.broker {
            Some("waiting for the broker to answer")
        } else if self.task_api && !answering.task_api {
            Some("waiting for the web server to answer requests of tasks")
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_starts_or_runs_tasks_waits_and_only_for_what_the_environment_has() {
        let (all, nothing) = (TaskNeeds { task_api: true, broker: true }, TaskNeeds::default());
        let api = TaskNeeds { task_api: true, broker: false };
        for component in ["scheduler", "worker-default"] {
            let broker = "waiting for the broker to answer";
            assert_eq!(all.missing_for(component, nothing), Some(broker), "{component}");
            assert_eq!(all.missing_for(component, api), Some(broker), "{component}");
            let server = Some("waiting for the web server to answer requests of tasks");
            assert_eq!(api.missing_for(component, nothing), server, "{component}");
            assert_eq!(all.missing_for(component, all), None, "{component}");
            assert_eq!(nothing.missing_for(component, nothing), None, "{component}");
        }
        for component in ["apiserver", "triggerer", "dag-processor"] {
            assert_eq!(all.missing_for(component, nothing), None, "{component}");
        }
    }
}
