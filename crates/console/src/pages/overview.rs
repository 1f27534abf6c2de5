//! The overview: is anything wrong?

use podium_api::deployments::{self, Deployment, ListDeployments};
use podium_api::enums::{DeploymentStatus, OperationKind, OperationState};
use podium_api::operations::{self, ListOperations, Operation};
use podium_api::page::Page;
use podium_api::tokens::{self, ListApiTokens};
use podium_api::{Timestamp, deployment_logs};

use super::{Answer, Html, OrganizationVisit, Result, Shell, Template, readable, view};
use crate::pages::operations::OperationView;

const DEPLOYMENTS: u32 = 200;
const DAY: i64 = 86_400_000;
/// How soon a token's end needs attention.
const SOON: i64 = 14 * DAY;
/// After how long an operation that runs is taken to be stuck.
const STUCK: i64 = 30 * 60_000;

#[derive(Template)]
#[template(path = "overview.html")]
struct Overview {
    shell: Shell,
    attention: Vec<Attention>,
    running: Vec<OperationView>,
    deployments: Vec<DeploymentLine>,
    total: u64,
    can_create: bool,
}

/// Something that needs attention.
struct Attention {
    status: Html,
    name: String,
    href: String,
    since: Html,
    why: String,
    /// What mends it.
    action: (&'static str, String),
}

pub(crate) struct DeploymentLine {
    /// Its id, where it can be chosen.
    pub(crate) choice: Option<String>,
    pub(crate) name: String,
    pub(crate) href: String,
    pub(crate) status: Html,
    pub(crate) reason: String,
    pub(crate) workspace: String,
    pub(crate) runtime: String,
    pub(crate) version: Option<String>,
    pub(crate) by: String,
    pub(crate) updated: Html,
}

impl DeploymentLine {
    pub(crate) fn new(visit: &OrganizationVisit<'_>, of: &Deployment) -> Self {
        let is_calm = matches!(of.status, DeploymentStatus::Healthy | DeploymentStatus::Hibernating);
        Self {
            choice: None,
            name: of.name.clone(),
            href: visit.link(&format!("/deployments/{}", of.id)),
            status: view::deployment_status(of.status),
            reason: of.status_reason.clone().filter(|_| !is_calm).unwrap_or_default(),
            workspace: of.workspace_name.clone().unwrap_or_default(),
            runtime: format!("Airflow {}", of.airflow_version),
            version: of.dag_tarball_version.clone(),
            by: view::subject(Some(&of.updated_by)),
            updated: view::time(of.updated_at, visit.visit.now),
        }
    }

    /// The version, without its middle.
    pub(crate) fn short_version(&self) -> String {
        view::short(self.version.as_deref().unwrap_or_default())
    }
}

pub(crate) async fn show(visit: &OrganizationVisit<'_>) -> Result {
    let (calls, here, now) = (visit.calls(), visit.here(), visit.visit.now);
    let query =
        ListDeployments { page: Page::first(DEPLOYMENTS).sorted_by("name"), ..ListDeployments::default() };
    let page = calls.find::<deployments::List>(here, query).await?;
    let (total, read) = (page.total_count, readable(page.deployments));
    let active = ListOperations {
        states: vec![OperationState::Pending, OperationState::Running],
        page: Page::first(20),
        ..ListOperations::default()
    };
    let running = calls.find::<operations::List>(here, active).await?.operations;
    let since = Timestamp::from_millis(now.millis() - DAY);
    let failed = ListOperations {
        states: vec![OperationState::Failed],
        since: Some(since),
        page: Page::first(20),
        ..ListOperations::default()
    };
    let failed = calls.find::<operations::List>(here, failed).await?.operations;
    let failed = without_mended(visit, failed, since).await?;
    let mut attention = Vec::new();
    for of in &read {
        attention.extend(unhealthy(visit, of).await);
    }
    attention.extend(failed.iter().map(|of| failed_operation(visit, of)));
    let is_stuck = |of: &&Operation| now.millis() - of.created_at.millis() > STUCK;
    attention.extend(running.iter().filter(is_stuck).map(|of| stuck(visit, of)));
    if calls.may::<tokens::List>(here).await {
        let query = ListApiTokens { page: Page::first(200), ..ListApiTokens::default() };
        let listed = calls.find::<tokens::List>(here, query).await?.tokens;
        attention.extend(listed.iter().filter_map(|of| expiring(visit, of)));
    }
    let mut shown = Vec::with_capacity(running.len());
    for of in &running {
        shown.push(OperationView::with_actions(visit, of).await);
    }
    let page = Overview {
        shell: visit.shell("Overview").await?.live(""),
        attention,
        running: shown,
        deployments: read.iter().map(|of| DeploymentLine::new(visit, of)).collect(),
        total,
        can_create: crate::pages::deployments::can_create(visit).await,
    };
    Answer::page(&page)
}

/// Leaves out what a later operation on the same deployment or cluster has made up for.
async fn without_mended(
    visit: &OrganizationVisit<'_>,
    mut failed: Vec<Operation>,
    since: Timestamp,
) -> Result<Vec<Operation>> {
    if failed.is_empty() {
        return Ok(failed);
    }
    let query = ListOperations {
        target_ids: failed.iter().map(|of| of.target.id.into()).collect(),
        states: vec![OperationState::Succeeded],
        since: Some(since),
        page: Page::first(100),
        ..ListOperations::default()
    };
    let done = visit.calls().find::<operations::List>(visit.here(), query).await?.operations;
    let is_mended = |of: &Operation| {
        done.iter().any(|later| {
            later.target.id == of.target.id
                && later.created_at > of.created_at
                && makes_up_for(later.kind, of.kind)
        })
    };
    failed.retain(|of| !is_mended(of));
    Ok(failed)
}

/// Whether the success of one kind of operation makes up for an earlier failure of another: a hibernation says nothing of a
/// deploy.
fn makes_up_for(later: OperationKind, earlier: OperationKind) -> bool {
    use OperationKind::{
        CleanUp, Create, Delete, Deploy, Failback, Failover, Hibernate, Rollback, RuntimeUpgrade, Transfer,
        Update, Wake,
    };
    let alike = match earlier {
        Deploy | Rollback | RuntimeUpgrade => matches!(later, Deploy | Rollback | RuntimeUpgrade),
        Create | Update | Transfer => matches!(later, Update | Transfer),
        Hibernate | Wake => matches!(later, Hibernate | Wake),
        Failover | Failback => matches!(later, Failover | Failback),
        CleanUp => later == CleanUp,
        Delete => false,
    };
    alike || later == Delete
}

async fn unhealthy(visit: &OrganizationVisit<'_>, of: &Deployment) -> Option<Attention> {
    if !matches!(of.status, DeploymentStatus::Unhealthy | DeploymentStatus::Unknown) {
        return None;
    }
    let href = visit.link(&format!("/deployments/{}", of.id));
    let may_read = visit.calls().may::<deployment_logs::Get>(visit.deployment(of.id)).await;
    let action = match may_read {
        true => ("Read its logs", format!("{href}/logs")),
        false => ("See what happened", href.clone()),
    };
    Some(Attention {
        status: view::deployment_status(of.status),
        name: of.name.clone(),
        since: view::time(of.updated_at, visit.visit.now),
        why: of.status_reason.clone().unwrap_or_default(),
        action,
        href,
    })
}

fn failed_operation(visit: &OrganizationVisit<'_>, of: &Operation) -> Attention {
    let href = visit.link(&format!("/operations/{}", of.id));
    Attention {
        status: view::operation_state(OperationState::Failed),
        name: crate::pages::operations::name(of),
        since: view::time(of.ended_at.unwrap_or(of.created_at), visit.visit.now),
        why: of.failure.as_ref().map(|failure| failure.reason.clone()).unwrap_or_default(),
        action: ("See what happened", href.clone()),
        href,
    }
}

fn stuck(visit: &OrganizationVisit<'_>, of: &Operation) -> Attention {
    let progress = of.progress.as_ref().and_then(|progress| progress.message.clone());
    Attention {
        why: progress.unwrap_or_else(|| "It has been running for over half an hour.".to_owned()),
        status: view::operation_state(of.state),
        since: view::time(of.created_at, visit.visit.now),
        ..failed_operation(visit, of)
    }
}

fn expiring(visit: &OrganizationVisit<'_>, of: &tokens::ApiToken) -> Option<Attention> {
    let ends = of.end_at.filter(|end| end.millis() - visit.visit.now.millis() < SOON)?;
    let is_over = ends <= visit.visit.now;
    let href = visit.link(&format!("/tokens/{}", of.id));
    Some(Attention {
        status: view::status(view::Tone::Warning, if is_over { "Expired" } else { "Expires soon" }),
        name: format!("Token {}", of.name),
        since: view::time(ends, visit.visit.now),
        why: "Programs that use it stop working then.".to_owned(),
        action: ("Rotate it", href.clone()),
        href,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_forgotten_only_for_what_makes_up_for_it() {
        let up = OperationKind::ALL.iter().filter(|later| makes_up_for(**later, OperationKind::Deploy));
        let up: Vec<_> = up.copied().map(OperationKind::as_str).collect();
        assert_eq!(up, ["DEPLOY", "ROLLBACK", "RUNTIME_UPGRADE", "DELETE"]);
        assert!(!makes_up_for(OperationKind::CleanUp, OperationKind::Update));
    }
}
