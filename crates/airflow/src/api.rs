//! Asks an environment's own web server which DAGs it knows and which files it could not import.
//!
//! The answers are claims of the environment's authors: they are bounded, and decide nothing but whether a rollout is
//! over and what its report says.

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use podium_api::Timestamp;
use podium_domain::Reason;
use podium_domain::airflow::Line;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::Secret;
use crate::web_client::WebClient;

/// How many items a request asks for: more than older versions return at once.
const PAGE: usize = 100;
const MOST_PAGES: usize = 50;
/// The largest response.
const MOST_BYTES: usize = 4 << 20;
/// How many running task instances are named.
const MOST_NAMED: usize = 20;
/// The longest name of one that is shown, in characters.
const LONGEST_NAME: usize = 500;
/// How long a token lasts, in seconds.
const LASTS: i64 = 60;
/// The name under which the platform asks.
const NAME: &str = "podium";

/// The interface of an environment's web server.
pub struct AirflowApi<'a> {
    pub client: &'a WebClient,
    /// The URL of the web server.
    pub base: &'a str,
    pub line: Line,
    /// The key that it trusts.
    pub key: &'a Secret,
    pub now: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct KnownDag {
    pub dag_id: String,
    /// The path of its file.
    #[serde(default)]
    pub fileloc: String,
    #[serde(default)]
    pub last_parsed_time: Option<String>,
    /// The version of the DAGs that it is at, if Airflow says so.
    #[serde(default)]
    pub bundle_version: Option<String>,
    #[serde(default)]
    is_stale: bool,
}

/// A file that Airflow could not import.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct KnownError {
    /// The path of the file, possibly below the DAGs.
    #[serde(default)]
    pub filename: String,
    /// When that was found.
    #[serde(default)]
    pub timestamp: Option<String>,
    #[serde(default, alias = "stacktrace")]
    pub stack_trace: String,
}

#[derive(Deserialize)]
struct RunningTask {
    dag_id: String,
    dag_run_id: String,
    task_id: String,
    #[serde(default = "not_mapped")]
    map_index: i64,
}

fn not_mapped() -> i64 {
    -1
}

/// The task instances that an environment runs at a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunningTasks {
    /// The names of some of them, `dag/run/task`.
    pub names: Vec<String>,
    pub count: u64,
}

impl RunningTask {
    /// Its name for people, as a drain names it.
    fn name(&self) -> String {
        let Self { dag_id, dag_run_id, task_id, map_index } = self;
        let mut name = format!("{dag_id}/{dag_run_id}/{task_id}");
        if *map_index >= 0 {
            name.push_str(&format!("[{map_index}]"));
        }
        name.chars().filter(|c| !c.is_control()).take(LONGEST_NAME).collect()
    }
}

impl AirflowApi<'_> {
    /// The DAGs that are not stale.
    pub async fn dags(&self) -> Result<Vec<KnownDag>, Reason> {
        let mut all: Vec<KnownDag> = self.all("dags", "dags").await?;
        all.retain(|dag| !dag.is_stale);
        Ok(all)
    }

    /// The files that could not be imported.
    pub async fn import_errors(&self) -> Result<Vec<KnownError>, Reason> {
        self.all("importErrors", "import_errors").await
    }

    pub async fn running_tasks(&self) -> Result<RunningTasks, Reason> {
        let path = format!("dags/~/dagRuns/~/taskInstances?state=running&limit={MOST_NAMED}");
        let mut page = self.get(&path).await?;
        let tasks = serde_json::from_value::<Vec<RunningTask>>(page["task_instances"].take());
        let tasks = tasks.map_err(|error| Reason::new("its response cannot be parsed", error))?;
        let names: Vec<String> = tasks.iter().take(MOST_NAMED).map(RunningTask::name).collect();
        let count = page["total_entries"].as_u64().unwrap_or_default().max(names.len() as u64);
        Ok(RunningTasks { names, count })
    }

    async fn get(&self, path: &str) -> Result<Value, Reason> {
        let version = if self.line == Line::Two { "v1" } else { "v2" };
        let url = format!("{}/api/{version}/{path}", self.base);
        self.client.get_json(&url, self.credentials(), MOST_BYTES).await
    }

    /// All items of a list, up to a bound.
    async fn all<T: DeserializeOwned>(&self, path: &str, member: &str) -> Result<Vec<T>, Reason> {
        let mut all = Vec::new();
        for _ in 0..MOST_PAGES {
            let mut page = self.get(&format!("{path}?limit={PAGE}&offset={}", all.len())).await?;
            if page[member].as_array().is_some_and(|items| items.len() > PAGE) {
                return Err("its response has more items than were asked for".into());
            }
            let items = serde_json::from_value::<Vec<T>>(page[member].take());
            let items = items.map_err(|error| Reason::new("its response cannot be parsed", error))?;
            let total = page["total_entries"].as_u64().unwrap_or_default();
            let is_last = items.is_empty();
            all.extend(items);
            if is_last || all.len() as u64 >= total {
                break;
            }
        }
        Ok(all)
    }

    /// The header that identifies the platform, who may only read.
    fn credentials(&self) -> (&'static str, String) {
        let now = self.now.millis().div_euclid(1000);
        let mut claims = json!({ "sub": NAME, "role": "VIEWER", "iat": now, "exp": now + LASTS });
        if self.line == Line::Two {
            claims["role"] = "Viewer".into();
            return ("x-podium-user", signed("HS256", hmac::HMAC_SHA256, self.key, &claims));
        }
        claims["aud"] = "apache-airflow".into();
        claims["nbf"] = now.into();
        ("authorization", format!("Bearer {}", signed("HS512", hmac::HMAC_SHA512, self.key, &claims)))
    }
}

/// A token in the form that web servers accept from the front door.
fn signed(name: &str, algorithm: hmac::Algorithm, key: &Secret, claims: &Value) -> String {
    let part = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    let text = format!("{}.{}", part(&json!({ "alg": name, "typ": "JWT" })), part(claims));
    let key = hmac::Key::new(algorithm, key.reveal().as_bytes());
    format!("{text}.{}", BASE64_URL_SAFE_NO_PAD.encode(hmac::sign(&key, text.as_bytes())))
}
