//! Health of an environment, as reported by its web server: one document covers all its components.

use std::collections::BTreeMap;

use podium_api::Timestamp;
use podium_domain::{Reason, UserText};
use serde::Deserialize;

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
}
