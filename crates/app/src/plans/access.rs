//! Whose access a planned call changes.

use podium_api::enums::PlannedEffectType;
use podium_api::plans::PlannedEffect;
use podium_api::{Description, RoleId};
use podium_store::grants;

use super::effects::{MOST_NAMED, effect};
use super::making::{Making, Resource};
use crate::error::Result;

impl Making<'_> {
    /// Who gains or loses access by a call on a resource, as it was before.
    pub(super) fn access(
        &self,
        endpoint: &Description,
        before: Option<&Resource>,
    ) -> Result<Vec<PlannedEffect>> {
        let of = |field: &str| before.and_then(|it| it.get(field)?.as_str()).unwrap_or_default();
        let (id, name) = (of("id"), of("name"));
        let users = |list: String, message: &str| {
            let found = self.listed(&format!("{list}&limit={MOST_NAMED}"), "username")?;
            Ok(found.map(|(names, count)| on(names, count, message)).into_iter().collect())
        };
        match endpoint.id {
            "DeleteTeam" => users(members(id), "Its members lose what they may do through the team."),
            "UpdateTeamRoles" => {
                users(members(id), "What the members of the team may do through it changes with its roles.")
            }
            "AddTeamMembers" => {
                let message = format!("The new members may do what the roles of {name} allow.");
                Ok(vec![effect(PlannedEffectType::Access, &message)])
            }
            "RemoveTeamMember" => {
                let message = format!("The member loses what the roles of {name} allow.");
                Ok(vec![effect(PlannedEffectType::Access, &message)])
            }
            "UpdateUserRoles" => {
                let message = "What this user may do changes with the roles.";
                Ok(vec![on(vec![of("username").to_owned()], 1, message)])
            }
            "UpdateApiTokenRoles" => {
                let message = "What programs with this token may do changes with its roles.";
                Ok(vec![on(vec![name.to_owned()], 1, message)])
            }
            "DeleteApiToken" | "RotateApiToken" => {
                let message = "Programs that use the token as it is now are refused from then on.";
                Ok(vec![on(vec![name.to_owned()], 1, message)])
            }
            "UpdateCustomRole" | "DeleteCustomRole" => self.holders(id),
            "DeleteWorkspace" => {
                let message = "These users lose the roles that they have in the workspace.";
                users(format!("users?workspaceId={id}"), message)
            }
            "DeleteDeployment" => {
                let message = "These users lose the roles that they have on the deployment.";
                users(format!("users?deploymentId={id}"), message)
            }
            "CreateAllowedIpAddressRange" | "BulkCreateAllowedIpAddressRanges" => {
                let message = "Only addresses in an allowed range reach the organization from then on.";
                Ok(vec![effect(PlannedEffectType::Access, message)])
            }
            "DeleteAllowedIpAddressRange" | "BulkDeleteAllowedIpAddressRanges" => {
                let message = "Addresses in no other allowed range are refused from then on; without any range all are allowed.";
                Ok(vec![effect(PlannedEffectType::Access, message)])
            }
            _ => Ok(Vec::new()),
        }
    }

    fn holders(&self, role_id: &str) -> Result<Vec<PlannedEffect>> {
        let Ok(role_id) = role_id.parse::<RoleId>() else { return Ok(Vec::new()) };
        let (holders, count) = grants::some_holders(self.tx, self.cx.scope(), role_id)?;
        let names = holders.into_iter().map(|(_, name)| name).collect();
        let message = "What the holders of this role may do changes with it.";
        Ok(if count == 0 { Vec::new() } else { vec![on(names, count, message)] })
    }
}

fn members(team_id: &str) -> String {
    format!("teams/{team_id}/members?offset=0")
}

fn on(names: Vec<String>, count: u64, message: &str) -> PlannedEffect {
    PlannedEffect { names, count: Some(count), ..effect(PlannedEffectType::Access, message) }
}
