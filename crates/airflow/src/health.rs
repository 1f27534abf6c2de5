//! Health of an environment: what its web server reports of all its components in one document, whether a component that
//! runs does its work, and what has to answer before anything starts or runs tasks.
//!
//! A task asks the web server before it begins, and one that gets no answer has lost an attempt; one that cannot be sent
//! to the broker has lost it, too. What already runs keeps running while they are away: its tasks ask again, for longer
//! than it takes to replace either.

use std::collections::BTreeMap;
use std::time::Duration;

use podium_api::Timestamp;
use podium_domain::{Reason, UserText};
use serde::Deserialize;

use crate::components::{is_worker, runs_tasks};

/// The health of the other components: the last heartbeat of each, or why it is unhealthy.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(from = "HealthResponse")]
pub struct HealthReport(BTreeMap<&'static str, Result<Timestamp, UserText>>);

#[derive(Deserialize)]
struct HealthResponse {
    scheduler: Option<ComponentHealth>,
    triggerer: Option<ComponentHealth>,
    dag_processor: Option<ComponentHealth>,
}

#[derive(Deserialize)]
struct ComponentHealth {
    status: Option<String>,
    #[serde(alias = "latest_scheduler_heartbeat")]
    #[serde(alias = "latest_triggerer_heartbeat")]
    #[serde(alias = "latest_dag_processor_heartbeat")]
    heartbeat: Option<String>,
}

/// Where below its base path a web server reports it.
pub fn path(major: u32) -> &'static str {
    if major < 3 { "health" } else { "api/v2/monitor/health" }
}

impl From<HealthResponse> for HealthReport {
    fn from(report: HealthResponse) -> Self {
        let parts = [
            ("scheduler", report.scheduler),
            ("triggerer", report.triggerer),
            ("dag-processor", report.dag_processor),
        ];
        let heard = |said: ComponentHealth| match (
            said.status.as_deref(),
            said.heartbeat.as_deref().and_then(Timestamp::parse),
        ) {
            (Some("healthy"), Some(at)) => Ok(at),
            (_, Some(at)) => Err(UserText::filled("its last heartbeat was at {}", &[&at])),
            (_, None) => Err("it has not sent a heartbeat yet".into()),
        };
        Self(parts.into_iter().filter_map(|(name, said)| Some((name, heard(said?)))).collect())
    }
}

impl HealthReport {
    /// The last heartbeat of each healthy component.
    pub fn heartbeats(&self) -> impl Iterator<Item = (&'static str, Timestamp)> {
        self.0.iter().filter_map(|(name, heard)| Some((*name, *heard.as_ref().ok()?)))
    }

    /// Whether a component that was started at this time is healthy; one without heartbeats counts as healthy.
    pub fn of(&self, component: &str, started_at: Timestamp) -> Result<(), Reason> {
        match self.0.get(component) {
            Some(Ok(at)) if *at < started_at => Err("it has not sent a heartbeat yet".into()),
            Some(Err(why)) => Err(why.clone().into()),
            Some(Ok(_)) | None => Ok(()),
        }
    }
}

/// How old a component's last progress mark may be: it is renewed every second or two.
const PROGRESS: Duration = Duration::from_secs(45);

/// The name of a component's progress mark among the files of [`Files::status`](crate::files::Files::status): it reports
/// progress by writing to it.
pub fn progress_mark(component: &str) -> String {
    format!("{component}.progress")
}

/// What is known of a component whose process runs.
#[derive(Clone, Copy, Debug)]
pub struct RunningComponent<'a> {
    pub name: &'a str,
    pub started_at: Timestamp,
    /// When it last reported progress, possibly before its start.
    pub progress_at: Option<Timestamp>,
    /// What the web server says, if it answers.
    pub heard: Option<&'a HealthReport>,
    /// Whether tasks run inside the scheduler.
    pub is_sequential: bool,
    /// Whether it was healthy before.
    pub was_healthy: bool,
}

impl RunningComponent<'_> {
    /// How long ago it last reported progress; `None` if it has not since its start.
    pub fn progress(&self, now: Timestamp) -> Option<Duration> {
        let at = self.progress_at.filter(|at| *at >= self.started_at)?;
        Some(Duration::from_millis(u64::try_from(now.millis() - at.millis()).unwrap_or(0)))
    }

    pub fn health(&self, now: Timestamp) -> Result<(), Reason> {
        let (progress, is_scheduler) = (self.progress(now), self.name == "scheduler");
        if let Some(age) = progress.filter(|age| *age > PROGRESS)
            && !(is_scheduler && self.is_sequential)
        {
            let seconds = age.as_secs() / 10 * 10;
            return Err(UserText::filled("it has made no progress for {} s", &[&seconds]).into());
        }
        if is_worker(self.name) && progress.is_none() {
            return Err("it is not accepting tasks yet".into());
        }
        match self.heard.map_or(Ok(()), |heard| heard.of(self.name, self.started_at)) {
            // While a task runs inside it, it sends no heartbeat.
            Err(_) if is_scheduler && self.is_sequential && self.was_healthy => Ok(()),
            health => health,
        }
    }
}

/// What tasks need in an environment, or what of it answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskNeeds {
    /// Requests of tasks to the web server: tasks of the 2.x line use the database.
    pub task_api: bool,
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

    fn heard(text: &str) -> HealthReport {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_component_is_healthy_after_a_heartbeat_since_its_start() {
        let text = r#"{"metadatabase":{"status":"healthy"},
            "scheduler":{"status":"healthy","latest_scheduler_heartbeat":"2026-11-01T10:00:05.000000+00:00"},
            "triggerer":{"status":"unhealthy","latest_triggerer_heartbeat":"2026-11-01T09:00:00Z"},
            "dag_processor":{"status":null,"latest_dag_processor_heartbeat":null}}"#;
        let (heard, at) = (heard(text), |text| Timestamp::parse(text).unwrap());
        assert_eq!(heard.of("scheduler", at("2026-11-01T10:00:00Z")), Ok(()));
        let late = heard.of("scheduler", at("2026-11-01T10:00:06Z"));
        assert_eq!(late, Err("it has not sent a heartbeat yet".into()), "that was the one before");
        assert!(
            heard.of("triggerer", at("2026-11-01T08:00:00Z")).unwrap_err().to_string().contains("09:00:00")
        );
        assert_eq!(
            heard.of("dag-processor", at("2026-11-01T10:00:00Z")),
            Err("it has not sent a heartbeat yet".into())
        );
        assert_eq!(heard.of("apiserver", at("2026-11-01T10:00:00Z")), Ok(()));
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_millis(second * 1000)
    }

    fn component(name: &str, progress_at: Option<i64>) -> RunningComponent<'_> {
        RunningComponent {
            name,
            started_at: at(100),
            progress_at: progress_at.map(at),
            heard: None,
            is_sequential: false,
            was_healthy: true,
        }
    }

    #[test]
    fn a_component_that_stops_making_progress_is_down() {
        assert_eq!(
            component("triggerer", None).health(at(1000)),
            Ok(()),
            "not every release reports progress"
        );
        assert_eq!(component("triggerer", Some(99)).health(at(1000)), Ok(()), "that was the process before");
        assert_eq!(component("triggerer", Some(110)).health(at(155)), Ok(()));
        let why = component("triggerer", Some(110)).health(at(179)).unwrap_err();
        assert_eq!(*why.user_text(), "it has made no progress for 60 s");
        let sequential = RunningComponent { is_sequential: true, ..component("scheduler", Some(110)) };
        assert_eq!(sequential.health(at(1000)), Ok(()), "a task runs inside it");
        let beside = RunningComponent { is_sequential: true, ..component("triggerer", Some(110)) };
        assert!(beside.health(at(1000)).is_err());
    }

    #[test]
    fn a_worker_is_up_once_it_accepts_tasks() {
        let why = component("worker-default", Some(99)).health(at(101)).unwrap_err();
        assert_eq!(*why.user_text(), "it is not accepting tasks yet");
        assert_eq!(component("worker-default", Some(100)).health(at(101)), Ok(()));
    }

    #[test]
    fn a_scheduler_that_runs_a_task_itself_sends_no_heartbeat() {
        let text = r#"{"scheduler":{"status":"unhealthy","latest_scheduler_heartbeat":null}}"#;
        let heard: HealthReport = serde_json::from_str(text).unwrap();
        let scheduler = RunningComponent { heard: Some(&heard), ..component("scheduler", Some(100)) };
        assert!(scheduler.health(at(101)).is_err());
        assert_eq!(RunningComponent { is_sequential: true, ..scheduler }.health(at(101)), Ok(()));
        let starting = RunningComponent { is_sequential: true, was_healthy: false, ..scheduler };
        assert!(starting.health(at(101)).is_err());
    }

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
