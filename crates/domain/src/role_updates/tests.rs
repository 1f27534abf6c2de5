//! Who may change which roles of whom.

use podium_api::enums::OrganizationRole;

use super::requested::{KEEP, dags, deployments, organization, outcome, refused, workspaces};
use super::*;
use crate::fixtures::{
    d1, d1b, d2, facts, holder, in_organization, in_workspace, member, member_with, on_dag, on_deployment,
    on_tag, owner, w1, w2,
};
use crate::grants::Held;

#[test]
fn absent_lists_keep_the_stored_ones_and_empty_lists_clear() {
    let held = [
        member(),
        in_workspace(w1(), "WORKSPACE_AUTHOR"),
        on_deployment(d1(), "Tuner"),
        on_dag(d1(), "etl", "DAG_VIEWER"),
        on_tag(d1(), "daily", "DAG_AUTHOR"),
    ];
    let without = |index: usize| {
        let mut rest = held.to_vec();
        rest.remove(index);
        rest
    };
    let owner = holder("ORGANIZATION_OWNER");
    assert_eq!(outcome(&owner, &held, KEEP), Ok(held.to_vec()));
    assert_eq!(outcome(&owner, &held, workspaces(&[])), Ok(without(1)));
    assert_eq!(outcome(&owner, &held, deployments(&[])), Ok(without(2)));
    assert_eq!(outcome(&owner, &held, dags(&[])), Ok(held[..3].to_vec()));
}

#[test]
fn a_list_replaces_what_the_caller_manages() {
    let held = [member(), in_workspace(w1(), "WORKSPACE_AUTHOR"), in_workspace(w2(), "WORKSPACE_AUTHOR")];
    let caller = member_with("WORKSPACE_OWNER");
    let elsewhere = in_workspace(w2(), "WORKSPACE_AUTHOR");
    for (requested, in_w1) in [
        (workspaces(&[]), None),
        (workspaces(&[(w1(), "WORKSPACE_OWNER")]), Some("WORKSPACE_OWNER")),
        (workspaces(&[(w1(), "WORKSPACE_AUTHOR")]), Some("WORKSPACE_AUTHOR")),
    ] {
        let expected = [member()].into_iter().chain(in_w1.map(|role| in_workspace(w1(), role)));
        assert_eq!(outcome(&caller, &held, requested), Ok(expected.chain([elsewhere.clone()]).collect()));
    }
}

#[test]
fn entries_outside_the_callers_scopes_may_be_repeated_but_not_changed() {
    let caller = Grants::new([
        member(),
        in_workspace(w1(), "WORKSPACE_OWNER"),
        in_workspace(w2(), "WORKSPACE_MEMBER"),
    ]);
    let held = [
        member(),
        in_workspace(w2(), "WORKSPACE_AUTHOR"),
        on_deployment(d2(), "Tuner"),
        on_dag(d2(), "etl", "Reviewer"),
    ];
    let unchanged = || Ok(held.to_vec());
    let table = [
        (workspaces(&[(w2(), "WORKSPACE_AUTHOR")]), unchanged()),
        (workspaces(&[(w2(), "WORKSPACE_MEMBER")]), refused(&["403"])),
        (workspaces(&[]), unchanged()),
        (deployments(&[(d2(), "Tuner")]), unchanged()),
        (deployments(&[(d2(), "DEPLOYMENT_ACCESSOR")]), refused(&["403"])),
        (dags(&[(d2(), "etl", "", "Reviewer")]), unchanged()),
        (dags(&[(d2(), "etl", "", "DAG_VIEWER")]), refused(&["403"])),
        (dags(&[(d2(), "new", "", "Reviewer")]), refused(&["403"])),
    ];
    for (requested, expected) in table {
        assert_eq!(outcome(&caller, &held, requested.clone()), expected, "{requested:?}");
    }
}

#[test]
fn nobody_can_grant_more_than_they_hold() {
    let host = member_with("Host");
    let table = [
        (deployments(&[(d1(), "DEPLOYMENT_ADMIN")]), refused(&["403"])),
        (deployments(&[(d1(), "Tuner")]), refused(&["403"])),
        (dags(&[(d1(), "etl", "", "DAG_VIEWER")]), refused(&["403"])),
        (deployments(&[(d1(), "Host")]), Ok(vec![member(), on_deployment(d1(), "Host")])),
        (
            deployments(&[(d1(), "DEPLOYMENT_ACCESSOR")]),
            Ok(vec![member(), on_deployment(d1(), "DEPLOYMENT_ACCESSOR")]),
        ),
    ];
    for (requested, expected) in table {
        assert_eq!(outcome(&host, &[member()], requested.clone()), expected, "{requested:?}");
    }
    let taken = outcome(&host, &[member(), on_deployment(d1(), "DEPLOYMENT_ADMIN")], deployments(&[]));
    assert_eq!(taken, Ok(vec![member()]), "taking away is not giving");
    let admin = member_with("DEPLOYMENT_ADMIN");
    let given = outcome(&admin, &[member()], dags(&[(d1(), "etl", "", "DAG_AUTHOR")]));
    assert_eq!(given, Ok(vec![member(), on_dag(d1(), "etl", "DAG_AUTHOR")]));
}

#[test]
fn only_owners_change_organization_roles() {
    let table = [
        ("WORKSPACE_OWNER", "ORGANIZATION_OWNER", refused(&["403"])),
        ("WORKSPACE_OWNER", "ORGANIZATION_MEMBER", Ok(vec![member()])),
        ("ORGANIZATION_OWNER", "ORGANIZATION_OWNER", Ok(vec![owner()])),
        ("ORGANIZATION_OWNER", "OWNER", refused(&["organizationRole enum"])),
        ("ORGANIZATION_OWNER", "WORKSPACE_OWNER", refused(&["organizationRole enum"])),
    ];
    for (caller, requested, expected) in table {
        assert_eq!(
            outcome(&member_with(caller), &[member()], organization(requested)),
            expected,
            "{caller} {requested}"
        );
    }
    let error = crate::assignable::role("OWNER", &On::Organization, &facts()).unwrap_err();
    assert!(
        OrganizationRole::ALL.iter().all(|role| error.message.contains(role.as_str())),
        "{}",
        error.message
    );
}

#[test]
fn teams_are_managed_by_their_own_right() {
    let held = on_deployment(d1(), "Tuner").held;
    let Held::Custom { id, name, permissions } = held else { panic!() };
    let permissions = permissions.with(Permission::known("deployment.teams.update"));
    let caller = Grants::new([Grant {
        on: on_deployment(d1(), "Tuner").on,
        held: Held::Custom { id, name, permissions },
    }]);
    let change = Change::Set(deployments(&[(d1(), "DEPLOYMENT_ACCESSOR")]));
    for (kind, allowed) in [(SubjectKind::Team, true), (SubjectKind::User, false)] {
        assert_eq!(update(kind, &[member()], &change, &caller, &facts()).is_ok(), allowed, "{kind:?}");
    }
}

#[test]
fn leaving_takes_everything_and_an_owner() {
    let held = [in_organization(OrganizationRole::Member), in_workspace(w1(), "WORKSPACE_OWNER")];
    let leave = |caller: &Grants| update(SubjectKind::User, &held, &Change::Leave, caller, &facts());
    assert_eq!(leave(&holder("ORGANIZATION_OWNER")), Ok(vec![]));
    assert_eq!(leave(&member_with("WORKSPACE_OWNER")).unwrap_err().status(), 403);
}

#[test]
fn only_a_lone_null_means_leaving() {
    let request = |organization_role, workspace_roles| UpdateUserRolesRequest {
        organization_role,
        workspace_roles,
        ..UpdateUserRolesRequest::default()
    };
    assert_eq!(Change::from(request(Patch::Clear, Patch::Keep)), Change::Leave);
    assert_eq!(Change::from(request(Patch::Keep, Patch::Keep)), Change::Set(KEEP));
    assert_eq!(Change::from(request(Patch::Clear, Patch::Clear)), Change::Set(KEEP));
    assert_eq!(Change::from(request(Patch::Clear, Patch::Set(vec![]))), Change::Set(workspaces(&[])));
    assert_eq!(Change::from(request(Patch::Set(String::new()), Patch::Keep)), Change::Set(KEEP));
    let set = Patch::Set("ORGANIZATION_OWNER".to_owned());
    assert_eq!(Change::from(request(set, Patch::Keep)), Change::Set(organization("ORGANIZATION_OWNER")));
}

#[test]
fn mentioned_resources_are_looked_up() {
    let requested = SubjectRoles {
        deployment_roles: deployments(&[(d1(), "Tuner"), (d2(), "DEPLOYMENT_ADMIN")]).deployment_roles,
        dag_roles: dags(&[(d1b(), "etl", "", "Reviewer")]).dag_roles,
        ..workspaces(&[(w1(), "WORKSPACE_OWNER")])
    };
    let mentions = Change::Set(requested).mentions();
    assert_eq!(mentions.workspaces, [w1()].into());
    assert_eq!(mentions.deployments, [d1(), d1b(), d2()].into());
    assert_eq!(mentions.custom_roles, ["Reviewer".to_owned(), "Tuner".to_owned()].into());
}
