//! Who may make and manage which tokens.

use super::*;
use crate::Permission;
use crate::fixtures::{d1, d2, deployment, facts, holder, member_with, nothing, org, told, w1, w2};

fn request(scope: TokenScope, entity_id: Option<EntityId>, role: &str) -> CreateApiTokenRequest {
    CreateApiTokenRequest {
        name: " ci ".into(),
        description: Some(" builds ".into()),
        scope,
        entity_id,
        role: role.into(),
        kind: None,
        token_expiry_period_in_days: Some(30),
    }
}

fn made(caller: &str, request: &CreateApiTokenRequest) -> std::result::Result<NewToken, Vec<String>> {
    create(org(), request, &member_with(caller), &facts()).map_err(|refusal| told(&refusal))
}

#[test]
fn a_token_takes_a_role_that_fits_its_scope() {
    use TokenScope::{Deployment, Organization, Workspace};
    let table: [(TokenScope, Option<EntityId>, &str, &[&str]); 18] = [
        (Organization, None, "ORGANIZATION_OWNER", &[]),
        (Organization, Some(org().into()), "ORGANIZATION_MEMBER", &[]),
        (Organization, Some(w1().into()), "ORGANIZATION_MEMBER", &["entityId conflict"]),
        (Organization, None, "WORKSPACE_OWNER", &["role enum"]),
        (Organization, None, "Tuner", &["role enum"]),
        (Workspace, Some(w1().into()), "WORKSPACE_OWNER", &[]),
        (Workspace, None, "WORKSPACE_OWNER", &["entityId required"]),
        (Workspace, Some(nothing()), "WORKSPACE_OWNER", &["entityId unknown"]),
        (Workspace, Some(d1().into()), "DEPLOYMENT_ADMIN", &["entityId unknown", "role enum"]),
        (Deployment, Some(d1().into()), "DEPLOYMENT_ADMIN", &[]),
        (Deployment, Some(d2().into()), "Tuner", &[]),
        (Deployment, Some(d1().into()), "Local", &[]),
        (Deployment, Some(d2().into()), "Local", &["role restricted"]),
        (Deployment, Some(d1().into()), "Reviewer", &["role scope"]),
        (Deployment, Some(d1().into()), "Nobody", &["role unknown"]),
        (Deployment, Some(d1().into()), "WORKSPACE_OWNER", &["role unknown"]),
        (Deployment, None, "DEPLOYMENT_ADMIN", &["entityId required"]),
        (Deployment, Some(w1().into()), "DEPLOYMENT_ADMIN", &["entityId unknown"]),
    ];
    for (scope, entity, role, expected) in table {
        let told = made("ORGANIZATION_OWNER", &request(scope, entity, role)).err().unwrap_or_default();
        assert_eq!(told, expected, "{scope} {entity:?} {role}");
    }
}

#[test]
fn a_maker_has_the_right_there_and_holds_the_role() {
    use TokenScope::{Deployment, Organization, Workspace};
    type Told = &'static [&'static str];
    let table: [(&str, TokenScope, Option<EntityId>, &str, Told); 9] = [
        ("ORGANIZATION_BILLING_ADMIN", Organization, None, "ORGANIZATION_MEMBER", &["403"]),
        ("WORKSPACE_OPERATOR", Workspace, Some(w1().into()), "WORKSPACE_OPERATOR", &[]),
        ("WORKSPACE_OPERATOR", Workspace, Some(w1().into()), "WORKSPACE_OWNER", &["403"]),
        ("WORKSPACE_OPERATOR", Workspace, Some(w2().into()), "WORKSPACE_MEMBER", &["entityId unknown"]),
        ("WORKSPACE_AUTHOR", Workspace, Some(w1().into()), "WORKSPACE_MEMBER", &["403"]),
        ("WORKSPACE_OPERATOR", Deployment, Some(d1().into()), "Tuner", &[]),
        ("WORKSPACE_OPERATOR", Deployment, Some(d1().into()), "DEPLOYMENT_ADMIN", &["403"]),
        ("DEPLOYMENT_ADMIN", Deployment, Some(d1().into()), "DEPLOYMENT_ADMIN", &[]),
        ("DEPLOYMENT_ADMIN", Workspace, Some(w1().into()), "WORKSPACE_ACCESSOR", &["403"]),
    ];
    for (caller, scope, entity, role, expected) in table {
        let told = made(caller, &request(scope, entity, role)).err().unwrap_or_default();
        assert_eq!(told, expected, "{caller} makes {scope} {entity:?} {role}");
    }
}

#[test]
fn a_new_token_is_brought_to_one_form() {
    let token =
        made("WORKSPACE_OWNER", &request(TokenScope::Workspace, Some(w1().into()), "WORKSPACE_MEMBER"))
            .unwrap();
    assert_eq!((token.name.text.as_str(), token.description.as_str()), ("ci", "builds"));
    assert_eq!((token.kind, token.expiry_period_in_days), (TokenKind::Standard, Some(30)));
    assert_eq!(token.belongs_to, Target::Workspace(w1()));
    assert_eq!(token.primary, crate::fixtures::in_workspace(w1(), "WORKSPACE_MEMBER"));
}

#[test]
fn tokens_that_could_not_be_managed_are_not_seen() {
    let table = [
        ("ORGANIZATION_OWNER", Verb::Rotate, Target::Organization, 200),
        ("ORGANIZATION_MEMBER", Verb::Get, Target::Organization, 404),
        ("WORKSPACE_OPERATOR", Verb::Rotate, Target::Workspace(w1()), 200),
        ("WORKSPACE_OPERATOR", Verb::Delete, deployment(d1()), 200),
        ("WORKSPACE_OPERATOR", Verb::Get, deployment(d2()), 404),
        ("WORKSPACE_AUTHOR", Verb::Get, Target::Workspace(w1()), 404),
        ("DEPLOYMENT_ADMIN", Verb::Update, deployment(d1()), 200),
        ("DEPLOYMENT_ADMIN", Verb::Update, Target::Workspace(w1()), 404),
    ];
    for (caller, verb, belongs_to, expected) in table {
        let status = may(&holder(caller), verb, belongs_to).map_or_else(|refusal| refusal.status(), |()| 200);
        assert_eq!(status, expected, "{caller} {verb:?} {belongs_to:?}");
    }
    let reader = {
        let held = Held::Custom {
            id: nothing(),
            name: "Token reader".into(),
            permissions: [Permission::known("deployment.apiTokens.get")].into_iter().collect(),
        };
        Grants::new([Grant { on: deployment(d1()).into(), held }])
    };
    assert_eq!(may(&reader, Verb::Get, deployment(d1())), Ok(()));
    assert_eq!(may(&reader, Verb::Delete, deployment(d1())).unwrap_err().status(), 403);
}

#[test]
fn mentioned_resources_are_looked_up() {
    let of_deployment = mentions(&request(TokenScope::Deployment, Some(d1().into()), "Tuner"));
    assert_eq!(of_deployment.deployments, [d1()].into());
    assert_eq!(of_deployment.custom_roles, ["Tuner".to_owned()].into());
    let of_workspace = mentions(&request(TokenScope::Workspace, Some(w1().into()), "WORKSPACE_OWNER"));
    assert_eq!((of_workspace.workspaces, of_workspace.custom_roles), ([w1()].into(), [].into()));
}
