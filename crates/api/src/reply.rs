//! Replies: one resource with its version, a list, no content, or a stream.

use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::endpoint::Nothing;
use crate::json::{self, Written};

/// How a reply is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyKind {
    /// 200, a single resource with an `ETag`.
    One,
    /// 200, a list or a computed response.
    Many,
    /// 204, no body.
    Empty,
    /// 200, no body.
    Blank,
    /// 200, a stream of lines.
    Stream,
    /// 200, a stream of server-sent events.
    Events,
}

impl ReplyKind {
    /// The status of success.
    pub const fn status(self) -> u16 {
        match self {
            Self::Empty => 204,
            Self::One | Self::Many | Self::Blank | Self::Stream | Self::Events => 200,
        }
    }
}

/// The reply of an endpoint.
pub trait Reply: Send + 'static {
    /// How it is sent.
    const KIND: ReplyKind;
    /// The JSON body.
    type Body: Written + DeserializeOwned + JsonSchema;
    /// The version that the `ETag` carries, and the body.
    fn parts(&self) -> (Option<i64>, Option<&Self::Body>);
}

/// A single resource and the version that callers' writes advance.
#[derive(Clone, Debug)]
pub struct One<T> {
    /// The version, for `ETag` and `If-Match`.
    pub version: i64,
    /// The resource.
    pub body: T,
}

impl<T: Written + DeserializeOwned + JsonSchema + Send + 'static> Reply for One<T> {
    const KIND: ReplyKind = ReplyKind::One;
    type Body = T;

    fn parts(&self) -> (Option<i64>, Option<&T>) {
        (Some(self.version), Some(&self.body))
    }
}

/// A list or a computed response.
#[derive(Clone, Debug)]
pub struct Many<T>(pub T);

impl<T: Written + DeserializeOwned + JsonSchema + Send + 'static> Reply for Many<T> {
    const KIND: ReplyKind = ReplyKind::Many;
    type Body = T;

    fn parts(&self) -> (Option<i64>, Option<&T>) {
        (None, Some(&self.0))
    }
}

impl Reply for Nothing {
    const KIND: ReplyKind = ReplyKind::Empty;
    type Body = Self;

    fn parts(&self) -> (Option<i64>, Option<&Self>) {
        (None, None)
    }
}

/// Success with status 200 and no body.
#[derive(Clone, Copy, Debug, Default)]
pub struct Blank;

impl Reply for Blank {
    const KIND: ReplyKind = ReplyKind::Blank;
    type Body = Nothing;

    fn parts(&self) -> (Option<i64>, Option<&Nothing>) {
        (None, None)
    }
}

/// Bodies that are not written as a whole: there is none, or it is a stream.
macro_rules! never_whole {
    ($([$($type:ident)?] $body:ty)+) => {$(
        impl<$($type)?> Written for $body {
            fn write(&self, _: &mut Vec<u8>) -> json::Result<()> {
                Ok(())
            }
        }
    )+};
}

never_whole! { [] Nothing [] LinesBody [T] EventsBody<T> }

/// Lines of JSON, sent as they are read.
pub struct Lines;

impl Reply for Lines {
    const KIND: ReplyKind = ReplyKind::Stream;
    type Body = LinesBody;

    fn parts(&self) -> (Option<i64>, Option<&LinesBody>) {
        (None, None)
    }
}

/// The body of [`Lines`] as the document describes it: bytes.
#[derive(Deserialize)]
pub struct LinesBody;

impl JsonSchema for LinesBody {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Lines".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "binary", "description": "Newline-delimited JSON." })
    }
}

/// Server-sent events, each with JSON of `T` as its data.
pub struct Events<T>(PhantomData<T>);

impl<T: JsonSchema + Send + 'static> Reply for Events<T> {
    const KIND: ReplyKind = ReplyKind::Events;
    type Body = EventsBody<T>;

    fn parts(&self) -> (Option<i64>, Option<&EventsBody<T>>) {
        (None, None)
    }
}

/// The body of [`Events`] as the document describes it.
#[derive(Deserialize)]
#[serde(bound = "")]
pub struct EventsBody<T>(PhantomData<T>);

impl<T: JsonSchema> JsonSchema for EventsBody<T> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("EventsOf{}", T::schema_name()).into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let data = generator.subschema_for::<T>();
        json_schema!({
            "type": "string",
            "description": "Events, each with an id and a line of JSON as its data.",
            "contentMediaType": "application/json",
            "contentSchema": data,
        })
    }
}
