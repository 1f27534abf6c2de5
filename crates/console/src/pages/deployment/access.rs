//! Who can do what here, and why?

use podium_api::deployments::Deployment;
use podium_api::enums::OrganizationRole;
use podium_api::subjects::{DeploymentRole, WorkspaceRole};
use podium_api::{DeploymentId, teams, users};

use super::Head;
use super::overview::TabPage;
use crate::answer::Result;
use crate::list::{Cell, Empty, Row, Table};
use crate::view;
use crate::visit::OrganizationVisit;

/// The subjects with a role here, and through what they have it.
pub(crate) async fn show(visit: &OrganizationVisit<'_>, id: DeploymentId) -> Result {
    let (of, _) = super::read(visit, id).await?;
    let head = Head::new(visit, &of, "access").await?;
    let found = visit
        .calls()
        .get::<users::List>(visit.here(), &[("limit", "1000"), ("sorts", "username:asc")])
        .await?;
    let mut rows = Vec::new();
    for user in &found.users {
        let through = through(
            &of,
            user.organization_role,
            user.workspace_roles.as_deref(),
            user.deployment_roles.as_deref(),
        );
        let name = Cell::named(
            user.username.clone(),
            visit.link(&format!("/users/{}", user.id)),
            user.full_name.clone(),
        );
        rows.extend(row(name, "User", through));
    }
    if let Ok(page) =
        visit.calls().get::<teams::List>(visit.here(), &[("limit", "1000"), ("sorts", "name:asc")]).await
    {
        for team in &page.teams {
            let through = through(
                &of,
                Some(team.organization_role),
                team.workspace_roles.as_deref(),
                team.deployment_roles.as_deref(),
            );
            let name = Cell::link(team.name.clone(), visit.link(&format!("/teams/{}", team.id)));
            rows.extend(row(name, "Team", through));
        }
    }
    let empty = Empty {
        title: "Nobody",
        text: "No user and no team that you can see has a role here.",
        command: String::new(),
    };
    let columns = vec!["Who", "Kind", "Role", "Through"];
    let lead =
        "Roles that reach this deployment: given here, on its workspace, or in the whole organization.";
    TabPage { shell: &head.shell, head: &head, lead, table: Table { columns, rows, pager: None, empty } }
        .answer()
}

fn row(name: Cell, kind: &str, through: Vec<(String, &'static str)>) -> Option<Row> {
    let (roles, places): (Vec<String>, Vec<&str>) = through.into_iter().unzip();
    (!roles.is_empty()).then(|| Row {
        cells: vec![name, kind.to_owned().into(), roles.join(", ").into(), places.join(", ").into()],
        actions: Vec::new(),
    })
}

/// The roles that reach a deployment, and where each was given.
fn through(
    of: &Deployment,
    organization: Option<OrganizationRole>,
    workspaces: Option<&[WorkspaceRole]>,
    deployments: Option<&[DeploymentRole]>,
) -> Vec<(String, &'static str)> {
    let organization = organization.filter(|role| *role != OrganizationRole::Member);
    let organization = organization.map(|role| (view::words(role.as_str()), "organization"));
    let workspaces = workspaces.into_iter().flatten().filter(|role| role.workspace_id == of.workspace_id);
    let workspaces = workspaces.map(|role| (view::words(role.role.as_str()), "workspace"));
    let deployments = deployments.into_iter().flatten().filter(|role| role.deployment_id == of.id);
    let deployments = deployments.map(|role| (role.role.clone(), "this deployment"));
    organization.into_iter().chain(workspaces).chain(deployments).collect()
}
