//! Deployments and requests for the tests of deploys.

use podium_api::deploys::CreateDeployRequest;
use podium_api::enums::{DeployType, DeploymentType};
use podium_api::{Id, TypedId};

use crate::deployments::{Bundle, Spec};
use crate::refusal::{Refusal, Result};

pub(crate) fn id<I: TypedId>(number: u32) -> I {
    I::from_raw(Id::from_parts(0, number, 0))
}

/// A deployment with DAG deploys, without any deploy.
pub(crate) fn spec() -> Spec {
    Spec::new(DeploymentType::Standard, "3.1.0")
}

pub(crate) fn request(kind: DeployType) -> CreateDeployRequest {
    CreateDeployRequest {
        kind,
        description: None,
        bundle_type: None,
        bundle_mount_path: None,
        platform_runtime_version: None,
        git: None,
        wake: None,
    }
}

pub(crate) fn bundle(mount_path: &str, version: &str) -> Bundle {
    Bundle {
        mount_path: mount_path.into(),
        bundle_type: "dbt".into(),
        version: version.into(),
        deploy_id: id(7),
    }
}

/// The wrong fields of a request that is refused for its fields, and none of one that is not refused.
pub(crate) fn wrong<T>(result: Result<T>) -> Vec<String> {
    match result {
        Ok(_) => Vec::new(),
        Err(Refusal::Invalid { fields, message }) => {
            assert!(!fields.is_empty(), "{message}");
            fields.iter().map(|error| format!("{}: {}", error.field, error.code)).collect()
        }
        Err(other) => panic!("{other:?}"),
    }
}
