//! Teams, their members and their roles.

use podium_api::declarations::Team;
use podium_api::enums::OrganizationRole;
use podium_api::path::OfTeamMember;
use podium_api::teams::{self as api, AddTeamMembersRequest, TeamMember};
use podium_api::{Nothing, TeamId};
use serde_json::{Value, json};

use super::{Difference, Entry, Kind, Names, Outcome, Planner, Resource, grants, read};

impl Resource for Team {
    type List = api::List;
    type Get = api::Get;

    fn reshaped(names: &Names, wire: &Value) -> Outcome<Value> {
        let emails = read::<Option<Vec<TeamMember>>>(&wire["members"])?.map(|members| {
            let mut emails: Vec<String> = members.into_iter().map(|member| member.username).collect();
            emails.sort_unstable();
            emails
        });
        Ok(json!({ "members": emails, "roles": grants::of_subject(names, wire)? }))
    }

    fn create(self, planner: &mut Planner<'_>, entry: &Entry) -> Outcome {
        let body = api::CreateTeamRequest {
            name: self.name,
            description: self.description,
            member_ids: planner.some_ids(Kind::User, self.members.as_deref(), &entry.at)?,
            organization_role: self.organization_role,
        };
        planner.create::<api::Create>(entry, &body)?;
        let role = self.organization_role.unwrap_or(OrganizationRole::Member);
        grants::give::<api::UpdateRoles>(planner, entry, role, self.roles)
    }

    fn change(planner: &mut Planner<'_>, entry: &Entry, found: Difference<Self>) -> Outcome {
        let Team { name, description, members, organization_role, roles } = &found.changed;
        if description.is_some() {
            let body = api::UpdateTeamRequest { name: name.clone(), description: description.clone() };
            planner.change::<api::Update, _>(entry, &found, &body)?;
        }
        if let Some(members) = members {
            change_members(planner, entry, &found, members)?;
        }
        grants::change::<api::UpdateRoles, _>(planner, entry, &found, *organization_role, roles.as_deref())
    }
}

fn change_members(
    planner: &mut Planner<'_>,
    entry: &Entry,
    found: &Difference<Team>,
    wanted: &[String],
) -> Outcome {
    let members: Option<Vec<TeamMember>> = read(&found.existing.wire["members"])?;
    let members = members.unwrap_or_default();
    let is = |email: &String, member: &TeamMember| email.to_lowercase() == member.username.to_lowercase();
    let (mut member_ids, mut details) = (Vec::new(), Vec::new());
    for email in wanted.iter().filter(|email| !members.iter().any(|member| is(email, member))) {
        member_ids.push(planner.id(Kind::User, email, &entry.at)?);
        details.push(format!("adds the member {email}"));
    }
    if !member_ids.is_empty() {
        let body = AddTeamMembersRequest { member_ids };
        planner.change::<api::AddMembers, _>(entry, found, &body)?.details = details;
    }
    for member in members.iter().filter(|member| !wanted.iter().any(|email| is(email, member))) {
        let path = OfTeamMember {
            organization_id: planner.organization.organization_id,
            team_id: TeamId::from_raw(found.existing.id),
            member_id: member.user_id,
        };
        let details = vec![format!("removes the member {}", member.username)];
        planner.change_at::<api::RemoveMember, _>(entry, found, &path, &Nothing)?.details = details;
    }
    Ok(())
}
