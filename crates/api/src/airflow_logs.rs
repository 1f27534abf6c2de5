//! Entries of Airflow's structured logs as text for people: what was said, by which logger and where, and the traceback of
//! an exception as Python prints it.
//!
//! Airflow 3 describes an exception as data (`error_detail` or `exception`): the exception first, then what it was raised
//! from, each with its frames. The data plane stores entries as this text, and `podium run logs` prints them so. Authors
//! of DAGs decide what entries say, so everything is bounded.

use serde_json::{Map, Value};

/// The most bytes of a traceback. Of a longer one the middle is left out: where it began and how it ended say most.
const MOST_BYTES: usize = 16 * 1024;
/// How much of that is for the beginning.
const BEGINNING: usize = 4 * 1024;
/// How deep groups of exceptions are shown.
const MOST_DEPTH: usize = 8;

/// Members that are shown at their own place, or are of no use to a reader.
const PLACED: &[&str] = &["timestamp", "level", "event", "logger", "filename", "lineno", "ti_id"];
/// Members that describe an exception or a stack, below the line.
const BELOW: &[&str] = &["exception", "error_detail", "stack"];

/// The text of an entry without its time. `about` is added to its first line, in front of a traceback.
pub fn text_of(entry: &Map<String, Value>, about: &str) -> String {
    let member = |name: &str| entry.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let mut words = Vec::new();
    words.extend(member("level").map(str::to_uppercase));
    words.extend(entry.get("event").map(|event| shown(event).trim_end().to_owned()));
    let is_plain =
        |name: &str, value: &Value| !(PLACED.contains(&name) || BELOW.contains(&name) && is_below(value));
    let others = entry.iter().filter(|(name, value)| is_plain(name, value));
    words.extend(others.map(|(name, value)| format!("{name}={}", shown(value))));
    words.extend(member("logger").map(|logger| format!("logger={logger}")));
    if let Some(file) = member("filename") {
        let line = entry.get("lineno").and_then(Value::as_i64);
        words.push(line.map_or_else(|| format!("loc={file}"), |line| format!("loc={file}:{line}")));
    }
    words.push(about.to_owned());
    words.retain(|word| !word.is_empty());
    let mut text = words.join(" ");
    for value in BELOW.iter().filter_map(|name| entry.get(*name)).filter(|value| is_below(value)) {
        let below = match value {
            Value::Array(chain) => traceback(chain),
            other => other.as_str().unwrap_or_default().to_owned(),
        };
        let below = below.trim_end();
        if !below.is_empty() {
            text.push('\n');
            text.push_str(&without_middle(below));
        }
    }
    text
}

/// Whether a value is shown below the line: exceptions, and texts of several lines.
fn is_below(value: &Value) -> bool {
    value.is_null() || value.is_array() || value.as_str().is_some_and(|text| text.contains('\n'))
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A chain of exceptions, of which the last was raised first, as Python prints it.
fn traceback(chain: &[Value]) -> String {
    let mut lines = Vec::new();
    exceptions(chain, 0, &mut lines);
    lines.join("\n")
}

fn exceptions(chain: &[Value], depth: usize, lines: &mut Vec<String>) {
    for (index, exception) in chain.iter().enumerate().rev() {
        one(exception, depth, lines);
        if index > 0 {
            let how = match exception["is_cause"].as_bool() {
                Some(true) => "The above exception was the direct cause of the following exception:",
                _ => "During handling of the above exception, another exception occurred:",
            };
            lines.extend(["", how, ""].map(str::to_owned));
        }
    }
}

fn one(exception: &Value, depth: usize, lines: &mut Vec<String>) {
    let member = |name: &str| exception[name].as_str().unwrap_or_default();
    let frames = items(&exception["frames"]);
    if !frames.is_empty() {
        let kind = if exception["is_group"] == true { "Exception Group Traceback" } else { "Traceback" };
        lines.push(format!("{kind} (most recent call last):"));
        lines.extend(frames.iter().map(frame));
    }
    let syntax = &exception["syntax_error"];
    let mut message = member("exc_value");
    if syntax.is_object() {
        message = syntax["msg"].as_str().unwrap_or(message);
        lines.extend(place_of_syntax_error(syntax));
    }
    lines.push(match (member("exc_type"), message) {
        (kind, "") => kind.to_owned(),
        ("", message) => message.to_owned(),
        (kind, message) => format!("{kind}: {message}"),
    });
    lines.extend(items(&exception["exc_notes"]).iter().map(shown));
    for (index, member) in items(&exception["exceptions"]).iter().enumerate() {
        lines.push(format!("  +---------------- {} ----------------", index + 1));
        let mut inner = Vec::new();
        if depth < MOST_DEPTH {
            exceptions(items(member), depth + 1, &mut inner);
        } else {
            inner.push("…".to_owned());
        }
        lines.extend(inner.iter().flat_map(|text| text.split('\n')).map(|text| format!("  | {text}")));
    }
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn frame(frame: &Value) -> String {
    let (file, name) =
        (frame["filename"].as_str().unwrap_or_default(), frame["name"].as_str().unwrap_or("?"));
    match frame["lineno"].as_i64() {
        // Airflow leaves out the middle of a deep recursion, and says so in the place of a name.
        _ if file.is_empty() => format!("  [{name}]"),
        Some(line) => format!("  File \"{file}\", line {line}, in {name}"),
        None => format!("  File \"{file}\", in {name}"),
    }
}

fn place_of_syntax_error(of: &Value) -> Vec<String> {
    let (file, line) = (of["filename"].as_str().unwrap_or("<unknown>"), of["lineno"].as_i64().unwrap_or(0));
    let mut lines = vec![format!("  File \"{file}\", line {line}")];
    if let Some(code) = of["line"].as_str().map(str::trim_end).filter(|code| !code.is_empty()) {
        let code_begins = code.trim_start();
        lines.push(format!("    {code_begins}"));
        let cut = code.chars().count() - code_begins.chars().count();
        let offset = of["offset"].as_u64().and_then(|offset| usize::try_from(offset).ok()).unwrap_or(0);
        let column = offset.checked_sub(cut + 1).filter(|column| *column <= code_begins.chars().count());
        lines.extend(column.map(|column| format!("    {}^", " ".repeat(column))));
    }
    lines
}

/// A text within bounds: of a longer one, its beginning and its end.
fn without_middle(text: &str) -> String {
    if text.len() <= MOST_BYTES {
        return text.to_owned();
    }
    let beginning = &text[..text.floor_char_boundary(BEGINNING)];
    let end = &text[text.ceil_char_boundary(text.len() - (MOST_BYTES - BEGINNING))..];
    let left_out = text.len() - beginning.len() - end.len();
    format!("{beginning}\n  … {left_out} bytes are left out …\n{end}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text(entry: &Value) -> String {
        text_of(entry.as_object().unwrap(), "task_id=t")
    }

    fn raised(kind: &str, value: &str, frames: &[(&str, i64, &str)], is_cause: bool) -> Value {
        let frames: Vec<Value> = frames
            .iter()
            .map(|(file, line, name)| json!({ "filename": file, "lineno": line, "name": name }))
            .collect();
        json!({
            "exc_type": kind, "exc_value": value, "exc_notes": [], "syntax_error": null, "is_cause": is_cause,
            "frames": frames, "is_group": false, "exceptions": [],
        })
    }

    #[test]
    fn an_entry_says_who_said_it_and_where() {
        let entry = json!({
            "timestamp": "2026-11-15T14:25:55.739547Z", "level": "info", "event": "request finished\n", "chan": "stdout",
            "method": "GET", "status_code": 200, "logger": "http.access", "filename": "a.py", "lineno": 130,
            "ti_id": "0198",
        });
        let expected = "INFO request finished chan=stdout method=GET status_code=200 logger=http.access loc=a.py:130 task_id=t";
        assert_eq!(text(&entry), expected);
        let elsewhere = json!({ "event": {"a": 1}, "logger": "x", "loc": "b.py:7", "filename": "" });
        assert_eq!(text(&elsewhere), "{\"a\":1} loc=b.py:7 logger=x task_id=t");
        assert_eq!(text_of(json!({ "event": "x" }).as_object().unwrap(), ""), "x");
    }

    #[test]
    fn an_exception_has_the_traceback_that_python_prints() {
        let mut first =
            raised("ValueError", "two\nlines", &[("/d/a.py", 12, "f"), ("/d/b.py", 9, "g")], true);
        first["exc_notes"] = json!(["a note"]);
        let last = raised("RuntimeError", "later", &[("/d/a.py", 15, "f")], false);
        let entry = json!({ "event": "Task failed with exception", "level": "error", "logger": "task",
            "error_detail": [last, first] });
        let expected = "ERROR Task failed with exception logger=task task_id=t\n\
            Traceback (most recent call last):\n  \
              File \"/d/a.py\", line 12, in f\n  \
              File \"/d/b.py\", line 9, in g\n\
            ValueError: two\nlines\na note\n\n\
            The above exception was the direct cause of the following exception:\n\n\
            Traceback (most recent call last):\n  \
              File \"/d/a.py\", line 15, in f\n\
            RuntimeError: later";
        assert_eq!(text(&entry), expected);
        let context = [raised("KeyError", "'x'", &[], false), raised("ZeroDivisionError", "", &[], false)];
        let entry = json!({ "event": "Unhandled", "exception": context });
        let expected = "Unhandled task_id=t\nZeroDivisionError\n\n\
            During handling of the above exception, another exception occurred:\n\nKeyError: 'x'";
        assert_eq!(text(&entry), expected);
    }

    #[test]
    fn syntax_errors_groups_and_cut_recursions_are_shown() {
        let mut syntax = raised("SyntaxError", "invalid syntax (x.py, line 1)", &[], false);
        syntax["syntax_error"] = json!({ "offset": 7, "filename": "x.py", "line": "  a = = 1\n", "lineno": 1, "msg": "invalid syntax" });
        let expected = "  File \"x.py\", line 1\n    a = = 1\n        ^\nSyntaxError: invalid syntax";
        assert_eq!(traceback(&[syntax]), expected);
        let mut group =
            raised("ExceptionGroup", "g (2 sub-exceptions)", &[("", -1, "Skipped frames: 153")], false);
        group["is_group"] = true.into();
        group["exceptions"] =
            json!([[raised("ValueError", "a\nb", &[], false)], [raised("TypeError", "c", &[], false)]]);
        let expected = "Exception Group Traceback (most recent call last):\n  [Skipped frames: 153]\n\
            ExceptionGroup: g (2 sub-exceptions)\n  \
            +---------------- 1 ----------------\n  | ValueError: a\n  | b\n  \
            +---------------- 2 ----------------\n  | TypeError: c";
        assert_eq!(traceback(&[group]), expected);
    }

    #[test]
    fn texts_of_several_lines_are_below_and_short_ones_are_not() {
        let entry =
            json!({ "event": "x", "exception": "Traceback:\n  File \"a\"\n", "stack": "Stack:\n  b" });
        assert_eq!(text(&entry), "x task_id=t\nTraceback:\n  File \"a\"\nStack:\n  b");
        assert_eq!(text(&json!({ "event": "x", "exception": "gone" })), "x exception=gone task_id=t");
        for nothing in [json!(null), json!([])] {
            assert_eq!(text(&json!({ "event": "x", "error_detail": nothing })), "x task_id=t");
        }
        let odd =
            json!({ "event": "x", "error_detail": [1, "two", null, { "frames": 3, "exceptions": [[4]] }] });
        assert!(text(&odd).starts_with("x task_id=t\n"), "whatever an author makes of it");
    }

    #[test]
    fn a_long_traceback_keeps_its_beginning_and_its_end() {
        let frames: Vec<(String, i64)> = (0..5_000).map(|line| (format!("/é/{line}.py"), line)).collect();
        let frames: Vec<(&str, i64, &str)> =
            frames.iter().map(|(file, line)| (file.as_str(), *line, "f")).collect();
        let entry =
            json!({ "event": "x", "error_detail": [raised("ValueError", "the end", &frames, false)] });
        let text = text(&entry);
        assert!(text.len() < MOST_BYTES + 200, "{}", text.len());
        assert!(text.starts_with(
            "x task_id=t\nTraceback (most recent call last):\n  File \"/é/0.py\", line 0, in f\n"
        ));
        assert!(text.ends_with("File \"/é/4999.py\", line 4999, in f\nValueError: the end"), "{text}");
        assert!(text.contains("bytes are left out"));
        let mut deep = json!([[raised("E", "", &[], false)]]);
        for _ in 0..30 {
            let mut group = raised("G", "", &[], false);
            group["exceptions"] = deep;
            deep = json!([[group]]);
        }
        assert!(traceback(items(&deep[0])).len() < 2_000);
    }
}
