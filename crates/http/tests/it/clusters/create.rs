//! What a new cluster must say, and what it is told where it does not.

use podium_api::Id;
use podium_testkit::on_both_engines;
use serde_json::{Value, json};

use super::{hybrid, new, path, with};

on_both_engines! {
    async fn each_provider_has_fields_of_its_own(app) {
        let all = app.path("/clusters");
        for (provider, others, wrong) in [
            ("AWS", json!({ "secondaryVpcCidr": "100.64.0.0/16", "isPrivateNetworkEgressEnabled": true }), vec![]),
            ("AWS", json!({ "podSubnetRange": "10.0.0.0/16" }), vec!["podSubnetRange: excluded"]),
            ("AWS", json!({ "tenantId": "t" }), vec!["tenantId: excluded"]),
            ("AWS", json!({ "podSubnetRange": "", "tenantId": null }), vec![]),
            ("AZURE", json!({ "secondaryVpcCidr": "100.64.0.0/16" }), vec!["secondaryVpcCidr: excluded"]),
            ("AZURE", json!({ "isPrivateNetworkEgressEnabled": true }), vec!["isPrivateNetworkEgressEnabled: excluded"]),
            ("AZURE", json!({ "isPrivateNetworkEgressEnabled": false, "secondaryVpcCidr": "" }), vec![]),
            ("GCP", json!({}), vec![]),
            ("GCP", json!({ "podSubnetRange": null }), vec!["podSubnetRange: required"]),
            ("GCP", json!({ "serviceSubnetRange": "", "servicePeeringRange": "" }), vec!["serviceSubnetRange: required", "servicePeeringRange: required"]),
            ("GCP", json!({ "unknownToAll": 7, "k8sTags": [{ "key": "a", "value": "b" }] }), vec![]),
        ] {
            let name = app.world.id::<Id>();
            let answer = app.post(&app.owner, &all, with(new(provider, name.as_str()), others.clone())).await;
            if wrong.is_empty() {
                let read = app.get(&app.owner, &path(&app, answer.id())).await.ok();
                assert_eq!(read, answer.ok(), "{provider} {others}");
            } else {
                assert_eq!(answer.wrong_fields(), wrong, "{provider} {others}");
            }
        }
        let wrong = app.post(&app.owner, &all, with(new("AWS", "x"), json!({ "cloudProvider": "MOON" }))).await;
        assert_eq!(wrong.wrong_fields(), ["cloudProvider: enum"]);
        let wrong = app.post(&app.owner, &all, json!({})).await.wrong_fields();
        assert!(wrong.contains(&"cloudProvider: required".to_owned()), "{wrong:?}");
    }

    async fn every_wrong_field_is_reported_at_once(app) {
        let body = json!({
            "cloudProvider": "AWS", "name": "Main", "type": "HYBRID", "region": "mars-1",
            "vpcSubnetRange": "8.8.8.0/24", "dbInstanceType": "huge", "drRegion": "us-west-2",
            "k8sTags": [{ "value": "x" }], "workspaceIds": [app.organization_id],
            "nodePools": [{ "name": "a", "maxNodeCount": 1, "nodeInstanceType": "abacus", "isDefault": false }],
        });
        assert_eq!(
            app.post(&app.owner, &app.path("/clusters"), body).await.wrong_fields(),
            [
                "region: unknown",
                "vpcSubnetRange: private",
                "k8sTags[0].key: required",
                "nodePools: default",
                "nodePools[0].nodeInstanceType: unknown",
                "nodePools[0].maxNodeCount: range",
                "dbInstanceType: unknown",
                "providerAccount: required",
                "drRegion: excluded",
                "workspaceIds[0]: notFound",
            ]
        );
        assert_eq!(app.rows("clusters").await, 0);
        assert_eq!(app.rows("work").await, 0);
    }

    async fn ranges_are_canonical_private_and_apart(app) {
        let all = app.path("/clusters");
        for (provider, others, wrong) in [
            ("AWS", json!({ "vpcSubnetRange": "172.20.0.1/20" }), vec!["vpcSubnetRange: format"]),
            ("AWS", json!({ "vpcSubnetRange": "172.20.0.0" }), vec!["vpcSubnetRange: format"]),
            ("AWS", json!({ "vpcSubnetRange": "11.0.0.0/16" }), vec!["vpcSubnetRange: private"]),
            ("AWS", json!({ "vpcSubnetRange": "fd00::/64" }), vec!["vpcSubnetRange: private"]),
            ("AWS", json!({ "vpcSubnetRange": "100.64.0.0/10" }), vec![]),
            ("AWS", json!({ "secondaryVpcCidr": "10.0.0.0/15" }), vec!["secondaryVpcCidr: range"]),
            ("AWS", json!({ "secondaryVpcCidr": "10.0.0.0/21" }), vec!["secondaryVpcCidr: range"]),
            ("AWS", json!({ "secondaryVpcCidr": "172.20.0.0/16" }), vec!["secondaryVpcCidr: overlap"]),
            ("GCP", json!({ "servicePeeringRange": "172.21.0.0/24" }), vec!["servicePeeringRange: overlap"]),
        ] {
            let name = app.world.id::<Id>();
            let answer = app.post(&app.owner, &all, with(new(provider, name.as_str()), others.clone())).await;
            if wrong.is_empty() {
                assert_eq!(answer.code(), 200, "{others}");
            } else {
                assert_eq!(answer.wrong_fields(), wrong, "{provider} {others}");
            }
        }
        let field = app.post(&app.owner, &all, with(new("AWS", "x"), json!({ "vpcSubnetRange": "172.20.0.1/20" })));
        assert_eq!(
            field.await.refused(400),
            "vpcSubnetRange must have no bits set after its prefix; write 172.20.0.0/20"
        );
    }

    async fn a_hybrid_cluster_says_where_it_is_and_what_it_has(app) {
        let all = app.path("/clusters");
        let without = |fields: &[&str]| {
            let mut body = hybrid("Mine");
            fields.iter().for_each(|field| {
                body.as_object_mut().unwrap().remove(*field);
            });
            body
        };
        let wrong = app.post(&app.owner, &all, without(&["providerAccount", "dbInstanceType", "nodePools"])).await;
        assert_eq!(
            wrong.wrong_fields(),
            ["providerAccount: required", "dbInstanceType: required", "nodePools: required"]
        );
        let azure = with(
            new("AZURE", "Theirs"),
            json!({
                "type": "HYBRID", "providerAccount": "subscription", "dbInstanceType": "Standard_D4ds_v4",
                "nodePools": [{ "name": "a", "maxNodeCount": 2, "nodeInstanceType": "Standard_D4d_v5" }],
            }),
        );
        let wrong = app.post(&app.owner, &all, azure.clone()).await.wrong_fields();
        assert_eq!(wrong, ["tenantId: required"]);
        let made = app.post(&app.owner, &all, with(azure, json!({ "tenantId": "tenant" }))).await.ok();
        assert_eq!((&made["tenantId"], &made["providerAccount"]), (&json!("tenant"), &json!("subscription")));
        insta::assert_json_snapshot!(made["nodePools"], @r#"
        [
          {
            "id": "cmywpiww0000c000000000000",
            "name": "a",
            "clusterId": "cmywpiww0000b000000000000",
            "cloudProvider": "AZURE",
            "isDefault": true,
            "maxNodeCount": 2,
            "nodeInstanceType": "Standard_D4d_v5",
            "supportedPlatformMachines": [
              "A5",
              "A10",
              "A20"
            ],
            "createdAt": "2027-01-15T08:00:00.000Z",
            "updatedAt": "2027-01-15T08:00:00.000Z"
          }
        ]
        "#);
    }

    async fn exactly_one_pool_is_the_default_and_counts_are_within_the_options(app) {
        let all = app.path("/clusters");
        let pool = |name: &str, count: i64, is_default: Value| {
            json!({ "name": name, "maxNodeCount": count, "nodeInstanceType": "m5.xlarge", "isDefault": is_default })
        };
        for (pools, wrong) in [
            (vec![pool("a", 2, json!(true)), pool("b", 100, json!(false))], vec![]),
            (vec![pool("a", 20, Value::Null)], vec![]),
            (vec![pool("a", 20, json!(false))], vec!["nodePools: default"]),
            (vec![pool("a", 20, json!(true)), pool("b", 20, json!(true))], vec!["nodePools: default"]),
            (vec![pool("a", 1, json!(true))], vec!["nodePools[0].maxNodeCount: range"]),
            (vec![pool("a", 101, json!(true))], vec!["nodePools[0].maxNodeCount: range"]),
            (vec![pool("a", -5, json!(true))], vec!["nodePools[0].maxNodeCount: range"]),
            (vec![pool("a", 2, json!(true)), pool("A", 2, json!(false))], vec!["nodePools[1].name: repeated"]),
        ] {
            let name = app.world.id::<Id>();
            let body = with(hybrid(name.as_str()), json!({ "nodePools": pools }));
            let answer = app.post(&app.owner, &all, body).await;
            if wrong.is_empty() {
                let made = answer.ok();
                let shown = made["nodePools"].as_array().unwrap();
                assert_eq!(shown.len(), pools.len());
                assert_eq!(shown.iter().filter(|pool| pool["isDefault"] == true).count(), 1);
            } else {
                assert_eq!(answer.wrong_fields(), wrong, "{pools:?}");
            }
        }
    }

    async fn a_limited_region_takes_no_new_clusters(app) {
        let all = app.path("/clusters");
        let body = with(new("AZURE", "Main"), json!({ "region": "francesouth" }));
        assert_eq!(
            app.post(&app.owner, &all, body.clone()).await.refused(412),
            "The region francesouth of AZURE is limited and accepts no new clusters: choose another one."
        );
        let wrong = app.post(&app.owner, &all, with(body, json!({ "vpcSubnetRange": "x" }))).await.wrong_fields();
        assert_eq!(wrong, ["vpcSubnetRange: format"]);
        let body = with(new("AZURE", "Main"), json!({ "drRegion": "germanynorth" }));
        assert_eq!(app.post(&app.owner, &all, body).await.code(), 412);
        let options = app.get(&app.owner, &app.path("/cluster-options?type=DEDICATED&provider=AZURE")).await.ok();
        let regions = options[0]["regions"].as_array().unwrap();
        let limited = regions.iter().find(|region| region["name"] == "francesouth").unwrap();
        assert_eq!(limited["limited"], true);
    }

    async fn a_new_cluster_is_handed_to_its_loop(app) {
        let id = app.new_cluster("Main", json!({})).await;
        assert_eq!(app.rows("work").await, 1);
        let read = app.get(&app.owner, &path(&app, id)).await.ok();
        assert_eq!((&read["status"], &read["healthStatus"]["value"]), (&json!("CREATING"), &json!("UNKNOWN")));
    }
}
