//! What the view shows, and what keys do to it: no terminal and no server.

use std::collections::{HashMap, VecDeque};

use podium_api::enums::EventType;
use serde::Deserialize;

use crate::client::commands::deployments::size;
use crate::client::commands::events::Happened;
use crate::client::commands::one_line;

const MOST_PROBLEMS: usize = 50;
const MOST_TYPED: usize = 100;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) workspace: String,
    pub(super) status: String,
    pub(super) reason: String,
    pub(super) runtime: String,
    pub(super) memory: String,
    pub(super) operation: String,
}

/// What is read of a deployment; words of a newer server are shown as they are.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Seen {
    id: String,
    name: String,
    #[serde(default)]
    workspace_name: String,
    status: String,
    #[serde(default)]
    status_reason: String,
    #[serde(default)]
    platform_runtime_version: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct UnderWay {
    kind: String,
    state: String,
    target: Target,
}

#[derive(Debug, Deserialize)]
struct Target {
    id: String,
}

/// What is read of the processes of a deployment.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Processes {
    deployment_id: String,
    memory_bytes: Option<u64>,
}

/// Something that went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) time: String,
    pub(super) name: String,
    pub(super) what: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Mode {
    #[default]
    List,
    /// The list, while a filter is typed.
    Typing,
    Details,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Up,
    Down,
    Enter,
    Escape,
    Backspace,
    Letter(char),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Stay,
    Quit,
}

#[derive(Debug, Default)]
pub(super) struct Top {
    rows: Vec<Row>,
    pub(super) problems: VecDeque<Problem>,
    /// How many DAG runs of each deployment succeeded and failed, a day before the view was opened and since.
    runs: HashMap<String, (u64, u64)>,
    pub(super) filter: String,
    pub(super) mode: Mode,
    /// The id of the selected deployment: it stays selected when others come and go.
    selected: Option<String>,
    /// Why what is shown may be old.
    pub(super) trouble: Option<String>,
    /// Whether there are more deployments than are shown.
    pub(super) is_cut: bool,
}

impl Row {
    pub(super) fn of(seen: &Seen, operations: &[UnderWay], processes: &[Processes]) -> Self {
        let operation = operations.iter().find(|operation| operation.target.id == seen.id);
        let operation = operation.map(|UnderWay { kind, state, .. }| {
            one_line(&format!("{kind} {state}").to_lowercase().replace('_', " "))
        });
        let memory = processes.iter().find(|processes| processes.deployment_id == seen.id);
        Self {
            name: one_line(&seen.name),
            workspace: one_line(&seen.workspace_name),
            status: one_line(&seen.status),
            reason: one_line(&seen.status_reason),
            runtime: one_line(&seen.platform_runtime_version),
            memory: memory.and_then(|processes| processes.memory_bytes).map(size).unwrap_or_default(),
            operation: operation.unwrap_or_default(),
            id: one_line(&seen.id),
        }
    }

    fn fits(&self, filter: &str) -> bool {
        let filter = filter.to_lowercase();
        [&self.name, &self.workspace, &self.status, &self.reason, &self.runtime, &self.operation]
            .iter()
            .any(|field| field.to_lowercase().contains(&filter))
    }
}

impl Top {
    /// Shows what the server has now.
    pub(super) fn refresh(&mut self, rows: Vec<Row>) {
        self.rows = rows;
        self.trouble = None;
        self.keep_selection();
    }

    /// Counts an event, if it says that a DAG run has ended.
    pub(super) fn count(&mut self, event: &Happened) {
        let has_failed = event.kind.is(EventType::DagRunFailed);
        if has_failed || event.kind.is(EventType::DagRunSucceeded) {
            let (succeeded, failed) = self.runs.entry(event.data.deployment_id.clone()).or_default();
            *(if has_failed { failed } else { succeeded }) += 1;
        }
    }

    /// Notes an event, if it says that something went wrong or that a DAG run has ended.
    pub(super) fn note(&mut self, event: &Happened) {
        self.count(event);
        let (kind, data) = (&event.kind, &event.data);
        let what = match (data.status_reason.as_str(), kind.known(), &data.dag_run) {
            ("", Some(EventType::DagRunFailed), Some(run)) => format!("run of {} failed", run.dag_id),
            ("", ..) => kind.to_string().split('.').skip(1).collect::<Vec<_>>().join(" "),
            (reason, ..) => reason.to_owned(),
        };
        let is_problem = matches!(
            kind.known(),
            Some(
                EventType::DagRunFailed
                    | EventType::DeploymentUnhealthy
                    | EventType::OperationFailed
                    | EventType::DeployFailed
            )
        );
        if is_problem {
            let name = data.resource.name.as_deref().unwrap_or_default();
            let problem =
                Problem { time: one_line(&event.time), name: one_line(name), what: one_line(&what) };
            self.problems.push_front(problem);
            self.problems.truncate(MOST_PROBLEMS);
        }
    }

    /// How the DAG runs of a deployment ended.
    pub(super) fn runs(&self, id: &str) -> String {
        match self.runs.get(id) {
            None => String::new(),
            Some((succeeded, 0)) => format!("{succeeded} ok"),
            Some((succeeded, failed)) => format!("{succeeded} ok, {failed} failed"),
        }
    }

    /// The deployments that the filter leaves.
    pub(super) fn shown(&self) -> Vec<&Row> {
        self.rows.iter().filter(|row| row.fits(&self.filter)).collect()
    }

    /// The place of the selected deployment among those that are shown.
    pub(super) fn place(&self) -> Option<usize> {
        self.shown().iter().position(|row| Some(&row.id) == self.selected.as_ref())
    }

    pub(super) fn selected(&self) -> Option<&Row> {
        self.place().and_then(|place| self.shown().get(place).copied())
    }

    pub(super) fn press(&mut self, key: Key) -> Next {
        match (self.mode, key) {
            (Mode::Typing, Key::Letter(letter)) if self.filter.chars().count() < MOST_TYPED => {
                self.filter.push(letter);
            }
            (Mode::Typing, Key::Backspace) => _ = self.filter.pop(),
            (Mode::Typing, Key::Enter) => self.mode = Mode::List,
            (Mode::Typing | Mode::List, Key::Escape) => {
                self.filter.clear();
                self.mode = Mode::List;
            }
            (Mode::Typing, Key::Letter(_)) => {}
            (_, Key::Letter('q')) => return Next::Quit,
            (_, Key::Down | Key::Letter('j')) => self.step(1),
            (_, Key::Up | Key::Letter('k')) => self.step(-1),
            (Mode::List, Key::Letter('/')) => self.mode = Mode::Typing,
            (Mode::List, Key::Enter) if self.selected().is_some() => self.mode = Mode::Details,
            (Mode::Details, Key::Enter | Key::Escape | Key::Backspace) => self.mode = Mode::List,
            _ => {}
        }
        self.keep_selection();
        Next::Stay
    }

    fn step(&mut self, by: isize) {
        let shown = self.shown();
        let place = self.place().unwrap_or_default().saturating_add_signed(by);
        let chosen = shown.get(place.min(shown.len().saturating_sub(1))).map(|row| row.id.clone());
        self.selected = chosen.or(self.selected.take());
    }

    /// Selects the first deployment where the selected one is gone.
    fn keep_selection(&mut self) {
        if self.place().is_none() {
            self.selected = self.shown().first().map(|row| row.id.clone());
        }
        if self.mode == Mode::Details && self.selected.is_none() {
            self.mode = Mode::List;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::client::answer::read;

    #[expect(clippy::needless_pass_by_value, reason = "it is written where it is given")]
    fn row(deployment: Value, operations: Value, processes: Value) -> Row {
        let operations: Vec<UnderWay> = read(&operations).unwrap();
        Row::of(&read(&deployment).unwrap(), &operations, &read::<Vec<_>>(&processes).unwrap())
    }

    pub(crate) fn rows(names: &[&str]) -> Vec<Row> {
        let one = |name: &&str| {
            row(json!({ "id": format!("c-{name}"), "name": name, "status": "HEALTHY" }), json!([]), json!([]))
        };
        names.iter().map(one).collect()
    }

    fn selected(top: &Top) -> &str {
        top.selected().map_or("", |row| row.name.as_str())
    }

    #[test]
    fn keys_move_the_selection_and_it_stays_with_its_deployment() {
        let mut top = Top::default();
        assert_eq!(top.press(Key::Enter), Next::Stay);
        assert_eq!((top.mode, selected(&top)), (Mode::List, ""), "nothing is there yet");
        top.refresh(rows(&["a", "b", "c"]));
        assert_eq!(selected(&top), "a");
        for (key, then) in [
            (Key::Letter('k'), "a"),
            (Key::Letter('j'), "b"),
            (Key::Down, "c"),
            (Key::Down, "c"),
            (Key::Up, "b"),
        ] {
            top.press(key);
            assert_eq!(selected(&top), then, "{key:?}");
        }
        top.refresh(rows(&["new", "a", "b"]));
        assert_eq!(selected(&top), "b");
        top.press(Key::Enter);
        assert_eq!(top.mode, Mode::Details);
        top.refresh(rows(&["a"]));
        assert_eq!(selected(&top), "a", "its deployment is gone");
        top.refresh(Vec::new());
        assert_eq!(top.mode, Mode::List);
        assert_eq!(top.press(Key::Letter('q')), Next::Quit);
    }

    #[test]
    fn a_filter_is_typed_and_cleared() {
        let mut top = Top::default();
        top.refresh(rows(&["nightly", "hourly", "Quarterly"]));
        for key in [Key::Letter('/'), Key::Letter('q'), Key::Letter('u'), Key::Letter('x'), Key::Backspace] {
            assert_eq!(top.press(key), Next::Stay, "a letter of the filter is no command");
        }
        assert_eq!((top.shown().len(), selected(&top)), (1, "Quarterly"));
        top.press(Key::Enter);
        assert_eq!((top.mode, top.filter.as_str()), (Mode::List, "qu"));
        top.press(Key::Escape);
        assert_eq!((top.shown().len(), top.filter.as_str()), (3, ""));
    }

    #[test]
    fn problems_are_kept_and_nothing_else() {
        let mut top = Top::default();
        let event = |kind: &str, reason: &str| {
            let data = json!({ "resource": { "name": "nightly" }, "statusReason": reason });
            read::<Happened>(&json!({ "time": "t", "type": kind, "data": data })).unwrap()
        };
        top.note(&event("podium.deployment.healthy", ""));
        top.note(&event("podium.deployment.unhealthy", "Out of\ndisk\u{1b}[2J"));
        top.note(&event("podium.operation.failed", ""));
        let said: Vec<&str> = top.problems.iter().map(|problem| problem.what.as_str()).collect();
        assert_eq!(said, ["operation failed", "Out of disk\u{fffd}[2J"]);
        (0..100).for_each(|_| top.note(&event("podium.operation.failed", "again")));
        assert_eq!(top.problems.len(), MOST_PROBLEMS);
    }

    #[test]
    fn runs_are_counted_and_those_that_fail_are_problems() {
        let mut top = Top::default();
        let event = |kind: &str| {
            let data = json!({
                "deploymentId": "c1", "resource": { "name": "nightly" }, "dagRun": { "dagId": "sales" },
            });
            read::<Happened>(&json!({ "time": "t", "type": kind, "data": data })).unwrap()
        };
        top.note(&event("podium.dag_run.succeeded"));
        assert_eq!((top.runs("c1").as_str(), top.runs("c2").as_str(), top.problems.len()), ("1 ok", "", 0));
        top.note(&event("podium.dag_run.failed"));
        assert_eq!(
            (top.runs("c1").as_str(), top.problems[0].what.as_str()),
            ("1 ok, 1 failed", "run of sales failed")
        );
    }

    #[test]
    fn a_row_names_the_operation_that_is_under_way() {
        let deployment =
            json!({ "id": "c1", "name": "n", "status": "DEPLOYING", "platformRuntimeVersion": "3.0-1" });
        let operations = json!([
            { "kind": "DEPLOY", "state": "RUNNING", "target": { "id": "c2" } },
            { "kind": "UPDATE_DEPLOYMENT", "state": "PENDING", "target": { "id": "c1" } },
        ]);
        let under_way = row(deployment.clone(), operations, json!([]));
        assert_eq!(under_way.operation, "update deployment pending");
        let processes = json!([{ "deploymentId": "c1", "processes": [], "memoryBytes": 1_572_864 }]);
        let row = row(deployment, json!([]), processes);
        assert_eq!((row.operation.as_str(), row.memory.as_str()), ("", "1.50 MiB"));
    }
}
