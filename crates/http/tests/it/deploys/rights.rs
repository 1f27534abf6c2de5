//! Who may deploy: permissions, pipelines, and finalizing one's own.

use podium_api::Id;
use podium_domain::{Grant, On, Permission, PermissionSet};
use podium_testkit::{Actor, TestApp, on_both_engines, role};
use serde_json::json;

use super::{Place, id, url};

const GET: Permission = Permission::known("deployment.deploys.get");
const CREATE: Permission = Permission::known("deployment.deploys.create");

async fn on(place: &Place<'_>) -> On {
    On::Deployment { id: place.id, workspace_id: place.state().await.workspace_id }
}

/// Somebody who holds exactly these permissions on the deployment.
pub(super) async fn holder(
    app: &TestApp,
    place: &Place<'_>,
    name: &str,
    permissions: &[Permission],
) -> Actor {
    let permissions: PermissionSet = permissions.iter().copied().collect();
    app.holder_of_all(name, permissions, on(place).await).await
}

on_both_engines! {
    async fn the_creator_of_a_deploy_may_finalize_only_their_own(app) {
        let place = Place::new(&app).await;
        let ada = holder(&app, &place, "ada", &[CREATE]).await;
        let bob = holder(&app, &place, "bob", &[CREATE]).await;
        let deploy = place.create_as(&ada, json!({ "type": "DAG_ONLY" })).await.ok();
        let version = place.upload(url(&deploy)).await;
        let path = place.path(&format!("/{}/finalize", id(&deploy)));
        let body = json!({ "dagTarballVersion": version });
        let message = app.post(&bob, &path, body.clone()).await.refused(403);
        assert!(message.starts_with("You may finalize the deploys that you created"), "{message}");
        assert_eq!(app.post(&ada, &path, body.clone()).await.ok()["status"], "DEPLOYED");
        app.post(&ada, &path, body).await.ok();
        let own = place.path(&format!("/{}", id(&deploy)));
        let message = app.post(&ada, &own, json!({ "description": "x" })).await.refused(403);
        assert!(message.contains("deployment.deploys.update"), "{message}");
        app.post(&ada, &place.path(&format!("/{}/rollback", id(&deploy))), json!({})).await.refused(403);
    }

    async fn a_reader_cannot_finalize_a_deploy(app) {
        let place = Place::new(&app).await;
        let reader = holder(&app, &place, "reader", &[GET]).await;
        let deploy = place.create("DAG_ONLY").await;
        place.create_as(&reader, json!({ "type": "DAG_ONLY" })).await.refused(403);
        let message = place.app.post(&reader, &place.path(&format!("/{}/finalize", id(&deploy))), json!({})).await;
        assert!(message.refused(403).contains("`deployment.deploys.update`"));
        let shown = app.get(&reader, &place.path(&format!("/{}", id(&deploy)))).await.ok();
        assert!(shown.get("dagsUploadUrl").is_none(), "who may not deploy is given no way to upload");
    }

    async fn roles_deploy_as_the_table_says(app) {
        let place = Place::new(&app).await;
        let workspace = On::Workspace(place.state().await.workspace_id);
        let grants: Vec<(Grant, u16, u16)> = vec![
            (role(workspace.clone(), "WORKSPACE_ACCESSOR"), 404, 404),
            (role(workspace.clone(), "WORKSPACE_MEMBER"), 200, 403),
            (role(workspace, "WORKSPACE_AUTHOR"), 200, 200),
            (role(on(&place).await, "DEPLOYMENT_ACCESSOR"), 403, 403),
            (role(on(&place).await, "DEPLOYMENT_ADMIN"), 200, 200),
        ];
        for (grant, read, write) in grants {
            let name = format!("{:?}", grant.held);
            let member = role(On::Organization, "ORGANIZATION_MEMBER");
            let actor = app.user_with(&app.world.id::<Id>().to_string(), vec![member, grant]).await;
            assert_eq!(app.get(&actor, &place.path("")).await.code(), read, "{name}");
            assert_eq!(place.create_as(&actor, json!({ "type": "IMAGE_ONLY" })).await.code(), write, "{name}");
        }
        let stranger = app.stranger().await;
        app.get(&stranger, &place.path("")).await.refused(404);
    }

    async fn with_cicd_enforced_only_api_tokens_make_deploys(app) {
        let place = Place::new(&app).await;
        let before = place.deploy("DAG_ONLY").await;
        let waiting = place.create("IMAGE_ONLY").await;
        place.deploy("DAG_ONLY").await;
        place.change(|row| row.spec.is_cicd_enforced = true).await;
        let message = place.create_as(&app.owner, json!({ "type": "DAG_ONLY" })).await.refused(403);
        assert!(message.starts_with("This deployment takes deploys from API tokens only"), "{message}");
        place.roll_back_to(&before).await.refused(403);
        place.finalize(&waiting, json!({})).await.refused(403);
        let token = app.post(&app.owner, &app.path("/tokens"), json!({
            "name": "pipeline", "scope": "DEPLOYMENT", "entityId": place.id, "role": "DEPLOYMENT_ADMIN",
        })).await.ok();
        let pipeline = Actor {
            id: id(&token).parse().unwrap(),
            token: token["token"].as_str().unwrap().to_owned(),
        };
        let deploy = place.create_as(&pipeline, json!({ "type": "DAG_ONLY" })).await.ok();
        let body = json!({ "dagTarballVersion": place.upload(url(&deploy)).await });
        let path = place.path(&format!("/{}/finalize", id(&deploy)));
        let done = app.post(&pipeline, &path, body).await.ok();
        assert_eq!(done["status"], "DEPLOYED");
        assert_eq!(done["createdBySubject"], json!({
            "id": pipeline.id, "subjectType": "SERVICEKEY", "apiTokenName": "pipeline",
        }));
        app.post(&pipeline, &place.path(&format!("/{}/rollback", id(&before))), json!({})).await.ok();
    }
}
