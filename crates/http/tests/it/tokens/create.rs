//! What a token can be made with.

use podium_api::{EntityId, Id};
use podium_testkit::on_both_engines;
use serde_json::{Value, json};

use super::{create, path};

fn merged(base: &Value, more: &Value) -> Value {
    let mut body = base.clone();
    for (key, value) in more.as_object().unwrap() {
        body[key] = value.clone();
    }
    body
}

on_both_engines! {
    async fn a_token_belongs_to_an_organization_a_workspace_or_a_deployment(app) {
        let (organization, workspace) = (app.organization_id, app.workspace("Data").await);
        let (deployment, absent) = (app.deployment(workspace).await, app.world.id::<Id>());
        let on_organization = |entity: Value| json!({
            "scope": "ORGANIZATION", "entityId": entity, "role": "ORGANIZATION_MEMBER",
        });
        let on_workspace = |entity: Value| json!({
            "scope": "WORKSPACE", "entityId": entity, "role": "WORKSPACE_MEMBER",
        });
        let on_deployment = |entity: Value| json!({
            "scope": "DEPLOYMENT", "entityId": entity, "role": "DEPLOYMENT_ADMIN",
        });
        let table = [
            (on_organization(Value::Null), Ok(("ORGANIZATION", EntityId::from(organization)))),
            (on_organization(json!("")), Ok(("ORGANIZATION", EntityId::from(organization)))),
            (on_organization(json!(organization)), Ok(("ORGANIZATION", EntityId::from(organization)))),
            (on_organization(json!(workspace)), Err("entityId: conflict")),
            (on_organization(json!("nonsense")), Err("entityId: format")),
            (on_workspace(json!(workspace)), Ok(("WORKSPACE", workspace.into()))),
            (on_workspace(Value::Null), Err("entityId: required")),
            (on_workspace(json!("")), Err("entityId: required")),
            (on_workspace(json!(absent)), Err("entityId: unknown")),
            (on_workspace(json!(organization)), Err("entityId: unknown")),
            (on_workspace(json!(deployment)), Err("entityId: unknown")),
            (on_deployment(json!(deployment)), Ok(("DEPLOYMENT", deployment.into()))),
            (on_deployment(Value::Null), Err("entityId: required")),
            (on_deployment(json!(absent)), Err("entityId: unknown")),
            (on_deployment(json!(workspace)), Err("entityId: unknown")),
        ];
        for (index, (body, expected)) in table.into_iter().enumerate() {
            let body = merged(&body, &json!({ "name": format!("token {index}") }));
            let answer = create(&app, &app.owner, body.clone()).await;
            match expected {
                Err(wrong) => assert_eq!(answer.wrong_fields(), [wrong], "{body}"),
                Ok((kind, entity)) => {
                    let role = json!({ "entityType": kind, "entityId": entity, "role": body["role"] });
                    assert_eq!(answer.ok()["scope"], kind);
                    assert_eq!(answer.ok()["roles"], json!([role]), "{body}");
                }
            }
        }
    }

    async fn the_primary_role_fits_scope_and_entity(app) {
        let workspace = app.workspace("Data").await;
        let deployment = app.deployment(workspace).await;
        app.custom_role("Tuner", "DEPLOYMENT", &["deployment.update"]).await;
        app.custom_role("Reader", "DAG", &["dag.airflow.dag.get"]).await;
        let restricted = json!({
            "name": "Elsewhere",
            "scopeType": "DEPLOYMENT",
            "permissions": ["deployment.get"],
            "restrictedWorkspaceIds": [app.workspace("Other").await],
        });
        app.post(&app.owner, &app.path("/roles"), restricted).await.ok();
        let organization = EntityId::from(app.organization_id);
        let entities =
            [("ORGANIZATION", organization), ("WORKSPACE", workspace.into()), ("DEPLOYMENT", deployment.into())];
        for (role, fits) in [
            ("ORGANIZATION_OWNER", ["", "enum", "unknown"]),
            ("ORGANIZATION_BILLING_ADMIN", ["", "enum", "unknown"]),
            ("ORGANIZATION_OBSERVE_ADMIN", ["", "enum", "unknown"]),
            ("ORGANIZATION_OBSERVE_MEMBER", ["", "enum", "unknown"]),
            ("ORGANIZATION_MEMBER", ["", "enum", "unknown"]),
            ("WORKSPACE_OWNER", ["enum", "", "unknown"]),
            ("WORKSPACE_OPERATOR", ["enum", "", "unknown"]),
            ("WORKSPACE_AUTHOR", ["enum", "", "unknown"]),
            ("WORKSPACE_MEMBER", ["enum", "", "unknown"]),
            ("WORKSPACE_ACCESSOR", ["enum", "", "unknown"]),
            ("DEPLOYMENT_ADMIN", ["enum", "enum", ""]),
            ("DEPLOYMENT_ACCESSOR", ["enum", "enum", ""]),
            ("Tuner", ["enum", "enum", ""]),
            ("Reader", ["enum", "enum", "scope"]),
            ("Elsewhere", ["enum", "enum", "restricted"]),
            ("DAG_AUTHOR", ["enum", "enum", "unknown"]),
            ("nonsense", ["enum", "enum", "unknown"]),
            ("", ["enum", "enum", "unknown"]),
        ] {
            for ((scope, entity), code) in entities.iter().zip(fits) {
                let name = format!("{scope} {role}");
                let body = json!({ "name": name, "scope": scope, "entityId": entity, "role": role });
                let answer = create(&app, &app.owner, body).await;
                if code.is_empty() {
                    assert_eq!(answer.ok()["roles"][0]["role"], role, "{name}");
                } else {
                    assert_eq!(answer.wrong_fields(), [format!("role: {code}")], "{name}");
                }
            }
        }
    }

    async fn a_token_lives_for_a_day_to_ten_years_or_forever(app) {
        let base = json!({ "scope": "ORGANIZATION", "role": "ORGANIZATION_MEMBER" });
        for (period, expected) in [
            (json!(1), Ok(json!("2027-01-16T08:00:00.000Z"))),
            (json!(3650), Ok(json!("2037-01-12T08:00:00.000Z"))),
            (Value::Null, Ok(Value::Null)),
            (json!(0), Err("minimum")),
            (json!(-1), Err("minimum")),
            (json!(3651), Err("maximum")),
            (json!(1.5), Err("type")),
            (json!("7"), Err("type")),
        ] {
            let body = merged(&base, &json!({ "name": format!("for {period}"), "tokenExpiryPeriodInDays": period }));
            let answer = create(&app, &app.owner, body).await;
            match expected {
                Ok(end) => {
                    assert_eq!(answer.ok()["endAt"], end, "{period}");
                    assert_eq!(answer.ok()["expiryPeriodInDays"], period);
                }
                Err(code) => {
                    assert_eq!(answer.wrong_fields(), [format!("tokenExpiryPeriodInDays: {code}")], "{period}");
                }
            }
        }
    }

    async fn the_kind_is_standard_by_default(app) {
        for (kind, expected) in [
            (Value::Null, Ok("STANDARD")),
            (json!(""), Ok("STANDARD")),
            (json!("STANDARD"), Ok("STANDARD")),
            (json!("DIRECT_ACCESS"), Ok("DIRECT_ACCESS")),
            (json!("OTHER"), Err("kind: enum")),
        ] {
            let body = json!({
                "name": format!("kind {kind}"), "scope": "ORGANIZATION", "role": "ORGANIZATION_MEMBER", "kind": kind,
            });
            let answer = create(&app, &app.owner, body).await;
            match expected {
                Ok(shown) => assert_eq!(answer.ok()["kind"], shown),
                Err(wrong) => assert_eq!(answer.wrong_fields(), [wrong]),
            }
        }
    }

    async fn names_are_unique_where_the_token_belongs(app) {
        let (organization, a, b) = (app.organization_id, app.workspace("A").await, app.workspace("B").await);
        let deployment = app.deployment(a).await;
        let places = [
            ("ORGANIZATION", EntityId::from(organization), "ORGANIZATION_MEMBER"),
            ("WORKSPACE", a.into(), "WORKSPACE_MEMBER"),
            ("WORKSPACE", b.into(), "WORKSPACE_MEMBER"),
            ("DEPLOYMENT", deployment.into(), "DEPLOYMENT_ADMIN"),
        ];
        for (scope, entity, role) in places {
            let first = app.token("ci", scope, entity, role).await;
            let body = json!({ "name": " Ci ", "scope": scope, "entityId": entity, "role": role });
            let taken = create(&app, &app.owner, body).await.refused(409);
            assert_eq!(taken, "An API token named `Ci` already exists there: choose another name.");
            let other = app.token("other", scope, entity, role).await;
            let renamed = app.post(&app.owner, &path(&app, other.id), json!({ "name": "CI" })).await;
            assert_eq!(renamed.code(), 409);
            let same = app.post(&app.owner, &path(&app, first.id), json!({ "name": "CI" })).await;
            assert_eq!(same.ok()["name"], "CI");
            assert_eq!(app.delete(&app.owner, &path(&app, first.id)).await.code(), 204);
            app.token("ci", scope, entity, role).await;
        }
    }

    async fn every_error_is_reported_at_once(app) {
        let body = json!({
            "name": "",
            "description": "x".repeat(501),
            "scope": "PLANET",
            "entityId": "nonsense",
            "kind": "OTHER",
            "tokenExpiryPeriodInDays": 4000,
        });
        let mut wrong = create(&app, &app.owner, body).await.wrong_fields();
        wrong.sort();
        assert_eq!(wrong, [
            "description: maxLength",
            "entityId: format",
            "kind: enum",
            "name: minLength",
            "role: required",
            "scope: enum",
            "tokenExpiryPeriodInDays: maximum",
        ]);
        let body = json!({ "name": " ", "scope": "WORKSPACE", "role": "OTHER" });
        let wrong = create(&app, &app.owner, body).await.wrong_fields();
        assert_eq!(wrong, ["name: required", "entityId: required", "role: enum"]);
    }
}
