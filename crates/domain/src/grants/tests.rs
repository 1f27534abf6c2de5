//! What follows from roles, and what does not.

use proptest::prelude::*;

use super::*;
use crate::fixtures::{
    self, d1, d1b, d2, holder, in_workspace, nothing, on_dag, on_deployment, on_tag, w1, w2,
};

fn p(name: &str) -> Permission {
    Permission::known(name)
}

#[test]
fn an_owner_has_every_permission_everywhere() {
    let owner = holder("ORGANIZATION_OWNER");
    assert!(owner.is_owner());
    let everything = PermissionSet::everything();
    assert_eq!(owner.on_organization(), everything);
    assert_eq!(owner.on_workspace(w2()), everything);
    assert_eq!(owner.on_deployment(d2(), w2()), everything);
    assert_eq!(owner.workspaces_with(p("workspace.delete")), Reach::All);
    assert_eq!(owner.visible_workspaces(), Reach::All);
    assert_eq!(owner.deployments_with(p("deployment.delete")), DeploymentReach::All);
    assert!(owner.sees_workspace(nothing()));
}

#[test]
fn workspace_roles_flow_down_to_deployments() {
    for (role, seen, changes) in [
        ("WORKSPACE_ACCESSOR", false, false),
        ("WORKSPACE_MEMBER", true, false),
        ("WORKSPACE_AUTHOR", true, false),
        ("WORKSPACE_OPERATOR", true, true),
        ("WORKSPACE_OWNER", true, true),
    ] {
        let grants = holder(role);
        assert!(grants.sees_workspace(w1()) && !grants.sees_workspace(w2()), "{role}");
        assert_eq!(grants.sees_deployment(d1(), w1()), seen, "{role}");
        assert_eq!(grants.on_deployment(d1(), w1()).contains(p("deployment.update")), changes, "{role}");
        assert!(!grants.sees_deployment(d2(), w2()), "{role}");
        assert!(!grants.on_deployment(d1(), w1()).contains(p("workspace.get")), "{role}");
        assert!(grants.on_organization().is_empty(), "{role}");
    }
}

#[test]
fn roles_on_dags_show_only_those_dags() {
    let dag = || on_dag(d1(), "etl", "DAG_VIEWER");
    let table = [
        (vec![dag()], true),
        (vec![on_tag(d1(), "daily", "DAG_AUTHOR"), in_workspace(w1(), "WORKSPACE_ACCESSOR")], true),
        (vec![dag(), on_deployment(d1b(), "DEPLOYMENT_ADMIN")], true),
        (vec![dag(), on_deployment(d1(), "DEPLOYMENT_ACCESSOR")], false),
        (vec![on_deployment(d1(), "DEPLOYMENT_ACCESSOR"), dag()], false),
        (vec![dag(), in_workspace(w1(), "WORKSPACE_MEMBER")], false),
        (vec![in_workspace(w2(), "WORKSPACE_MEMBER")], false),
    ];
    for (held, is_narrow) in table {
        assert_eq!(Grants::new(held.clone()).sees_only_dags_of(d1()), is_narrow, "{held:?}");
    }
    assert!(!holder("ORGANIZATION_OWNER").sees_only_dags_of(d1()));
}

#[test]
fn lower_roles_show_what_is_above_them() {
    for grant in
        [on_deployment(d1(), "Local"), on_dag(d1(), "etl", "Reviewer"), on_tag(d1(), "daily", "DAG_VIEWER")]
    {
        let on_dag = !matches!(grant.on, On::Deployment { .. });
        let grants = Grants::new([grant]);
        assert_eq!(grants.on_workspace(w1()), PermissionSet::EMPTY.with(p("workspace.get")));
        assert!(grants.sees_deployment(d1(), w1()));
        assert!(!grants.sees_deployment(d1b(), w1()), "the computed role reaches no deployment");
        assert_eq!(grants.on_deployment(d1(), w1()).contains(p("deployment.get")), on_dag);
    }
}

#[test]
fn rights_on_a_deployment_are_rights_on_its_dags() {
    let etl = fixtures::on_dag(d1(), "etl", "DAG_VIEWER").on;
    let other = fixtures::on_dag(d1(), "other", "DAG_VIEWER").on;
    let author = roles::of_dag(DagRoleName::Author);
    assert!(holder("DEPLOYMENT_ADMIN").at(&etl).contains_all(author));
    assert!(holder("WORKSPACE_OPERATOR").at(&etl).contains_all(author));
    assert!(!holder("WORKSPACE_MEMBER").at(&etl).contains_all(author));
    assert!(holder("DAG_AUTHOR").at(&etl).contains_all(author));
    assert_eq!(holder("DAG_AUTHOR").at(&other), PermissionSet::EMPTY.with(p("deployment.get")));
}

#[test]
fn reach_is_what_lists_filter_by() {
    let grants = Grants::new([
        in_workspace(w1(), "WORKSPACE_MEMBER"),
        on_deployment(d1(), "DEPLOYMENT_ADMIN"),
        on_deployment(d2(), "Tuner"),
    ]);
    let only = |workspaces: &[WorkspaceId], deployments: &[DeploymentId]| DeploymentReach::Only {
        workspaces: workspaces.to_vec(),
        deployments: deployments.to_vec(),
    };
    assert_eq!(grants.visible_workspaces(), Reach::Only(vec![w1(), w2()]));
    assert_eq!(grants.workspaces_with(p("workspace.delete")), Reach::Only(vec![]));
    assert_eq!(grants.visible_deployments(), only(&[w1()], &[d2()]));
    assert_eq!(grants.deployments_with(p("deployment.get")), only(&[w1()], &[d2()]));
    assert_eq!(grants.deployments_with(p("deployment.logs.get")), only(&[w1()], &[]));
    assert_eq!(grants.deployments_with(p("deployment.update")), only(&[], &[d1(), d2()]));
    assert_eq!(grants.deployments_with(p("deployment.delete")), only(&[], &[d1()]));
    assert_eq!(holder("WORKSPACE_ACCESSOR").visible_deployments(), only(&[], &[]));
    assert_eq!(holder("Local").visible_deployments(), only(&[], &[]), "it reads logs and nothing else");
}

#[test]
fn a_token_is_a_member_too() {
    let token = Grants::for_token([in_workspace(w1(), "WORKSPACE_AUTHOR")]);
    assert_eq!(token.on_organization(), roles::of_organization(OrganizationRole::Member));
    assert!(!token.is_owner());
    assert!(Grants::for_token([fixtures::owner()]).is_owner());
}

#[test]
fn built_in_roles_are_found_where_they_can_be_held() {
    let on = On::Workspace(w1());
    assert_eq!(Held::built_in(&on, "WORKSPACE_OWNER"), Some(Held::Workspace(WorkspaceRoleName::Owner)));
    for elsewhere in ["ORGANIZATION_OWNER", "DAG_AUTHOR", "Tuner", "workspace_owner"] {
        assert_eq!(Held::built_in(&on, elsewhere), None, "{elsewhere}");
    }
}

proptest! {
    #[test]
    fn more_grants_never_mean_fewer_rights(
        some in prop::collection::vec(fixtures::any_grant(), 0..6),
        more in prop::collection::vec(fixtures::any_grant(), 0..6),
    ) {
        let before = Grants::new(some.clone());
        let after = Grants::new(some.into_iter().chain(more));
        prop_assert!(after.on_organization().contains_all(before.on_organization()));
        for (deployment, workspace) in [(d1(), w1()), (d1b(), w1()), (d2(), w2())] {
            prop_assert!(after.on_workspace(workspace).contains_all(before.on_workspace(workspace)));
            let on = On::Deployment { id: deployment, workspace_id: workspace };
            prop_assert!(after.at(&on).contains_all(before.at(&on)));
            prop_assert!(after.sees_deployment(deployment, workspace) || !before.sees_deployment(deployment, workspace));
        }
    }

    #[test]
    fn lists_and_single_reads_agree(some in prop::collection::vec(fixtures::any_grant(), 0..6), index in 0..159_usize) {
        let grants = Grants::new(some);
        let permission = Permission::all().nth(index).unwrap();
        if permission.scope() != RoleScope::Deployment {
            return Ok(());
        }
        for (deployment, workspace) in [(d1(), w1()), (d1b(), w1()), (d2(), w2())] {
            let listed = |reach: DeploymentReach| match reach {
                DeploymentReach::All => true,
                DeploymentReach::Only { workspaces, deployments } => {
                    workspaces.contains(&workspace) || deployments.contains(&deployment)
                }
            };
            let held = grants.on_deployment(deployment, workspace).contains(permission);
            prop_assert_eq!(listed(grants.deployments_with(permission)), held);
            let reads = grants.on_deployment(deployment, workspace).contains(p("deployment.get"));
            prop_assert_eq!(listed(grants.visible_deployments()), reads);
        }
    }
}
