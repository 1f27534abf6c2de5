//! An id as the filter of a list names it.
//!
//! The contract takes any text there, and text that is no id fits nothing. The kind of the id is part of the type all
//! the way into the statement, so that the id of a workspace cannot be passed where one of a deployment is wanted:
//!
//! ```
//! # use podium_api::{DeploymentId, Named};
//! fn list(_: Option<&Named<DeploymentId>>) {}
//! list(Some(&Named::<DeploymentId>::from("text that is no id")));
//! ```
//!
//! ```compile_fail,E0308
//! # use podium_api::{DeploymentId, Named, WorkspaceId};
//! fn list(_: Option<&Named<DeploymentId>>) {}
//! list(Some(&Named::<WorkspaceId>::from("text that is no id")));
//! ```

use std::borrow::Cow;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::ids::TypedId;

/// Text that stands for an id of a kind.
#[derive(Clone, Debug)]
pub struct Named<I> {
    text: String,
    kind: PhantomData<I>,
}

impl<I: TypedId> Named<I> {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The id, if the text is one.
    pub fn id(&self) -> Option<I> {
        self.text.parse().ok()
    }

    /// Whether there is any text: empty text counts as absent.
    pub fn is_given(&self) -> bool {
        !self.text.is_empty()
    }
}

impl<I: TypedId> From<I> for Named<I> {
    fn from(id: I) -> Self {
        Self { text: id.to_string(), kind: PhantomData }
    }
}

impl<I> From<&str> for Named<I> {
    fn from(text: &str) -> Self {
        Self { text: text.to_owned(), kind: PhantomData }
    }
}

impl<I> Serialize for Named<I> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.text.serialize(serializer)
    }
}

impl<'de, I> Deserialize<'de> for Named<I> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self { text: String::deserialize(deserializer)?, kind: PhantomData })
    }
}

impl<I> JsonSchema for Named<I> {
    fn schema_name() -> Cow<'static, str> {
        String::schema_name()
    }

    fn inline_schema() -> bool {
        String::inline_schema()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}
