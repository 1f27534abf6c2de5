//! The overview of a deployment: facts, what is under way, and a timeline of what happened.

use podium_api::DeploymentId;
use podium_api::enums::OperationState;
use podium_api::operations::{self, ListOperations};
use podium_api::page::Page;

use super::processes::Tree;
use super::{Head, processes};
use crate::pages::operations::{OperationView, table};
use crate::pages::{Answer, OrganizationVisit, Result, Shell, Table, Template, view};

#[derive(Template)]
#[template(path = "deployment/overview.html")]
struct OverviewPage<'a> {
    shell: &'a Shell,
    head: &'a Head,
    running: Vec<OperationView>,
    timeline: Vec<(&'static str, OperationView, String)>,
    facts: Vec<(&'static str, String)>,
    /// The processes, for a person who wants the page to wait for them, as one without scripts does.
    tree: Option<Tree>,
    api_url: String,
    id: String,
}

pub(crate) async fn show(visit: &OrganizationVisit<'_>, id: DeploymentId) -> Result {
    let (of, head) = Head::read(visit, id, "").await?;
    let query = ListOperations {
        target_ids: vec![id.id().into()],
        page: Page::first(20),
        ..ListOperations::default()
    };
    let found = visit.calls().find::<operations::List>(visit.here(), query).await?;
    let (running, ended): (Vec<_>, Vec<_>) = found.operations.iter().partition(|of| of.ended_at.is_none());
    let timeline = ended.into_iter().map(|of| {
        let class = match of.state {
            OperationState::Succeeded => "good",
            OperationState::Failed => "failed",
            _ => "",
        };
        let why = of.failure.as_ref().map(|failure| failure.reason.clone()).unwrap_or_default();
        (class, OperationView::new(visit, of), why)
    });
    let facts = [
        ("Workspace", of.workspace_name.clone().unwrap_or_default()),
        ("Apache Airflow", of.airflow_version.clone()),
        ("Runtime", of.platform_runtime_version.clone()),
        ("Executor", of.executor.map(|executor| view::words(executor.as_str())).unwrap_or_default()),
        ("Scheduler", of.scheduler_size.map(|size| view::words(size.as_str())).unwrap_or_default()),
        ("DAGs", of.dag_tarball_version.clone().unwrap_or_else(|| "none deployed yet".to_owned())),
        ("Cluster", of.cluster_name.clone().unwrap_or_default()),
        ("Namespace", of.namespace.clone()),
        ("Created by", view::subject(Some(&of.created_by))),
        ("Description", of.description.clone().unwrap_or_default()),
    ];
    let tree = if visit.query().is_on("now") { Some(processes::read(visit, id).await) } else { None };
    let mut shown = Vec::with_capacity(running.len());
    for of in running {
        shown.push(OperationView::with_actions(visit, of).await);
    }
    let page = OverviewPage {
        shell: &head.shell,
        tree,
        running: shown,
        timeline: timeline.collect(),
        facts: view::facts(facts),
        api_url: of.web_server_airflow_api_url.clone(),
        id: id.to_string(),
        head: &head,
    };
    Answer::page(&page)
}

pub(crate) async fn operations(visit: &OrganizationVisit<'_>, id: DeploymentId) -> Result {
    let (_, head) = Head::read(visit, id, "operations").await?;
    let target_ids = vec![id.id().into()];
    let query = ListOperations { target_ids, page: visit.page(), ..ListOperations::default() };
    let table = table(visit, query).await?.or("No operations", "Changes of this deployment are listed here.");
    TabPage { shell: &head.shell, head: &head, lead: "", table }.answer()
}

#[derive(Template)]
#[template(path = "deployment/table.html")]
pub(super) struct TabPage<'a> {
    pub(super) shell: &'a Shell,
    pub(super) head: &'a Head,
    pub(super) lead: &'static str,
    pub(super) table: Table,
}

impl TabPage<'_> {
    pub(super) fn answer(&self) -> Result {
        Answer::page(self)
    }
}
