//! Request decoding: all invalid fields are reported at once, each with its path.
//!
//! A request is checked against the very schema that the document shows, so a bound is stated once. What passes is
//! normalized (`null` and empty values of optional enums and ids are dropped) and then deserialized.

mod compile;
mod union;

use std::collections::HashSet;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

pub use compile::UnsupportedSchema;

use crate::error::counted;
use crate::{FieldError, Id, Timestamp};

/// The largest integer that every JSON parser represents exactly.
const MAX_INTEGER: i64 = 9_007_199_254_740_991;
/// Marks a list whose minimum length does not apply to an empty one.
pub const MAY_BE_EMPTY: &str = "x-may-be-empty";

/// Names the fields that an object lacks and another of its kind has: known, and refused unless blank.
pub const SIBLINGS: &str = "x-sibling-fields";

/// Marks a union that is also accepted without its tag: the code that reads it knows which variant is meant.
pub const MAY_LACK_TAG: &str = "x-may-lack-tag";

/// A schema compiled for checking values.
#[derive(Debug)]
#[expect(missing_docs, reason = "the fields are the keywords of JSON Schema")]
pub enum Check {
    /// A field of another variant: only a blank value is accepted.
    Sibling,
    /// A string.
    Text { min: Option<u64>, max: Option<u64>, words: Option<Vec<String>>, format: Format },
    /// A whole number.
    Integer { min: Option<i64>, max: Option<i64> },
    /// `true` or `false`.
    Boolean,
    /// A list.
    List { items: Box<Check>, min: Option<u64>, max: Option<u64>, may_be_empty: bool },
    /// An object.
    Object(Vec<Field>),
    /// An object with members of any names, all of one kind.
    Map(Box<Check>),
    /// An object whose tag says which of several it is.
    Union { tag: String, variants: Vec<(String, Vec<Field>)> },
}

/// What a string must look like beyond its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Anything.
    Any,
    /// An id.
    Id,
    /// An RFC 3339 timestamp.
    Time,
    /// Any text; it is never shown again.
    Secret,
    /// One line of visible characters: the default for strings.
    Line,
}

/// Fields that hold text of several lines, or that are compared with such text.
const LONG_TEXTS: &[&str] = &["description", "text", "searchText"];

/// A field of an object.
#[derive(Debug)]
pub struct Field {
    name: String,
    required: bool,
    clearable: bool,
    check: Check,
}

impl Check {
    /// The value in the one form that types are read from, if nothing is wrong with it.
    pub fn checked(&self, mut value: Value) -> Result<Value, Vec<FieldError>> {
        let mut errors = Vec::new();
        self.visit(&mut value, "", &mut errors);
        if errors.is_empty() { Ok(value) } else { Err(errors) }
    }

    /// The same of a query string, already split into decoded names and values.
    pub fn checked_query(&self, pairs: Vec<(String, String)>) -> Result<Value, Vec<FieldError>> {
        let Self::Object(fields) = self else { return self.checked(Value::Null) };
        let mut object = Map::new();
        let mut seen = HashSet::new();
        let mut errors = Vec::new();
        for (name, text) in pairs {
            let Some(field) = fields.iter().find(|field| field.name == name) else { continue };
            if let Self::List { items, .. } = &field.check {
                if text.is_empty() && items.empty_is_absent() {
                    continue;
                }
                if let Value::Array(list) = object.entry(name).or_insert_with(|| Value::Array(Vec::new())) {
                    list.push(items.read(text));
                }
            } else if seen.insert(name.clone()) {
                object.insert(name, field.check.read(text));
            } else {
                errors.push(FieldError::new(name, "repeated", "may be given only once"));
            }
        }
        let checked = self.checked(Value::Object(object));
        if errors.is_empty() {
            return checked;
        }
        errors.extend(checked.err().into_iter().flatten());
        Err(errors)
    }

    /// A value from the text of a query parameter; text that does not parse stays text and is refused later.
    fn read(&self, text: String) -> Value {
        match self {
            Self::Boolean | Self::Integer { .. } if text.is_empty() => Value::Null,
            Self::Boolean | Self::Integer { .. } => {
                serde_json::from_str(&text).unwrap_or(Value::String(text))
            }
            _ => Value::String(text),
        }
    }

    fn visit(&self, value: &mut Value, path: &str, errors: &mut Vec<FieldError>) {
        let mut wrong = |code: &str, message: String| errors.push(FieldError::new(path, code, message));
        match (self, value) {
            (Self::Boolean, Value::Bool(_)) => {}
            (Self::Sibling, _) => wrong("excluded", "must be omitted: this type does not support it".into()),
            (Self::Text { min, max, words, format }, Value::String(text)) => {
                let length = text.chars().count() as u64;
                if let Some(words) = words {
                    if !words.contains(text) {
                        wrong("enum", format!("must be one of {}", words.join(", ")));
                    }
                } else if text.contains('\0') {
                    wrong("format", "must not contain the NUL character".into());
                } else if min.is_some_and(|min| length < min) {
                    let min = min.unwrap_or_default();
                    let message = if min == 1 {
                        "must not be empty".into()
                    } else {
                        format!("must have at least {}", counted(min, "character"))
                    };
                    wrong("minLength", message);
                } else if max.is_some_and(|max| length > max) {
                    let most = counted(max.unwrap_or_default(), "character");
                    wrong("maxLength", format!("must have at most {most}, has {length}"));
                } else if let (Format::Line, Some(c)) = (format, crate::text::hidden(text)) {
                    wrong("format", crate::text::complaint(c));
                } else if *format == Format::Id && text.parse::<Id>().is_err() {
                    wrong("format", "must be an id: 25 characters, `c` and 24 of 0-9 and a-z".into());
                } else if *format == Format::Time && Timestamp::parse(text).is_none() {
                    wrong("format", "must be an RFC 3339 timestamp such as 2027-01-15T08:00:00Z".into());
                }
            }
            (Self::Integer { min, max }, Value::Number(number)) => match number.as_i64() {
                None => wrong("type", "must be a whole number".into()),
                Some(n) if n < min.unwrap_or(-MAX_INTEGER) => {
                    wrong("minimum", format!("must be at least {}", min.unwrap_or(-MAX_INTEGER)));
                }
                Some(n) if n > max.unwrap_or(MAX_INTEGER) => {
                    wrong("maximum", format!("must be at most {}", max.unwrap_or(MAX_INTEGER)));
                }
                Some(_) => {}
            },
            (Self::List { items, min, max, may_be_empty }, Value::Array(list)) => {
                let length = list.len() as u64;
                if min.is_some_and(|min| length < min) && !(*may_be_empty && length == 0) {
                    let least = counted(min.unwrap_or_default(), "item");
                    wrong("minItems", format!("must have at least {least}"));
                } else if max.is_some_and(|max| length > max) {
                    let most = counted(max.unwrap_or_default(), "item");
                    wrong("maxItems", format!("must have at most {most}, has {length}"));
                } else {
                    for (index, item) in list.iter_mut().enumerate() {
                        items.visit(item, &format!("{path}[{index}]"), errors);
                    }
                }
            }
            (Self::Object(fields), Value::Object(object)) => {
                for field in fields {
                    field.visit(object, path, errors);
                }
            }
            (Self::Map(values), Value::Object(object)) => {
                object.retain(|_, value| !value.is_null());
                for (name, value) in object {
                    let path = format!("{path}.{name}");
                    if let Some(c) = crate::text::hidden(name) {
                        errors.push(FieldError::new(&path, "format", crate::text::complaint(c)));
                    }
                    values.visit(value, &path, errors);
                }
            }
            (Self::Union { tag, variants }, Value::Object(object)) => {
                union::visit(tag, variants, object, path, errors);
            }
            (expected, found) => {
                wrong("type", format!("must be {}, is {}", expected.describe(), name_of(found)));
            }
        }
    }

    fn describe(&self) -> &'static str {
        match self {
            Self::Sibling => "left out",
            Self::Text { .. } => "a string",
            Self::Integer { .. } => "a whole number",
            Self::Boolean => "true or false",
            Self::List { .. } => "an array",
            Self::Object(_) | Self::Map(_) | Self::Union { .. } => "an object",
        }
    }

    /// Whether an empty string counts as absent: real clients send it for optional enums and ids.
    fn empty_is_absent(&self) -> bool {
        matches!(
            self,
            Self::Text { words: Some(_), .. } | Self::Text { format: Format::Id | Format::Time, .. }
        )
    }

    /// The parts of a request that may be shown again: fields that the schema names and does not mark as secret.
    pub fn without_secrets(&self, value: &Value) -> Option<Value> {
        match (self, value) {
            (Self::Text { format: Format::Secret, .. } | Self::Sibling, _) => None,
            (Self::List { items, .. }, Value::Array(list)) => {
                Some(list.iter().filter_map(|item| items.without_secrets(item)).collect())
            }
            (Self::Object(fields), Value::Object(object)) => {
                let shown = fields.iter().filter_map(|field| {
                    Some((field.name.clone(), field.check.without_secrets(object.get(&field.name)?)?))
                });
                Some(Value::Object(shown.collect()))
            }
            (Self::Map(values), Value::Object(object)) => {
                let shown = object
                    .iter()
                    .filter_map(|(name, value)| Some((name.clone(), values.without_secrets(value)?)));
                Some(Value::Object(shown.collect()))
            }
            (Self::Union { tag, variants }, Value::Object(object)) => {
                let word = object.get(tag).and_then(Value::as_str);
                let own = variants.iter().filter(|(known, _)| Some(known.as_str()) == word);
                let shown = object.iter().filter_map(|(name, value)| {
                    let mut fields = own.clone().chain(variants).flat_map(|(_, fields)| fields);
                    let field = fields.find(|field| field.name == *name)?;
                    Some((name.clone(), field.check.without_secrets(value)?))
                });
                Some(Value::Object(shown.collect()))
            }
            (Self::Object(_) | Self::Map(_) | Self::Union { .. } | Self::List { .. }, _) => None,
            _ => Some(value.clone()),
        }
    }
}

/// The value of a type, from what was checked.
pub fn typed<T: DeserializeOwned>(value: Value) -> Result<T, Vec<FieldError>> {
    serde_json::from_value(value).map_err(|error| invalid(&error))
}

/// What passed the check, and is nothing that the type knows.
fn invalid(error: &serde_json::Error) -> Vec<FieldError> {
    vec![FieldError::new("", "invalid", error.to_string())]
}

impl Field {
    fn visit(&self, object: &mut Map<String, Value>, parent: &str, errors: &mut Vec<FieldError>) {
        let path = if parent.is_empty() { self.name.clone() } else { format!("{parent}.{}", self.name) };
        let blank = |value: &Value| match self.check {
            Check::Sibling => union::is_blank(value),
            _ => value.is_null() || (value == "" && self.check.empty_is_absent()),
        };
        match object.get_mut(&self.name) {
            Some(value) if !self.required && blank(value) => {
                if self.clearable {
                    *value = Value::Null;
                } else {
                    object.remove(&self.name);
                }
            }
            Some(Value::Null) if self.required && self.clearable => {}
            Some(Value::Null) | None if self.required => {
                errors.push(FieldError::new(path, "required", "is required"));
            }
            Some(value) => self.check.visit(value, &path, errors),
            None => {}
        }
    }
}

fn name_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
