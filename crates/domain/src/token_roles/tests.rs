//! Which roles a token may hold, and who may give them to it.

use super::*;
use crate::fixtures::{
    d1, d1b, d2, deployment, facts, in_organization, in_workspace, member_with, nothing, on_dag,
    on_deployment, on_tag, org, owner, told, w1, w2,
};

/// Entries of entity type, entity, deployment and role.
type Entry<'a> = (&'a str, &'a str, Option<DeploymentId>, &'a str);

fn entries(list: &[Entry]) -> Vec<ApiTokenRole> {
    let entry = |(kind, entity, deployment_id, role): &Entry| ApiTokenRole {
        entity_type: kind.parse().unwrap(),
        entity_id: (*entity).into(),
        deployment_id: *deployment_id,
        role: (*role).into(),
    };
    list.iter().map(entry).collect()
}

fn outcome(
    caller: &str,
    belongs_to: Target,
    current: &[Grant],
    list: &[Entry],
) -> std::result::Result<Vec<Grant>, Vec<String>> {
    update(org(), belongs_to, current, &entries(list), &member_with(caller), &facts())
        .map_err(|refusal| told(&refusal))
}

#[test]
fn the_primary_role_is_kept_when_it_is_left_out() {
    let (w1, d1, d1b) = (w1(), d1(), d1b());
    let current = [in_workspace(w1, "WORKSPACE_AUTHOR"), on_deployment(d1, "Tuner")];
    let changed = |list: &[Entry]| outcome("WORKSPACE_OWNER", Target::Workspace(w1), &current, list);
    assert_eq!(
        changed(&[("DEPLOYMENT", d1b.as_str(), None, "Local")]),
        Ok(vec![in_workspace(w1, "WORKSPACE_AUTHOR"), on_deployment(d1b, "Local")])
    );
    assert_eq!(
        changed(&[("WORKSPACE", w1.as_str(), None, "WORKSPACE_MEMBER")]),
        Ok(vec![in_workspace(w1, "WORKSPACE_MEMBER")])
    );
}

#[test]
fn organization_tokens_hold_roles_on_anything() {
    let (o, w, d) = (org(), w1(), d1());
    let list: [Entry; 5] = [
        ("DAG_TAG", "daily", Some(d), "DAG_AUTHOR"),
        ("DAG", "etl", Some(d), "Reviewer"),
        ("DEPLOYMENT", d.as_str(), Some(d), "Tuner"),
        ("WORKSPACE", w.as_str(), None, "WORKSPACE_OWNER"),
        ("ORGANIZATION", o.as_str(), None, "ORGANIZATION_MEMBER"),
    ];
    let expected = vec![
        in_organization(podium_api::enums::OrganizationRole::Member),
        in_workspace(w, "WORKSPACE_OWNER"),
        on_deployment(d, "Tuner"),
        on_dag(d, "etl", "Reviewer"),
        on_tag(d, "daily", "DAG_AUTHOR"),
    ];
    assert_eq!(outcome("ORGANIZATION_OWNER", Target::Organization, &[owner()], &list), Ok(expected.clone()));

    let shown = on_the_wire(o, &expected);
    assert_eq!(
        update(o, Target::Organization, &[owner()], &shown, &member_with("ORGANIZATION_OWNER"), &facts()),
        Ok(expected)
    );
    assert_eq!(shown[0], entries(&list)[4]);
    assert_eq!(shown[2].deployment_id, None);
}

#[test]
fn entries_stay_where_the_token_belongs() {
    let (w, d) = (Target::Workspace(w1()), deployment(d1()));
    let (o, w1, w2, d1, d2, none) = (org(), w1(), w2(), d1(), d2(), nothing());
    let (o, in_w1, in_w2, on_d1, on_d2) = (o.as_str(), w1.as_str(), w2.as_str(), d1.as_str(), d2.as_str());
    let table: [(Target, &[Entry], &[&str]); 16] = [
        (w, &[("ORGANIZATION", o, None, "ORGANIZATION_MEMBER")], &["roles[0].entityId scope"]),
        (w, &[("WORKSPACE", in_w2, None, "WORKSPACE_OWNER")], &["roles[0].entityId scope"]),
        (w, &[("DEPLOYMENT", on_d2, None, "Tuner")], &["roles[0].entityId scope"]),
        (w, &[("DAG", "etl", Some(d1), "DAG_VIEWER")], &["roles[0].entityId scope"]),
        (d, &[("DAG", "etl", Some(d1), "DAG_VIEWER"), ("DAG_TAG", "daily", Some(d1), "DAG_VIEWER")], &[]),
        (d, &[("DAG", "etl", Some(d2), "DAG_VIEWER")], &["roles[0].entityId scope"]),
        (d, &[("DEPLOYMENT", on_d2, None, "Tuner")], &["roles[0].entityId scope"]),
        (d, &[("WORKSPACE", in_w1, None, "WORKSPACE_OWNER")], &["roles[0].entityId scope"]),
        (d, &[("DAG", "etl", None, "DAG_VIEWER")], &["roles[0].deploymentId required"]),
        (d, &[("DAG_TAG", " ", Some(d1), "DAG_VIEWER")], &["roles[0].entityId required"]),
        (d, &[("DAG", "etl", Some(none), "DAG_VIEWER")], &["roles[0].deploymentId unknown"]),
        (d, &[("DAG", "etl", Some(d1), "Tuner")], &["roles[0].role scope"]),
        (d, &[("DEPLOYMENT", on_d1, Some(d2), "Tuner")], &["roles[0].deploymentId conflict"]),
        (d, &[("DEPLOYMENT", "x", None, "Tuner")], &["roles[0].entityId unknown"]),
        (
            d,
            &[("DEPLOYMENT", on_d1, None, "Tuner"), ("DEPLOYMENT", on_d1, None, "Local")],
            &["roles[1] duplicate"],
        ),
        (
            d,
            &[
                ("DAG", "etl", Some(d1), "DAG_VIEWER"),
                ("DAG", "etl", Some(d1), "DAG_VIEWER"),
                ("DAG", "", None, "x"),
            ],
            &["roles[1] duplicate", "roles[2].entityId required"],
        ),
    ];
    let current = [in_workspace(w1, "WORKSPACE_OWNER"), on_deployment(d1, "Tuner")];
    for (belongs_to, list, expected) in table {
        let told = outcome("ORGANIZATION_OWNER", belongs_to, &current, list).err().unwrap_or_default();
        assert_eq!(told, expected, "{belongs_to:?} {list:?}");
    }
    let wrong =
        outcome("ORGANIZATION_OWNER", Target::Organization, &current, &[("ORGANIZATION", in_w1, None, "x")]);
    assert_eq!(wrong.unwrap_err(), ["roles[0].entityId unknown"]);
}

#[test]
fn a_caller_can_grant_only_to_tokens_that_it_manages_and_only_what_it_holds() {
    let w = w1();
    let asks = |role| [("WORKSPACE", w.as_str(), None, role)];
    let current = [in_workspace(w, "WORKSPACE_OWNER")];
    let table: [(&str, &str, &[&str]); 5] = [
        ("WORKSPACE_OPERATOR", "WORKSPACE_MEMBER", &[]),
        ("WORKSPACE_OPERATOR", "WORKSPACE_OWNER", &[]),
        ("WORKSPACE_OWNER", "WORKSPACE_OWNER", &[]),
        ("WORKSPACE_AUTHOR", "WORKSPACE_MEMBER", &["404"]),
        ("DEPLOYMENT_ADMIN", "WORKSPACE_ACCESSOR", &["404"]),
    ];
    for (caller, role, expected) in table {
        let told = outcome(caller, Target::Workspace(w), &current, &asks(role)).err().unwrap_or_default();
        assert_eq!(told, expected, "{caller} gives {role}");
    }
    let weaker = [in_workspace(w, "WORKSPACE_MEMBER")];
    let raised = outcome("WORKSPACE_OPERATOR", Target::Workspace(w), &weaker, &asks("WORKSPACE_OWNER"));
    assert_eq!(raised.unwrap_err(), ["403"]);
}

#[test]
fn mentioned_resources_are_looked_up() {
    let (w, d) = (w1(), d1());
    let mentioned = mentions(&entries(&[
        ("WORKSPACE", w.as_str(), None, "WORKSPACE_OWNER"),
        ("DEPLOYMENT", d.as_str(), None, "Tuner"),
        ("DEPLOYMENT", "nonsense", None, "Local"),
        ("DAG", "etl", Some(d2()), "DAG_AUTHOR"),
    ]));
    assert_eq!(mentioned.workspaces, [w].into());
    assert_eq!(mentioned.deployments, [d, d2()].into());
    assert_eq!(mentioned.custom_roles, ["Local".to_owned(), "Tuner".to_owned()].into());
}
