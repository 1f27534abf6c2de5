//! Operations: changes that take time.

use podium_api::enums::{OperationKind, OperationState};
use podium_api::operations::{self, ListOperations, Operation};
use podium_api::path::OfCluster;
use podium_api::{ClusterId, DeployId, OperationId, Timestamp, clusters, deployments, deploys};

use super::{
    Answer, Cell, Filter, Html, ListPage, OrganizationVisit, Result, Row, Shell, Table, Template, Tone, view,
};

pub(crate) struct OperationView {
    pub(crate) id: String,
    pub(crate) href: String,
    pub(crate) name: String,
    pub(crate) state: Html,
    pub(crate) who: String,
    pub(crate) created: Html,
    pub(crate) steps: Vec<StepView>,
    pub(crate) progress: Option<(u64, u64)>,
    pub(crate) message: String,
    pub(crate) waits_for: Vec<String>,
    pub(crate) can_cancel: bool,
}

pub(crate) struct StepView {
    pub(crate) status: Html,
    pub(crate) took: String,
}

#[derive(Template)]
#[template(path = "operation.html")]
struct OperationPage {
    shell: Shell,
    operation: OperationView,
    target: String,
    target_href: Option<String>,
    cause: String,
    no_return: String,
    failure: Option<(String, String)>,
    summary: Option<String>,
    superseded_by: Option<String>,
    took: String,
}

impl OperationView {
    pub(crate) fn new(visit: &OrganizationVisit<'_>, of: &Operation) -> Self {
        let now = visit.visit.now;
        let has_ended = of.ended_at.is_some();
        let progress = of.progress.clone().unwrap_or_default();
        Self {
            id: of.id.to_string(),
            href: visit.link(&format!("/operations/{}", of.id)),
            name: name(of),
            state: view::operation_state(of.state),
            who: view::subject(of.subject.as_ref()),
            created: view::time(of.created_at, now),
            steps: of.steps.iter().map(|step| step_view(step, has_ended, now)).collect(),
            progress: progress.done.zip(progress.total).filter(|(_, total)| *total > 0),
            message: progress.message.unwrap_or_default(),
            waits_for: progress.waits_for,
            can_cancel: false,
        }
    }

    /// The same, which offers to cancel it to those who may.
    pub(crate) async fn with_actions(visit: &OrganizationVisit<'_>, of: &Operation) -> Self {
        Self { can_cancel: may_cancel(visit, of).await, ..Self::new(visit, of) }
    }
}

/// Whether an operation can be cancelled, and the person may: the permission depends on what it does, and on whose it is.
async fn may_cancel(visit: &OrganizationVisit<'_>, of: &Operation) -> bool {
    if !of.is_cancellable || of.ended_at.is_some() {
        return false;
    }
    let calls = visit.calls();
    let Some((id, workspace_id)) = of.target.deployment_id.zip(of.target.workspace_id) else {
        let path: OfCluster = visit.at(ClusterId::from_raw(of.target.id));
        return match of.kind {
            OperationKind::Create => calls.may::<clusters::Create>(visit.here()).await,
            OperationKind::Delete => calls.may::<clusters::Delete>(path).await,
            _ => calls.may::<clusters::Update>(path).await,
        };
    };
    let path = visit.deployment(id);
    let is_own = of.subject.as_ref().is_some_and(|subject| subject.id == visit.visit.person_id);
    match of.kind {
        OperationKind::Create => {
            visit.holds("workspace.deployments.create", workspace_id).await
                && (is_own || calls.may::<deployments::Delete>(path).await)
        }
        OperationKind::Deploy | OperationKind::Rollback | OperationKind::RuntimeUpgrade => {
            let deploy = (visit.organization_id, id, DeployId::from_raw(of.target.id)).into();
            let makes_deploys = is_own && of.kind != OperationKind::Rollback;
            calls.may::<deploys::Update>(deploy).await
                || (makes_deploys && calls.may::<deploys::Create>(path).await)
        }
        OperationKind::Delete => calls.may::<deployments::Delete>(path).await,
        _ => calls.may::<deployments::Update>(path).await,
    }
}

pub(crate) fn name(of: &Operation) -> String {
    let verb = match of.kind {
        OperationKind::Create => "Create",
        OperationKind::Update => "Update",
        OperationKind::Deploy => "Deploy to",
        OperationKind::Rollback => "Roll back",
        OperationKind::RuntimeUpgrade => "Upgrade the runtime of",
        OperationKind::CleanUp => "Clean up the history of",
        OperationKind::Hibernate => "Hibernate",
        OperationKind::Wake => "Wake",
        OperationKind::Transfer => "Transfer",
        OperationKind::Failover => "Fail over",
        OperationKind::Failback => "Move back",
        OperationKind::Delete => "Delete",
    };
    format!("{verb} {}", of.target.name)
}

fn step_view(step: &operations::OperationStep, has_ended: bool, now: Timestamp) -> StepView {
    let tone = match (step.ended_at, has_ended) {
        (Some(_), _) => Tone::Good,
        (None, false) => Tone::Changing,
        (None, true) => Tone::Failed,
    };
    StepView {
        status: view::status(tone, &view::words(step.name.as_str())),
        took: view::duration(step.started_at, step.ended_at.unwrap_or(now)),
    }
}

/// The operations, the newest first.
pub(crate) async fn list(visit: &OrganizationVisit<'_>) -> Result {
    let query = ListOperations {
        states: visit.query().parsed_all("states")?,
        kinds: visit.query().parsed_all("kinds")?,
        page: visit.page(),
        ..ListOperations::default()
    };
    let none =
        "Creating, updating, deploying and everything else that takes time is listed here for 90 days.";
    let table = table(visit, query).await?.or("No operations", none);
    let states = OperationState::ALL.iter().map(|state| state.as_str());
    let kinds = OperationKind::ALL.iter().map(|kind| kind.as_str());
    let lead = "Changes that take time: what they are doing, and how they ended.";
    ListPage::new(visit.shell("Operations").await?.live(""), lead, table)
        .narrowed_by(Filter::words(visit, "states", "State", states))
        .narrowed_by(Filter::words(visit, "kinds", "Kind", kinds))
        .answer()
}

pub(crate) async fn table(visit: &OrganizationVisit<'_>, query: ListOperations) -> Result<Table> {
    let found = visit.calls().find::<operations::List>(visit.here(), query).await?;
    let columns = ["Operation", "State", "Started by", "Created", "Took"];
    Ok(Table::paged(visit, columns, found.operations.iter().map(|of| row(visit, of)), found.total_count))
}

fn row(visit: &OrganizationVisit<'_>, of: &Operation) -> Row {
    let shown = OperationView::new(visit, of);
    let end = of.ended_at.unwrap_or(visit.visit.now);
    let why = of.failure.as_ref().map(|failure| failure.reason.clone()).unwrap_or(shown.message);
    Row::of(vec![
        Cell::named(shown.name, shown.href, why),
        shown.state.into(),
        shown.who.into(),
        shown.created.into(),
        view::duration(of.created_at, end).into(),
    ])
}

pub(crate) async fn show(visit: &OrganizationVisit<'_>, operation_id: OperationId) -> Result {
    let of = visit.calls().get::<operations::Get>(visit.at(operation_id)).await?;
    let operation = OperationView::with_actions(visit, &of).await;
    let shell = visit.shell(operation.name.clone()).await?.below("Operations", visit.link("/operations"));
    let target_href = of.target.deployment_id.map(|id| visit.link(&format!("/deployments/{id}")));
    let page = OperationPage {
        shell: if of.ended_at.is_none() { shell.live("") } else { shell },
        operation,
        target: of.target.name,
        target_href,
        cause: view::words(of.cause.as_str()),
        no_return: of.point_of_no_return,
        failure: of.failure.map(|failure| (failure.reason, failure.hint)),
        summary: of.summary,
        superseded_by: of.superseded_by_id.map(|id| visit.link(&format!("/operations/{id}"))),
        took: view::duration(of.created_at, of.ended_at.unwrap_or(visit.visit.now)),
    };
    Answer::page(&page)
}

pub(crate) async fn cancel(visit: &OrganizationVisit<'_>, operation_id: OperationId) -> Result {
    visit.calls().act::<operations::Cancel>(visit.at(operation_id)).await?;
    visit.go(format!("/operations/{operation_id}?done=cancelled"))
}
