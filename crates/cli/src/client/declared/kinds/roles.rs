//! Custom roles.

use podium_api::declarations::Role;
use podium_api::roles as api;
use serde::Deserialize;

use super::{Difference, Entry, Kind, Outcome, Planner, Resource, object, same};

/// What is read of a role to change it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Now {
    description: Option<String>,
    permissions: Vec<String>,
}

impl Resource for Role {
    type List = api::List;
    type Get = api::Get;

    const FIXED: &'static [&'static str] = &["scopeType"];

    fn create(self, planner: &mut Planner<'_>, entry: &Entry) -> Outcome {
        let mut body: api::CreateCustomRoleRequest = same(object(&self), &entry.at)?;
        let workspaces = self.restricted_workspaces.as_deref();
        body.restricted_workspace_ids = planner.some_ids(Kind::Workspace, workspaces, &entry.at)?;
        planner.create::<api::Create>(entry, &body).map(drop)
    }

    fn change(planner: &mut Planner<'_>, entry: &Entry, found: Difference<Self>) -> Outcome {
        let (now, wanted): (Now, _) = (found.now()?, &found.changed);
        let workspaces = wanted.restricted_workspaces.as_deref();
        let body = api::UpdateCustomRoleRequest {
            name: wanted.name.clone(),
            description: Some(wanted.description.clone().or(now.description).unwrap_or_default()),
            permissions: wanted.permissions.clone().unwrap_or(now.permissions),
            restricted_workspace_ids: planner.some_ids(Kind::Workspace, workspaces, &entry.at)?,
        };
        planner.change::<api::Update, _>(entry, &found, &body).map(drop)
    }
}
