//! Parses Airflow's log lines into readable text.
//!
//! Most are JSON objects; some stay plain text: the banner, access lines of older runtimes, a traceback.

use podium_api::{Timestamp, airflow_logs};
use serde_json::{Map, Value};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    pub timestamp: Option<Timestamp>,
    pub text: String,
}

/// Members that identify the task, which the file name does as well.
const TASK: &[&str] = &["dag_id", "run_id", "task_id", "map_index", "try_number"];

/// The longest text of a traceback that is kept together, in bytes.
const MOST_TOGETHER: usize = 16 * 1024;

/// How a plain traceback begins, and what stands between those of a chain.
const BEGINS: &str = "Traceback (most recent call last):";
const BETWEEN: [&str; 2] =
    ["The above exception was the direct cause of", "During handling of the above exception"];

/// Where in a plain traceback a line stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Outside,
    Frames,
    /// After the exception, where the next one of the chain may follow.
    Raised,
}

/// Parses the lines of a text. A plain traceback, which older runtimes write, is one line of several with the line of the
/// log that it follows, so that it is found, shown and sorted as a whole.
pub fn all(text: &str, read: impl Fn(&str) -> Option<Read>) -> Vec<Read> {
    let mut found: Vec<Read> = Vec::new();
    let (mut part, mut is_after_record) = (Part::Outside, false);
    for line in text.split('\n').map(str::trim_end) {
        let is_first = line.starts_with(BEGINS);
        let is_record = line.starts_with('{') || leading_time(line).is_some();
        let (before, is_blank) = (part, line.is_empty());
        part = match part {
            _ if is_first => Part::Frames,
            Part::Frames | Part::Raised if is_blank => part,
            Part::Frames if line.starts_with([' ', '\t']) => part,
            Part::Frames if !is_record => Part::Raised,
            Part::Raised if BETWEEN.iter().any(|text| line.starts_with(text)) => part,
            _ => Part::Outside,
        };
        let goes_on = part != Part::Outside && (before != Part::Outside || is_after_record);
        is_after_record = is_record && !line.starts_with('{');
        match found.last_mut() {
            Some(last) if goes_on && last.text.len() + line.len() < MOST_TOGETHER => {
                if !is_blank {
                    last.text.push('\n');
                    last.text.push_str(line);
                }
            }
            _ => found.extend(read(line)),
        }
    }
    found
}

/// Parses a line of a component; `None` for a blank line, or a task's line that is also in the task's own log.
pub fn of_component(line: &str) -> Option<Read> {
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
    Some(read(&object, ""))
}

/// Parses a line of a task's own log; `task` identifies the task.
pub fn of_task(line: &str, task: &str) -> Option<Read> {
    let line = line.trim_end();
    if line.trim().is_empty() {
        return None;
    }
    if let Some(mut object) = object(line) {
        TASK.iter().for_each(|name| drop(object.remove(*name)));
        return Some(read(&object, task));
    }
    let mut text = line.to_owned();
    if !task.is_empty() {
        text.push(' ');
        text.push_str(task);
    }
    Some(Read { timestamp: leading_time(line), text })
}

fn object(line: &str) -> Option<Map<String, Value>> {
    if !line.starts_with('{') {
        return None;
    }
    serde_json::from_str::<Map<String, Value>>(line).ok().filter(|object| object.contains_key("event"))
}

fn read(object: &Map<String, Value>, task: &str) -> Read {
    let timestamp = object.get("timestamp").and_then(Value::as_str).and_then(Timestamp::parse);
    Read { timestamp, text: airflow_logs::text_of(object, task) }
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
        assert_eq!(
            read.text,
            "INFO request finished method=GET status_code=200 logger=http.access loc=a.py:130"
        );
        let task =
            r#"{"timestamp":"2026-11-15T14:25:55Z","event":"hello","level":"info","logger":"task.stdout"}"#;
        assert_eq!(of_task(task, "task_id=t").unwrap().text, "INFO hello logger=task.stdout task_id=t");
    }

    /// What was found: only type and message of an exception were kept.
    #[test]
    fn exceptions_are_shown_with_their_traceback() {
        let line = r#"{"timestamp":"2026-11-15T14:25:55Z","level":"error","event":"Task failed with exception","logger":"task","filename":"task_runner.py","lineno":1254,"task_id":"t","error_detail":[{"exc_type":"ValueError","exc_value":"no","exc_notes":[],"syntax_error":null,"is_cause":false,"frames":[{"filename":"/dags/load.py","lineno":12,"name":"extract"}],"is_group":false,"exceptions":[]}]}"#;
        let expected = "ERROR Task failed with exception logger=task loc=task_runner.py:1254 task_id=t\n\
                        Traceback (most recent call last):\n  File \"/dags/load.py\", line 12, in extract\n\
                        ValueError: no";
        assert_eq!(of_task(line, "task_id=t").unwrap().text, expected);
        let line = r#"{"event":"Unhandled","level":"critical","exception":[{"exc_type":"KeyError","exc_value":"'x'","frames":[]}]}"#;
        assert_eq!(of_component(line).unwrap().text, "CRITICAL Unhandled\nKeyError: 'x'");
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
    fn a_plain_traceback_stays_with_its_line() {
        let log = "[2026-11-15T14:25:55.739+0000] {taskinstance.py:3313} ERROR - Task failed with exception\n\
            Traceback (most recent call last):\n  File \"/dags/load.py\", line 12, in extract\n    raise KeyError()\n\
            KeyError\n\n\
            During handling of the above exception, another exception occurred:\n\n\
            Traceback (most recent call last):\n  File \"/dags/load.py\", line 14, in extract\n\
            ValueError: no\n\
            [2026-11-15T14:25:56.000+0000] {local_task_job_runner.py:266} INFO - Task exited\n\
            127.0.0.1 - - GET\n\
            Traceback (most recent call last):\n  File \"x\"\nValueError: other\nmore\n";
        let texts: Vec<String> =
            all(log, |line| of_task(line, "task_id=t")).into_iter().map(|read| read.text).collect();
        let expected = [
            "[2026-11-15T14:25:55.739+0000] {taskinstance.py:3313} ERROR - Task failed with exception task_id=t\n\
             Traceback (most recent call last):\n  File \"/dags/load.py\", line 12, in extract\n    raise KeyError()\n\
             KeyError\n\
             During handling of the above exception, another exception occurred:\n\
             Traceback (most recent call last):\n  File \"/dags/load.py\", line 14, in extract\n\
             ValueError: no",
            "[2026-11-15T14:25:56.000+0000] {local_task_job_runner.py:266} INFO - Task exited task_id=t",
            "127.0.0.1 - - GET task_id=t",
            "Traceback (most recent call last): task_id=t\n  File \"x\"\nValueError: other",
            "more task_id=t",
        ];
        assert_eq!(texts, expected);
        let endless = format!("{BEGINS}\n{}", "  File \"x\"\n".repeat(10_000));
        let parts = all(&endless, of_component);
        assert!(parts.len() > 5 && parts.iter().all(|read| read.text.len() < MOST_TOGETHER));
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
