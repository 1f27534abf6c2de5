//! The table of roles against what the documentation says of it.

use super::*;

fn set(name: &str) -> PermissionSet {
    named(name)
}

#[test]
fn each_role_has_its_permissions() {
    let table = [
        ("ORGANIZATION_MEMBER", 12),
        ("ORGANIZATION_OBSERVE_MEMBER", 12),
        ("ORGANIZATION_OBSERVE_ADMIN", 12),
        ("ORGANIZATION_BILLING_ADMIN", 13),
        ("ORGANIZATION_OWNER", 171),
        ("WORKSPACE_ACCESSOR", 1),
        ("WORKSPACE_MEMBER", 28),
        ("WORKSPACE_AUTHOR", 49),
        ("WORKSPACE_OPERATOR", 86),
        ("WORKSPACE_OWNER", 100),
        ("DEPLOYMENT_ACCESSOR", 1),
        ("DEPLOYMENT_ADMIN", 79),
        ("DAG_VIEWER", 11),
        ("DAG_AUTHOR", 20),
    ];
    let counted: Vec<_> = BUILT_IN.iter().map(|role| (role.name, role.permissions().len())).collect();
    assert_eq!(counted, table);
}

#[test]
fn each_role_contains_the_weaker_ones() {
    for pair in BUILT_IN.windows(2).filter(|pair| pair[0].scope == pair[1].scope) {
        assert!(pair[1].permissions().contains_all(pair[0].permissions()), "{}", pair[1].name);
    }
}

#[test]
fn the_ends_of_the_hierarchies_are_whole() {
    let everything = PermissionSet::everything();
    let of_workspaces =
        everything.of_scope(RoleScope::Workspace).union(everything.of_scope(RoleScope::Deployment));
    for (role, expected) in [
        ("ORGANIZATION_OWNER", everything),
        ("WORKSPACE_OWNER", of_workspaces),
        ("DEPLOYMENT_ADMIN", everything.of_scope(RoleScope::Deployment)),
        ("DAG_AUTHOR", everything.of_scope(RoleScope::Dag)),
    ] {
        let held = set(role);
        let differing = expected.without(held).union(held.without(expected));
        assert!(differing == PermissionSet::EMPTY, "{role} lacks these or has too many: {differing:?}");
    }
}

#[test]
fn who_gets_a_permission_first() {
    let table = [
        ("organization.apiTokens.access", "ORGANIZATION_MEMBER"),
        ("organization.workspaces.get", "ORGANIZATION_MEMBER"),
        ("organization.settings.update", "ORGANIZATION_BILLING_ADMIN"),
        ("organization.workspaces.create", "ORGANIZATION_OWNER"),
        ("organization.auditLogs.get", "ORGANIZATION_OWNER"),
        ("deployment.airflow.xcom.get", "WORKSPACE_MEMBER"),
        ("deployment.deploys.create", "WORKSPACE_AUTHOR"),
        ("workspace.envObjects.get", "WORKSPACE_AUTHOR"),
        ("deployment.airflow.connection.get", "WORKSPACE_AUTHOR"),
        ("deployment.airflow.connection.update", "WORKSPACE_OPERATOR"),
        ("deployment.airflow.adminMenu.get", "WORKSPACE_OPERATOR"),
        ("workspace.apiTokens.rotate", "WORKSPACE_OPERATOR"),
        ("workspace.deployments.create", "WORKSPACE_OPERATOR"),
        ("deployment.users.update", "WORKSPACE_OWNER"),
        ("workspace.settings.update", "WORKSPACE_OWNER"),
    ];
    for (permission, expected) in table {
        let permission = Permission::known(permission);
        let first = BUILT_IN.iter().filter(|role| role.name.contains(&expected[..5]));
        let first = first.clone().find(|role| role.permissions().contains(permission));
        assert_eq!(first.map(|role| role.name), Some(expected), "{permission}");
    }
}

#[test]
fn typed_names_lead_to_the_same_rows() {
    for role in OrganizationRole::ALL {
        assert_eq!(of_organization(*role), set(role.as_str()), "{role}");
    }
    for role in WorkspaceRoleName::ALL {
        assert_eq!(of_workspace(*role), set(role.as_str()), "{role}");
    }
    for role in DeploymentRoleName::ALL {
        assert_eq!(role.as_str().parse(), Ok(*role));
        assert!(!of_deployment(*role).is_empty());
    }
    for role in DagRoleName::ALL {
        assert_eq!(role.as_str().parse(), Ok(*role));
        assert!(!of_dag(*role).is_empty());
    }
}

#[test]
fn built_in_names_are_taken_however_capitalized() {
    for (name, taken) in [("DAG_AUTHOR", true), ("workspace_Owner", true), ("Owner", false), ("", false)] {
        assert_eq!(is_built_in(name), taken, "{name}");
    }
}

#[test]
fn the_wire_shows_sorted_permissions() {
    let roles = default_roles();
    assert_eq!(roles.len(), 14);
    assert!(roles.iter().all(|role| role.permissions.is_sorted()));
    let sizes: Vec<_> = templates().into_iter().map(|t| (t.name, t.permissions.len())).collect();
    let expected = [("Deployment_Viewer", 27), ("Deployment_Author", 47), ("Deployment_Operator", 75)];
    assert_eq!(sizes, expected.map(|(name, size)| (name.to_owned(), size)));
    assert!(templates().iter().flat_map(|t| &t.permissions).all(|p| p.starts_with("deployment.")));
}

#[test]
fn the_matrix_has_a_line_for_each_permission() {
    let matrix = matrix();
    let line = |name: &str| matrix.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    assert_eq!(line("organization.get ").split_whitespace().skip(1).collect::<String>(), "xxxxx.........");
    assert_eq!(line("deployment.get ").split_whitespace().skip(1).collect::<String>(), "....x.xxxxxx..");
    assert_eq!(line("dag.airflow.dag.get").split_whitespace().skip(1).collect::<String>(), "....x.......xx");
    assert!(matrix.lines().all(|line| line.len() <= 110 && line.trim_end() == line));
}
