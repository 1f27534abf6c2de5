//! Pages of a list: offset, limit and up to three sort keys.

use std::borrow::Cow;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The largest page.
pub const MAX_LIMIT: u32 = 1000;
const DEFAULT_LIMIT: u32 = 20;

/// The fields that a list can be sorted by, and whether a limit over [`MAX_LIMIT`] is refused or clamped.
pub trait SortKeys {
    /// Wire names of the fields.
    const KEYS: &'static [&'static str];
    /// Whether the contract states a maximum: if so, a larger limit is refused, otherwise it is clamped.
    const LIMIT_IS_BOUNDED: bool = true;
}

/// One sort key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sort {
    /// The wire name of the field.
    pub key: &'static str,
    /// `:desc` rather than `:asc`.
    pub descending: bool,
}

/// The query parameters of a paged list.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(bound = "")]
#[schemars(bound = "", rename = "Page")]
pub struct Page<K: SortKeys> {
    /// How many items to skip.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub offset: u64,
    /// Maximum number of items to return; 0 returns an empty page with the total.
    #[serde(default)]
    pub limit: Limit<K>,
    /// Sort keys, in order; the default is `createdAt:desc`.
    #[serde(default)]
    pub sorts: Sorts<K>,
}

impl<K: SortKeys> Default for Page<K> {
    fn default() -> Self {
        Self { offset: 0, limit: Limit::default(), sorts: Sorts::default() }
    }
}

impl<K: SortKeys> Page<K> {
    /// The effective limit.
    pub fn limit(&self) -> u32 {
        self.limit.0
    }
}

/// A page size.
#[derive(Debug)]
pub struct Limit<K>(u32, PhantomData<K>);

impl<K> Default for Limit<K> {
    fn default() -> Self {
        Self(DEFAULT_LIMIT, PhantomData)
    }
}

impl<K> Serialize for Limit<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de, K> Deserialize<'de> for Limit<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let asked = u64::deserialize(deserializer)?;
        Ok(Self(u32::try_from(asked).map_or(MAX_LIMIT, |limit| limit.min(MAX_LIMIT)), PhantomData))
    }
}

impl<K: SortKeys> JsonSchema for Limit<K> {
    fn schema_name() -> Cow<'static, str> {
        "Limit".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let mut schema = json_schema!({ "type": "integer", "minimum": 0, "default": DEFAULT_LIMIT });
        if K::LIMIT_IS_BOUNDED {
            schema.insert("maximum".into(), MAX_LIMIT.into());
        }
        schema
    }
}

/// Up to three sort keys.
#[derive(Debug)]
pub struct Sorts<K>(Vec<Sort>, PhantomData<K>);

impl<K> Sorts<K> {
    /// The keys, in order; none means the default order.
    pub fn keys(&self) -> &[Sort] {
        &self.0
    }
}

impl<K> Default for Sorts<K> {
    fn default() -> Self {
        Self(Vec::new(), PhantomData)
    }
}

impl<K> Serialize for Sorts<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(
            self.0.iter().map(|s| format!("{}:{}", s.key, if s.descending { "desc" } else { "asc" })),
        )
    }
}

impl<'de, K: SortKeys> Deserialize<'de> for Sorts<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let sort = |text: &String| {
            let (name, direction) = text.split_once(':')?;
            let key = K::KEYS.iter().find(|key| **key == name)?;
            Some(Sort { key, descending: direction == "desc" })
        };
        let texts = Vec::<String>::deserialize(deserializer)?;
        let sorts = texts.iter().map(sort).collect::<Option<_>>();
        sorts.map(|sorts| Self(sorts, PhantomData)).ok_or_else(|| de::Error::custom("unknown sort"))
    }
}

impl<K: SortKeys> JsonSchema for Sorts<K> {
    fn schema_name() -> Cow<'static, str> {
        "Sorts".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let values: Vec<String> =
            K::KEYS.iter().flat_map(|key| [format!("{key}:asc"), format!("{key}:desc")]).collect();
        json_schema!({ "type": "array", "items": { "type": "string", "enum": values }, "maxItems": 3 })
    }
}
