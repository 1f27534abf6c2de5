//! `podium run`: runs of DAGs, through the front door.

use std::io::Write as _;

use clap::{Args, Subcommand};
use podium_api::airflow_logs;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Exit, Failed, Outcome, Setup, View, Watch, one_line, pause, read, text};
use crate::client::airflow::{Airflow, AirflowFlags, Run};

/// The most tasks of a run whose logs are shown.
const MOST_TASKS: u64 = 1_000;

/// The most tasks that are named where none has the wanted name.
const SHOWN_TASKS: usize = 20;

/// Runs of DAGs.
#[derive(Args)]
#[command(after_help = "\
Examples:
  podium run list load --deployment nightly
  podium run get load
  podium run logs load --task greet
  podium run wait load manual__2026-01-01T00:00:00+00:00")]
pub(crate) struct Runs {
    #[command(flatten)]
    airflow: AirflowFlags,
    #[command(flatten)]
    setup: Setup,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// List the runs of a DAG, newest first.
    List {
        /// Id of the DAG.
        dag: String,
        /// Maximum number of runs to show.
        #[arg(long, default_value_t = 20, value_name = "NUMBER")]
        limit: u64,
    },
    /// Show a run.
    Get(One),
    /// Wait until a run has ended; exits with 7 if it failed.
    Wait {
        #[command(flatten)]
        one: One,
    },
    /// Show the logs of a run's tasks.
    Logs {
        #[command(flatten)]
        one: One,
        /// Only this task; can be repeated.
        #[arg(long)]
        task: Vec<String>,
    },
}

/// Which run.
#[derive(Args)]
struct One {
    /// Id of the DAG.
    dag: String,
    /// Id of the run; the default is the newest one.
    run: Option<String>,
}

pub(crate) const VIEW: View = View {
    name: "dag_run_id",
    columns: "RUN dag_run_id, DAG dag_id, STATE state, TYPE run_type, STARTED start_date, ENDED end_date",
    wide: "DATE logical_date, CONF conf",
};

impl Runs {
    pub(crate) async fn run(self) -> Outcome {
        let session = self.setup.open()?;
        let airflow = self.airflow.find(&session).await?;
        match self.verb {
            Verb::List { dag, limit } => {
                let mut printer = session.format.printer(&VIEW)?;
                let print = |page: &[Value]| Ok(printer.page(page)?);
                list(&airflow, &dag, limit, print).await?;
                Ok(printer.finish()?)
            }
            Verb::Get(one) => {
                let run = one.find(&airflow).await?;
                session.show(&get(&airflow, &one.dag, &run).await?, &VIEW)
            }
            Verb::Wait { one } => {
                let run = one.find(&airflow).await?;
                session.show(&settle(&airflow, &one.dag, &run).await?, &VIEW)
            }
            Verb::Logs { one, task } => {
                let run = one.find(&airflow).await?;
                logs(&airflow, &one.dag, &run, &task).await
            }
        }
    }
}

impl One {
    /// The run that is named, or the newest.
    async fn find(&self, airflow: &Airflow<'_>) -> Outcome<String> {
        if let Some(run) = &self.run {
            return Ok(run.clone());
        }
        let mut newest = None;
        list(airflow, &self.dag, 1, |page| {
            newest = page.first().map(read::<Run>).transpose()?.map(|run| run.dag_run_id);
            Ok(())
        })
        .await?;
        newest.ok_or_else(|| {
            Failed::new(Exit::NotFound, format!("{} has no runs", self.dag))
                .hint(format!("Start one: podium dag trigger {:?}", self.dag))
        })
    }
}

async fn get(airflow: &Airflow<'_>, dag: &str, run: &str) -> Outcome<Value> {
    airflow.explained(airflow.get(&["dags", dag, "dagRuns", run]).await, dag, Some(run)).await
}

async fn list(
    airflow: &Airflow<'_>,
    dag: &str,
    limit: u64,
    mut print: impl FnMut(&[Value]) -> Outcome,
) -> Outcome {
    let params = json!({ "order_by": "-start_date" });
    let mut is_empty = true;
    let print = |page: &[Value]| {
        is_empty &= page.is_empty();
        print(page)
    };
    let mut done = airflow.pages(&["dags", dag, "dagRuns"], ("dag_runs", &params), limit, print).await;
    // Airflow 2 lists the runs of a DAG that does not exist: there are none.
    if done.is_ok() && is_empty {
        done = airflow.get(&["dags", dag]).await.map(drop);
    }
    airflow.explained(done, dag, None).await
}

/// Waits until a run has ended; it is an error if it failed.
pub(crate) async fn settle(airflow: &Airflow<'_>, dag: &str, run: &str) -> Outcome<Value> {
    let watch = Watch::new();
    let ended = airflow.session.wait.until(&watch, ended(airflow, dag, run, &watch)).await?;
    drop(watch);
    eprintln!("{} is success.", one_line(run));
    Ok(ended)
}

async fn ended(airflow: &Airflow<'_>, dag: &str, run: &str, watch: &Watch) -> Outcome<Value> {
    let mut round = 0;
    loop {
        let now = watch.ask(async || get(airflow, dag, run).await).await?;
        match state_of(&now)?.as_str() {
            "success" => return Ok(now),
            "failed" => {
                let logs =
                    format!("Its logs: podium run logs {dag:?} {run:?} --deployment {:?}", airflow.name);
                return Err(Failed::new(Exit::OperationFailed, format!("{run} of {dag} failed")).hint(logs));
            }
            state => {
                watch.say(&format!("{run} is {state}"));
                let again = format!(
                    "To wait for it again: podium run wait {dag:?} {run:?} --deployment {:?}",
                    airflow.name
                );
                watch.note(format!("{run} is still {state}"), again);
            }
        }
        pause(&mut round).await;
    }
}

/// Prints the logs of the last try of each task.
async fn logs(airflow: &Airflow<'_>, dag: &str, run: &str, only: &[String]) -> Outcome {
    let path = ["dags", dag, "dagRuns", run, "taskInstances"];
    let read = airflow.all::<Task>(&path, ("task_instances", &json!({})), MOST_TASKS).await;
    let mut tasks = airflow.explained(read, dag, Some(run)).await?;
    let mut names: Vec<String> = tasks.iter().map(|task| task.task_id.clone()).collect();
    tasks.retain(|task| only.is_empty() || only.contains(&task.task_id));
    tasks.sort_by(|one, other| one.start_date.cmp(&other.start_date));
    if names.is_empty() {
        let state = state_of(&get(airflow, dag, run).await?)?;
        return Err(Failed::new(Exit::NotFound, format!("{run} has no tasks yet: it is {state}")).hint(
            format!("To wait for it: podium run wait {dag:?} {run:?} --deployment {:?}", airflow.name),
        ));
    }
    if let Some(unknown) = only.iter().find(|id| !names.contains(id)) {
        return Err(without_task(run, unknown, &mut names));
    }
    let mut out = std::io::stdout().lock();
    for task in &tasks {
        let (id, tries) = (task.task_id.as_str(), task.try_number.unwrap_or_default());
        if tries == 0 {
            eprintln!("{} has not run yet.", one_line(id));
            continue;
        }
        let index = task.map_index.unwrap_or(-1);
        let label = if index < 0 { id.to_owned() } else { format!("{id}[{index}]") };
        let tries = tries.to_string();
        let path = ["dags", dag, "dagRuns", run, "taskInstances", id, "logs", &tries];
        let call = airflow.call("GET", &path)?;
        let call = call.query_params(&json!({ "full_content": true, "map_index": index }))?;
        for entry in entries(airflow, call).await? {
            for line in entry.lines() {
                writeln!(out, "{} {}", one_line(&label), one_line(line))?;
            }
        }
    }
    Ok(())
}

/// There is no such task: says which one may have been meant, or which ones there are.
fn without_task(run: &str, task: &str, names: &mut Vec<String>) -> Failed {
    names.sort();
    names.dedup();
    let more = if names.len() > SHOWN_TASKS { ", …" } else { "" };
    let shown = names[..names.len().min(SHOWN_TASKS)].join(", ");
    let missing = Failed::new(Exit::NotFound, format!("{run} has no task called {task:?}"));
    missing.suggest(names, task, format!("Its tasks: {shown}{more}"))
}

#[derive(Deserialize)]
struct Task {
    task_id: String,
    try_number: Option<u64>,
    map_index: Option<i64>,
    start_date: Option<String>,
}

/// When an entry of a structured log was written.
#[derive(Deserialize)]
struct Stamped {
    timestamp: Option<String>,
}

#[derive(Deserialize)]
struct Log {
    content: Vec<Value>,
}

fn state_of(run: &Value) -> Outcome<String> {
    Ok(read::<Run>(run)?.state.unwrap_or_default())
}

async fn entries(airflow: &Airflow<'_>, call: podium_client::Call) -> Outcome<Vec<String>> {
    let call = call.accept(if airflow.is_old() { "text/plain" } else { "application/json" });
    let (_, bytes) = airflow.session.client.send_for_bytes(&call).await?;
    let plain = || String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect();
    match serde_json::from_slice::<Log>(&bytes) {
        Ok(log) => Ok(log.content.iter().map(log_entry).collect()),
        Err(_) => Ok(plain()),
    }
}

/// An entry of a structured log: a line, and what belongs below it.
fn log_entry(entry: &Value) -> String {
    let Some(members) = entry.as_object() else { return text(entry).to_owned() };
    let said = airflow_logs::text_of(members, "");
    match read(entry) {
        Ok(Stamped { timestamp: Some(at) }) => format!("{at} {said}"),
        _ => said,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structured_entries_become_text() {
        let entry = json!({ "timestamp": "t", "event": "Hello", "level": "info", "logger": "task" });
        assert_eq!(log_entry(&entry), "t INFO Hello logger=task");
        let frame = json!({ "filename": "/dags/load.py", "lineno": 12, "name": "extract" });
        let failed = json!({
            "event": "Task failed",
            "error_detail": [{ "exc_type": "ValueError", "exc_value": "no", "frames": [frame] }],
        });
        let traceback = "Traceback (most recent call last):\n  File \"/dags/load.py\", line 12, in extract\nValueError: no";
        assert_eq!(log_entry(&failed), format!("Task failed\n{traceback}"));
        assert_eq!(log_entry(&json!("::group::x")), "::group::x");
    }
}
