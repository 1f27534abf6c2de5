//! After a crash the events tell exactly what happened: they agree with the rows, with the operations and with the audit log.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::loops::wait_until;
use crate::program::Program;

pub(super) struct Reader<'a> {
    pub(super) program: &'a Program,
    pub(super) organization: &'a str,
    pub(super) token: &'a str,
}

impl Reader<'_> {
    /// All events, the oldest first.
    fn events(&self) -> Vec<Value> {
        let (mut all, mut cursor) = (Vec::new(), String::new());
        loop {
            let path = format!("{}/events?limit=1000&cursor={cursor}", self.organization);
            let mut page = self.program.get(&path, self.token).json();
            all.append(page["events"].as_array_mut().expect("events"));
            if page["hasMore"] == false {
                return all;
            }
            page["nextCursor"].as_str().expect("a cursor").clone_into(&mut cursor);
        }
    }

    /// The ids of the operations that ended in a state.
    fn operations(&self, state: &str) -> BTreeSet<String> {
        let mut all = BTreeSet::new();
        loop {
            let offset = all.len();
            let path = format!("{}/operations?states={state}&limit=1000&offset={offset}", self.organization);
            let page = self.program.get(&path, self.token).json();
            let items = page["operations"].as_array().expect("operations");
            if items.is_empty() {
                return all;
            }
            all.extend(items.iter().map(|operation| text(&operation["id"])));
        }
    }

    /// What the audit log has of the calls of a kind that succeeded.
    fn audited(&self, operation_id: &str, shown: impl Fn(&Value) -> String) -> Vec<String> {
        let export = self.program.get(&format!("{}/audit-logs", self.organization), self.token);
        let lines = String::from_utf8(export.body).expect("text");
        let records = lines.lines().map(|line| serde_json::from_str::<Value>(line).expect("a record"));
        let is_meant = |record: &Value| {
            record["operationId"] == operation_id && matches!(record["statusCode"].as_u64(), Some(200..300))
        };
        sorted(records.filter(is_meant).map(|record| shown(&record)).collect())
    }

    /// Checks the events once they can all be read: on PostgreSQL they wait for other transactions.
    pub(super) fn agree(&self, deployments: &BTreeSet<String>) {
        assert_eq!(self.operations("PENDING").len() + self.operations("RUNNING").len(), 0);
        let succeeded = self.operations("SUCCEEDED");
        let events = wait_until(
            "every event can be read",
            || self.events(),
            |events| {
                let ended = ids(events, "podium.operation.succeeded");
                standing(events) == *deployments && ended.len() == succeeded.len()
            },
        );
        let seen: BTreeSet<String> = events.iter().map(|event| text(&event["id"])).collect();
        assert_eq!(seen.len(), events.len(), "none comes twice");
        assert_eq!(sorted(ids(&events, "podium.operation.succeeded")), Vec::from_iter(succeeded));
        let created = sorted(of(&events, "podium.deployment.created", |about| text(&about["name"])));
        assert_eq!(created, self.audited("CreateDeployment", |record| text(&record["requestBody"]["name"])));
        let last_part = |path: String| path.rsplit('/').next().map(str::to_owned).unwrap_or_default();
        let deleted = self.audited("DeleteDeployment", |record| last_part(text(&record["path"])));
        assert_eq!(sorted(ids(&events, "podium.deployment.deleted")), deleted);
    }
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

fn sorted(mut all: Vec<String>) -> Vec<String> {
    all.sort();
    all
}

fn of(events: &[Value], event_type: &str, shown: impl Fn(&Value) -> String) -> Vec<String> {
    let of_type = events.iter().filter(|event| event["type"] == event_type);
    of_type.map(|event| shown(&event["data"]["resource"])).collect()
}

fn ids(events: &[Value], event_type: &str) -> Vec<String> {
    of(events, event_type, |about| text(&about["id"]))
}

/// The deployments that were created and not deleted, according to the events.
fn standing(events: &[Value]) -> BTreeSet<String> {
    let mut standing = BTreeSet::from_iter(ids(events, "podium.deployment.created"));
    for id in ids(events, "podium.deployment.deleted") {
        assert!(standing.remove(&id), "{id} was deleted twice, or never created");
    }
    standing
}
