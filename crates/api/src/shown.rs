//! A resource in a reply: as a value, or as JSON that was rendered before.

use std::borrow::Cow;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::json::{self, Written};

/// A `T` in a reply. On the wire it is indistinguishable from a `T`.
#[derive(Clone, Debug)]
pub enum Shown<T> {
    /// The value.
    Value(Box<T>),
    /// Its JSON, rendered before.
    Json(Arc<RawValue>),
}

impl<T> From<T> for Shown<T> {
    fn from(value: T) -> Self {
        Self::Value(Box::new(value))
    }
}

impl<T: DeserializeOwned> Shown<T> {
    /// The value, parsed from its JSON if necessary.
    pub fn into_value(self) -> serde_json::Result<T> {
        match self {
            Self::Value(value) => Ok(*value),
            Self::Json(json) => serde_json::from_str(json.get()),
        }
    }
}

impl<T: Serialize> Serialize for Shown<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Value(value) => value.serialize(serializer),
            Self::Json(json) => json.serialize(serializer),
        }
    }
}

impl<T: Written> Written for Shown<T> {
    fn write(&self, to: &mut Vec<u8>) -> json::Result<()> {
        match self {
            Self::Value(value) => value.write(to),
            Self::Json(rendered) => {
                to.extend_from_slice(rendered.get().as_bytes());
                Ok(())
            }
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Shown<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(Self::from)
    }
}

impl<T: JsonSchema> JsonSchema for Shown<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_and_its_json_are_the_same_on_the_wire() {
        let value = Shown::from(vec![1, 2]);
        let json = Shown::<Vec<i32>>::Json(RawValue::from_string("[1,2]".into()).unwrap().into());
        for shown in [value, json] {
            assert_eq!(serde_json::to_string(&[&shown]).unwrap(), "[[1,2]]");
            assert_eq!(shown.into_value().unwrap(), [1, 2]);
        }
        assert_eq!(serde_json::from_str::<Shown<Vec<i32>>>("[3]").unwrap().into_value().unwrap(), [3]);
    }
}
