//! Health of an environment, as reported by its web server: one request covers all its components.

use std::collections::BTreeMap;
use std::time::Duration;

use podium_api::Timestamp;
use podium_domain::{Reason, UserText};
use serde::Deserialize;

/// How long the first response of the task API may take: the first request initializes it.
const FIRST_ANSWER: Duration = Duration::from_secs(120);

/// HTTP client for health checks.
#[derive(Clone, Debug)]
pub(super) struct HealthClient(reqwest::Client);

/// The health of the other components: the last heartbeat of each, or why it is unhealthy.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct HealthReport(BTreeMap<&'static str, Result<Timestamp, UserText>>);

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

impl HealthClient {
    /// A client with this request timeout.
    pub(super) fn new(timeout: Duration) -> reqwest::Result<Self> {
        let client = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(timeout)
            .build();
        client.map(Self)
    }

    /// Requests the health of all components from a web server; an error says why it does not respond.
    pub(super) async fn check(&self, base: &str, major: u32) -> Result<HealthReport, Reason> {
        let path = if major < 3 { "health" } else { "api/v2/monitor/health" };
        let answer = self.0.get(format!("{base}/{path}")).send().await.map_err(|error| reason(&error))?;
        if !answer.status().is_success() {
            return Err(UserText::filled(
                "its health check returned status {}",
                &[&answer.status().as_u16()],
            )
            .into());
        }
        answer.json::<HealthResponse>().await.map(HealthReport::from).map_err(|error| reason(&error))
    }

    /// Requests a JSON document with a header that authenticates; one that is larger than `most` bytes is refused.
    pub(super) async fn get_json(
        &self,
        url: &str,
        (header, value): (&str, String),
        most: usize,
    ) -> Result<serde_json::Value, Reason> {
        let question = self.0.get(url).header(header, value);
        let mut answer = question.send().await.map_err(|error| reason(&error))?;
        if !answer.status().is_success() {
            let told = UserText::filled("its API returned status {}", &[&answer.status().as_u16()]);
            return Err(told.into());
        }
        let mut bytes = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(|error| reason(&error))? {
            if bytes.len() + chunk.len() > most {
                return Err("its response is too large".into());
            }
            bytes.extend_from_slice(&chunk);
        }
        serde_json::from_slice(&bytes).map_err(|error| Reason::new("its response cannot be parsed", error))
    }

    /// Initializes the task API, so that no task has to wait for it.
    pub(super) async fn warm_up(&self, base: &str) -> Result<(), Reason> {
        let question = self.0.get(format!("{base}/execution/health")).timeout(FIRST_ANSWER);
        let answer = question.send().await.map_err(|error| reason(&error))?;
        if answer.status().is_success() {
            Ok(())
        } else {
            Err(UserText::filled("its task API returned status {}", &[&answer.status().as_u16()]).into())
        }
    }
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
    pub(super) fn heartbeats(&self) -> impl Iterator<Item = (&'static str, Timestamp)> {
        self.0.iter().filter_map(|(name, heard)| Some((*name, *heard.as_ref().ok()?)))
    }

    /// Whether a component that was started at this time is healthy; one without heartbeats counts as healthy.
    pub(super) fn of(&self, component: &str, started_at: Timestamp) -> Result<(), Reason> {
        match self.0.get(component) {
            Some(Ok(at)) if *at < started_at => Err("it has not sent a heartbeat yet".into()),
            Some(Err(why)) => Err(why.clone().into()),
            Some(Ok(_)) | None => Ok(()),
        }
    }
}

/// Why there is no response, in a few words.
fn reason(error: &reqwest::Error) -> Reason {
    if error.is_connect() {
        Reason::new("it is not listening", error)
    } else if error.is_timeout() {
        Reason::new("it does not respond", error)
    } else {
        Reason::new("its response cannot be parsed", error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(text: &str) -> HealthReport {
        serde_json::from_str::<HealthResponse>(text).unwrap().into()
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
