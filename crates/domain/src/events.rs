//! Events: which change of status makes which one, what it says, and who may read it. Those of endpoints are declared with
//! them.
//!
//! An event says what changed, by name and id, and who did it. It holds no part of a request's body and no value of a
//! setting, so that whoever may know of a resource may read its events.

mod alerts;
mod claims;
mod cursor;
mod visibility;

use podium_api::Id;
use podium_api::OrganizationId;
use podium_api::enums::{ClusterStatus, DeploymentStatus, EventType, OperationState, SubjectType};
use podium_api::events::{EventActor, EventData, EventResource};
use podium_api::subjects::SubjectProfile;

use crate::authorize::Target;
use crate::reason::UserText;

pub use alerts::Telling;
pub use claims::{Allowance, Claim, MOST_LINE, SpoolBatch, SpoolPosition, SpoolState};
pub use cursor::Cursor;
pub use visibility::{Audience, Visibility, Visible};

use EventType as T;

pub const fn of_deployment_status(status: DeploymentStatus) -> EventType {
    match status {
        DeploymentStatus::Creating => T::DeploymentCreating,
        DeploymentStatus::Deploying => T::DeploymentDeploying,
        DeploymentStatus::Healthy => T::DeploymentHealthy,
        DeploymentStatus::Unhealthy => T::DeploymentUnhealthy,
        DeploymentStatus::Unknown => T::DeploymentUnknown,
        DeploymentStatus::Hibernating => T::DeploymentHibernating,
    }
}

/// The event of an operation that its loop has brought to an end; `None` if it goes on, or a call has ended it.
pub const fn of_operation(state: OperationState) -> Option<EventType> {
    match state {
        OperationState::Succeeded => Some(T::OperationSucceeded),
        OperationState::Failed => Some(T::OperationFailed),
        OperationState::Pending
        | OperationState::Running
        | OperationState::Cancelled
        | OperationState::Superseded => None,
    }
}

/// Where a cluster's deployments run: the status of the cluster, and whether they run in the other region.
pub type ClusterCondition = (ClusterStatus, bool);

/// The event of a cluster that its loop has brought to another status or region; `None` if neither changed.
pub fn of_cluster(before: ClusterCondition, after: ClusterCondition) -> Option<EventType> {
    match (before.1, after.1) {
        (false, true) => return Some(T::ClusterFailedOver),
        (true, false) => return Some(T::ClusterFailedBack),
        _ if before.0 == after.0 => return None,
        _ => {}
    }
    Some(match after.0 {
        ClusterStatus::Creating => T::ClusterCreating,
        ClusterStatus::Created => T::ClusterReady,
        ClusterStatus::CreateFailed => T::ClusterCreateFailed,
        ClusterStatus::Updating => T::ClusterUpdating,
        ClusterStatus::UpdateFailed => T::ClusterUpdateFailed,
        ClusterStatus::FailingOver => T::ClusterFailingOver,
        ClusterStatus::FailoverFailed => T::ClusterFailoverFailed,
        ClusterStatus::AccessDenied => T::ClusterAccessDenied,
        ClusterStatus::UpgradePending => T::ClusterUpgradePending,
    })
}

/// The kind of resource that a type of event is named after: its second word.
pub fn resource_of(event: EventType) -> &'static str {
    event.as_str().split('.').nth(1).unwrap_or_default()
}

#[derive(Clone, Copy, Debug)]
pub struct Resource<'a> {
    id: Id,
    name: Option<&'a str>,
    target: Target,
    status: Option<(&'static str, Option<&'a UserText>)>,
    is_open_to_members: bool,
}

impl<'a> Resource<'a> {
    /// A resource that belongs to the organization, a workspace or a deployment, or is one of them.
    pub const fn new(id: Id, target: Target) -> Self {
        Self { id, name: None, target, status: None, is_open_to_members: false }
    }

    pub const fn id(&self) -> Id {
        self.id
    }

    pub const fn named(self, name: &'a str) -> Self {
        Self { name: Some(name), ..self }
    }

    /// The same with the status that it has now.
    pub const fn in_status(self, status: &'static str, reason: Option<&'a UserText>) -> Self {
        Self { status: Some((status, reason)), ..self }
    }

    /// The same, for a cluster that is gone and was open to every workspace: every member may know of it.
    pub const fn open_to_members(self, is_open: bool) -> Self {
        Self { is_open_to_members: is_open, ..self }
    }
}

#[derive(Clone, Debug)]
pub struct NewEvent {
    pub event_type: EventType,
    pub audience: Audience,
    pub data: EventData,
}

impl NewEvent {
    /// What happened to a resource of an organization; without an actor Podium itself did it.
    pub fn new(
        event_type: EventType,
        organization_id: OrganizationId,
        about: Resource<'_>,
        actor: Option<&SubjectProfile>,
    ) -> Self {
        let (workspace_id, deployment_id) = match about.target {
            Target::Organization => (None, None),
            Target::Workspace(id) => (Some(id), None),
            Target::Deployment { id, workspace_id } => (Some(workspace_id), Some(id)),
        };
        let kind = resource_of(event_type);
        let reason = about.status.and_then(|(_, reason)| reason).filter(|reason| !reason.is_empty());
        let data = EventData {
            organization_id,
            workspace_id,
            deployment_id,
            resource: EventResource {
                r#type: kind.to_owned(),
                id: about.id,
                name: about.name.map(str::to_owned),
            },
            actor: actor.map(acting),
            status: about.status.map(|(status, _)| status.to_owned()),
            status_reason: reason.map(ToString::to_string),
            claimed: None,
            dag_run: None,
            task: None,
            count: None,
            alert: None,
        };
        Self { event_type, audience: Audience::of(kind, about.target, about.is_open_to_members), data }
    }
}

fn acting(profile: &SubjectProfile) -> EventActor {
    let name = profile.username.as_deref().or(profile.api_token_name.as_deref());
    EventActor {
        id: profile.id,
        r#type: profile.subject_type.unwrap_or(SubjectType::User),
        name: name.unwrap_or_default().to_owned(),
    }
}

#[cfg(test)]
mod tests;
