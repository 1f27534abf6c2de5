//! Clusters for tests, and the effect of their loop for tests without one.

use podium_api::clusters::{
    Cluster, ClusterDetails, ClusterHealthStatus, ClusterHealthStatusDetail, ClusterMetadata,
};
use podium_api::enums::{CloudProvider, ClusterStatus, ClusterType, HealthValue};
use podium_api::{ClusterId, WorkspaceId};
use podium_domain::clusters::plan::Settled;
use podium_store::{clusters, work};
use serde_json::{Value, json};

use crate::app::TestApp;

impl TestApp {
    /// A cluster for these workspaces only, or for all if there are none, as bare rows.
    pub async fn cluster(&self, workspaces: &[WorkspaceId]) -> ClusterId {
        let (system, scope) = (self.system, self.scope());
        let (id, now) = (self.world.id(), self.world.now());
        let cluster = Cluster {
            id,
            name: id.to_string(),
            organization_id: self.organization_id,
            r#type: ClusterType::Dedicated,
            cloud_provider: CloudProvider::Aws,
            region: "us-east-1".into(),
            status: ClusterStatus::Created,
            health_status: ClusterHealthStatus::default(),
            is_failed_over: false,
            failover_in_progress: false,
            is_limited: false,
            workspace_ids: workspaces.to_vec(),
            metadata: ClusterMetadata::default(),
            data_plane: None,
            created_at: now,
            updated_at: now,
            details: ClusterDetails {
                db_instance_type: "db.t3.medium".into(),
                vpc_subnet_range: "172.20.0.0/20".into(),
                is_private_network_egress_enabled: Some(false),
                ..ClusterDetails::default()
            },
        };
        let added = self.db().write(None, move |tx| {
            clusters::insert(tx, &scope, &cluster, &cluster.name)?;
            work::forget(tx, &system, clusters::KIND, id.id())
        });
        added.await.expect("a cluster can be stored");
        id
    }

    /// A cluster, created by the owner; `others` are optional fields of the request.
    pub async fn new_cluster(&self, name: &str, others: Value) -> ClusterId {
        let mut body = json!({
            "cloudProvider": "AWS", "name": name, "region": "us-east-1", "type": "DEDICATED",
            "vpcSubnetRange": "172.20.0.0/20",
        });
        if let Value::Object(others) = others {
            others.into_iter().for_each(|(field, value)| body[field] = value);
        }
        let answer = self.post(&self.owner, &self.path("/clusters"), body).await;
        answer.id().parse().expect("an id")
    }

    /// Records this status as the cluster's loop does.
    pub async fn settle_cluster(&self, id: ClusterId, status: ClusterStatus) {
        let (system, now) = (self.system, self.world.now());
        let world = std::sync::Arc::clone(&self.world);
        let settled = self.db().write(None, move |tx| {
            let mut new_id = || world.id();
            let state = clusters::state(tx, &system, id)?.expect("there is such a cluster");
            let is_done = status == ClusterStatus::Created;
            let settled = Settled {
                status,
                reason: if is_done {
                    podium_domain::UserText::EMPTY
                } else {
                    "The account has no room.".into()
                },
                is_failed_over: if is_done { state.wants_failed_over } else { state.cluster.is_failed_over },
                health: if is_done { healthy() } else { unhealthy() },
                metadata: state.cluster.metadata.clone(),
            };
            let is_settled = clusters::settle(tx, &system, id, state.generation, &settled, &mut new_id, now)?;
            work::forget(tx, &system, clusters::KIND, id.id())?;
            Ok::<_, podium_db::Error>(is_settled)
        });
        assert!(settled.await.expect("a cluster can be settled"), "nobody changed it meanwhile");
    }
}

fn healthy() -> ClusterHealthStatus {
    ClusterHealthStatus { value: HealthValue::Healthy, details: Vec::new() }
}

fn unhealthy() -> ClusterHealthStatus {
    let detail = ClusterHealthStatusDetail {
        code: "failed".into(),
        description: "The account has no room.".into(),
        severity: "critical".into(),
        component: None,
    };
    ClusterHealthStatus { value: HealthValue::Unhealthy, details: vec![detail] }
}
