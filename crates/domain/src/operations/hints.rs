//! What to do about a failed operation.

use podium_api::enums::{OperationKind, OperationTargetType};

/// What to do after an operation has failed.
pub(super) const fn after_failure(kind: OperationKind, target_type: OperationTargetType) -> &'static str {
    match (target_type, kind) {
        (OperationTargetType::Deployment, OperationKind::Create) => {
            "Read the deployment's logs, then update the deployment, or delete it and create another."
        }
        (OperationTargetType::Deployment, OperationKind::Deploy | OperationKind::RuntimeUpgrade) => {
            "Read the deployment's logs, then deploy a corrected version, or roll back to an earlier deploy."
        }
        (OperationTargetType::Deployment, OperationKind::Rollback) => {
            "Read the deployment's logs, then deploy a corrected version, or roll back to another deploy."
        }
        (OperationTargetType::Deployment, OperationKind::Delete) => {
            "Nothing is needed: the removal is tried again."
        }
        (OperationTargetType::Deployment, OperationKind::CleanUp) => {
            "It is tried again at the next time in `cleanUpCron`. Until then the history stays."
        }
        (OperationTargetType::Deployment, _) => {
            "Read the deployment's logs, then update the deployment with corrected settings."
        }
        (OperationTargetType::Cluster, OperationKind::Create) => {
            "Remove the cause, then delete the cluster and create another."
        }
        (OperationTargetType::Cluster, OperationKind::Failover | OperationKind::Failback) => {
            "Remove the cause, then send `isFailedOver` to fail over or back once more."
        }
        (OperationTargetType::Cluster, _) => "Remove the cause, then repeat the update.",
    }
}
