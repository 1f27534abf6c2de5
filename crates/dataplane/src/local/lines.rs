//! Parses Airflow's log lines into readable text.
//!
//! Most are JSON objects; some stay plain text: the banner, access lines of older runtimes, a traceback.

use podium_api::Timestamp;
use serde_json::{Map, Value};

/// A parsed line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Read {
    /// Its timestamp, if it has one.
    pub(super) timestamp: Option<Timestamp>,
    /// The readable text.
    pub(super) text: String,
}

/// Members that are handled separately, or are of no use to a reader.
const PLACED: &[&str] = &["timestamp", "level", "event", "logger", "filename", "lineno", "ti_id"];

/// Members that identify the task, which the file name does as well.
const TASK: &[&str] = &["dag_id", "run_id", "task_id", "map_index", "try_number"];

/// Parses a line of a component; `None` for a blank line, or a task's line that is also in the task's own log.
pub(super) fn of_component(line: &str) -> Option<Read> {
    let line = line.trim_end();
    if line.trim().is_empty() {
        return None;
    }
    let Some(object) = object(line) else {
        return Some(Read { timestamp: leading_time(line), text: line.to_owned() });
    };
    let logger = object.get("logger").and_then(Value::as_str).unwrap_or_default();
    // The local executor repeats the output of tasks.
    if logger == "supervisor" || logger == "task" || logger.starts_with("task.") {
        return None;
    }
    Some(read(&object))
}

/// Parses a line of a task's own log; `task` identifies the task.
pub(super) fn of_task(line: &str, task: &str) -> Option<Read> {
    let line = line.trim_end();
    if line.trim().is_empty() {
        return None;
    }
    let mut read = match object(line) {
        Some(mut object) => {
            TASK.iter().for_each(|name| drop(object.remove(*name)));
            read(&object)
        }
        None => Read { timestamp: leading_time(line), text: line.to_owned() },
    };
    if !task.is_empty() {
        read.text.push(' ');
        read.text.push_str(task);
    }
    Some(read)
}

fn object(line: &str) -> Option<Map<String, Value>> {
    if !line.starts_with('{') {
        return None;
    }
    serde_json::from_str::<Map<String, Value>>(line).ok().filter(|object| object.contains_key("event"))
}

fn read(object: &Map<String, Value>) -> Read {
    let member = |name: &str| object.get(name).and_then(Value::as_str);
    let timestamp = member("timestamp").and_then(Timestamp::parse);
    let mut text = String::new();
    if let Some(level) = member("level") {
        text.push_str(&level.to_uppercase());
        text.push(' ');
    }
    match object.get("event") {
        Some(Value::String(event)) => text.push_str(event.trim_end()),
        Some(other) => text.push_str(&other.to_string()),
        None => {}
    }
    for (name, value) in object.iter().filter(|(name, _)| !PLACED.contains(&name.as_str())) {
        text.push_str(&match (name.as_str(), value) {
            ("exception" | "error_detail", Value::Array(chain)) => thrown(chain),
            (_, Value::String(value)) => format!(" {name}={value}"),
            (_, other) => format!(" {name}={other}"),
        });
    }
    Read { timestamp, text }
}

/// The chain of exceptions, the cause first: type and message, without the stack trace.
fn thrown(chain: &[Value]) -> String {
    let member =
        |value: &Value, name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let one = |value: &Value| format!(" {}: {}", member(value, "exc_type"), member(value, "exc_value"));
    chain.iter().rev().map(one).collect()
}

/// The timestamp in brackets at the beginning of a plain line, as older runtimes write it.
fn leading_time(line: &str) -> Option<Timestamp> {
    let (time, _) = line.strip_prefix('[')?.split_once(']')?;
    if !time.is_ascii() {
        return None;
    }
    let time = time.replacen(' ', "T", 1).replace(',', ".");
    // Without an offset it is UTC; with one, the colon may be missing.
    let has_offset = time.len() > 5 && matches!(time.as_bytes()[time.len() - 5], b'+' | b'-');
    let full = if has_offset {
        format!("{}:{}", &time[..time.len() - 2], &time[time.len() - 2..])
    } else if time.ends_with('Z') {
        time
    } else {
        format!("{time}Z")
    };
    Timestamp::parse(&full)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Option<Timestamp> {
        Some(Timestamp::parse(text).unwrap())
    }

    #[test]
    fn json_lines_become_readable_text() {
        let line = r#"{"timestamp":"2026-11-15T14:25:55.739547Z","level":"info","event":"request finished","method":"GET","status_code":200,"logger":"http.access","filename":"a.py","lineno":130}"#;
        let read = of_component(line).unwrap();
        assert_eq!(read.timestamp, at("2026-11-15T14:25:55.739Z"));
        assert_eq!(read.text, "INFO request finished method=GET status_code=200");
        let task =
            r#"{"timestamp":"2026-11-15T14:25:55Z","event":"hello","level":"info","logger":"task.stdout"}"#;
        assert_eq!(of_task(task, "task_id=t").unwrap().text, "INFO hello task_id=t");
    }

    #[test]
    fn exceptions_are_shown_with_type_and_message() {
        let line = r#"{"event":"Unhandled","level":"critical","exception":[{"exc_type":"KeyError","exc_value":"'x'","frames":[]}]}"#;
        assert_eq!(of_component(line).unwrap().text, "CRITICAL Unhandled KeyError: 'x'");
    }

    #[test]
    fn output_of_tasks_is_taken_only_from_their_own_log() {
        for logger in ["task", "task.stdout", "supervisor"] {
            let line = format!(r#"{{"event":"hello","logger":"{logger}"}}"#);
            assert_eq!(of_component(&line), None);
            assert!(of_task(&line, "").is_some());
        }
        assert!(of_component(r#"{"event":"x","logger":"taskmaster"}"#).is_some());
    }

    #[test]
    fn plain_text_stays_and_its_timestamp_is_parsed() {
        assert_eq!(of_component("  \n"), None);
        assert_eq!(
            of_component("Traceback:\n").unwrap(),
            Read { timestamp: None, text: "Traceback:".into() }
        );
        let line = "[2026-11-15T14:25:55.739+0000] {taskinstance.py:1} INFO - Marking as SUCCESS";
        assert_eq!(of_task(line, "").unwrap().timestamp, at("2026-11-15T14:25:55.739Z"));
        let older = "[2026-11-15 14:25:55,739] {x.py:1} INFO - y";
        assert_eq!(of_task(older, "").unwrap().timestamp, at("2026-11-15T14:25:55.739Z"));
        assert_eq!(of_component("{not json").unwrap().text, "{not json");
        assert_eq!(of_component("[é]").unwrap().text, "[é]");
    }
}
