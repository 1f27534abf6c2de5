//! Users: one who is not there yet is invited.

use podium_api::declarations::User;
use podium_api::enums::OrganizationRole;
use podium_api::invites::{self, CreateUserInviteRequest};
use podium_api::users as api;
use serde_json::{Value, json};

use super::{Difference, Entry, Names, Outcome, Planner, Resource, grants, read};

impl Resource for User {
    type List = api::List;
    type Get = api::Get;

    fn reshaped(names: &Names, wire: &Value) -> Outcome<Value> {
        let email: String = read(&wire["username"])?;
        Ok(json!({ "email": email, "roles": grants::of_subject(names, wire)? }))
    }

    fn create(self, planner: &mut Planner<'_>, entry: &Entry) -> Outcome {
        let role = self.organization_role.unwrap_or(OrganizationRole::Member);
        planner
            .create::<invites::Create>(entry, &CreateUserInviteRequest { invitee_email: self.email, role })?;
        grants::give::<api::UpdateRoles>(planner, entry, role, self.roles)
    }

    fn change(planner: &mut Planner<'_>, entry: &Entry, found: Difference<Self>) -> Outcome {
        let User { organization_role, roles, .. } = &found.changed;
        grants::change::<api::UpdateRoles, _>(planner, entry, &found, *organization_role, roles.as_deref())
    }
}
