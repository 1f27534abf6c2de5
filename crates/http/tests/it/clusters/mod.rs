//! `/organizations/{organizationId}/clusters`

mod create;
mod lists;
mod recovery;
mod removal;
mod states;
mod update;

use std::time::Duration;

use podium_api::ClusterId;
use podium_api::enums::ClusterStatus;
use podium_testkit::{TestApp, on_both_engines};
use serde_json::{Value, json};

fn path(app: &TestApp, id: impl std::fmt::Display) -> String {
    app.path(&format!("/clusters/{id}"))
}

/// A body with some fields replaced; `null` stays.
fn with(mut body: Value, others: Value) -> Value {
    if let Value::Object(others) = others {
        others.into_iter().for_each(|(field, value)| body[field] = value);
    }
    body
}

/// The least that a new cluster at a provider needs.
fn new(provider: &str, name: &str) -> Value {
    let body = json!({
        "cloudProvider": provider, "name": name, "type": "DEDICATED", "vpcSubnetRange": "172.20.0.0/20",
    });
    match provider {
        "AWS" => with(body, json!({ "region": "us-east-1" })),
        "AZURE" => with(body, json!({ "region": "eastus2" })),
        _ => with(
            body,
            json!({
                "region": "us-central1", "podSubnetRange": "172.21.0.0/19",
                "serviceSubnetRange": "172.22.0.0/22", "servicePeeringRange": "172.23.0.0/20",
            }),
        ),
    }
}

/// The least that a new cluster in the customer's own account needs.
fn hybrid(name: &str) -> Value {
    let pool =
        json!({ "name": "first", "isDefault": true, "maxNodeCount": 20, "nodeInstanceType": "m5.xlarge" });
    with(
        new("AWS", name),
        json!({ "type": "HYBRID", "providerAccount": "012345678901", "dbInstanceType": "db.t3.medium", "nodePools": [pool] }),
    )
}

/// The body of an update that changes nothing but what is given.
fn update(name: &str, others: Value) -> Value {
    with(json!({ "clusterType": "DEDICATED", "name": name, "k8sTags": [] }), others)
}

async fn made(app: &TestApp, name: &str, others: Value) -> ClusterId {
    let id = app.new_cluster(name, others).await;
    app.settle_cluster(id, ClusterStatus::Created).await;
    id
}

fn names(list: &Value) -> Vec<&str> {
    list["clusters"].as_array().unwrap().iter().map(|cluster| cluster["name"].as_str().unwrap()).collect()
}

on_both_engines! {
    async fn a_cluster_is_created_read_changed_and_deleted(app) {
        let owner = app.owner.clone();
        let created = app.post(&owner, &app.path("/clusters"), new("AWS", " Main ")).await;
        assert_eq!(created.code(), 200);
        insta::assert_json_snapshot!(created.ok(), @r#"
        {
          "id": "cmywpiww00004000000000000",
          "name": "Main",
          "organizationId": "cmywpiww00000000000000000",
          "type": "DEDICATED",
          "cloudProvider": "AWS",
          "region": "us-east-1",
          "status": "CREATING",
          "healthStatus": {
            "value": "UNKNOWN",
            "details": []
          },
          "isFailedOver": false,
          "failoverInProgress": false,
          "isLimited": false,
          "workspaceIds": [],
          "metadata": {
            "externalIPs": []
          },
          "createdAt": "2027-01-15T08:00:00.000Z",
          "updatedAt": "2027-01-15T08:00:00.000Z",
          "dbInstanceType": "db.t3.medium",
          "nodePools": [],
          "tags": [],
          "vpcSubnetRange": "172.20.0.0/20",
          "isPrivateNetworkEgressEnabled": false,
          "isDrEnabled": false,
          "drRegion": "",
          "enableReplicationTimeControl": false
        }
        "#);
        assert_eq!(created.header("etag").split('-').next(), Some("\"1"));
        let id: ClusterId = created.id().parse().unwrap();
        let path = path(&app, id);
        let read = app.get(&owner, &path).await;
        assert_eq!(read.ok(), created.ok());
        assert_eq!(read.header("etag"), created.header("etag"));

        app.settle_cluster(id, ClusterStatus::Created).await;
        let settled = app.get(&owner, &path).await;
        let mut expected = created.ok();
        expected["status"] = "CREATED".into();
        expected["healthStatus"]["value"] = "HEALTHY".into();
        assert_eq!(settled.ok(), expected);
        assert_eq!(settled.header("etag").split('-').next(), Some("\"1"), "only callers advance the version");

        app.advance(Duration::from_secs(60));
        let tags = json!([{ "key": "team", "value": "data" }]);
        let changed = app.post(&owner, &path, update("Other", json!({ "k8sTags": tags }))).await;
        expected["name"] = "Other".into();
        expected["tags"] = tags;
        expected["status"] = "UPDATING".into();
        expected["updatedAt"] = "2027-01-15T08:01:00.000Z".into();
        assert_eq!(changed.ok(), expected);
        assert_eq!(changed.header("etag").split('-').next(), Some("\"2"));
        assert_eq!(app.get(&owner, &path).await.ok(), expected);

        app.settle_cluster(id, ClusterStatus::Created).await;
        assert_eq!(app.delete(&owner, &path).await.code(), 204);
        assert_eq!(
            app.get(&owner, &path).await.refused(404),
            "There is no such cluster, or you may not see it."
        );
        assert_eq!(app.delete(&owner, &path).await.code(), 404);
    }

    async fn names_are_unique_without_regard_to_case(app) {
        let all = app.path("/clusters");
        let main = made(&app, "Main", json!({})).await;
        let other = made(&app, "Other", json!({})).await;
        let taken = app.post(&app.owner, &all, new("GCP", " mAIN ")).await;
        assert_eq!(taken.refused(409), "A cluster named `mAIN` already exists: choose another name.");
        assert_eq!(app.post(&app.owner, &path(&app, other), update("MAIN", json!({}))).await.code(), 409);
        let read = app.get(&app.owner, &path(&app, other)).await.ok();
        assert_eq!((&read["name"], &read["status"]), (&json!("Other"), &json!("CREATED")));
        let same = app.post(&app.owner, &path(&app, main), update("MAIN", json!({}))).await.ok();
        assert_eq!(same["name"], "MAIN");
    }

    async fn only_owners_make_change_and_delete_clusters(app) {
        let id = made(&app, "Main", json!({})).await;
        let plain = app.member("plain").await;
        assert_eq!(app.get(&plain, &path(&app, id)).await.code(), 200);
        let create = app.post(&plain, &app.path("/clusters"), new("AWS", "Mine")).await;
        assert_eq!(
            create.refused(403),
            "You need the permission `organization.clusters.create` in this organization. \
             An organization owner can give you a role that has it."
        );
        assert_eq!(app.post(&plain, &path(&app, id), update("Mine", json!({}))).await.code(), 403);
        assert_eq!(app.delete(&plain, &path(&app, id)).await.code(), 403);
    }

    async fn a_cluster_belongs_to_one_organization(app) {
        let id = made(&app, "Main", json!({})).await;
        let stranger = app.stranger().await;
        let own = app.get(&stranger, "/v1/organizations").await.ok()["organizations"][0]["id"].clone();
        let there = format!("/v1/organizations/{}/clusters", own.as_str().unwrap());
        for method in ["GET", "POST", "DELETE"] {
            let call = app.call(method, &format!("{there}/{id}")).by(&stranger);
            assert_eq!(call.json(&update("Mine", json!({}))).send().await.code(), 404);
        }
        assert_eq!(app.get(&stranger, &there).await.ok()["totalCount"], 0);
        let same_name = app.post(&stranger, &there, new("AWS", "Main")).await.ok();
        assert_eq!(same_name["organizationId"], own);
    }
}
