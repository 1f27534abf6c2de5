//! The processes of a deployment, as a tree: observed at the moment, so that they come in after the page.

use podium_api::deployment_processes::{
    self, DeploymentProcess, DeploymentProcesses, ListDeploymentProcesses,
};
use podium_api::{DeploymentId, Timestamp};

use crate::pages::{Answer, Html, OrganizationVisit, Result, Template, Tone, view};

/// Processes that run tasks of one queue each stand below a branch of their own.
const WORKER: &str = "worker-";

/// What comes in after the page.
#[derive(Template)]
#[template(path = "deployment/processes.html")]
struct Part {
    tree: Tree,
}

#[derive(Default)]
pub(super) struct Tree {
    /// Why there is none.
    pub(super) problem: Option<String>,
    pub(super) components: Vec<Process>,
    pub(super) workers: Vec<Process>,
    /// The memory of all of them, and what they have on the disk.
    pub(super) memory: Option<(u64, String)>,
    pub(super) disk: Option<String>,
}

pub(super) struct Process {
    pub(super) name: String,
    pub(super) state: Html,
    pub(super) reason: Option<String>,
    pub(super) memory: Option<(u64, String)>,
    pub(super) restarts: u64,
    pub(super) since: Option<Html>,
}

pub(crate) async fn part(visit: &OrganizationVisit<'_>, id: DeploymentId) -> Result {
    Answer::page(&Part { tree: read(visit, id).await })
}

/// The processes as they are now, or why they cannot be observed.
pub(super) async fn read(visit: &OrganizationVisit<'_>, id: DeploymentId) -> Tree {
    let query =
        ListDeploymentProcesses { deployment_ids: vec![id.into()], ..ListDeploymentProcesses::default() };
    let found = visit.calls().find::<deployment_processes::List>(visit.here(), query).await;
    match found.map(|mut page| page.deployment_processes.pop()) {
        Ok(Some(found)) => Tree::new(found, visit.visit.now),
        Ok(None) => Tree::default(),
        Err(problem) => Tree { problem: Some(problem.message), ..Tree::default() },
    }
}

impl Tree {
    fn new(found: DeploymentProcesses, now: Timestamp) -> Self {
        let (workers, components): (Vec<_>, Vec<_>) =
            found.processes.into_iter().partition(|process| process.name.starts_with(WORKER));
        let shown = |processes: Vec<DeploymentProcess>| {
            processes.into_iter().map(|process| Process::new(process, now)).collect()
        };
        Self {
            problem: found.reason,
            components: shown(components),
            workers: shown(workers),
            memory: found.memory_bytes.map(|bytes| (bytes, view::size(bytes))),
            disk: found.disk_bytes.map(view::size),
        }
    }
}

impl Process {
    fn new(of: DeploymentProcess, now: Timestamp) -> Self {
        let state =
            if of.is_up { view::status(Tone::Good, "Up") } else { view::status(Tone::Warning, "Down") };
        Self {
            name: of.name,
            state,
            reason: of.reason,
            memory: of.memory_bytes.map(|bytes| (bytes, view::size(bytes))),
            restarts: of.restarts,
            since: of.started_at.map(|at| view::time(at, now)),
        }
    }
}
