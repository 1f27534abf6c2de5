//! Who can do what here, and why?

use podium_api::DeploymentId;
use podium_api::deployments::Deployment;
use podium_api::enums::OrganizationRole;
use podium_api::page::{MAX_LIMIT, Page};
use podium_api::subjects::{DeploymentRole, WorkspaceRole};
use podium_api::teams::{self, ListTeams};

use super::Head;
use super::overview::TabPage;
use crate::pages::users::everybody;
use crate::pages::{Cell, OrganizationVisit, Result, Row, Table, view};

/// The subjects with a role here, and through what they have it.
pub(crate) async fn show(visit: &OrganizationVisit<'_>, id: DeploymentId) -> Result {
    let (of, head) = Head::read(visit, id, "access").await?;
    let mut rows = Vec::new();
    for user in everybody(visit).await? {
        let through = through(&of, user.organization_role, user.workspace_roles, user.deployment_roles);
        let href = visit.link(&format!("/users/{}", user.id));
        rows.extend(row(Cell::named(user.username, href, user.full_name), "User", through));
    }
    let query = ListTeams { page: Page::first(MAX_LIMIT).sorted_by("name"), ..ListTeams::default() };
    let found = visit.calls().find::<teams::List>(visit.here(), query).await;
    for team in found.into_iter().flat_map(|found| found.teams) {
        let role = Some(team.organization_role);
        let through = through(&of, role, team.workspace_roles, team.deployment_roles);
        let href = visit.link(&format!("/teams/{}", team.id));
        rows.extend(row(Cell::link(team.name, href), "Team", through));
    }
    let table = Table::whole(["Who", "Kind", "Role", "Through"], rows)
        .or("Nobody", "No user and no team that you can see has a role here.");
    let lead =
        "Roles that reach this deployment: given here, on its workspace, or in the whole organization.";
    TabPage { shell: &head.shell, head: &head, lead, table }.answer()
}

fn row(name: Cell, kind: &str, through: Vec<(String, &'static str)>) -> Option<Row> {
    let (roles, places): (Vec<String>, Vec<&str>) = through.into_iter().unzip();
    let cells = vec![name, kind.into(), roles.join(", ").into(), places.join(", ").into()];
    (!roles.is_empty()).then(|| Row::of(cells))
}

/// The roles that reach a deployment, and where each was given.
fn through(
    of: &Deployment,
    organization: Option<OrganizationRole>,
    workspaces: Option<Vec<WorkspaceRole>>,
    deployments: Option<Vec<DeploymentRole>>,
) -> Vec<(String, &'static str)> {
    let organization = organization.filter(|role| *role != OrganizationRole::Member);
    let organization = organization.map(|role| (view::words(role.as_str()), "organization"));
    let workspaces = workspaces.into_iter().flatten().filter(|role| role.workspace_id == of.workspace_id);
    let workspaces = workspaces.map(|role| (view::words(role.role.as_str()), "workspace"));
    let deployments = deployments.into_iter().flatten().filter(|role| role.deployment_id == of.id);
    let deployments = deployments.map(|role| (role.role, "this deployment"));
    organization.into_iter().chain(workspaces).chain(deployments).collect()
}
