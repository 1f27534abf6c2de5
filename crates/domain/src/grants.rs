//! What a subject may do in one organization: its roles, resolved once and then queried many times.
//!
//! Grants are inherited downwards and add up, and there is no deny. The store knows who holds which role; this module
//! only derives the permissions. It covers one organization: build one `Grants` for each.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use podium_api::enums::{OrganizationRole, RoleScope, WorkspaceRoleName};
use podium_api::{DeploymentId, RoleId, WorkspaceId};

use crate::permissions::{Permission, PermissionSet};
use crate::roles::{self, DagRoleName, DeploymentRoleName};

/// What a role is held on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum On {
    Organization,
    Workspace(WorkspaceId),
    Deployment {
        id: DeploymentId,
        workspace_id: WorkspaceId,
    },
    Dag {
        deployment_id: DeploymentId,
        workspace_id: WorkspaceId,
        dag_id: String,
    },
    /// Every DAG with a tag.
    DagTag {
        deployment_id: DeploymentId,
        workspace_id: WorkspaceId,
        tag: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Held {
    Organization(OrganizationRole),
    Workspace(WorkspaceRoleName),
    Deployment(DeploymentRoleName),
    /// A built-in role on a DAG or tag.
    Dag(DagRoleName),
    /// A custom role, on what its scope says.
    Custom {
        id: RoleId,
        name: String,
        permissions: PermissionSet,
    },
}

impl Held {
    /// The built-in role of this name, if it is one that can be held there.
    pub fn built_in(on: &On, name: &str) -> Option<Self> {
        match on {
            On::Organization => name.parse().ok().map(Self::Organization),
            On::Workspace(_) => name.parse().ok().map(Self::Workspace),
            On::Deployment { .. } => name.parse().ok().map(Self::Deployment),
            On::Dag { .. } | On::DagTag { .. } => name.parse().ok().map(Self::Dag),
        }
    }

    pub fn name(&self) -> &str {
        match self {
            Self::Organization(role) => role.as_str(),
            Self::Workspace(role) => role.as_str(),
            Self::Deployment(role) => role.as_str(),
            Self::Dag(role) => role.as_str(),
            Self::Custom { name, .. } => name,
        }
    }

    pub fn permissions(&self) -> PermissionSet {
        match self {
            Self::Organization(role) => roles::of_organization(*role),
            Self::Workspace(role) => roles::of_workspace(*role),
            Self::Deployment(role) => roles::of_deployment(*role),
            Self::Dag(role) => roles::of_dag(*role),
            Self::Custom { permissions, .. } => *permissions,
        }
    }
}

/// A role, and what it is held on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    pub on: On,
    pub held: Held,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    All,
    /// These, in order.
    Only(Vec<WorkspaceId>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeploymentReach {
    All,
    /// Those of some workspaces, and some others.
    Only {
        /// Every deployment of these workspaces, in order.
        workspaces: Vec<WorkspaceId>,
        /// These deployments of other workspaces, in order.
        deployments: Vec<DeploymentId>,
    },
}

impl DeploymentReach {
    pub fn contains(&self, workspace_id: WorkspaceId, deployment_id: DeploymentId) -> bool {
        match self {
            Self::All => true,
            Self::Only { workspaces, deployments } => {
                workspaces.binary_search(&workspace_id).is_ok()
                    || deployments.binary_search(&deployment_id).is_ok()
            }
        }
    }
}

const SEE_WORKSPACE: Permission = Permission::known("workspace.get");
const SEE_DEPLOYMENT: Permission = Permission::known("deployment.get");

/// Each right on all DAGs of a deployment, and the same right on one of them.
static ON_EACH_DAG: LazyLock<Vec<(Permission, Permission)>> = LazyLock::new(|| {
    let twin = |all: Permission| {
        let one = format!("dag.{}", all.name().strip_prefix("deployment.")?);
        Some((all, Permission::named(&one)?))
    };
    Permission::all().filter_map(twin).collect()
});

/// What a subject may do in one organization.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grants {
    owner: bool,
    organization: PermissionSet,
    workspaces: BTreeMap<WorkspaceId, PermissionSet>,
    deployments: BTreeMap<DeploymentId, OnDeployment>,
    dags: BTreeMap<On, PermissionSet>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OnDeployment {
    workspace_id: WorkspaceId,
    permissions: PermissionSet,
    /// What roles on the deployment itself give, without those on its DAGs.
    own: PermissionSet,
}

impl Grants {
    /// What follows from a subject's own grants and those of its teams.
    pub fn new(grants: impl IntoIterator<Item = Grant>) -> Self {
        let mut resolved = Self::default();
        for grant in grants {
            resolved.add(grant);
        }
        resolved
    }

    /// What follows from the grants of an API token, which also acts as a member of its organization.
    pub fn for_token(grants: impl IntoIterator<Item = Grant>) -> Self {
        let member = Held::Organization(OrganizationRole::Member);
        Self::new(grants.into_iter().chain([Grant { on: On::Organization, held: member }]))
    }

    fn add(&mut self, Grant { on, held }: Grant) {
        let permissions = held.permissions();
        match on {
            On::Organization => {
                self.owner |= held == Held::Organization(OrganizationRole::Owner);
                self.organization = self.organization.union(permissions);
            }
            On::Workspace(id) => self.add_to_workspace(id, permissions),
            On::Deployment { id, workspace_id } => {
                let held = self.add_to_deployment(id, workspace_id, permissions);
                held.own = held.own.union(permissions);
            }
            On::Dag { deployment_id, workspace_id, .. } | On::DagTag { deployment_id, workspace_id, .. } => {
                let seen = PermissionSet::EMPTY.with(SEE_DEPLOYMENT);
                self.add_to_deployment(deployment_id, workspace_id, seen);
                let held = self.dags.entry(on).or_default();
                *held = held.union(permissions);
            }
        }
    }

    fn add_to_workspace(&mut self, id: WorkspaceId, permissions: PermissionSet) {
        let held = self.workspaces.entry(id).or_default();
        *held = held.union(permissions);
    }

    fn add_to_deployment(
        &mut self,
        id: DeploymentId,
        workspace_id: WorkspaceId,
        permissions: PermissionSet,
    ) -> &mut OnDeployment {
        self.add_to_workspace(workspace_id, PermissionSet::EMPTY.with(SEE_WORKSPACE));
        let none = PermissionSet::EMPTY;
        let nothing = OnDeployment { workspace_id, permissions: none, own: none };
        let held = self.deployments.entry(id).or_insert(nothing);
        held.permissions = held.permissions.union(permissions);
        held
    }

    pub const fn is_owner(&self) -> bool {
        self.owner
    }

    /// What the subject may do in the organization at large.
    pub const fn on_organization(&self) -> PermissionSet {
        self.organization
    }

    /// What the subject may do in a workspace and on every deployment there.
    pub fn on_workspace(&self, id: WorkspaceId) -> PermissionSet {
        if self.owner { self.organization } else { self.workspaces.get(&id).copied().unwrap_or_default() }
    }

    /// What the subject may do on a deployment.
    pub fn on_deployment(&self, id: DeploymentId, workspace_id: WorkspaceId) -> PermissionSet {
        if self.owner {
            return self.organization;
        }
        let own = self.deployments.get(&id).map_or(PermissionSet::EMPTY, |held| held.permissions);
        self.on_workspace(workspace_id).of_scope(RoleScope::Deployment).union(own)
    }

    /// What the subject may do on exactly this: a right on a deployment is one on each DAG and tag of it.
    pub fn at(&self, on: &On) -> PermissionSet {
        match on {
            On::Organization => self.on_organization(),
            On::Workspace(id) => self.on_workspace(*id),
            On::Deployment { id, workspace_id } => self.on_deployment(*id, *workspace_id),
            On::Dag { deployment_id, workspace_id, .. } | On::DagTag { deployment_id, workspace_id, .. } => {
                let above = self.on_deployment(*deployment_id, *workspace_id);
                let from_above =
                    ON_EACH_DAG.iter().filter(|(all, _)| above.contains(*all)).map(|(_, one)| *one);
                let own = self.dags.get(on).copied().unwrap_or_default();
                from_above.collect::<PermissionSet>().union(above).union(own)
            }
        }
    }

    /// What roles on single DAGs and tags of a deployment give in addition to roles above them.
    pub fn on_dags_of(&self, deployment_id: DeploymentId) -> impl Iterator<Item = (&On, PermissionSet)> {
        let of_it = move |on: &On| match on {
            On::Dag { deployment_id: id, .. } | On::DagTag { deployment_id: id, .. } => *id == deployment_id,
            _ => false,
        };
        self.dags.iter().filter(move |(on, _)| of_it(on)).map(|(on, held)| (on, *held))
    }

    /// Whether the subject may know that the workspace exists.
    pub fn sees_workspace(&self, id: WorkspaceId) -> bool {
        !self.on_workspace(id).is_empty()
    }

    /// Whether the subject may know that the deployment exists.
    pub fn sees_deployment(&self, id: DeploymentId, workspace_id: WorkspaceId) -> bool {
        self.deployments.contains_key(&id) || !self.on_deployment(id, workspace_id).is_empty()
    }

    /// Whether the subject may read a deployment only because of roles on some of its DAGs. What is said about all of the
    /// deployment may name other DAGs.
    pub fn sees_only_dags_of(&self, id: DeploymentId) -> bool {
        let reads = |held: PermissionSet| held.contains(SEE_DEPLOYMENT);
        !self.owner
            && self.deployments.get(&id).is_some_and(|held| {
                let inherited = self.on_workspace(held.workspace_id).of_scope(RoleScope::Deployment);
                reads(held.permissions) && !reads(held.own) && !reads(inherited)
            })
    }

    /// The workspaces in which the subject holds a permission.
    pub fn workspaces_with(&self, permission: Permission) -> Reach {
        if self.owner {
            Reach::All
        } else {
            Reach::Only(self.workspaces_where(|set| set.contains(permission)))
        }
    }

    /// The deployments on which the subject holds a permission.
    pub fn deployments_with(&self, permission: Permission) -> DeploymentReach {
        if self.owner {
            return DeploymentReach::All;
        }
        let workspaces =
            self.workspaces_where(|set| set.of_scope(RoleScope::Deployment).contains(permission));
        let own = self.deployments.iter().filter(|(_, held)| {
            held.permissions.contains(permission) && workspaces.binary_search(&held.workspace_id).is_err()
        });
        let deployments = own.map(|(id, _)| *id).collect();
        DeploymentReach::Only { workspaces, deployments }
    }

    /// The workspaces that the subject may see.
    pub fn visible_workspaces(&self) -> Reach {
        self.workspaces_with(SEE_WORKSPACE)
    }

    /// The deployments that the subject may read: to know that there is one is not enough for a list that shows it.
    pub fn visible_deployments(&self) -> DeploymentReach {
        self.deployments_with(SEE_DEPLOYMENT)
    }

    fn workspaces_where(&self, reaches: impl Fn(PermissionSet) -> bool) -> Vec<WorkspaceId> {
        self.workspaces.iter().filter(|(_, set)| reaches(**set)).map(|(id, _)| *id).collect()
    }
}

#[cfg(test)]
mod tests;
