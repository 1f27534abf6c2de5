//! Parameters of statements: borrowed, copied by value, never converted twice.

use std::fmt::Write as _;

/// One parameter, or one column of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    Null,
    Int(i64),
    /// A boolean; SQLite stores 0 and 1.
    Bool(bool),
    Text(&'a str),
    Blob(&'a [u8]),
    /// A list for a `$n[]` placeholder.
    Texts(&'a [&'a str]),
    /// A list for a `$n[]` placeholder.
    Strings(&'a [String]),
}

impl Value<'_> {
    /// The list as a JSON array, which is how SQLite takes it; `None` if this is no list.
    pub(crate) fn json(&self) -> Option<String> {
        match self {
            Self::Texts(list) => Some(json(list.iter().copied())),
            Self::Strings(list) => Some(json(list.iter().map(String::as_str))),
            _ => None,
        }
    }
}

fn json<'a>(items: impl Iterator<Item = &'a str>) -> String {
    let mut out = String::from("[");
    for item in items {
        out.push_str(if out.len() > 1 { ",\"" } else { "\"" });
        for c in item.chars() {
            match c {
                '"' | '\\' => out.extend(['\\', c]),
                // Writing to a string cannot fail.
                c if c < ' ' => drop(write!(out, "\\u{:04x}", c as u32)),
                c => out.push(c),
            }
        }
        out.push('"');
    }
    out.push(']');
    out
}

/// A parameter that outlives the call which made it, for a [`Guard`](crate::Guard).
#[derive(Debug, Clone, PartialEq)]
pub enum Owned {
    Null,
    Int(i64),
    Bool(bool),
    Text(String),
    Blob(Vec<u8>),
    /// A list for a `$n[]` placeholder.
    Texts(Vec<String>),
}

impl Owned {
    pub fn as_value(&self) -> Value<'_> {
        match self {
            Self::Null => Value::Null,
            Self::Int(value) => Value::Int(*value),
            Self::Bool(value) => Value::Bool(*value),
            Self::Text(value) => Value::Text(value),
            Self::Blob(value) => Value::Blob(value),
            Self::Texts(value) => Value::Strings(value),
        }
    }
}

macro_rules! from {
    ($($type:ty => |$value:ident| $made:expr),* $(,)?) => {$(
        impl<'a> From<$type> for Value<'a> {
            fn from($value: $type) -> Self {
                $made
            }
        }
    )*};
}

from! {
    i64 => |value| Self::Int(value),
    i32 => |value| Self::Int(value.into()),
    u32 => |value| Self::Int(value.into()),
    &'a i64 => |value| Self::Int(*value),
    bool => |value| Self::Bool(value),
    &'a bool => |value| Self::Bool(*value),
    &'a str => |value| Self::Text(value),
    &'a &'a str => |value| Self::Text(value),
    &'a String => |value| Self::Text(value),
    &'a [u8] => |value| Self::Blob(value),
    &'a Vec<u8> => |value| Self::Blob(value),
    &'a [&'a str] => |value| Self::Texts(value),
    &'a Vec<&'a str> => |value| Self::Texts(value),
    &'a [String] => |value| Self::Strings(value),
    &'a Vec<String> => |value| Self::Strings(value),
    &'a Option<String> => |value| value.as_deref().into(),
    &'a Option<i64> => |value| (*value).into(),
    &'a Owned => |value| value.as_value(),
}

impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl From<&str> for Owned {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<String> for Owned {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl From<i64> for Owned {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

/// The parameters of one statement: `params![id, name, limit]` is a `&[Value]`.
#[macro_export]
macro_rules! params {
    () => { &[] as &[$crate::Value<'_>] };
    ($($value:expr),+ $(,)?) => { &[$($crate::Value::from($value)),+] as &[$crate::Value<'_>] };
}

#[cfg(test)]
mod tests {
    use super::Value;

    #[test]
    fn lists_become_json() {
        assert_eq!(Value::Texts(&[]).json().as_deref(), Some("[]"));
        assert_eq!(Value::Texts(&["a", "é\"\\\n"]).json().as_deref(), Some(r#"["a","é\"\\\u000a"]"#));
        assert_eq!(Value::Null.json(), None);
    }
}
