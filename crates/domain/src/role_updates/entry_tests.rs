//! What the entries of a role update may say.

use podium_api::subjects::SubjectRoles;

use super::requested::{KEEP, dags, deployments, outcome, refused, workspaces};
use crate::fixtures::{
    d1, d1b, d2, holder, in_workspace, member, member_with, nothing, on_dag, on_deployment, on_tag, w1, w2,
};

#[test]
fn other_roles_need_one_in_the_organization() {
    let owner = holder("ORGANIZATION_OWNER");
    let requested = || workspaces(&[(w1(), "WORKSPACE_MEMBER")]);
    assert_eq!(outcome(&owner, &[], requested()), refused(&["organizationRole required"]));
    let both = SubjectRoles { organization_role: Some("ORGANIZATION_MEMBER".into()), ..requested() };
    let given = vec![member(), in_workspace(w1(), "WORKSPACE_MEMBER")];
    assert_eq!(outcome(&owner, &[], both), Ok(given.clone()));
    assert_eq!(outcome(&owner, &[member()], requested()), Ok(given));
    assert_eq!(outcome(&owner, &[], KEEP), Ok(vec![]));
    let wrong = SubjectRoles { organization_role: Some("KING".into()), ..requested() };
    assert_eq!(outcome(&owner, &[], wrong), refused(&["organizationRole enum"]));
}

#[test]
fn entries_are_listed_once() {
    let owner = holder("ORGANIZATION_OWNER");
    let table = [
        (
            workspaces(&[(w1(), "WORKSPACE_OWNER"), (w1(), "WORKSPACE_MEMBER")]),
            refused(&["workspaceRoles[1].workspaceId duplicate"]),
        ),
        (
            deployments(&[(d1(), "Tuner"), (d2(), "Tuner"), (d1(), "Tuner")]),
            refused(&["deploymentRoles[2].deploymentId duplicate"]),
        ),
        (
            dags(&[(d1(), "etl", "", "DAG_VIEWER"), (d1(), "etl", "", "DAG_VIEWER")]),
            refused(&["dagRoles[1] duplicate"]),
        ),
        (
            dags(&[(d1(), "etl", "", "DAG_VIEWER"), (d1(), "etl", "", "Reviewer")]),
            Ok(vec![member(), on_dag(d1(), "etl", "DAG_VIEWER"), on_dag(d1(), "etl", "Reviewer")]),
        ),
    ];
    for (requested, expected) in table {
        assert_eq!(outcome(&owner, &[member()], requested.clone()), expected, "{requested:?}");
    }
}

#[test]
fn entries_name_what_exists_and_fits() {
    let owner = holder("ORGANIZATION_OWNER");
    let table: [(SubjectRoles, &[&str]); 11] = [
        (workspaces(&[(nothing(), "WORKSPACE_OWNER")]), &["workspaceRoles[0].workspaceId unknown"]),
        (deployments(&[(nothing(), "Tuner")]), &["deploymentRoles[0].deploymentId unknown"]),
        (deployments(&[(d1(), "Nobody")]), &["deploymentRoles[0].role unknown"]),
        (deployments(&[(d1(), "tuner")]), &["deploymentRoles[0].role unknown"]),
        (deployments(&[(d1(), "Reviewer")]), &["deploymentRoles[0].role scope"]),
        (deployments(&[(d1(), "Local"), (d2(), "Local")]), &["deploymentRoles[1].role restricted"]),
        (deployments(&[(d1(), "DAG_AUTHOR")]), &["deploymentRoles[0].role unknown"]),
        (dags(&[(d1(), "etl", "", "Tuner")]), &["dagRoles[0].role scope"]),
        (dags(&[(d1(), "etl", "daily", "DAG_VIEWER")]), &["dagRoles[0].dagTag conflict"]),
        (dags(&[(d1(), "", "", "DAG_VIEWER")]), &["dagRoles[0].dagTag required"]),
        (
            dags(&[(nothing(), " ", "", "DAG_VIEWER")]),
            &["dagRoles[0].deploymentId unknown", "dagRoles[0].dagTag required"],
        ),
    ];
    for (requested, expected) in table {
        assert_eq!(outcome(&owner, &[member()], requested.clone()), refused(expected), "{requested:?}");
    }
    let tagged = outcome(&owner, &[member()], dags(&[(d1(), "", "daily", "DAG_VIEWER")]));
    assert_eq!(tagged, Ok(vec![member(), on_tag(d1(), "daily", "DAG_VIEWER")]));
}

#[test]
fn all_wrong_fields_are_reported_before_missing_rights() {
    let requested = SubjectRoles {
        organization_role: Some("KING".into()),
        deployment_roles: deployments(&[(d1(), "Nobody")]).deployment_roles,
        dag_roles: dags(&[(d1(), "", "", "DAG_VIEWER")]).dag_roles,
        ..workspaces(&[(w1(), "WORKSPACE_OWNER"), (nothing(), "WORKSPACE_OWNER")])
    };
    let expected = [
        "organizationRole enum",
        "workspaceRoles[1].workspaceId unknown",
        "deploymentRoles[0].role unknown",
        "dagRoles[0].dagTag required",
    ];
    assert_eq!(outcome(&member_with("WORKSPACE_MEMBER"), &[member()], requested), refused(&expected));
}

#[test]
fn invisible_resources_are_unknown_to_the_caller() {
    let caller = member_with("WORKSPACE_OWNER");
    let held = [member(), in_workspace(w2(), "WORKSPACE_AUTHOR")];
    let table: [(SubjectRoles, &[&str]); 3] = [
        (workspaces(&[(w2(), "WORKSPACE_AUTHOR")]), &["workspaceRoles[0].workspaceId unknown"]),
        (workspaces(&[(w2(), "WORKSPACE_OWNER")]), &["workspaceRoles[0].workspaceId unknown"]),
        (deployments(&[(d2(), "Tuner")]), &["deploymentRoles[0].deploymentId unknown"]),
    ];
    for (requested, expected) in table {
        assert_eq!(outcome(&caller, &held, requested.clone()), refused(expected), "{requested:?}");
    }
}

#[test]
fn sending_back_the_computed_accessor_has_no_effect() {
    let owner = holder("ORGANIZATION_OWNER");
    let accessor = || workspaces(&[(w1(), "WORKSPACE_ACCESSOR")]);
    let held = vec![member(), on_deployment(d1(), "Tuner")];
    assert_eq!(outcome(&owner, &held, accessor()), Ok(held.clone()));
    let requested =
        SubjectRoles { deployment_roles: deployments(&[(d1(), "Tuner")]).deployment_roles, ..accessor() };
    assert_eq!(outcome(&owner, &[member()], requested), Ok(held.clone()));
    assert_eq!(outcome(&member_with("DEPLOYMENT_ADMIN"), &held, accessor()), Ok(held));
    let stored = vec![member(), in_workspace(w1(), "WORKSPACE_ACCESSOR")];
    assert_eq!(outcome(&owner, &[member()], accessor()), Ok(stored.clone()), "by itself it is a role");
    let both = [stored, vec![on_deployment(d1b(), "Tuner")]].concat();
    assert_eq!(outcome(&owner, &both, accessor()), Ok(both.clone()));
}
