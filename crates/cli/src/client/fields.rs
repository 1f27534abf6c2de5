//! Bodies of requests, put together from flags, a file and `--set field=value`.

mod known;

use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::Args;
use podium_api::{Endpoint, TypedId};
use serde::Serialize;
use serde_json::{Map, Value};

use super::ending::{Failed, Outcome};

/// The largest file with a body.
const MOST_BYTES: u64 = 8 << 20;

/// Any field of a request, by its name in the API.
#[derive(Args, Clone, Default)]
pub(crate) struct Extra {
    /// Any other field of the API, such as schedulerSize=MEDIUM or scheduler.replicas=2; the value is JSON, or else text.
    #[arg(long = "set", value_name = "FIELD=VALUE")]
    set: Vec<String>,
    /// File with fields of the API (YAML or JSON); - is standard input. Other flags win over the file.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

impl Extra {
    pub(crate) fn is_empty(&self) -> bool {
        self.set.is_empty() && self.file.is_none()
    }

    /// The body of a request for `what`, such as "a deployment": the file, then flags, then what was set. Fields that the
    /// request does not have are refused.
    pub(crate) fn body<E: Endpoint>(&self, what: &str, flags: Value) -> Outcome<Value> {
        let read = match &self.file {
            Some(path) => read(path)?,
            None => Value::Object(Map::new()),
        };
        if !read.is_object() {
            return Err(Failed::usage("the file does not hold an object"));
        }
        if !self.is_empty() {
            known::check::<E>(what, &self.assigned(read.clone())?)?;
        }
        self.assigned(merged(read, given(flags)))
    }

    fn assigned(&self, mut body: Value) -> Outcome<Value> {
        self.set.iter().try_for_each(|assignment| set(&mut body, assignment))?;
        Ok(body)
    }
}

/// A text that is none of the words of an enumeration, which are these.
#[derive(Debug)]
pub(crate) struct NoWord(String);

impl std::fmt::Display for NoWord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "write one of {}", self.0)
    }
}

impl std::error::Error for NoWord {}

/// An id of `what`, such as "an operation"; the hint says where such ids are shown.
pub(crate) fn id<T: TypedId>(text: &str, what: &str, hint: impl Into<String>) -> Outcome<T> {
    let wrong = |_| Failed::usage(format!("{text:?} is not the id of {what}")).hint(hint);
    text.parse().map_err(wrong)
}

/// Reads a word of an enumeration, in any case and with either dash.
pub(crate) fn word<T>(all: &'static [T]) -> impl Fn(&str) -> Result<T, NoWord> + Clone
where
    T: std::fmt::Display + std::str::FromStr + 'static,
{
    move |text| {
        text.to_uppercase().replace('-', "_").parse().map_err(|_| {
            let words = all.iter().map(|value| value.to_string().to_lowercase().replace('_', "-"));
            NoWord(words.collect::<Vec<_>>().join(", "))
        })
    }
}

/// The same for a word that was typed.
pub(crate) fn one_of<T>(all: &'static [T], text: &str) -> Outcome<T>
where
    T: std::fmt::Display + std::str::FromStr + 'static,
{
    word(all)(text).map_err(|known| Failed::usage(format!("{text:?} is not known: {known}")))
}

/// An object without what was not given.
pub(crate) fn given(mut value: Value) -> Value {
    if let Value::Object(fields) = &mut value {
        fields.retain(|_, value| !value.is_null());
    }
    value
}

/// What is given of something, as JSON.
pub(crate) fn object(value: &impl Serialize) -> Value {
    given(serde_json::to_value(value).unwrap_or_default())
}

/// Adds the fields of one object to another.
pub(crate) fn merged(mut base: Value, change: Value) -> Value {
    if let (Value::Object(base), Value::Object(change)) = (&mut base, change) {
        base.extend(change);
    }
    base
}

/// Sets `field=value` or `field.member=value`.
pub(crate) fn set(body: &mut Value, assignment: &str) -> Outcome {
    let wrong = |why: &str| Failed::usage(format!("{assignment:?} {why}: write field=value"));
    let (path, text) = assignment.split_once('=').ok_or_else(|| wrong("has no value"))?;
    if path.split('.').any(str::is_empty) {
        return Err(wrong("has no field"));
    }
    let mut place = body;
    for name in path.split('.') {
        if place.is_null() {
            *place = Value::Object(Map::new());
        }
        let Value::Object(fields) = place else {
            return Err(wrong("sets a field of a value that has no fields"));
        };
        place = fields.entry(name).or_insert(Value::Null);
    }
    *place = value(text);
    Ok(())
}

fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

/// Reads YAML or JSON from a file, or from standard input.
pub(crate) fn read(path: &Path) -> Outcome<Value> {
    let text = text_of(path)?;
    // JSON is YAML too, but its own parser keeps numbers as they are.
    serde_json::from_str(&text).or_else(|_| {
        serde_saphyr::from_str(&text).map_err(|error| Failed::usage(yaml_problem(&path.display(), &error)))
    })
}

/// The text of a file, or of standard input.
pub(crate) fn text_of(path: &Path) -> Outcome<String> {
    let unreadable =
        |why: &dyn std::fmt::Display| Failed::usage(format!("{} cannot be read: {why}", path.display()));
    let mut text = String::new();
    let source: Box<dyn std::io::Read> = match path.to_str() {
        Some("-") => Box::new(std::io::stdin()),
        _ => Box::new(std::fs::File::open(path).map_err(|error| unreadable(&error))?),
    };
    source.take(MOST_BYTES + 1).read_to_string(&mut text).map_err(|error| unreadable(&error))?;
    match text.len() as u64 > MOST_BYTES {
        true => Err(unreadable(&format!("it is larger than {MOST_BYTES} bytes"))),
        false => Ok(text),
    }
}

/// What is wrong with a YAML file, and where, on one line.
pub(crate) fn yaml_problem(name: &dyn std::fmt::Display, error: &serde_saphyr::Error) -> String {
    let message = in_words(&error.without_snippet().to_string());
    match error.location() {
        Some(at) => {
            let (line, column) = (at.line(), at.column());
            let again = format!(" at line {line}, column {column}");
            format!("{name}:{line}:{column}: {}", message.strip_suffix(&again).unwrap_or(&message))
        }
        None => format!("{name}: {message}"),
    }
}

/// The parser's message in the words of people who write such files.
fn in_words(message: &str) -> String {
    const WORDS: [(&str, &str); 4] = [
        ("expected sequence start", "this must be a list, such as [a, b]"),
        ("expected mapping start", "this must have fields, such as name: value"),
        ("expected string scalar", "this must be text"),
        (", set DuplicateKeyPolicy in Options if acceptable", ""),
    ];
    WORDS.iter().fold(message.to_owned(), |message, (jargon, plain)| message.replace(jargon, plain))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_are_set_by_path() {
        let mut body = json!({ "a": { "b": 1 } });
        for assignment in ["a.c=true", "d=text", "e.f=[1, 2]", "g=\"5\"", "h=a=b", "i="] {
            set(&mut body, assignment).unwrap();
        }
        let expected = json!({ "a": { "b": 1, "c": true }, "d": "text", "e": { "f": [1, 2] }, "g": "5", "h": "a=b", "i": "" });
        assert_eq!(body, expected);
        for wrong in ["a", "=1", "a.=1", "d.x=1"] {
            assert!(set(&mut body, wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn flags_win_over_the_file_and_what_is_set_over_both() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("body.yaml");
        std::fs::write(&file, "name: file\ndescription: file\ncontactEmails: [a, b]\n").unwrap();
        let extra = Extra { set: vec!["description=set".into()], file: Some(file) };
        let flags = json!({ "name": "flag", "description": "flag", "executor": null });
        let body = extra.body::<podium_api::deployments::Create>("a deployment", flags).unwrap();
        let expected = json!({ "name": "flag", "description": "set", "contactEmails": ["a", "b"] });
        assert_eq!(body, expected);
    }
}
