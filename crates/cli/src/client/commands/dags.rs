//! `podium dag`: DAGs of a deployment, through the front door.

use clap::{Args, Subcommand};
use podium_api::schedules;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::dag_runs;
use super::{Exit, Failed, Format, Outcome, Output, Setup, View, merged, one_line, read};
use crate::client::airflow::{Airflow, AirflowFlags, Dag, Run};

/// DAGs of a deployment.
#[derive(Args)]
#[command(after_help = "\
Examples:
  podium dag list --deployment nightly
  podium dag unpause load --deployment nightly
  podium dag trigger load --conf '{\"day\": \"2026-01-01\"}' --wait")]
pub(crate) struct Dags {
    #[command(flatten)]
    airflow: AirflowFlags,
    #[command(flatten)]
    setup: Setup,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// List DAGs.
    List {
        /// Maximum number of DAGs to show.
        #[arg(long, default_value_t = 10_000, value_name = "NUMBER")]
        limit: u64,
    },
    /// Show a DAG.
    Get {
        /// Id of the DAG.
        dag: String,
    },
    /// Pause DAGs: no new runs start, and running ones continue.
    Pause {
        /// Ids of the DAGs.
        #[arg(required = true)]
        dags: Vec<String>,
    },
    /// Unpause DAGs, so that their runs start again.
    Unpause {
        /// Ids of the DAGs.
        #[arg(required = true)]
        dags: Vec<String>,
    },
    /// Start a run of a DAG; exits with 7 if it is followed and fails.
    Trigger {
        /// Id of the DAG.
        dag: String,
        /// Configuration of the run, a JSON object.
        #[arg(long, value_name = "JSON")]
        conf: Option<String>,
        /// Id of the run; by default Airflow generates one.
        #[arg(long, value_name = "ID")]
        run_id: Option<String>,
    },
}

/// A field that Airflow does not have: its schedule in words, for people only.
const SCHEDULE: &str = "schedule";

const VIEW: View = View {
    name: "dag_id",
    columns: "DAG dag_id, PAUSED is_paused, SCHEDULE schedule, BROKEN has_import_errors",
    wide: "OWNERS owners, NEXT RUN next_dagrun_run_after, DESCRIPTION description",
};

impl Dags {
    pub(crate) async fn run(self) -> Outcome {
        let session = self.setup.open()?;
        let airflow = self.airflow.find(&session).await?;
        match self.verb {
            Verb::List { limit } => {
                let mut printer = session.format.printer(&VIEW)?;
                let format = &session.format;
                let print = |page: &[Value]| {
                    let shown: Vec<Value> = page.iter().map(|dag| with_schedule(dag, format)).collect();
                    Ok(printer.page(&shown)?)
                };
                airflow.pages(&["dags"], ("dags", &json!({ "order_by": "dag_id" })), limit, print).await?;
                Ok(printer.finish()?)
            }
            Verb::Get { dag } => {
                let dag = get(&airflow, &dag).await?;
                session.show(&with_schedule(&dag, &session.format), &VIEW)
            }
            Verb::Pause { dags } => pause(&airflow, &dags, true).await,
            Verb::Unpause { dags } => pause(&airflow, &dags, false).await,
            Verb::Trigger { dag, conf, run_id } => {
                let body = request(&airflow, conf.as_deref(), run_id.as_deref())?;
                let is_paused = is_paused(&airflow, &dag).await?;
                let call = airflow.call("POST", &["dags", &dag, "dagRuns"])?.body(&body)?;
                let run =
                    airflow.send(call).await.map_err(|failed| taken(failed, &dag, run_id.as_deref()))?;
                let id = read::<Run>(&run)?.dag_run_id;
                eprintln!("Started {}.", one_line(&id));
                if is_paused {
                    eprintln!("The DAG is paused, so the run waits: podium dag unpause {dag:?}");
                }
                let run =
                    if session.wait.is_wanted() { dag_runs::settle(&airflow, &dag, &id).await? } else { run };
                session.show(&run, &dag_runs::VIEW)
            }
        }
    }
}

#[derive(Deserialize)]
struct Schedule {
    timetable_description: Option<String>,
    timetable_summary: Option<String>,
    schedule_interval: Option<Value>,
}

/// A DAG with its schedule in words where people read it; programs get what Airflow says.
fn with_schedule(dag: &Value, format: &Format) -> Value {
    match (format.output(), read::<Schedule>(dag)) {
        (Output::Table | Output::Wide, Ok(said)) => {
            let (description, summary) = (said.timetable_description, said.timetable_summary);
            let interval = said.schedule_interval.as_ref();
            let words = schedules::in_words(description.as_deref(), summary.as_deref(), interval);
            merged(dag.clone(), json!({ SCHEDULE: words }))
        }
        _ => dag.clone(),
    }
}

async fn get(airflow: &Airflow<'_>, dag: &str) -> Outcome<Value> {
    airflow.explained(airflow.get(&["dags", dag]).await, dag, None).await
}

async fn is_paused(airflow: &Airflow<'_>, dag: &str) -> Outcome<bool> {
    Ok(read::<Dag>(&get(airflow, dag).await?)?.is_paused == Some(true))
}

async fn pause(airflow: &Airflow<'_>, dags: &[String], is_paused: bool) -> Outcome {
    for dag in dags {
        let call = airflow.call("PATCH", &["dags", dag])?;
        let call = call.query_params(&json!({ "update_mask": "is_paused" }))?;
        let sent = airflow.send(call.body(&json!({ "is_paused": is_paused }))?).await;
        airflow.explained(sent, dag, None).await?;
        eprintln!("{} {dag}.", if is_paused { "Paused" } else { "Unpaused" });
    }
    Ok(())
}

/// Lets a DAG run, and starts a run of it; the id of the run.
pub(crate) async fn start_now(airflow: &Airflow<'_>, dag: &str) -> Outcome<String> {
    if is_paused(airflow, dag).await? {
        pause(airflow, &[dag.to_owned()], false).await?;
    }
    let body = request(airflow, None, None)?;
    let run = airflow.send(airflow.call("POST", &["dags", dag, "dagRuns"])?.body(&body)?).await?;
    Ok(read::<Run>(&run)?.dag_run_id)
}

/// Says that a run has the id already, where Airflow only says that there is a conflict.
fn taken(failed: Failed, dag: &str, run_id: Option<&str>) -> Failed {
    match run_id.filter(|_| failed.exit == Exit::Conflict) {
        Some(id) => Failed::new(Exit::Conflict, format!("{dag} already has a run called {id:?}"))
            .hint("Give another --run-id, or none."),
        None => failed,
    }
}

/// The body that starts a run.
#[derive(Serialize)]
struct Request {
    conf: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dag_run_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    logical_date: Option<Option<String>>,
}

fn request(airflow: &Airflow<'_>, conf: Option<&str>, run_id: Option<&str>) -> Outcome<Request> {
    let conf = match conf {
        Some(conf) => serde_json::from_str::<Map<String, Value>>(conf)
            .map_err(|error| Failed::usage(format!("--conf is not a JSON object: {error}")))?,
        None => Map::new(),
    };
    // Later versions want to be told that the run has no date of its own.
    let logical_date = (!airflow.is_old()).then_some(None);
    Ok(Request { conf, dag_run_id: run_id.map(str::to_owned), logical_date })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_is_said_in_words_to_people_only() {
        let dag = json!({ "dag_id": "a", "timetable_description": "", "timetable_summary": "0:01:00" });
        assert_eq!(with_schedule(&dag, &Format::default())[SCHEDULE], "every minute");
        let cron =
            json!({ "dag_id": "a", "timetable_description": "At 00:00", "timetable_summary": "@daily" });
        assert_eq!(with_schedule(&cron, &Format::default())[SCHEDULE], "At 00:00");
    }
}
