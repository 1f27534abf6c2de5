//! A deployment: how is it, and what changed?

pub(crate) mod access;
mod calendar;
pub(crate) mod dags;
pub(crate) mod deploys;
pub(crate) mod logs;
pub(crate) mod overview;
pub(crate) mod processes;
pub(crate) mod settings;
pub(crate) mod variables;

use podium_api::deployments::{self, Deployment, OverrideDeploymentHibernationBody};
use podium_api::enums::DeploymentStatus;
use podium_api::{DeploymentId, Patch, deployment_logs, deploys as deploys_api, users};

use super::{Form, FormPage, Html, OrganizationVisit, Problem, Result, Shell, view};
use crate::airflow::Airflow;

/// What every page of a deployment begins with.
pub(crate) struct Head {
    pub(crate) shell: Shell,
    pub(crate) status: Html,
    pub(crate) reason: Option<String>,
    /// The page of the logs, if the person may read them.
    pub(crate) logs: Option<String>,
    pub(crate) href: String,
    pub(crate) airflow: String,
    pub(crate) tabs: Vec<Tab>,
    /// What can be done with it: label, where the form is sent.
    pub(crate) actions: Vec<(&'static str, String)>,
    /// What leads to a page that asks first.
    pub(crate) links: Vec<(&'static str, String)>,
}

pub(crate) struct Tab {
    pub(crate) label: &'static str,
    pub(crate) href: String,
    pub(crate) is_current: bool,
}

pub(crate) async fn read(visit: &OrganizationVisit<'_>, id: DeploymentId) -> Result<(Deployment, String)> {
    let (of, version) = visit.calls().get_versioned::<deployments::Get>(visit.deployment(id)).await?;
    let unreadable = |_| Problem::new(500, "The deployment could not be read.");
    Ok((of.into_value().map_err(unreadable)?, version))
}

impl Head {
    /// A deployment, and the head of its page at a tab.
    pub(crate) async fn read(
        visit: &OrganizationVisit<'_>,
        id: DeploymentId,
        at: &str,
    ) -> Result<(Deployment, Self)> {
        let (of, _) = read(visit, id).await?;
        let head = Self::new(visit, &of, at).await?;
        Ok((of, head))
    }

    async fn new(visit: &OrganizationVisit<'_>, of: &Deployment, at: &str) -> Result<Self> {
        let (calls, path) = (visit.calls(), visit.deployment(of.id));
        let href = visit.link(&format!("/deployments/{}", of.id));
        let may_update = calls.may::<deployments::Update>(path).await;
        let may_read_logs = calls.may::<deployment_logs::Get>(path).await;
        let offered = [
            (true, "Overview", ""),
            (Airflow::of(visit, of).shows_dags().await, "DAGs", "/dags"),
            (calls.may::<deploys_api::List>(path).await, "Deploys", "/deploys"),
            (may_read_logs, "Logs", "/logs"),
            (true, "Variables", "/variables"),
            (calls.may::<users::List>(visit.here()).await, "Access", "/access"),
            (true, "Operations", "/operations"),
            (may_update, "Settings", "/settings"),
        ];
        let tabs = offered.into_iter().filter(|(is_offered, ..)| *is_offered).map(|(_, label, to)| Tab {
            label,
            href: format!("{href}{to}"),
            is_current: to.trim_start_matches('/') == at,
        });
        let can_sleep = may_update && of.is_development_mode == Some(true);
        let sleeps = of.status == DeploymentStatus::Hibernating;
        let actions = match (can_sleep, sleeps) {
            (true, true) => vec![("Wake up", format!("{href}/wake"))],
            (true, false) => vec![("Hibernate", format!("{href}/hibernate"))],
            (false, _) => Vec::new(),
        };
        let may_delete = calls.may::<deployments::Delete>(path).await;
        let is_calm = matches!(of.status, DeploymentStatus::Healthy | DeploymentStatus::Hibernating);
        let shell = visit.shell(of.name.clone()).await?.below("Deployments", visit.link("/deployments"));
        Ok(Self {
            shell: shell.live(of.id.to_string()),
            status: view::deployment_status(of.status),
            reason: of.status_reason.clone().filter(|reason| !is_calm && !reason.is_empty()),
            logs: may_read_logs.then(|| format!("{href}/logs")),
            airflow: format!("/airflow/{}/", of.namespace),
            tabs: tabs.collect(),
            actions,
            links: may_delete
                .then(|| ("Delete the deployment…", format!("{href}/delete")))
                .into_iter()
                .collect(),
            href,
        })
    }
}

/// Sends a deployment to sleep, or wakes it up.
pub(crate) async fn override_hibernation(
    visit: &OrganizationVisit<'_>,
    id: DeploymentId,
    sleeps: bool,
) -> Result {
    let body = OverrideDeploymentHibernationBody { is_hibernating: Patch::Set(sleeps), override_until: None };
    visit.calls().change::<deployments::OverrideHibernation>(visit.deployment(id), body, None).await?;
    let done = if sleeps { "hibernating" } else { "waking" };
    visit.go(format!("/deployments/{id}?done={done}"))
}

pub(crate) async fn ask_to_delete(visit: &OrganizationVisit<'_>, id: DeploymentId) -> Result {
    let (of, _) = read(visit, id).await?;
    let href = visit.link(&format!("/deployments/{id}"));
    let name = crate::form::Field::text("name", format!("Type {} to delete it", of.name)).required();
    let form = Form::new(format!("{href}/delete"), "Delete the deployment", vec![name]);
    let form = Form { is_danger: true, ..form.or(href.clone()) };
    let form = form.after(visit);
    let shell = visit
        .shell(format!("Delete {}", of.name))
        .await?
        .below("Deployments", visit.link("/deployments"))
        .below(of.name.clone(), href);
    let lead =
        "Its processes stop, and its metadata, its logs and its deploys are deleted. This cannot be undone."
            .to_owned();
    FormPage { shell, lead, form }.answer()
}

pub(crate) async fn delete(visit: &OrganizationVisit<'_>, id: DeploymentId) -> Result {
    let (of, _) = read(visit, id).await?;
    if visit.form().get("name").trim() != of.name {
        return Err(Problem::in_field("name", "value", "is not the name of the deployment"));
    }
    visit.calls().act::<deployments::Delete>(visit.deployment(id)).await?;
    visit.go("/deployments?done=deleted")
}
