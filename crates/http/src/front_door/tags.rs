//! Tags of DAGs, requested from the environment itself and cached briefly.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::header::{ACCEPT, HOST};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use podium_api::DeploymentId;
use podium_app::front_door::AdmittedCaller;
use podium_dataplane::{Line, WebServer};
use podium_domain::airflow::AirflowRole;
use quick_cache::sync::Cache;
use serde::Deserialize;

use super::forward::add_identity;
use super::upstream::Outgoing;
use super::{FrontDoor, InboundRequest};
use crate::body;
use crate::errors::Failure;

/// How long tags are cached: a role on a tag still applies this long to a DAG that has lost the tag.
const BELIEVED: Duration = Duration::from_secs(5);
const REMEMBERED: usize = 10_000;
const LARGEST: usize = 1024 * 1024;
/// The caller's name in Airflow's own log.
const NAME: &str = "podium";

pub(super) struct Tags(Cache<(DeploymentId, String), Told>);

/// When tags were requested, and the result.
type Told = (Instant, Arc<Vec<String>>);

impl Default for Tags {
    fn default() -> Self {
        Self(Cache::new(REMEMBERED))
    }
}

#[derive(Deserialize)]
struct Dag {
    tags: Option<Vec<Tag>>,
}

#[derive(Deserialize)]
struct Tag {
    name: String,
}

impl FrontDoor {
    /// The tags of a DAG; empty if the DAG does not exist.
    pub(super) async fn tags_of(
        &self,
        door: &WebServer,
        caller: &AdmittedCaller,
        dag_id: &str,
        inbound: &InboundRequest,
    ) -> Result<Arc<Vec<String>>, Failure> {
        let key = (caller.deployment().id(), dag_id.to_owned());
        let known = self.tags.0.get(&key).filter(|(asked, _)| asked.elapsed() < BELIEVED);
        if let Some((_, tags)) = known {
            return Ok(tags);
        }
        let tags = Arc::new(self.ask(door, caller, dag_id, inbound).await?);
        self.tags.0.insert(key, (Instant::now(), Arc::clone(&tags)));
        Ok(tags)
    }

    async fn ask(
        &self,
        door: &WebServer,
        caller: &AdmittedCaller,
        dag_id: &str,
        inbound: &InboundRequest,
    ) -> Result<Vec<String>, Failure> {
        let api = match door.line {
            Line::Three => "api/v2",
            Line::Two => "api/v1",
        };
        let path = podium_domain::airflow::AirflowPath::of_parts(["dags", dag_id])?;
        let target = format!("/airflow/{}/{api}{}", caller.deployment().namespace(), path.encoded());
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        if let Ok(host) = HeaderValue::from_str(&door.upstream.to_string()) {
            headers.insert(HOST, host);
        }
        add_identity(&mut headers, door, NAME, AirflowRole::Viewer, inbound.now)?;
        let (body, watch) = (body::empty(), self.app.watch(&caller.authority, caller.session));
        let who = (caller.deployment().id(), caller.authority.credential.subject_id);
        let outgoing = Outgoing { method: Method::GET, target, headers, body, watch };
        let response = self.upstreams.send(who, door, outgoing).await?;
        match response.status() {
            StatusCode::NOT_FOUND => return Ok(Vec::new()),
            StatusCode::OK => {}
            status => {
                tracing::warn!(%status, "an environment did not return the tags of a DAG");
                return Err(not_shown());
            }
        }
        let read = Limited::new(response.into_body(), LARGEST).collect().await;
        let bytes = read.map_err(|_| not_shown())?.to_bytes();
        let dag: Dag = serde_json::from_slice(&bytes).map_err(|_| not_shown())?;
        Ok(dag.tags.unwrap_or_default().into_iter().map(|tag| tag.name).collect())
    }
}

fn not_shown() -> Failure {
    let message =
        "The environment did not return the tags of this DAG, which your role depends on: try again.";
    Failure::later(StatusCode::BAD_GATEWAY, message, 5)
}
