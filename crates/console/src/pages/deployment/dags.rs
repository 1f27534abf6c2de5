//! DAGs: what runs, when, and how did it go? Asked from Airflow, after the page itself is there.

mod answers;
mod runs;

use std::collections::HashMap;

use futures_util::future::join;
use podium_api::DeploymentId;
use podium_api::deployments::Deployment;
use serde_json::{Value, json};

use self::answers::{Dag, Dags, ImportError, ImportErrors};
use self::runs::{Found, Strip};
use super::Head;
use crate::airflow::{Airflow, lines, plain};
use crate::pages::{
    Answer, Filter, Html, OrganizationVisit, PAGE, Pager, Params, Problem, Result, Shell, Template, Tone,
    view,
};

/// How many DAGs are paged through, and how long an id is.
const MOST: u64 = 100_000;
const LONGEST_ID: usize = 250;
/// How much of what a DAG says about itself is shown.
const LONGEST_TEXT: usize = 200;
const TAGS: usize = 6;
/// How many import errors are shown, and how much of each.
const ERRORS: usize = 20;
const LONGEST_TRACE: usize = 8000;

#[derive(Template)]
#[template(path = "deployment/dags.html")]
struct DagsPage<'a> {
    shell: &'a Shell,
    head: &'a Head,
    filters: Vec<Filter>,
    search: String,
    /// Whether the person wants the page to wait for Airflow, as one without scripts does.
    waits: bool,
    /// What has come from Airflow.
    list: Option<Listed>,
    /// Where a script reads it, and a link that waits for it.
    part: String,
    now: String,
}

/// What comes in after the page.
#[derive(Template)]
#[template(path = "deployment/dags-part.html")]
struct Part {
    list: Listed,
    now: String,
}

/// What Airflow told, or why it did not.
#[derive(Default)]
struct Listed {
    /// What has happened, and why.
    problem: Option<(&'static str, String)>,
    rows: Vec<DagRow>,
    has_actions: bool,
    pager: Option<Pager>,
    /// What could not be read beside the DAGs.
    notes: Vec<String>,
    /// What is said of a DAG of which no run is shown.
    without_runs: &'static str,
    errors: Vec<ErrorRow>,
    error_count: u64,
    is_narrowed: bool,
    form_token: String,
    /// The query of the page, to come back to it.
    at: String,
}

struct DagRow {
    id: String,
    href: String,
    about: String,
    tags: Vec<String>,
    state: Html,
    is_broken: bool,
    schedule: String,
    next: Option<Html>,
    strip: Option<Strip>,
    /// Where the forms go: start a run, and the verb that changes whether it runs.
    trigger: Option<String>,
    pause: Option<(&'static str, String)>,
}

/// A file that could not be imported.
struct ErrorRow {
    file: String,
    message: String,
    trace: String,
    found: Option<Html>,
}

/// The page, which does not wait for Airflow unless it is told to.
pub(crate) async fn show(visit: &OrganizationVisit<'_>, id: DeploymentId) -> Result {
    let (of, head) = Head::read(visit, id, "dags").await?;
    let waits = visit.query().is_on("now");
    let list = if waits { Some(ask(visit, &of, &head.href).await) } else { None };
    let page = DagsPage {
        shell: &head.shell,
        filters: vec![Filter::words(visit, "state", "State", ["ACTIVE", "PAUSED"])],
        search: visit.query().get("q").to_owned(),
        waits,
        list,
        part: format!("{}/dags/part?{}", head.href, visit.query().with("now", "")),
        now: waiting(visit, &head.href),
        head: &head,
    };
    Answer::page(&page)
}

/// What comes in after the page.
pub(crate) async fn part(visit: &OrganizationVisit<'_>, id: DeploymentId) -> Result {
    let (of, _) = super::read(visit, id).await?;
    let href = visit.link(&format!("/deployments/{id}"));
    let now = format!("{href}/dags?{}", visit.query().with("now", ""));
    Answer::page(&Part { list: ask(visit, &of, &href).await, now })
}

/// The page that waits for Airflow.
fn waiting(visit: &OrganizationVisit<'_>, href: &str) -> String {
    format!("{href}/dags?{}", visit.query().with("now", "1"))
}

async fn ask(visit: &OrganizationVisit<'_>, of: &Deployment, href: &str) -> Listed {
    match list(visit, of, href).await {
        Ok(listed) => listed,
        Err(problem) => {
            let may_see = Airflow::of(visit, of).shows_dags().await;
            let title = if may_see { "Airflow is not available now" } else { "You may not see the DAGs" };
            Listed { problem: Some((title, problem.message)), ..Listed::default() }
        }
    }
}

async fn list(visit: &OrganizationVisit<'_>, of: &Deployment, href: &str) -> Result<Listed> {
    let (airflow, query) = (Airflow::of(visit, of), visit.query());
    let (limit, offset) = (PAGE.to_string(), query.number("offset").min(MOST).to_string());
    let search: String = query.get("q").trim().chars().take(LONGEST_ID).collect();
    let mut asked = vec![("limit", limit.as_str()), ("offset", &offset), ("order_by", "dag_id")];
    match query.get("state") {
        "ACTIVE" => asked.push(("paused", "false")),
        "PAUSED" => asked.push(("paused", "true")),
        _ => {}
    }
    if !search.is_empty() {
        asked.push(("dag_id_pattern", &search));
    }
    let is_narrowed = asked.len() > 3;
    let errors_asked = [("limit", "20"), ("order_by", "-timestamp")];
    let (dags, errors) = join(
        airflow.get::<Dags>(&["dags"], &asked),
        airflow.get::<ImportErrors>(&["importErrors"], &errors_asked),
    )
    .await;
    let Dags { mut dags, total_entries } = dags?;
    dags.truncate(PAGE as usize);
    dags.retain(|dag| !dag.dag_id.is_empty() && dag.dag_id.chars().count() <= LONGEST_ID);
    let ids: Vec<&str> = dags.iter().map(|dag| dag.dag_id.as_str()).collect();
    let mut notes = Vec::new();
    // To ask for what is refused would leave a record of it each time that somebody looks.
    let may_see_runs = airflow.admits(vec![airflow.question("POST", runs::LIST, &[])]).await == [true];
    let found = match ids.as_slice() {
        ids if may_see_runs && !ids.is_empty() => runs::find(&airflow, ids).await,
        _ => Ok(Found { is_whole: may_see_runs, ..Found::default() }),
    };
    let (found, without_runs) = match found {
        Ok(Found { runs, is_whole: true }) => (runs, "no runs"),
        Ok(Found { runs, is_whole: false }) if may_see_runs => (runs, "no recent runs"),
        Ok(Found { runs, .. }) => (runs, "not shown"),
        Err(problem) => {
            notes.extend(noted("The runs are not shown", &problem));
            (HashMap::new(), "not shown")
        }
    };
    let (errors, error_count) = match errors {
        Ok(told) => (told.import_errors, told.total_entries),
        Err(problem) => {
            notes.extend(noted("Import errors are not shown", &problem));
            (Vec::new(), 0)
        }
    };
    let offered = offered(&airflow, &dags).await;
    let actions = Actions { airflow: &airflow, href };
    let rows: Vec<DagRow> = dags
        .iter()
        .zip(offered)
        .map(|(dag, may)| {
            let strip = found.get(&dag.dag_id).and_then(|runs| runs::strip(visit, runs));
            actions.row(visit, dag, strip, may)
        })
        .collect();
    let pager =
        Pager::new(visit, rows.len(), total_entries.min(MOST)).map(|pager| pager.at(&format!("{href}/dags")));
    Ok(Listed {
        problem: None,
        has_actions: rows.iter().any(|row| row.trigger.is_some() || row.pause.is_some()),
        rows,
        pager,
        notes,
        error_count: error_count.max(u64::try_from(errors.len()).unwrap_or_default()),
        without_runs,
        errors: errors.iter().take(ERRORS).map(|error| error_row(visit, error)).collect(),
        is_narrowed,
        form_token: visit.visit.form_token.clone(),
        at: query.with("done", ""),
    })
}

/// Why something beside the DAGs is missing; that the person may not see it needs no words.
fn noted(what: &str, problem: &Problem) -> Option<String> {
    (problem.status != 403).then(|| format!("{what}. {}", problem.message))
}

/// Whether the person may start a run of each DAG, and pause it.
async fn offered(airflow: &Airflow<'_>, dags: &[Dag]) -> Vec<(bool, bool)> {
    let questions = dags.iter().flat_map(|dag| {
        let tags: Vec<String> = dag.tags.iter().map(|tag| tag.name.clone()).collect();
        [
            airflow.question("POST", &["dags", &dag.dag_id, "dagRuns"], &tags),
            airflow.question("PATCH", &["dags", &dag.dag_id], &tags),
        ]
    });
    let answers = airflow.admits(questions.collect()).await;
    answers.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect()
}

/// Where the forms and links of the rows lead.
struct Actions<'a> {
    airflow: &'a Airflow<'a>,
    href: &'a str,
}

impl Actions<'_> {
    fn row(
        &self,
        visit: &OrganizationVisit<'_>,
        dag: &Dag,
        strip: Option<Strip>,
        (may_trigger, may_pause): (bool, bool),
    ) -> DagRow {
        let is_paused = dag.is_paused == Some(true);
        let encoded: String = form_urlencoded::byte_serialize(dag.dag_id.as_bytes()).collect();
        let page = if self.airflow.is_old { "/grid" } else { "" };
        let at = |verb: &str| format!("{}/dags/{verb}?dag={encoded}", self.href);
        let verb = if is_paused { "unpause" } else { "pause" };
        let tags: Vec<String> = dag.tags.iter().take(TAGS).map(|tag| plain(&tag.name, 40)).collect();
        let more = dag.tags.len().saturating_sub(TAGS);
        let owners: Vec<String> = dag.owners.iter().take(3).map(|owner| plain(owner, 40)).collect();
        let about = plain(dag.description.as_deref().unwrap_or_default(), LONGEST_TEXT);
        let owners = Some(owners.join(", ")).filter(|owners| !owners.is_empty() && owners != "airflow");
        let about = [Some(about).filter(|about| !about.is_empty()), owners];
        DagRow {
            href: format!("/airflow/{}/dags/{}{page}", self.airflow.namespace, encoded.replace('+', "%20")),
            about: about.into_iter().flatten().collect::<Vec<_>>().join(" · "),
            tags: tags.into_iter().chain((more > 0).then(|| format!("{more} more"))).collect(),
            state: if is_paused {
                view::status(Tone::Asleep, "Paused")
            } else {
                view::status(Tone::Good, "Active")
            },
            is_broken: dag.has_import_errors == Some(true),
            schedule: plain(
                dag.schedule().as_deref().unwrap_or(if dag.next().is_some() { "custom" } else { "none" }),
                80,
            ),
            next: dag.next().filter(|_| !is_paused).map(|at| view::time(at, visit.visit.now)),
            strip,
            trigger: may_trigger.then(|| at("trigger")),
            pause: may_pause.then(|| (if is_paused { "Unpause" } else { "Pause" }, at(verb))),
            id: plain(&dag.dag_id, LONGEST_ID),
        }
    }
}

fn error_row(visit: &OrganizationVisit<'_>, error: &ImportError) -> ErrorRow {
    let told = error.stack_trace.as_deref().unwrap_or_default().trim();
    // The cause is at the end.
    let skipped = told.chars().count().saturating_sub(LONGEST_TRACE);
    let end: String = told.chars().skip(skipped).collect();
    let lead = if skipped > 0 { "…" } else { "" };
    ErrorRow {
        file: plain(error.filename.as_deref().unwrap_or("unknown file"), LONGEST_TEXT),
        message: plain(told.lines().last().unwrap_or_default(), LONGEST_TEXT),
        found: error.found().map(|at| view::time(at, visit.visit.now)),
        trace: format!("{lead}{}", lines(&end, LONGEST_TRACE)),
    }
}

fn named<'a>(visit: &'a OrganizationVisit<'_>) -> Result<&'a str> {
    visit
        .query()
        .filled("dag")
        .ok_or_else(|| Problem::new(400, "The form names no DAG: send it from its page."))
}

/// Back to the page that a form was sent from.
fn back(visit: &OrganizationVisit<'_>, id: DeploymentId, done: &str) -> Result {
    let at = Params::read(visit.form().get("at"));
    let mut query = form_urlencoded::Serializer::new(String::new());
    for name in ["q", "state", "offset", "now"] {
        if let Some(value) = at.filled(name) {
            query.append_pair(name, &value.chars().take(LONGEST_ID).collect::<String>());
        }
    }
    query.append_pair("done", done);
    Answer::redirect(visit.link(&format!("/deployments/{id}/dags?{}", query.finish())))
}

pub(crate) async fn trigger(visit: &OrganizationVisit<'_>, id: DeploymentId) -> Result {
    let (of, _) = super::read(visit, id).await?;
    let airflow = Airflow::of(visit, &of);
    let mut body = json!({ "conf": {} });
    // Later versions want to be told that the run has no date of its own.
    if !airflow.is_old {
        body["logical_date"] = Value::Null;
    }
    airflow.change("POST", &["dags", named(visit)?, "dagRuns"], "", body).await?;
    back(visit, id, "triggered")
}

/// Pauses a DAG, or lets it run again.
pub(crate) async fn pause(visit: &OrganizationVisit<'_>, id: DeploymentId, is_paused: bool) -> Result {
    let (of, _) = super::read(visit, id).await?;
    let body = json!({ "is_paused": is_paused });
    Airflow::of(visit, &of).change("PATCH", &["dags", named(visit)?], "update_mask=is_paused", body).await?;
    back(visit, id, if is_paused { "paused" } else { "unpaused" })
}
