//! Events: what happened in an organization, in order, as CloudEvents.

use crate::alerts::AlertSubject;
use crate::enums::{AlertKind, EventType, SubjectType};
use crate::path::InOrganization;
use crate::reply::{Events, Many};
use crate::{AlertFiringId, DeploymentId, Id, OrganizationId, SubjectId, Timestamp, WebhookId, WorkspaceId};

endpoints! {
    tag "Event";

    /// List events
    List: GET "/organizations/{organizationId}/events" as "ListEvents" {
        path: InOrganization, query: ListEvents, reply: Many<EventPage>,
        permission: "organization.get", also: [410],
    }
    /// Follow events
    Follow: GET "/organizations/{organizationId}/events/follow" as "FollowEvents" {
        path: InOrganization, query: FollowEvents, reply: Events<Event>,
        permission: "organization.get", also: [410], marks: [live],
    }
}

/// The version of CloudEvents that events follow.
pub const SPEC_VERSION: &str = "1.0";
/// The media type of the data of every event.
pub const DATA_CONTENT_TYPE: &str = "application/json";

wire! {
    /// Which events to list, the oldest first.
    pub struct ListEvents {
        /// Where to continue: the `nextCursor` of an earlier page, or the id of an event. Without it the list begins with the
        /// oldest event that is kept.
        #[schemars(length(max = 64))]
        pub cursor: Option<String>,
        /// Maximum number of events to return.
        #[serde(default = "default_limit")]
        #[schemars(range(min = 1, max = 1000))]
        pub limit: u32,
        /// Only events of these types.
        #[serde(default)]
        #[schemars(length(max = 100))]
        pub types: Vec<EventType>,
        /// Only events of this workspace and its deployments.
        pub workspace_id: Option<WorkspaceId>,
        /// Only events of this deployment.
        pub deployment_id: Option<DeploymentId>,
        /// Only events from this time on.
        pub since: Option<Timestamp>,
    }
}

fn default_limit() -> u32 {
    100
}

wire! {
    /// Which events to follow.
    #[derive(Default)]
    pub struct FollowEvents {
        /// Where to begin: a cursor of a list, or the id of an event. The header `Last-Event-ID` takes precedence. Without
        /// either and without `since`, only new events are sent.
        #[schemars(length(max = 64))]
        pub cursor: Option<String>,
        /// Only events of these types.
        #[serde(default)]
        #[schemars(length(max = 100))]
        pub types: Vec<EventType>,
        /// Only events of this workspace and its deployments.
        pub workspace_id: Option<WorkspaceId>,
        /// Only events of this deployment.
        pub deployment_id: Option<DeploymentId>,
        /// Only events from this time on.
        pub since: Option<Timestamp>,
        /// How many seconds to wait for events before the stream ends: 0 gives what is there already. Without it the stream
        /// goes on.
        #[schemars(range(min = 0, max = 86_400))]
        pub wait_seconds: Option<u64>,
    }

    /// A page of events, the oldest first.
    pub struct EventPage {
        /// The events.
        pub events: Vec<Event>,
        /// Where the next page begins; the same call with this cursor later returns the events since then.
        pub next_cursor: String,
        /// Whether there may be more already. A page with few events, or none, can have more after it: the server looks through
        /// a bounded number of events for events that the caller asked for and may see.
        pub has_more: bool,
    }

    /// Something that happened, in the JSON format of CloudEvents 1.0.
    #[derive(PartialEq, Eq)]
    pub struct Event {
        /// The version of CloudEvents: `1.0`.
        pub specversion: String,
        /// Identifies the event among the events of its source. It is also a cursor: the events after it happened later.
        pub id: String,
        /// The organization, as a URL.
        pub source: String,
        /// The type of the event.
        pub r#type: EventType,
        /// What it happened to: the kind of resource and its id, such as `deployment/cm5x1z…`.
        pub subject: String,
        /// When it happened.
        pub time: Timestamp,
        /// The media type of `data`: `application/json`.
        pub datacontenttype: String,
        /// What is known about it.
        pub data: EventData,
    }

    /// What an event says.
    #[derive(PartialEq, Eq)]
    pub struct EventData {
        /// The organization.
        pub organization_id: OrganizationId,
        /// The workspace, where it happened in one.
        pub workspace_id: Option<WorkspaceId>,
        /// The deployment, where it happened in one.
        pub deployment_id: Option<DeploymentId>,
        /// The resource that it happened to.
        pub resource: EventResource,
        /// Who did it; absent where Podium itself did, for example because the status of a deployment changed.
        pub actor: Option<EventActor>,
        /// The status of the resource after the event, where it has one.
        pub status: Option<String>,
        /// The reason for the status, if any.
        pub status_reason: Option<String>,
        /// True where the environment of the deployment says so: it runs code of its authors, and Podium cannot check it.
        pub claimed: Option<bool>,
        /// The DAG run that it is about.
        pub dag_run: Option<EventDagRun>,
        /// The task of that DAG run.
        pub task: Option<EventTask>,
        /// How many events the environment could not pass on, at least.
        pub count: Option<u64>,
        /// What an alert has found, or what is over.
        pub alert: Option<EventAlert>,
    }

    /// What an alert has found in one place, or what is over there.
    #[derive(PartialEq, Eq)]
    pub struct EventAlert {
        /// The kind of problem that it watches for.
        pub kind: AlertKind,
        /// Some of it: at most 20.
        pub firings: Vec<EventAlertFiring>,
        /// How much there is in all.
        pub total: u64,
        /// The webhooks that the alert names, which are not shown to readers; without any, all that ask for the event get it.
        #[schemars(skip)]
        pub webhook_ids: Option<Vec<WebhookId>>,
    }

    /// Something that an alert has found.
    #[derive(PartialEq, Eq)]
    pub struct EventAlertFiring {
        /// Its id: the same in the event which says that the firing is over.
        pub id: AlertFiringId,
        /// The deployment, DAG or token that has the problem.
        pub subject: AlertSubject,
        /// When the problem began.
        pub since: Timestamp,
        /// Until when, if it is over.
        pub until: Option<Timestamp>,
        /// How often it has happened since then.
        pub count: u64,
        /// Why, where Podium knows it.
        pub reason: Option<String>,
        /// The DAG run, where it is about one.
        pub run_id: Option<String>,
    }

    /// A DAG run, as its environment describes it.
    #[derive(PartialEq, Eq)]
    pub struct EventDagRun {
        /// The DAG.
        pub dag_id: String,
        /// The run.
        pub run_id: String,
        /// How it came about, such as `scheduled` or `manual`.
        pub run_type: Option<String>,
        /// When it began.
        pub started_at: Option<Timestamp>,
        /// When it ended.
        pub ended_at: Option<Timestamp>,
    }

    /// An attempt at a task, as its environment describes it.
    #[derive(PartialEq, Eq)]
    pub struct EventTask {
        /// The task.
        pub task_id: String,
        /// Which one of a mapped task.
        pub map_index: Option<u32>,
        /// Which attempt it was, from 1.
        pub try_number: Option<u32>,
        /// How often the task is tried again at most: an attempt with a higher number was the last.
        pub max_tries: Option<u32>,
    }

    /// The resource of an event.
    #[derive(PartialEq, Eq)]
    pub struct EventResource {
        /// The kind of resource, as in the type of the event.
        pub r#type: String,
        /// Its id.
        pub id: Id,
        /// Its name, where it has one: an e-mail address for a user, the key of an environment object, the text of a range.
        pub name: Option<String>,
    }

    /// Who caused an event.
    #[derive(PartialEq, Eq)]
    pub struct EventActor {
        /// The user or API token.
        pub id: SubjectId,
        /// Which of the two it is.
        pub r#type: SubjectType,
        /// The user's e-mail address, or the token's name.
        pub name: String,
    }
}
