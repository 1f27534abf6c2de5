//! Operations: changes that take time, with what they are doing and how they ended.

use crate::enums::{OperationCause, OperationKind, OperationState, OperationStepName, OperationTargetType};
use crate::path::{InOrganization, OfOperation};
use crate::reply::{Events, Many, One};
use crate::subjects::SubjectProfile;
use crate::{DeploymentId, Id, Named, OperationId, SubjectId, Timestamp, WorkspaceId};

endpoints! {
    tag "Operation";

    /// List operations
    List: GET "/organizations/{organizationId}/operations" as "ListOperations" {
        path: InOrganization, query: ListOperations, reply: Many<OperationsPaginated>,
        open_to: MembersOnly,
    }
    /// Get an operation
    Get: GET "/organizations/{organizationId}/operations/{operationId}" as "GetOperation" {
        path: OfOperation, reply: One<Operation>,
        open_to: MembersOnly,
    }
    /// Cancel an operation
    Cancel: POST "/organizations/{organizationId}/operations/{operationId}/cancel" as "CancelOperation" {
        path: OfOperation, reply: One<Operation>,
        open_to: MembersOnly, event: OperationCancelled, marks: [starts_operation],
    }
    /// End the wait of an operation for running tasks
    Force: POST "/organizations/{organizationId}/operations/{operationId}/force" as "ForceOperation" {
        path: OfOperation, reply: One<Operation>,
        open_to: MembersOnly, event: OperationForced,
    }
    /// Follow an operation
    Follow: GET "/organizations/{organizationId}/operations/{operationId}/follow" as "FollowOperation" {
        path: OfOperation, query: FollowOperation, reply: Events<Operation>,
        open_to: MembersOnly, marks: [live],
    }
}

wire! {
    /// Which operations to list.
    sorted["createdAt"] pub struct ListOperations {
        /// Only operations of these deployments and clusters.
        #[serde(default)]
        #[schemars(length(max = 100))]
        pub target_ids: Vec<Named<Id>>,
        /// Only operations of these kinds.
        #[serde(default)]
        pub kinds: Vec<OperationKind>,
        /// Only operations in these states.
        #[serde(default)]
        pub states: Vec<OperationState>,
        /// Only operations that this user or API token started; `self` is the caller.
        pub subject_id: Option<Named<SubjectId>>,
        /// Only operations that were created at or after this time.
        pub since: Option<Timestamp>,
    }

    /// How long to follow an operation.
    pub struct FollowOperation {
        /// How many seconds to wait for news before the stream ends: 0 gives what is known already. Without it the stream goes
        /// on until the operation has ended.
        #[schemars(range(min = 0, max = 86_400))]
        pub wait_seconds: Option<u64>,
    }

    /// A page of operations.
    pub struct OperationsPaginated {
        /// The operations.
        pub operations: Vec<Operation>,
        /// Maximum number of items per page.
        #[schemars(range(min = 0))]
        pub limit: u32,
        /// How many items were skipped.
        #[schemars(range(min = 0))]
        pub offset: u64,
        /// How many there are in all.
        #[schemars(range(min = 0))]
        pub total_count: u64,
    }

    /// A change that takes time.
    #[derive(PartialEq, Eq)]
    pub struct Operation {
        /// Its id.
        pub id: OperationId,
        /// The kind of change.
        pub kind: OperationKind,
        /// The resource that it changes.
        pub target: OperationTarget,
        /// Who started it; absent if the server did.
        pub subject: Option<SubjectProfile>,
        /// Why the operation was started.
        pub cause: OperationCause,
        /// The state of the operation.
        pub state: OperationState,
        /// The steps that it has taken, in the order in which they first began.
        pub steps: Vec<OperationStep>,
        /// What it is doing, unless it has ended.
        pub progress: Option<OperationProgress>,
        /// Why it failed, if it did.
        pub failure: Option<OperationFailure>,
        /// The result of the operation, where there is something to say.
        pub summary: Option<String>,
        /// When somebody ended its wait for running tasks.
        pub forced_at: Option<Timestamp>,
        /// Whether it can be cancelled now.
        pub is_cancellable: bool,
        /// What it cannot be cancelled after.
        pub point_of_no_return: String,
        /// The operation that took its place, if its state is SUPERSEDED.
        pub superseded_by_id: Option<OperationId>,
        /// When it was created.
        pub created_at: Timestamp,
        /// When work on it began.
        pub started_at: Option<Timestamp>,
        /// When it ended.
        pub ended_at: Option<Timestamp>,
    }

    /// What an operation changes.
    #[derive(PartialEq, Eq)]
    pub struct OperationTarget {
        /// The type of the target.
        #[serde(rename = "type")]
        pub target_type: OperationTargetType,
        /// Its id.
        pub id: Id,
        /// Its name when the operation was created.
        pub name: String,
        /// Its workspace, if it is a deployment.
        pub workspace_id: Option<WorkspaceId>,
        /// Its id, if it is a deployment.
        pub deployment_id: Option<DeploymentId>,
    }

    /// A step of an operation.
    #[derive(PartialEq, Eq)]
    pub struct OperationStep {
        /// The step.
        pub name: OperationStepName,
        /// When it began.
        pub started_at: Timestamp,
        /// When it ended; absent while it is under way.
        pub ended_at: Option<Timestamp>,
    }

    /// What an operation is doing.
    #[derive(Default, PartialEq, Eq)]
    pub struct OperationProgress {
        /// How much of the current step is done, where that is known.
        #[schemars(range(min = 0))]
        pub done: Option<u64>,
        /// How much the current step has to do, where that is known.
        #[schemars(range(min = 0))]
        pub total: Option<u64>,
        /// What it is doing or waiting for, in words.
        pub message: Option<String>,
        /// The task instances that it waits for, as `dag/run/task`, at most twenty.
        #[serde(default)]
        pub waits_for: Vec<String>,
    }

    /// Why an operation failed.
    #[derive(PartialEq, Eq)]
    pub struct OperationFailure {
        /// The reason.
        pub reason: String,
        /// What to do about the failure.
        pub hint: String,
    }
}
