//! Tables of what is a valid cluster and a valid change of one.

use podium_api::enums::ClusterStatus;
use serde_json::{Value, json};

use super::event;
use super::fixtures::{at, cluster, cluster_id, created, hybrid, new, updated, with, wrong};
use super::states::Event;
use crate::fixtures::{w1, w2};

const NONE: [&str; 0] = [];

#[test]
fn a_minimal_cluster_of_each_provider_takes_the_defaults() {
    for (provider, database, egress) in [
        ("AWS", "db.t3.medium", Some(false)),
        ("AZURE", "Standard_D4ds_v4", None),
        ("GCP", "db-custom-2-7680", None),
    ] {
        let details = created(new(provider)).unwrap().details;
        assert_eq!(details.db_instance_type, database);
        assert_eq!(details.is_private_network_egress_enabled, egress, "{provider}");
        assert_eq!((details.is_dr_enabled, details.dr_region.as_str()), (false, ""));
        assert!(details.node_pools.is_empty() && details.tags.is_empty());
        assert_eq!(wrong(created(hybrid(provider))), NONE, "{provider}");
    }
}

#[test]
fn all_wrong_fields_of_a_new_cluster_are_reported_at_once() {
    let body = json!({
        "cloudProvider": "AWS", "name": " ", "type": "HYBRID", "region": "mars-1", "vpcSubnetRange": "8.8.8.0/24",
        "dbInstanceType": "huge", "drRegion": "us-west-2", "secondaryVpcCidr": "10.0.0.0/24",
        "k8sTags": [{ "key": "a" }, { "key": " " }, { "key": "a", "value": "b" }],
        "nodePools": [
            { "name": "one", "maxNodeCount": 1, "nodeInstanceType": "m5.xlarge", "isDefault": true },
            { "name": "ONE", "maxNodeCount": 101, "nodeInstanceType": "abacus", "isDefault": true },
        ],
        "workspaceIds": [w1(), cluster_id()],
    });
    assert_eq!(
        wrong(created(body)),
        [
            "name: required",
            "region: unknown",
            "vpcSubnetRange: private",
            "secondaryVpcCidr: range",
            "k8sTags[1].key: required",
            "k8sTags[2].key: repeated",
            "nodePools: default",
            "nodePools[0].maxNodeCount: range",
            "nodePools[1].name: repeated",
            "nodePools[1].nodeInstanceType: unknown",
            "nodePools[1].maxNodeCount: range",
            "dbInstanceType: unknown",
            "providerAccount: required",
            "drRegion: excluded",
            "workspaceIds[1]: notFound",
        ]
    );
}

#[test]
fn a_hybrid_cluster_requires_more_fields() {
    let table = [
        ("AWS", json!({ "providerAccount": "" }), vec!["providerAccount: required"]),
        ("AWS", json!({ "dbInstanceType": null }), vec!["dbInstanceType: required"]),
        ("AWS", json!({ "nodePools": [] }), vec!["nodePools: required"]),
        ("AWS", json!({ "nodePools": null }), vec!["nodePools: required"]),
        ("AZURE", json!({ "tenantId": " " }), vec!["tenantId: required"]),
        ("GCP", json!({ "podSubnetRange": " " }), vec!["podSubnetRange: required"]),
        ("GCP", json!({ "drVpcSubnetRange": "10.0.0.0/16" }), vec!["drVpcSubnetRange: excluded"]),
        (
            "AWS",
            json!({ "enableReplicationTimeControl": true }),
            vec!["enableReplicationTimeControl: excluded"],
        ),
        ("AWS", json!({ "drRegion": "", "enableReplicationTimeControl": false }), vec![]),
    ];
    for (provider, changes, expected) in table {
        assert_eq!(wrong(created(with(hybrid(provider), changes.clone()))), expected, "{provider} {changes}");
    }
}

#[test]
fn ranges_of_one_region_are_apart_and_those_of_another_may_be_equal() {
    let table = [
        ("AWS", json!({ "secondaryVpcCidr": "172.20.0.0/16" }), vec!["secondaryVpcCidr: overlap"]),
        ("AWS", json!({ "secondaryVpcCidr": "100.64.0.0/16" }), vec![]),
        ("GCP", json!({ "podSubnetRange": "172.20.0.0/22" }), vec!["podSubnetRange: overlap"]),
        ("GCP", json!({ "servicePeeringRange": "172.22.0.0/22" }), vec!["servicePeeringRange: overlap"]),
        (
            "GCP",
            json!({ "podSubnetRange": "172.20.0.0/22", "drRegion": "us-east1" }),
            vec!["podSubnetRange: overlap"],
        ),
        ("GCP", json!({ "drRegion": "us-east1" }), vec![]),
        (
            "GCP",
            json!({ "drRegion": "us-east1", "drVpcSubnetRange": "172.21.0.0/20" }),
            vec!["drPodSubnetRange: overlap"],
        ),
        (
            "GCP",
            json!({ "drRegion": "us-east1", "drVpcSubnetRange": "172.21.0.0/20", "drPodSubnetRange": "172.20.0.0/20" }),
            vec![],
        ),
        ("AWS", json!({ "drRegion": "us-west-2", "drVpcSubnetRange": "172.20.0.0/20" }), vec![]),
        (
            "AWS",
            json!({ "drRegion": "us-west-2", "drVpcSubnetRange": "1.2.3.0/24" }),
            vec!["drVpcSubnetRange: private"],
        ),
        (
            "AWS",
            json!({ "drRegion": "us-west-2", "drSecondaryVpcCidr": "10.0.0.0/24" }),
            vec!["drSecondaryVpcCidr: range"],
        ),
        ("AWS", json!({ "vpcSubnetRange": "x", "drRegion": "us-west-2" }), vec!["vpcSubnetRange: format"]),
    ];
    for (provider, changes, expected) in table {
        assert_eq!(wrong(created(with(new(provider), changes.clone()))), expected, "{provider} {changes}");
    }
}

#[test]
fn disaster_recovery_takes_another_region_of_the_provider() {
    let table = [
        ("AWS", json!({ "drRegion": "us-east-1" }), vec!["drRegion: same"]),
        ("AWS", json!({ "drRegion": "eastus2" }), vec!["drRegion: unknown"]),
        ("AWS", json!({ "drVpcSubnetRange": "10.0.0.0/16" }), vec!["drRegion: required"]),
        ("AWS", json!({ "enableReplicationTimeControl": true }), vec!["drRegion: required"]),
        (
            "AZURE",
            json!({ "drRegion": "centralus", "drSecondaryVpcCidr": "10.0.0.0/16" }),
            vec!["drSecondaryVpcCidr: excluded"],
        ),
        ("AZURE", json!({ "drRegion": "centralus", "drSecondaryVpcCidr": "" }), vec![]),
    ];
    for (provider, changes, expected) in table {
        assert_eq!(wrong(created(with(new(provider), changes.clone()))), expected, "{provider} {changes}");
    }
    let details = created(with(new("GCP"), json!({ "drRegion": "us-east1" }))).unwrap().details;
    assert!(details.is_dr_enabled);
    assert_eq!(details.dr_vpc_subnet_range.as_ref(), Some(&details.vpc_subnet_range));
    assert_eq!(details.dr_pod_subnet_range, details.pod_subnet_range);
    assert_eq!(details.dr_secondary_vpc_cidr, None);
}

#[test]
fn a_limited_region_takes_no_clusters() {
    for changes in [json!({ "region": "francesouth" }), json!({ "drRegion": "germanynorth" })] {
        assert_eq!(wrong(created(with(new("AZURE"), changes))), ["412"]);
    }
    let both = json!({ "region": "francesouth", "name": "" });
    assert_eq!(wrong(created(with(new("AZURE"), both))), ["name: required"]);
    let change = json!({ "enableDr": true, "drRegion": "germanynorth" });
    assert_eq!(wrong(updated(&cluster(new("AZURE")), change)), ["412"]);
}

#[test]
fn exactly_one_pool_is_the_default() {
    let pool = |name: &str, is_default: Value| {
        with(
            json!({ "name": name, "maxNodeCount": 2, "nodeInstanceType": "m5.xlarge" }),
            json!({ "isDefault": is_default }),
        )
    };
    let (yes, no, unsaid) = (json!(true), json!(false), Value::Null);
    for (pools, fits) in [
        (vec![pool("a", yes.clone())], true),
        (vec![pool("a", unsaid.clone())], true),
        (vec![pool("a", no.clone())], false),
        (vec![pool("a", unsaid.clone()), pool("b", unsaid.clone())], false),
        (vec![pool("a", unsaid.clone()), pool("b", yes.clone())], true),
        (vec![pool("a", yes.clone()), pool("b", yes)], false),
        (vec![], true),
    ] {
        let expected: &[&str] = if fits { &[] } else { &["nodePools: default"] };
        assert_eq!(wrong(created(with(new("AWS"), json!({ "nodePools": pools })))), expected, "{pools:?}");
    }
}

#[test]
fn pools_are_known_by_id_then_by_name() {
    let pool = |name: &str, count: u32, more: Value| {
        with(json!({ "name": name, "maxNodeCount": count, "nodeInstanceType": "m5.xlarge" }), more)
    };
    let pools =
        [pool("b", 2, json!({})), pool("a", 2, json!({ "isDefault": true })), pool("c", 2, json!({}))];
    let stored = cluster(with(new("AWS"), json!({ "nodePools": pools })));
    let names = |pools: &[podium_api::clusters::NodePool]| {
        let show = |pool: &podium_api::clusters::NodePool| {
            (pool.id, pool.name.clone(), pool.created_at == at(0), pool.updated_at == at(0))
        };
        pools.iter().map(show).collect::<Vec<_>>()
    };
    let [a, b, c] = [0, 1, 2].map(|index| stored.details.node_pools[index].id);
    assert_eq!(
        names(&stored.details.node_pools),
        [(a, "a".into(), true, true), (b, "b".into(), true, true), (c, "c".into(), true, true)]
    );
    assert_eq!(stored.details.node_pools[0].supported_platform_machines, ["A5", "A10", "A20"]);
    let requested = [
        pool("b", 3, json!({ "id": a, "isDefault": true })),
        pool("a", 2, json!({})),
        pool("C", 2, json!({ "isDefault": false })),
    ];
    let made = updated(&stored, json!({ "nodePools": requested })).unwrap().details.node_pools;
    let new = made.iter().find(|pool| pool.name == "a").unwrap().id;
    assert_ne!(new, b, "the pool whose old name is asked for again is another one");
    assert_eq!(
        names(&made),
        [(a, "b".into(), true, false), (c, "C".into(), true, false), (new, "a".into(), false, false)]
    );
    let twice = [pool("x", 2, json!({ "id": a, "isDefault": true })), pool("y", 2, json!({ "id": a }))];
    assert_eq!(wrong(updated(&stored, json!({ "nodePools": twice }))), ["nodePools[1].id: repeated"]);
}

#[test]
fn an_update_keeps_what_it_does_not_name() {
    let body = json!({
        "drRegion": "us-west-2", "enableReplicationTimeControl": true, "isPrivateNetworkEgressEnabled": true,
        "nodePools": [{ "name": "a", "maxNodeCount": 2, "nodeInstanceType": "m5.xlarge" }],
        "workspaceIds": [w2(), w1(), w2()], "dbInstanceType": "db.m5.large",
    });
    let stored = cluster(with(new("AWS"), body));
    assert_eq!(stored.workspace_ids, [w1(), w2()]);
    let made = updated(&stored, json!({})).unwrap();
    assert_eq!((&made.details, &made.workspace_ids), (&stored.details, &stored.workspace_ids));
    let made = updated(&stored, json!({ "nodePools": [], "workspaceIds": [] })).unwrap();
    assert!(made.details.node_pools.is_empty() && made.workspace_ids.is_empty());
}

#[test]
fn what_an_update_may_change() {
    let stored = cluster(new("AWS"));
    let table = [
        (json!({ "name": null }), vec!["name: required"]),
        (json!({ "k8sTags": null }), vec!["k8sTags: required"]),
        (
            json!({ "name": null, "k8sTags": null, "dbInstanceType": "x" }),
            vec!["name: required", "k8sTags: required", "dbInstanceType: unknown"],
        ),
        (json!({ "clusterType": "HYBRID" }), vec!["clusterType: immutable"]),
        (json!({ "clusterType": "DEDICATED" }), vec![]),
        (json!({ "dbInstanceType": "" }), vec![]),
        (json!({ "isPrivateNetworkEgressEnabled": true }), vec![]),
        (json!({ "workspaceIds": [w2()] }), vec!["workspaceIds: inUse"]),
        (json!({ "workspaceIds": [w1()] }), vec![]),
        (json!({ "workspaceIds": [cluster_id()] }), vec!["workspaceIds[0]: notFound", "workspaceIds: inUse"]),
    ];
    for (changes, expected) in table {
        assert_eq!(wrong(updated(&stored, changes.clone())), expected, "{changes}");
    }
    let azure = cluster(new("AZURE"));
    let egress = json!({ "isPrivateNetworkEgressEnabled": true });
    assert_eq!(wrong(updated(&azure, egress)), ["isPrivateNetworkEgressEnabled: excluded"]);
    assert_eq!(wrong(updated(&azure, json!({ "isPrivateNetworkEgressEnabled": false }))), NONE);
}

#[test]
fn a_hybrid_cluster_changes_its_workspaces_only() {
    let stored = cluster(hybrid("AWS"));
    for (changes, expected) in [
        (json!({}), vec![]),
        (json!({ "clusterType": "HYBRID", "workspaceIds": [w1()] }), vec![]),
        (json!({ "clusterType": "DEDICATED" }), vec!["clusterType: immutable"]),
        (json!({ "name": "", "k8sTags": [], "isFailedOver": false, "drRegion": "" }), vec![]),
        (json!({ "name": "Main" }), vec!["name: excluded"]),
        (
            json!({ "isFailedOver": true, "drRegion": "us-west-2" }),
            vec!["isFailedOver: excluded", "drRegion: excluded"],
        ),
    ] {
        assert_eq!(wrong(updated(&stored, changes.clone())), expected, "{changes}");
    }
}

#[test]
fn disaster_recovery_is_switched_on_and_off() {
    let off = cluster(new("AWS"));
    let on =
        cluster(with(new("AWS"), json!({ "drRegion": "us-west-2", "enableReplicationTimeControl": true })));
    let mut failed_over = on.clone();
    failed_over.is_failed_over = true;
    let table = [
        (&off, json!({ "enableDr": true }), vec!["drRegion: required"]),
        (&off, json!({ "enableDr": true, "drRegion": "us-west-2" }), vec![]),
        (&off, json!({ "enableDr": true, "drRegion": "us-east-1" }), vec!["drRegion: same"]),
        (&off, json!({ "drRegion": "us-west-2" }), vec!["drRegion: immutable"]),
        (&off, json!({ "enableDr": false, "drRegion": "us-west-2" }), vec!["drRegion: immutable"]),
        (&off, json!({ "drRegion": "", "drVpcSubnetRange": "" }), vec![]),
        (&off, json!({ "enableDr": false }), vec![]),
        (
            &off,
            json!({ "enableReplicationTimeControl": true }),
            vec!["enableReplicationTimeControl: excluded"],
        ),
        (
            &off,
            json!({ "enableDr": true, "drRegion": "us-west-2", "drPodSubnetRange": "10.0.0.0/16" }),
            vec!["drPodSubnetRange: excluded"],
        ),
        (&on, json!({ "enableDr": true }), vec![]),
        (
            &on,
            json!({ "enableDr": true, "drRegion": "us-west-2", "drVpcSubnetRange": "172.20.0.0/20" }),
            vec![],
        ),
        (&on, json!({ "enableDr": true, "drRegion": "eu-west-1" }), vec!["drRegion: immutable"]),
        (&on, json!({ "drVpcSubnetRange": "10.0.0.0/16" }), vec!["drVpcSubnetRange: immutable"]),
        (&on, json!({ "enableDr": false }), vec![]),
        (&on, json!({ "enableDr": false, "drRegion": "us-west-2" }), vec![]),
        (
            &on,
            json!({ "enableDr": false, "enableReplicationTimeControl": true }),
            vec!["enableReplicationTimeControl: excluded"],
        ),
        (&failed_over, json!({ "enableDr": false }), vec!["enableDr: failedOver"]),
    ];
    for (stored, changes, expected) in table {
        assert_eq!(wrong(updated(stored, changes.clone())), expected, "{changes}");
    }
    let made = updated(&off, json!({ "enableDr": true, "drRegion": "us-west-2" })).unwrap().details;
    assert_eq!((made.is_dr_enabled, made.dr_region.as_str()), (true, "us-west-2"));
    assert_eq!(made.dr_vpc_subnet_range.as_deref(), Some("172.20.0.0/20"));
    let made = updated(&on, json!({ "enableDr": false })).unwrap().details;
    assert_eq!(made, off.details);
}

#[test]
fn a_failover_changes_nothing_else() {
    let stored = cluster(with(new("AWS"), json!({ "drRegion": "us-west-2" })));
    for (changes, expected) in [
        (json!({ "isFailedOver": true }), vec![]),
        (
            json!({ "isFailedOver": true, "enableDr": true, "drRegion": "us-west-2", "workspaceIds": [] }),
            vec![],
        ),
        (json!({ "isFailedOver": false, "name": "Other" }), vec![]),
        (
            json!({ "isFailedOver": true, "name": "Other", "k8sTags": [{ "key": "a" }], "dbInstanceType": "db.m5.large",
                "workspaceIds": [w1()], "isPrivateNetworkEgressEnabled": true, "enableReplicationTimeControl": true,
                "nodePools": [{ "name": "a", "maxNodeCount": 2, "nodeInstanceType": "m5.xlarge" }] }),
            vec![
                "name: failover",
                "k8sTags: failover",
                "dbInstanceType: failover",
                "nodePools: failover",
                "isPrivateNetworkEgressEnabled: failover",
                "enableReplicationTimeControl: failover",
                "workspaceIds: failover",
            ],
        ),
        (json!({ "isFailedOver": true, "enableDr": false }), vec!["enableDr: failover"]),
    ] {
        assert_eq!(wrong(updated(&stored, changes.clone())), expected, "{changes}");
    }
    let without = cluster(new("AWS"));
    assert_eq!(wrong(updated(&without, json!({ "isFailedOver": true }))), ["isFailedOver: excluded"]);
    assert_eq!(wrong(updated(&without, json!({ "isFailedOver": false }))), NONE);
}

#[test]
fn the_same_place_is_no_failover_unless_the_last_one_failed() {
    let mut stored = cluster(with(new("AWS"), json!({ "drRegion": "us-west-2" })));
    let requested = |stored: &_, to: Value| {
        event(stored, &serde_json::from_value(json!({ "isFailedOver": to })).unwrap())
    };
    assert_eq!(requested(&stored, json!(true)), Event::FailOver(true));
    assert_eq!(requested(&stored, json!(false)), Event::Update);
    assert_eq!(requested(&stored, Value::Null), Event::Update);
    stored.is_failed_over = true;
    assert_eq!(requested(&stored, json!(false)), Event::FailOver(false));
    stored.status = ClusterStatus::FailoverFailed;
    assert_eq!(requested(&stored, json!(false)), Event::FailOver(false));
    assert_eq!(requested(&stored, json!(true)), Event::FailOver(true));
    assert_eq!(requested(&stored, Value::Null), Event::Update);
}
