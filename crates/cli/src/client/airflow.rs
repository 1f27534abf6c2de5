//! The Airflow of a deployment, through the front door: `/api/v1` of Airflow 2, `/api/v2` of later versions.

use std::path::Path;

use clap::Args;
use podium_api::deployments;
use podium_api::enums::ErrorCode;
use podium_api::path::OfDeployment;
use podium_client::Call;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::answer::read;
use super::ending::{Exit, Failed, Outcome};
use super::project::DeploymentFlags;
use super::session::Session;

/// The largest page that Airflow gives.
const PAGE: u64 = 100;
/// How many DAGs are looked at for a suggestion, or to complete a name.
const MOST_NAMES: u64 = 2_000;

/// Which deployment's Airflow.
#[derive(Args, Clone)]
pub(crate) struct AirflowFlags {
    /// Name or id; the default is the deployment of podium.yaml, or the only one.
    #[arg(long, short, global = true, env = "PODIUM_DEPLOYMENT")]
    deployment: Option<String>,
    #[command(flatten)]
    flags: DeploymentFlags,
}

pub(crate) struct Airflow<'a> {
    pub(crate) session: &'a Session,
    pub(crate) name: String,
    namespace: String,
    is_old: bool,
    is_asked_once: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Place {
    name: String,
    namespace: String,
    airflow_version: String,
}

/// A DAG, as either version shows it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Dag {
    pub(crate) dag_id: String,
    pub(crate) is_paused: Option<bool>,
    pub(crate) fileloc: Option<String>,
    pub(crate) relative_fileloc: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Run {
    pub(crate) dag_run_id: String,
    #[serde(default)]
    pub(crate) state: Option<String>,
}

impl AirflowFlags {
    pub(crate) async fn find<'a>(&self, session: &'a Session) -> Outcome<Airflow<'a>> {
        session.never_plans("Plans do not cover changes in Airflow.")?;
        let path = self.flags.find(session, self.deployment.as_deref(), Path::new(".")).await?;
        Airflow::of(session, &path).await
    }
}

impl<'a> Airflow<'a> {
    pub(crate) async fn of(session: &'a Session, path: &OfDeployment) -> Outcome<Self> {
        let place: Place = session.get::<deployments::Get>(path).await?.part()?;
        let is_old = place.airflow_version.starts_with("2.");
        Ok(Self { session, name: place.name, namespace: place.namespace, is_old, is_asked_once: false })
    }

    /// Does not ask it again if it is not up: for what can be done without.
    pub(crate) fn asked_once(self) -> Self {
        Self { is_asked_once: true, ..self }
    }

    /// Whether it is Airflow 2.
    pub(crate) fn is_old(&self) -> bool {
        self.is_old
    }

    pub(crate) fn call(&self, method: &str, path: &[&str]) -> Outcome<Call> {
        let version = if self.is_old { "v1" } else { "v2" };
        let segments = [&["api", version], path].concat();
        let call = Call::airflow(method, &self.namespace, &segments)?;
        Ok(if self.is_asked_once { call.once() } else { call })
    }

    pub(crate) async fn get(&self, path: &[&str]) -> Outcome<Value> {
        self.send(self.call("GET", path)?).await
    }

    pub(crate) async fn send(&self, call: Call) -> Outcome<Value> {
        let sent = self.session.client.send(call).await.map_err(Failed::from);
        Ok(sent.map_err(|failed| self.explain_outage(failed))?.body)
    }

    /// Says how to find out why its web server is not up.
    fn explain_outage(&self, failed: Failed) -> Failed {
        match failed.code() {
            Some(ErrorCode::Unavailable) => {
                failed.hint(format!("Its status: podium deployment get {:?}", self.name))
            }
            _ => failed,
        }
    }

    /// Up to a number of items of a list, page by page.
    pub(crate) async fn pages(
        &self,
        path: &[&str],
        (field, params): (&str, &Value),
        most: u64,
        mut page_of: impl FnMut(&[Value]) -> Outcome,
    ) -> Outcome {
        let mut offset = 0;
        while offset < most {
            let page = json!({ "limit": PAGE.min(most - offset), "offset": offset });
            let call = self.call("GET", path)?.query_params(params)?.query_params(&page)?;
            let mut body = self.send(call).await?;
            let Value::Array(items) = body[field].take() else {
                return Err(Failed::because(format!("Airflow's answer has no {field}")));
            };
            page_of(&items)?;
            offset += items.len() as u64;
            if items.is_empty() || body["total_entries"].as_u64().is_none_or(|total| offset >= total) {
                break;
            }
        }
        Ok(())
    }

    /// What is in a list, up to a number of items.
    pub(crate) async fn all<T: DeserializeOwned>(
        &self,
        path: &[&str],
        list: (&str, &Value),
        most: u64,
    ) -> Outcome<Vec<T>> {
        let mut all = Vec::new();
        let collect = |page: &[Value]| {
            all.extend(page.iter().map(read).collect::<Outcome<Vec<T>>>()?);
            Ok(())
        };
        self.pages(path, list, most, collect).await?;
        Ok(all)
    }

    /// The ids of its DAGs, up to a number of them.
    pub(crate) async fn dag_names(&self) -> Outcome<Vec<String>> {
        let dags: Vec<Dag> = self.all(&["dags"], ("dags", &json!({})), MOST_NAMES).await?;
        Ok(dags.into_iter().map(|dag| dag.dag_id).collect())
    }

    /// What came of a call; where Airflow found nothing, it says what is missing: the DAG, or else its run.
    pub(crate) async fn explained<T>(&self, done: Outcome<T>, dag: &str, run: Option<&str>) -> Outcome<T> {
        match (done, run) {
            (Err(failed), Some(run)) if failed.exit == Exit::NotFound => {
                Err(match self.get(&["dags", dag]).await {
                    Ok(_) => self.without_run(dag, run).await,
                    Err(_) => self.without_dag(failed, dag).await,
                })
            }
            (Err(failed), None) if failed.exit == Exit::NotFound => Err(self.without_dag(failed, dag).await),
            (done, _) => done,
        }
    }

    /// There is no such DAG: says which one may have been meant, or how to find out.
    async fn without_dag(&self, failed: Failed, dag: &str) -> Failed {
        let Ok(names) = self.dag_names().await else { return failed };
        // It may have come meanwhile, or it was something else that was not found.
        if names.iter().any(|name| name == dag) {
            return failed;
        }
        let missing = Failed::new(Exit::NotFound, format!("{} has no DAG called {dag:?}", self.name));
        let otherwise = format!(
            "Its DAGs: podium dag list --deployment {name:?}. Files that cannot be imported: podium deploy report \
             --deployment {name:?}",
            name = self.name
        );
        missing.suggest(&names, dag, otherwise)
    }

    /// There is no such run: says which one may have been meant, or how to find out.
    async fn without_run(&self, dag: &str, run: &str) -> Failed {
        let newest = json!({ "order_by": "-start_date" });
        let read = self.all::<Run>(&["dags", dag, "dagRuns"], ("dag_runs", &newest), PAGE).await;
        let names: Vec<String> = read.unwrap_or_default().into_iter().map(|run| run.dag_run_id).collect();
        let missing = Failed::new(Exit::NotFound, format!("{dag} has no run called {run:?}"));
        let otherwise = format!("Its runs: podium run list {dag:?} --deployment {:?}", self.name);
        missing.suggest(&names, run, otherwise)
    }
}
