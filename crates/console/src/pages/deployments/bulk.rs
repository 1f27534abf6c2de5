//! What is done with several deployments at once, after a look at what it does.

use std::collections::BTreeSet;

use podium_api::deployments::{self, Deployment, ListDeployments, OverrideDeploymentHibernationBody};
use podium_api::page::Page;
use podium_api::path::OfDeployment;
use podium_api::plans::PlannedCall;
use podium_api::{Named, Nothing, Patch, WorkspaceId};

use crate::pages::plans::{self, Ways, planned};
use crate::pages::{OrganizationVisit, Problem, Result, readable};

/// How many are changed at once: one page of the list.
const MOST: usize = 50;

/// The workspaces of these deployments in which the person may change all deployments.
pub(super) async fn changeable_in(visit: &OrganizationVisit<'_>, of: &[Deployment]) -> BTreeSet<WorkspaceId> {
    let named: BTreeSet<WorkspaceId> = of.iter().map(|of| of.workspace_id).collect();
    let mut found = BTreeSet::new();
    for workspace_id in named {
        if visit.holds("deployment.update", workspace_id).await
            && visit.holds("deployment.delete", workspace_id).await
        {
            found.insert(workspace_id);
        }
    }
    found
}

/// Shows what would happen to the chosen ones.
pub(crate) async fn plan(visit: &OrganizationVisit<'_>) -> Result {
    let sent = visit.form();
    let (verb, word) = match sent.get("action") {
        "hibernate" => ("Hibernate", None),
        "wake" => ("Wake up", None),
        "delete" => ("Delete", Some("delete")),
        _ => return Err(Problem::new(400, "Choose what to do with the deployments.")),
    };
    let chosen: Vec<&str> = sent.all("ids").take(MOST + 1).collect();
    if chosen.is_empty() {
        return Err(Problem::new(400, "No deployment is selected: go back, and select some."));
    }
    if chosen.len() > MOST {
        return Err(Problem::new(400, format!("At most {MOST} deployments are changed at once.")));
    }
    let query = ListDeployments {
        deployment_ids: chosen.iter().map(|id| Named::from(*id)).collect(),
        page: Page::first(100).sorted_by("name"),
        ..ListDeployments::default()
    };
    let found = visit.calls().find::<deployments::List>(visit.here(), query).await?;
    let call = |of: Deployment| Ok((Some(of.name), call(sent.get("action"), visit.deployment(of.id))?));
    let calls = readable(found.deployments).into_iter().map(call).collect::<Result<Vec<_>>>()?;
    if calls.len() < chosen.len() {
        return Err(Problem::new(404, "Some of these deployments are gone: go back, and select again."));
    }
    let count = podium_api::counted(u64::try_from(calls.len()).unwrap_or_default(), "deployment");
    let (back, then) = (visit.link("/deployments"), visit.link("/deployments?done=applied"));
    plans::show_all(visit, calls, Ways { submit: format!("{verb} {count}"), word, back: &back, then: &then })
        .await
}

fn call(action: &str, path: OfDeployment) -> Result<PlannedCall> {
    if action == "delete" {
        return planned::<deployments::Delete>(&path, Nothing, None);
    }
    let body = OverrideDeploymentHibernationBody {
        is_hibernating: Patch::Set(action == "hibernate"),
        override_until: None,
    };
    planned::<deployments::OverrideHibernation>(&path, body, None)
}
