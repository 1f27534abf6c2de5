//! All permissions, in groups: the one table that all other code reads.
//!
//! A permission is a group's name and an action; whoever holds the `get` of a group may read the events of its kind of
//! resource. Custom roles consist of permissions of the `deployment` and `dag` groups, which are shown to callers; those of
//! `organization` and `workspace` come only with built-in roles.

use podium_api::authorization::{PermissionEntry, PermissionGroup};
use podium_api::const_text;
use podium_api::enums::RoleScope;

/// Permissions on one kind of resource.
struct Group {
    name: &'static str,
    things: &'static str,
    actions: &'static [&'static str],
}

macro_rules! groups {
    ($($name:literal ($things:literal $(; events of $kind:literal)?): $($action:literal)+;)+) => {
        const GROUPS: &[Group] = &[$(Group { name: $name, things: $things, actions: &[$($action),+] }),+];
        /// The full name of every permission, grouped.
        pub(crate) const NAMES: &[&str] = &[$($(concat!($name, ".", $action)),+),+];
        /// Kinds of resources, and the permission whose holders may read the events of each.
        pub(crate) const READ_BY: &[(&str, &str)] = &[$($(($kind, concat!($name, ".get")),)?)+];
    };
}

groups! {
    "organization" ("the organization"; events of "organization"): "get";
    "organization.settings" ("the organization's settings"): "update";
    "organization.clusters" ("clusters"; events of "cluster"): "get" "create" "update" "delete";
    "organization.users" ("users of the organization"; events of "user"): "get" "create" "update" "delete";
    "organization.teams" ("teams"; events of "team"): "get" "create" "update" "delete";
    "organization.workspaces" ("workspaces"): "get" "create";
    "organization.deployments" ("deployments across workspaces"): "get";
    "organization.deploymentConfigurations" ("what deployments can be made of"): "get";
    "organization.customRoles" ("custom roles"; events of "role"): "get" "create" "update" "delete";
    "organization.declaredSets" ("sets of declared resources"): "get" "create" "update" "delete";
    "organization.allowedIpAddressRanges" ("allowed address ranges"; events of "ip_range"): "get" "create" "delete";
    "organization.auditLogs" ("the audit log"): "get";
    "organization.apiTokens" ("API tokens of the organization"): "access" "get" "create" "update" "delete" "rotate";
    "organization.envObjects" ("environment objects across workspaces"): "access" "get" "create" "update" "delete";
    "organization.webhooks" ("webhooks"; events of "webhook"): "get" "create" "update" "delete";
    "organization.alerts" ("alerts"; events of "alert"): "get" "create" "update" "delete";
    "organization.userRoles" ("roles of users"): "access";
    "organization.teamRoles" ("roles of teams"): "access";

    "workspace" ("the workspace"; events of "workspace"): "get" "delete";
    "workspace.settings" ("the workspace's settings"): "update";
    "workspace.deployments" ("deployments in the workspace"): "create";
    "workspace.apiTokens" ("API tokens of the workspace"): "get" "create" "update" "delete" "rotate";
    "workspace.envObjects" ("environment objects of the workspace"): "get" "create" "update" "delete";
    "workspace.users" ("users of the workspace and their roles"): "get" "create" "update" "delete";
    "workspace.teams" ("teams of the workspace and their roles"): "get" "create" "update" "delete";

    "deployment" ("the deployment"; events of "deployment"): "get" "update" "delete";
    "deployment.agents" ("agents that run the deployment's tasks elsewhere"): "get" "update" "delete";
    "deployment.agentTokens" ("tokens that such agents call with"; events of "agent_token"): "get" "create" "update" "delete";
    "deployment.alerts" ("alerts on the deployment"): "get" "create" "update" "delete";
    "deployment.apiTokens" ("API tokens of the deployment"): "get" "create" "update" "delete" "rotate";
    "deployment.deploys" ("deploys of code"; events of "deploy"): "get" "create" "update";
    "deployment.envObjects" ("environment objects of the deployment"): "get" "create" "update" "delete";
    "deployment.hibernation" ("when the deployment hibernates"): "update";
    "deployment.logs" ("logs of the deployment's components"): "get";
    "deployment.metrics" ("metrics of the deployment"): "get";
    "deployment.teams" ("teams with a role on the deployment"): "get" "update" "delete";
    "deployment.users" ("users with a role on the deployment"): "get" "update" "delete";
    "deployment.airflow.adminMenu" ("the Admin menu of Airflow"): "get";
    "deployment.airflow.auditLog" ("Airflow's audit log"): "get";
    "deployment.airflow.browseMenu" ("the Browse menu of Airflow"): "get";
    "deployment.airflow.clusterActivity" ("the cluster activity view of Airflow"): "get";
    "deployment.airflow.config" ("Airflow's configuration"): "get";
    "deployment.airflow.connection" ("Airflow connections"): "get" "create" "update" "delete";
    "deployment.airflow.customMenu" ("menus that plugins add to Airflow"): "get";
    "deployment.airflow.dag" ("DAGs"): "get" "update" "delete";
    "deployment.airflow.dagCode" ("the code of DAGs"): "get";
    "deployment.airflow.dagDependencies" ("dependencies between DAGs"): "get";
    "deployment.airflow.dagRun" ("DAG runs"; events of "dag_run"): "get" "create" "update" "delete";
    "deployment.airflow.datasets" ("datasets"): "get";
    "deployment.airflow.docs" ("the Docs menu of Airflow"): "get";
    "deployment.airflow.importError" ("errors of DAGs that do not import"): "get";
    "deployment.airflow.job" ("Airflow jobs"): "get";
    "deployment.airflow.plugin" ("Airflow plugins"): "get";
    "deployment.airflow.pool" ("Airflow pools"): "get" "create" "update" "delete";
    "deployment.airflow.provider" ("Airflow providers"): "get";
    "deployment.airflow.slaMiss" ("missed service levels"): "get";
    "deployment.airflow.taskInstance" ("task instances"; events of "task"): "get" "create" "update" "delete";
    "deployment.airflow.taskLog" ("logs of tasks"): "get";
    "deployment.airflow.taskReschedule" ("task reschedules"): "get";
    "deployment.airflow.trigger" ("Airflow triggers"): "get";
    "deployment.airflow.variable" ("Airflow variables"): "get" "create" "update" "delete";
    "deployment.airflow.website" ("the Airflow web interface"): "get";
    "deployment.airflow.xcom" ("XCom values"): "get" "delete";

    "dag.airflow.auditLog" ("audit log entries of the DAG"): "get";
    "dag.airflow.dag" ("the DAG"): "get" "update" "delete";
    "dag.airflow.dagCode" ("the code of the DAG"): "get";
    "dag.airflow.dagDependencies" ("dependencies of the DAG"): "get";
    "dag.airflow.dagRun" ("runs of the DAG"): "get" "create" "update" "delete";
    "dag.airflow.importError" ("import errors of the DAG"): "get";
    "dag.airflow.slaMiss" ("missed service levels of the DAG"): "get";
    "dag.airflow.taskInstance" ("task instances of the DAG"): "get" "create" "update" "delete";
    "dag.airflow.taskLog" ("logs of the DAG's tasks"): "get";
    "dag.airflow.taskReschedule" ("task reschedules of the DAG"): "get";
    "dag.airflow.xcom" ("XCom values of the DAG"): "get" "delete";
}

/// The groups that custom roles can contain, as on the wire; only DEPLOYMENT and DAG have any.
pub fn groups(scope: Option<RoleScope>) -> Vec<PermissionGroup> {
    let open = [RoleScope::Deployment, RoleScope::Dag];
    GROUPS
        .iter()
        .filter(|group| open.contains(&group.scope()) && scope.is_none_or(|scope| scope == group.scope()))
        .map(Group::on_the_wire)
        .collect()
}

/// What a permission, or a group of them, is held on.
pub(crate) const fn scope_of(name: &str) -> RoleScope {
    let first = match const_text::position(name, b'.') {
        Some(dot) => name.split_at(dot).0,
        None => name,
    };
    match first.as_bytes() {
        b"organization" => RoleScope::Organization,
        b"workspace" => RoleScope::Workspace,
        b"dag" => RoleScope::Dag,
        _ => RoleScope::Deployment,
    }
}

impl Group {
    fn scope(&self) -> RoleScope {
        scope_of(self.name)
    }

    fn on_the_wire(&self) -> PermissionGroup {
        let permission = |action: &&str| PermissionEntry {
            action: (*action).into(),
            description: format!("{} {}.", verb(action), self.things),
        };
        PermissionGroup {
            name: self.name.into(),
            scope: self.scope().as_str().into(),
            description: format!("Rights on {}.", self.things),
            permissions: self.actions.iter().map(permission).collect(),
        }
    }
}

fn verb(action: &str) -> &'static str {
    match action {
        "get" => "See",
        "create" => "Create",
        "update" => "Change",
        "delete" => "Delete",
        "rotate" => "Give new values to",
        _ => "Reach",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(scope: Option<RoleScope>) -> (usize, usize) {
        let groups = groups(scope);
        (groups.len(), groups.iter().map(|group| group.permissions.len()).sum())
    }

    #[test]
    fn only_deployment_and_dag_have_groups() {
        let table = [
            (Some(RoleScope::Organization), (0, 0)),
            (Some(RoleScope::Workspace), (0, 0)),
            (Some(RoleScope::Deployment), (38, 79)),
            (Some(RoleScope::Dag), (11, 20)),
            (None, (49, 99)),
        ];
        for (scope, expected) in table {
            assert_eq!(shown(scope), expected, "{scope:?}");
        }
    }

    #[test]
    fn a_group_reads_well() {
        let alerts = groups(None).into_iter().find(|group| group.name == "deployment.alerts").unwrap();
        assert_eq!(alerts.scope, "DEPLOYMENT");
        assert_eq!(alerts.description, "Rights on alerts on the deployment.");
        assert_eq!(alerts.permissions[2].action, "update");
        assert_eq!(alerts.permissions[2].description, "Change alerts on the deployment.");
    }

    #[test]
    fn every_name_is_there_once() {
        let mut names = NAMES.to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), NAMES.len());
    }
}
