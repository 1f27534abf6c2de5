//! A field of an update that can be kept, cleared or set.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Marks a schema in which `null` has a meaning; everywhere else `null` is treated as if the field were absent.
pub(crate) const CLEARABLE: &str = "x-clearable";

/// Absent keeps the stored value, `null` or `""` clears it, anything else replaces it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Patch<T> {
    /// The field was absent.
    #[default]
    Keep,
    /// The field was `null` or empty.
    Clear,
    /// The field has a new value.
    Set(T),
}

impl<T> Patch<T> {
    /// Whether the field was absent.
    pub fn is_keep(&self) -> bool {
        matches!(self, Self::Keep)
    }

    /// The value after the update, given the one before it.
    pub fn apply(self, stored: Option<T>) -> Option<T> {
        match self {
            Self::Keep => stored,
            Self::Clear => None,
            Self::Set(value) => Some(value),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Patch<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Option::deserialize(deserializer)?.map_or(Self::Clear, Self::Set))
    }
}

impl<T: Serialize> Serialize for Patch<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Keep | Self::Clear => serializer.serialize_none(),
            Self::Set(value) => value.serialize(serializer),
        }
    }
}

impl<T: JsonSchema> JsonSchema for Patch<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("Patch_{}", T::schema_name()).into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let inner = generator.subschema_for::<T>();
        json_schema!({ "anyOf": [inner, { "type": "null" }], (CLEARABLE): true })
    }
}
