//! What the components of a simulated environment write into their logs.

use podium_api::{DeploymentId, Timestamp};
use podium_domain::deployments::Running;

use crate::LogLine;

/// What components write while they start.
pub(super) fn starting(
    id: DeploymentId,
    components: &[String],
    running: &Running,
    now: Timestamp,
) -> Vec<LogLine> {
    let image = running.image_tag.as_deref().unwrap_or_default();
    let runtime = running.runtime_version.as_deref().unwrap_or_default();
    let dags = running.dag_version.as_deref();
    each(id, components, now, |component| {
        let first = format!(
            "{{cli_action_loggers.py:76}} INFO - Starting {component}, runtime {runtime}, image {image}"
        );
        let second = match component {
            "scheduler" => "{scheduler_job_runner.py:1033} INFO - Starting the scheduler".into(),
            "triggerer" => "{triggerer_job_runner.py:339} INFO - Starting the triggerer".into(),
            "worker" => "{worker.py:210} INFO - Connecting to the broker, waiting for tasks".into(),
            "dag-processor" => match dags {
                Some(version) => {
                    format!("{{manager.py:272}} INFO - Processing DAG files of version {version}")
                }
                None => "{manager.py:272} INFO - No DAG files yet".into(),
            },
            _ => "{server.py:83} INFO - Waiting for application startup".into(),
        };
        vec![first, second]
    })
}

/// What components write once they are up.
pub(super) fn started(
    id: DeploymentId,
    components: &[String],
    namespace: &str,
    now: Timestamp,
) -> Vec<LogLine> {
    each(id, components, now, |component| {
        let line = match component {
            "scheduler" => {
                "{scheduler_job_runner.py:1950} INFO - Adopting or resetting orphaned tasks: 0 found".into()
            }
            "triggerer" => "{triggerer_job_runner.py:516} INFO - 0 triggers currently running".into(),
            "worker" => format!("{{worker.py:232}} INFO - celery@{namespace}-worker-0 ready"),
            "dag-processor" => "{manager.py:998} INFO - Finished parsing, 0 import errors".into(),
            _ => format!("{{server.py:98}} INFO - Application startup complete, serving {namespace}"),
        };
        vec![line]
    })
}

/// What components write when they are told to stop.
pub(super) fn stopping(id: DeploymentId, components: &[String], now: Timestamp) -> Vec<LogLine> {
    each(id, components, now, |component| {
        vec![format!("{{process_utils.py:132}} INFO - Received SIGTERM, stopping {component}")]
    })
}

fn each(
    id: DeploymentId,
    components: &[String],
    now: Timestamp,
    texts: impl Fn(&str) -> Vec<String>,
) -> Vec<LogLine> {
    let line = |component: &String, text: String| LogLine {
        deployment_id: id,
        source: component.clone(),
        timestamp: now,
        text: format!("[{now}] {text}"),
    };
    components
        .iter()
        .flat_map(|component| texts(component).into_iter().map(move |text| line(component, text)))
        .collect()
}
