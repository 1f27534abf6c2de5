//! Deployments and requests for the tests of deploys.

use podium_api::deploys::CreateDeployRequest;
use podium_api::enums::{DeployType, DeploymentType};
use podium_api::{Id, TypedId};

use crate::deployments::{Bundle, Spec};

pub(crate) use crate::fixtures::wrong;

pub(crate) fn id<I: TypedId>(number: u32) -> I {
    I::from_raw(Id::from_parts(0, number, 0))
}

/// A deployment with DAG deploys, without any deploy.
pub(crate) fn spec() -> Spec {
    Spec::new(DeploymentType::Standard, "3.1.0")
}

pub(crate) fn request(kind: DeployType) -> CreateDeployRequest {
    serde_json::from_value(serde_json::json!({ "type": kind })).unwrap()
}

pub(crate) fn bundle(mount_path: &str, version: &str) -> Bundle {
    Bundle {
        mount_path: mount_path.into(),
        bundle_type: "dbt".into(),
        version: version.into(),
        deploy_id: id(7),
    }
}
