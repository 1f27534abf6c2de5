//! Who may read which events: those who may read the resource, where it is.

use podium_api::enums::RoleScope;
use podium_api::{DeploymentId, WorkspaceId};

use podium_api::const_text;

use crate::authorize::Target;
use crate::grants::{DeploymentReach, Grants, Reach};
use crate::groups::READ_BY;
use crate::permissions::Permission;
use crate::{environment_objects, tokens};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// Those who hold this permission where the event happened.
    Holders(Permission),
    /// Those who may see the cluster, which depends on the workspaces that it is open to now.
    ClusterReaders,
    Owners,
}

/// The kinds of resources whose events are for the holders of a permission on what they belong to.
const READERS: [(&str, Permission); READ_BY.len()] = {
    let mut readers = [("", Permission::known("organization.get")); READ_BY.len()];
    let mut index = 0;
    while index < READ_BY.len() {
        let mut before = 0;
        while before < index {
            assert!(
                !const_text::same(READ_BY[before].0, READ_BY[index].0),
                "the events of a kind have one permission"
            );
            before += 1;
        }
        readers[index] = (READ_BY[index].0, Permission::known(READ_BY[index].1));
        index += 1;
    }
    readers
};

/// The permissions to read what may belong to the organization, a workspace or a deployment.
const AT_ANY_PLACE: &[Permission] = &[
    Permission::known("organization.apiTokens.get"),
    Permission::known("organization.envObjects.get"),
    Permission::known("workspace.apiTokens.get"),
    Permission::known("workspace.envObjects.get"),
    Permission::known("deployment.apiTokens.get"),
    Permission::known("deployment.envObjects.get"),
];

/// The permissions of audiences that are held in the organization at large, in a workspace, or on a deployment.
fn held_on(scope: RoleScope) -> impl Iterator<Item = Permission> {
    let all = READERS.iter().map(|(_, permission)| permission).chain(AT_ANY_PLACE);
    all.copied().filter(move |permission| permission.scope() == scope)
}

impl Audience {
    /// The text of [`Audience::ClusterReaders`] in the database.
    pub const CLUSTER_READERS: &'static str = "cluster";

    /// Who may read events of a kind of resource; a kind that is not known here is for owners.
    pub(super) fn of(kind: &str, target: Target, is_open_to_members: bool) -> Self {
        let kind = match kind {
            "cluster" if !is_open_to_members => return Self::ClusterReaders,
            "token" => return Self::Holders(tokens::Verb::Get.permission(target)),
            "environment_object" => return Self::Holders(environment_objects::Verb::Get.permission(target)),
            "operation" if matches!(target, Target::Deployment { .. }) => "deployment",
            kind => kind,
        };
        let readers = READERS.iter().find(|(known, _)| *known == kind);
        readers.map_or(Self::Owners, |(_, permission)| Self::Holders(*permission))
    }

    /// As in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Holders(permission) => permission.name(),
            Self::ClusterReaders => Self::CLUSTER_READERS,
            Self::Owners => "owners",
        }
    }
}

/// The events that a subject may read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Visibility {
    All,
    /// Those of some audiences, some of them in some places only.
    Only(Visible),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Visible {
    /// In the organization at large.
    pub everywhere: Vec<String>,
    /// In a workspace: audience and workspace, with a space between them.
    pub in_workspaces: Vec<String>,
    /// On a deployment: audience and deployment, with a space between them.
    pub on_deployments: Vec<String>,
    /// The workspaces whose clusters it may see.
    pub workspaces: Vec<WorkspaceId>,
}

impl Visible {
    /// Whether it may read anything of a deployment that was in this workspace at last.
    pub fn has_deployment(&self, id: DeploymentId, home: Option<WorkspaceId>) -> bool {
        let is_listed = |list: &[String], id: &str| {
            held_on(RoleScope::Deployment).any(|permission| list.contains(&format!("{permission} {id}")))
        };
        is_listed(&self.on_deployments, id.as_str())
            || home.is_some_and(|home| is_listed(&self.in_workspaces, home.as_str()))
    }
}

impl Visibility {
    pub fn of(grants: &Grants) -> Self {
        let Reach::Only(workspaces) = grants.visible_workspaces() else { return Self::All };
        let mut visible = Visible { workspaces, ..Visible::default() };
        let held = grants.on_organization();
        let everywhere = held_on(RoleScope::Organization).filter(|permission| held.contains(*permission));
        visible.everywhere = everywhere.map(|permission| permission.name().to_owned()).collect();
        for permission in held_on(RoleScope::Workspace) {
            if let Reach::Only(ids) = grants.workspaces_with(permission) {
                visible.in_workspaces.extend(ids.iter().map(|id| format!("{permission} {id}")));
            }
        }
        for permission in held_on(RoleScope::Deployment) {
            if let DeploymentReach::Only { workspaces, deployments } = grants.deployments_with(permission) {
                visible.in_workspaces.extend(workspaces.iter().map(|id| format!("{permission} {id}")));
                visible.on_deployments.extend(deployments.iter().map(|id| format!("{permission} {id}")));
            }
        }
        Self::Only(visible)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{d1, deployment, member_with, w1};

    /// Whether a subject may read events of an audience at a place.
    fn reads(grants: &Grants, audience: Audience, target: Target) -> bool {
        let Visibility::Only(visible) = Visibility::of(grants) else { return true };
        let at = |id: &str| format!("{} {id}", audience.as_str());
        let (workspace_id, deployment_id) = match target {
            Target::Organization => (None, None),
            Target::Workspace(id) => (Some(id), None),
            Target::Deployment { id, workspace_id } => (Some(workspace_id), Some(id)),
        };
        visible.everywhere.iter().any(|name| name == audience.as_str())
            || workspace_id.is_some_and(|id| visible.in_workspaces.contains(&at(id.as_str())))
            || deployment_id.is_some_and(|id| visible.on_deployments.contains(&at(id.as_str())))
    }

    #[test]
    fn events_are_read_by_those_who_may_read_the_resource() {
        let kinds: [(&str, Target); 12] = [
            ("organization", Target::Organization),
            ("team", Target::Organization),
            ("ip_range", Target::Organization),
            ("token", Target::Organization),
            ("workspace", Target::Workspace(w1())),
            ("token", Target::Workspace(w1())),
            ("environment_object", Target::Workspace(w1())),
            ("deployment", deployment(d1())),
            ("deploy", deployment(d1())),
            ("agent_token", deployment(d1())),
            ("token", deployment(d1())),
            ("environment_object", deployment(d1())),
        ];
        let roles = "ORGANIZATION_OWNER ORGANIZATION_MEMBER WORKSPACE_OWNER WORKSPACE_OPERATOR WORKSPACE_AUTHOR \
            WORKSPACE_MEMBER WORKSPACE_ACCESSOR DEPLOYMENT_ADMIN DEPLOYMENT_ACCESSOR";
        let mut seen = 0;
        for role in roles.split(' ') {
            let grants = member_with(role);
            for (kind, target) in kinds {
                let Audience::Holders(permission) = Audience::of(kind, target, false) else {
                    panic!("{kind} has no permission")
                };
                let may = crate::require(&grants, permission, target).is_ok();
                assert_eq!(reads(&grants, Audience::Holders(permission), target), may, "{role}, {kind}");
                seen += usize::from(may);
            }
        }
        assert!((40..80).contains(&seen), "{seen} of the combinations may be read");
    }

    #[test]
    fn every_audience_of_a_permission_is_among_those_that_are_looked_for() {
        use podium_api::enums::EventType;
        let places = [Target::Organization, Target::Workspace(w1()), deployment(d1())];
        for event in EventType::ALL {
            let kind = super::super::resource_of(*event);
            for target in places {
                match Audience::of(kind, target, true) {
                    Audience::Holders(permission) => {
                        assert!(
                            held_on(permission.scope()).any(|one| one == permission),
                            "{event}: {permission}"
                        );
                    }
                    // Those of clusters, whose readers are looked up by the id of the cluster.
                    Audience::Owners if kind == "operation" && target == Target::Organization => {}
                    Audience::Owners if kind == "operation" && target == Target::Workspace(w1()) => {}
                    audience => panic!("{event} is for {audience:?}"),
                }
            }
        }
        assert_eq!(Audience::of("cluster", Target::Organization, false), Audience::ClusterReaders);
        assert_eq!(Audience::of("something new", Target::Organization, false), Audience::Owners);
    }

    #[test]
    fn owners_read_everything_and_nobody_else_reads_what_is_for_owners() {
        assert_eq!(Visibility::of(&member_with("ORGANIZATION_OWNER")), Visibility::All);
        for role in ["ORGANIZATION_MEMBER", "ORGANIZATION_BILLING_ADMIN", "WORKSPACE_OWNER"] {
            assert!(!reads(&member_with(role), Audience::Owners, Target::Organization), "{role}");
        }
    }
}
