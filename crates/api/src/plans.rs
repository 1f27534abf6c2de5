//! Plans: what a list of calls would do, and the same calls made at once.

use serde_json::{Map, Value};

use crate::enums::{PlannedEffectType, PlannedMethod};
use crate::error::ErrorBody;
use crate::path::{InOrganization, OfPlan};
use crate::reply::{Many, One};
use crate::{PlanId, Timestamp};

endpoints! {
    tag "Plan";

    /// Plan changes without making them
    Create: POST "/organizations/{organizationId}/plans" as "CreatePlan" {
        path: InOrganization, body: CreatePlanRequest, reply: One<Plan>,
        open_to: MembersOnly, without_event: "changes nothing", marks: [live, not_audited],
    }
    /// Make the changes of a plan, all or none
    Apply: POST "/organizations/{organizationId}/plans/{planId}/apply" as "ApplyPlan" {
        path: OfPlan, reply: Many<AppliedPlan>,
        open_to: MembersOnly, without_event: "each of its calls makes its own event",
        also: [409], marks: [live],
    }
}

wire! {
    /// The calls to plan.
    pub struct CreatePlanRequest {
        /// The calls, in order. All of them are for the organization of the plan.
        #[schemars(length(min = 1, max = 100))]
        pub calls: Vec<PlannedCall>,
    }

    /// A call of the API.
    pub struct PlannedCall {
        /// The method.
        pub method: PlannedMethod,
        /// The path, with or without the version prefix. `{0.id}` stands for the `id` in the result of the first call.
        #[schemars(length(min = 1, max = 1000))]
        pub path: String,
        /// The body. `{"$call": 0, "field": "id"}` stands for the `id` in the result of the first call.
        pub body: Option<Map<String, Value>>,
        /// The `If-Match` header.
        #[schemars(length(max = 500))]
        pub if_match: Option<String>,
    }

    /// What the calls would do.
    pub struct Plan {
        /// The plan to apply; absent if a call would be refused.
        pub plan_id: Option<PlanId>,
        /// Until when it can be applied.
        pub expires_at: Option<Timestamp>,
        /// What each call would do, in the order of the calls.
        pub calls: Vec<PlannedOutcome>,
    }

    /// What a call would do.
    pub struct PlannedOutcome {
        /// The operation that the call leads to; absent if there is none.
        pub operation_id: Option<String>,
        /// The status that the call would be answered with.
        #[schemars(range(min = 200, max = 600))]
        pub status_code: u16,
        /// The fields of the resource that would change.
        pub changes: Vec<PlannedChange>,
        /// What else would happen.
        pub effects: Vec<PlannedEffect>,
        /// What the call would answer, without secrets; absent if it would be refused or answer nothing.
        pub result: Option<Map<String, Value>>,
        /// Why the call would be refused.
        pub error: Option<ErrorBody>,
    }

    /// A field that changes.
    #[derive(PartialEq)]
    pub struct PlannedChange {
        /// The JSON path of the field, such as `workerQueues[default].maxWorkerCount`; members of lists are named by their key,
        /// name or id. Empty for a resource that is deleted.
        pub path: String,
        /// The value before; absent if there was none.
        pub from: Option<Value>,
        /// The value after; absent if there is none.
        pub to: Option<Value>,
    }

    /// Something that a call causes beyond the fields that it changes.
    #[derive(PartialEq, Eq)]
    pub struct PlannedEffect {
        /// What kind of effect it is.
        #[serde(rename = "type")]
        pub kind: PlannedEffectType,
        /// What happens, for people.
        pub message: String,
        /// What it happens to, such as components that restart; at most 20.
        pub names: Vec<String>,
        /// To how many.
        pub count: Option<u64>,
        /// When it was observed, for what depends on what runs at the moment.
        pub observed_at: Option<Timestamp>,
    }

    /// The results of the calls of a plan.
    pub struct AppliedPlan {
        /// The plan.
        pub plan_id: PlanId,
        /// The results, in the order of the calls.
        pub calls: Vec<AppliedCall>,
    }

    /// The result of a call.
    pub struct AppliedCall {
        /// The operation.
        pub operation_id: String,
        /// The status of the call.
        #[schemars(range(min = 200, max = 299))]
        pub status_code: u16,
        /// What the call answered; absent if it answers nothing.
        pub result: Option<Map<String, Value>>,
    }
}
