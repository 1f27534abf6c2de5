//! Deploys: what is running, and what was before?

pub(crate) mod compare;

use podium_api::deploy_reports::{self, ReportedChanges};
use podium_api::deploys::{self, Deploy, DeployRollbackRequest, ListDeploys};
use podium_api::enums::DeployStatus;
use podium_api::path::OfDeploy;
use podium_api::{DeployId, DeploymentId};

use super::Head;
use crate::pages::plans::{self, planned};
use crate::pages::{
    Answer, Cell, Choice, Html, OrganizationVisit, Result, Row, Shell, Table, Template, view,
};

#[derive(Template)]
#[template(path = "deployment/deploy.html")]
struct DeployPage<'a> {
    shell: &'a Shell,
    head: &'a Head,
    name: String,
    status: Html,
    rollout: Option<Html>,
    reason: Option<String>,
    facts: Vec<(&'static str, String)>,
    commit_url: Option<String>,
    created: Html,
    changes: Vec<Changes>,
    errors: Vec<deploy_reports::ReportedImportError>,
    error_count: u64,
    /// Whether Airflow had not read every file when the report was made.
    is_incomplete: bool,
    steps: Vec<(String, String)>,
    rollback: Option<String>,
}

/// The list, with a form that compares two.
#[derive(Template)]
#[template(path = "deployment/deploys.html")]
struct DeploysPage<'a> {
    shell: &'a Shell,
    head: &'a Head,
    from: Vec<Choice>,
    to: Vec<Choice>,
    table: Table,
}

/// What a deploy changed: files, or DAGs.
struct Changes {
    what: &'static str,
    /// A class, a word, and the names.
    groups: Vec<(&'static str, u64, Vec<String>)>,
}

/// The deploys of a deployment, the newest first.
pub(crate) async fn list(visit: &OrganizationVisit<'_>, id: DeploymentId) -> Result {
    let (of, head) = Head::read(visit, id, "deploys").await?;
    let query = ListDeploys { page: visit.page() };
    let found = visit.calls().find::<deploys::List>(visit.deployment(id), query).await?;
    let row = |(at, deploy): (usize, &Deploy)| {
        let shown = row(visit, &head, deploy, of.dag_tarball_version.as_deref());
        let is_live = |deploy: &&Deploy| deploy.status == DeployStatus::Deployed;
        let before = found.deploys[at + 1..].iter().find(is_live).filter(|_| is_live(&deploy));
        let compare = |before: &Deploy| {
            ("Compare", format!("{}/deploys/compare?from={}&to={}", head.href, before.id, deploy.id))
        };
        Row { actions: before.map(compare).into_iter().collect(), ..shown }
    };
    let columns = ["Deploy", "State", "By", "Commit", "Created"];
    let table = Table::paged(visit, columns, found.deploys.iter().enumerate().map(row), found.total_count)
        .or("No deploys yet", "Deploy a folder with DAGs from the command line:")
        .with_command(format!("podium deploy FOLDER --deployment {}", of.name));
    let newest: Vec<String> = found
        .deploys
        .iter()
        .filter(|deploy| deploy.status == DeployStatus::Deployed)
        .take(2)
        .map(|deploy| deploy.id.to_string())
        .collect();
    let [to, from] = [newest.first(), newest.get(1)].map(|id| id.map(String::as_str));
    let page = DeploysPage {
        from: compare::choices(visit, &found.deploys, from),
        to: compare::choices(visit, &found.deploys, to),
        table,
        shell: &head.shell,
        head: &head,
    };
    Answer::page(&page)
}

fn row(visit: &OrganizationVisit<'_>, head: &Head, of: &Deploy, running: Option<&str>) -> Row {
    let is_running = of.status == DeployStatus::Deployed
        && running.is_some()
        && of.dag_tarball_version.as_deref() == running;
    let sub = match (is_running, &of.description) {
        (true, _) => "runs now".to_owned(),
        (false, description) => description.clone().unwrap_or_default(),
    };
    let commit = of.git.as_ref().map(|git| git.commit_sha.chars().take(10).collect::<String>());
    Row::of(vec![
        Cell::named(name(of), format!("{}/deploys/{}", head.href, of.id), sub),
        view::deploy_status(of.status).into(),
        view::subject(of.created_by_subject.as_ref()).into(),
        Cell::Mono(commit.unwrap_or_default()),
        view::time(of.created_at, visit.visit.now).into(),
    ])
}

fn name(of: &Deploy) -> String {
    let version = of.dag_tarball_version.clone().unwrap_or_else(|| of.image_tag.clone());
    if of.rollback_from_id.is_some() { format!("Rollback to {version}") } else { version }
}

pub(crate) async fn show(visit: &OrganizationVisit<'_>, id: DeploymentId, deploy_id: DeployId) -> Result {
    let (deployment, head) = Head::read(visit, id, "deploys").await?;
    let path: OfDeploy = (visit.organization_id, id, deploy_id).into();
    let of = visit.calls().get::<deploys::Get>(path).await?;
    let report = visit.calls().get::<deploy_reports::Get>(path).await.ok();
    let is_running =
        of.dag_tarball_version.is_some() && of.dag_tarball_version == deployment.dag_tarball_version;
    let can_roll_back = of.status == DeployStatus::Deployed
        && !is_running
        && visit.calls().may::<deploys::Rollback>(path).await;
    let facts = [
        ("By", view::subject(of.created_by_subject.as_ref())),
        ("Description", of.description.clone().unwrap_or_default()),
        ("Airflow", of.airflow_version.clone().unwrap_or_default()),
        ("Branch", of.git.as_ref().and_then(|git| git.branch.clone()).unwrap_or_default()),
        ("Commit", of.git.as_ref().map(|git| git.commit_sha.clone()).unwrap_or_default()),
        ("Author", of.git.as_ref().and_then(|git| git.author_name.clone()).unwrap_or_default()),
    ];
    let commit_url = of.git.as_ref().and_then(|git| git.commit_url.clone());
    let changes = report.as_ref().map(|report| {
        let files = report.files.as_ref().map(|changes| changes_of("Files", changes));
        files.into_iter().chain(report.dags.as_ref().map(|changes| changes_of("DAGs", changes))).collect()
    });
    let steps = report.iter().flat_map(|report| &report.steps).map(|step| {
        (
            view::words(step.step.as_str()),
            format!("{}.{} s", step.milliseconds / 1000, step.milliseconds % 1000 / 100),
        )
    });
    let page = DeployPage {
        shell: &head.shell,
        name: name(&of),
        status: view::deploy_status(of.status),
        rollout: report.as_ref().map(|report| view::rollout_state(report.state)),
        reason: report.as_ref().and_then(|report| report.reason.clone()),
        facts: view::facts(facts),
        commit_url: commit_url.filter(|url| url.starts_with("https://") || url.starts_with("http://")),
        created: view::time(of.created_at, visit.visit.now),
        changes: changes.unwrap_or_default(),
        steps: steps.collect(),
        errors: report.as_ref().map(|report| report.import_errors.clone()).unwrap_or_default(),
        error_count: report.as_ref().map(|report| report.import_error_count).unwrap_or_default(),
        is_incomplete: report.as_ref().is_some_and(|report| report.is_parsed == Some(false)),
        rollback: can_roll_back.then(|| format!("{}/deploys/{deploy_id}/rollback", head.href)),
        head: &head,
    };
    Answer::page(&page)
}

fn changes_of(what: &'static str, of: &ReportedChanges) -> Changes {
    let groups = [
        ("added", of.added_count, of.added.clone()),
        ("changed", of.changed_count, of.changed.clone()),
        ("removed", of.removed_count, of.removed.clone()),
    ];
    Changes { what, groups: groups.into_iter().filter(|(_, count, _)| *count > 0).collect() }
}

/// Shows what a rollback to a deploy would do, before it is made.
pub(crate) async fn roll_back(
    visit: &OrganizationVisit<'_>,
    id: DeploymentId,
    deploy_id: DeployId,
) -> Result {
    let path: OfDeploy = (visit.organization_id, id, deploy_id).into();
    let call = planned::<deploys::Rollback>(&path, DeployRollbackRequest { description: None }, None)?;
    let back = visit.link(&format!("/deployments/{id}/deploys/{deploy_id}"));
    let then = visit.link(&format!("/deployments/{id}?done=rolled-back"));
    plans::show(visit, call, "Roll back", (&back, &then)).await
}
