//! Whether a component that runs does its work, from what it says itself.

use std::time::Duration;

use podium_api::Timestamp;
use podium_domain::{Reason, UserText};

use crate::components::is_worker;
use crate::health::HealthReport;

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
    /// Its name.
    pub name: &'a str,
    /// When it was started.
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

    /// Whether it does its work.
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
