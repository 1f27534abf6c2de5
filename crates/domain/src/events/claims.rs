//! What environments say about their DAG runs and tasks.
//!
//! An environment runs code of its authors, who can make it say anything. So a line is checked field by field, the
//! deployment is never taken from it, and an environment may say only so much in a time.

use podium_api::enums::EventType;
use podium_api::events::{EventDagRun, EventTask};
use podium_api::{OrganizationId, Timestamp};
use serde::Deserialize;

use super::{NewEvent, Resource};

/// The longest line that is read, in bytes, with its line break.
pub const MOST_LINE: usize = 4000;
/// The longest id of a DAG, run or task, in characters: as long as Airflow allows.
const MOST_ID: usize = 250;
/// The longest type of a run, in characters.
const MOST_WORD: usize = 50;

/// Something that an environment says has happened in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    event_type: EventType,
    dag_run: EventDagRun,
    task: Option<EventTask>,
}

/// A line as the listener in the environment writes it.
#[derive(Deserialize)]
struct Line {
    event: Kind,
    dag_id: String,
    run_id: String,
    run_type: Option<String>,
    started_at: Option<String>,
    ended_at: Option<String>,
    task_id: Option<String>,
    map_index: Option<u32>,
    try_number: Option<u32>,
    max_tries: Option<u32>,
}

#[derive(Deserialize)]
enum Kind {
    #[serde(rename = "dag_run.started")]
    DagRunStarted,
    #[serde(rename = "dag_run.succeeded")]
    DagRunSucceeded,
    #[serde(rename = "dag_run.failed")]
    DagRunFailed,
    #[serde(rename = "task.failed")]
    TaskFailed,
    #[serde(rename = "task.interrupted")]
    TaskInterrupted,
}

impl Claim {
    /// Reads a line; `None` if it is not one that a listener writes.
    pub fn parse(line: &[u8]) -> Option<Self> {
        if line.len() >= MOST_LINE {
            return None;
        }
        Self::read(serde_json::from_slice(line).ok()?).ok()
    }

    fn read(line: Line) -> Result<Self, Unreadable> {
        let dag_run = EventDagRun {
            dag_id: id(line.dag_id)?,
            run_id: id(line.run_id)?,
            run_type: line.run_type.map(word).transpose()?,
            started_at: line.started_at.map(time).transpose()?,
            ended_at: line.ended_at.map(time).transpose()?,
        };
        let task = line.task_id.map(id).transpose()?.map(|task_id| EventTask {
            task_id,
            map_index: line.map_index,
            try_number: line.try_number,
            max_tries: line.max_tries,
        });
        let event_type = match (line.event, &task) {
            (Kind::DagRunStarted, None) => EventType::DagRunStarted,
            (Kind::DagRunSucceeded, None) => EventType::DagRunSucceeded,
            (Kind::DagRunFailed, None) => EventType::DagRunFailed,
            (Kind::TaskFailed, Some(_)) => EventType::TaskFailed,
            (Kind::TaskInterrupted, Some(_)) => EventType::TaskInterrupted,
            _ => return Err(Unreadable),
        };
        Ok(Self { event_type, dag_run, task })
    }

    pub fn event(self, organization_id: OrganizationId, deployment: Resource<'_>) -> NewEvent {
        let mut event = NewEvent::new(self.event_type, organization_id, deployment, None);
        // What it happened to, as far as Podium knows it.
        "deployment".clone_into(&mut event.data.resource.r#type);
        event.data.claimed = Some(true);
        event.data.dag_run = Some(self.dag_run);
        event.data.task = self.task;
        event
    }
}

impl NewEvent {
    /// So many events of this deployment could not be passed on.
    pub fn dropped(organization_id: OrganizationId, deployment: Resource<'_>, count: u64) -> Self {
        let mut event = Self::new(EventType::DeploymentEventsDropped, organization_id, deployment, None);
        event.data.claimed = Some(true);
        event.data.count = Some(count);
        event
    }
}

/// A field that no listener writes.
struct Unreadable;

fn id(text: String) -> Result<String, Unreadable> {
    let is_fine = !text.is_empty() && text.chars().count() <= MOST_ID && !text.chars().any(char::is_control);
    if is_fine { Ok(text) } else { Err(Unreadable) }
}

fn word(text: String) -> Result<String, Unreadable> {
    let is_part = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
    let is_fine = !text.is_empty() && text.len() <= MOST_WORD && text.bytes().all(is_part);
    if is_fine { Ok(text) } else { Err(Unreadable) }
}

#[expect(clippy::needless_pass_by_value, reason = "fields are mapped with it")]
fn time(text: String) -> Result<Timestamp, Unreadable> {
    let known = (text.len() <= MOST_WORD).then(|| Timestamp::parse(&text));
    known.flatten().ok_or(Unreadable)
}

/// How far the spool of an environment was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpoolPosition {
    pub segment: u64,
    pub read_bytes: u64,
    /// How many events the environment had dropped by then.
    pub dropped: u64,
}

/// How far the spool of an environment was read, and how much more it may say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpoolState {
    /// How far it was read.
    pub position: SpoolPosition,
    /// How much more it may say.
    pub allowance: Allowance,
}

impl SpoolState {
    /// That of an environment that has said nothing yet.
    pub fn new(now: Timestamp) -> Self {
        Self { position: SpoolPosition::default(), allowance: Allowance::full(now) }
    }
}

/// What was read from the spool of an environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpoolBatch {
    /// Where reading began.
    pub from: SpoolPosition,
    /// Where it ended.
    pub to: SpoolPosition,
    /// What the environment said.
    pub claims: Vec<Claim>,
    /// How many events it dropped, or wrote so that they cannot be read.
    pub dropped: u64,
}

impl SpoolBatch {
    pub fn events(&self) -> i64 {
        i64::try_from(self.claims.len()).unwrap_or(i64::MAX).saturating_add(i64::from(self.dropped > 0))
    }
}

/// How many events an environment may still make: a thousand milliseconds earn one, an hour all of them.
pub type Allowance = crate::allowance::Allowance<3600, 1000>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{d1, deployment};

    const RUN: &str = r#"{"event":"dag_run.failed","dag_id":"daily","run_id":"manual__1","run_type":"manual","started_at":"2027-01-15T08:00:00.123456+00:00","ended_at":"2027-01-15T08:00:01Z"}"#;
    const TASK: &str = r#"{"event":"task.failed","dag_id":"daily","run_id":"manual__1","task_id":"load","try_number":2,"max_tries":1}"#;

    #[test]
    fn a_claim_is_about_the_deployment_that_it_came_from() {
        let organization_id = OrganizationId::from_raw(podium_api::Id::from_parts(4, 5, 6));
        let about = Resource::new(d1().id(), deployment(d1())).named("Nightly");
        let event = Claim::parse(RUN.as_bytes()).unwrap().event(organization_id, about);
        let audience = "deployment.airflow.dagRun.get";
        assert_eq!((event.event_type, event.audience.as_str()), (EventType::DagRunFailed, audience));
        let data = serde_json::to_value(&event.data).unwrap();
        assert_eq!(data["resource"]["type"], "deployment");
        assert_eq!((&data["claimed"], &data["dagRun"]["dagId"]), (&true.into(), &"daily".into()));
        assert_eq!(data["dagRun"]["startedAt"], "2027-01-15T08:00:00.123Z");
        assert_eq!(data.get("task"), None);
        let event = Claim::parse(TASK.as_bytes()).unwrap().event(organization_id, about);
        assert_eq!(event.audience.as_str(), "deployment.airflow.taskInstance.get");
        let data = serde_json::to_value(&event.data).unwrap();
        assert_eq!((&data["task"]["taskId"], &data["task"]["tryNumber"]), (&"load".into(), &2.into()));
        let event = NewEvent::dropped(organization_id, about, 7);
        assert_eq!((event.audience.as_str(), event.data.count), ("deployment.get", Some(7)));
    }

    #[test]
    fn what_no_listener_writes_is_no_claim() {
        let longest = "x".repeat(250);
        assert!(Claim::parse(RUN.replace("daily", &longest).as_bytes()).is_some());
        let wrong = [
            RUN.replace("daily", &format!("{longest}x")),
            RUN.replace("daily", ""),
            RUN.replace("daily", r"a\u0000b"),
            RUN.replace("\"daily\"", "7"),
            RUN.replace("dag_run.failed", "deployment.deleted"),
            RUN.replace("dag_run.failed", "task.failed"),
            RUN.replace("2027-01-15T08:00:01Z", "soon"),
            RUN.replace("\"manual\"", "\"<b>\""),
            RUN.replace("\"dag_id\":\"daily\",", ""),
            TASK.replace("task.failed", "dag_run.failed"),
            TASK.replace(":2", ":-2"),
            TASK.replace("load", &"é".repeat(251)),
            format!("{RUN}{}", " ".repeat(MOST_LINE)),
            format!("[{RUN}]"),
            "{".repeat(3000),
            "[".repeat(3000),
            String::new(),
        ];
        for line in wrong {
            assert_eq!(Claim::parse(line.as_bytes()), None, "{line}");
        }
        assert_eq!(Claim::parse(b"\xff\xfe"), None);
    }

    #[test]
    fn an_environment_may_say_so_much_at_once_and_so_much_in_a_time() {
        let at = |millis| Timestamp::from_millis(millis);
        let allowance = Allowance::full(at(0)).less(Allowance::MOST);
        assert_eq!(allowance.at(at(999)).left, 0);
        assert_eq!(allowance.at(at(999)).at(at(1000)).left, 1, "looking often loses nothing");
        assert_eq!(allowance.at(at(60_500)), Allowance { left: 60, since: at(60_000) });
        assert_eq!(allowance.at(at(i64::MAX)).left, Allowance::MOST);
        assert_eq!(allowance.at(at(-5_000)).left, 0, "the clock was set back");
        assert_eq!(Allowance::full(at(0)).at(at(5_000)).left, Allowance::MOST);
    }
}
