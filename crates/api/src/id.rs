//! Identifiers: 25 characters, `c` and 24 of `[0-9a-z]`, beginning with a time-ordered part.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

const LENGTH: usize = 25;
const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";

/// The id of any resource: a small value that is copied, compared and printed without allocating.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id([u8; LENGTH]);

impl Id {
    /// Builds an id from milliseconds since the epoch, a counter that orders ids of one millisecond, and randomness.
    pub fn from_parts(millis: u64, counter: u32, random: u64) -> Self {
        let mut bytes = [b'c'; LENGTH];
        write_base36(&mut bytes[1..9], millis);
        write_base36(&mut bytes[9..13], u64::from(counter));
        write_base36(&mut bytes[13..25], random);
        Self(bytes)
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

fn write_base36(into: &mut [u8], mut value: u64) {
    for slot in into.iter_mut().rev() {
        *slot = DIGITS[(value % 36) as usize];
        value /= 36;
    }
}

/// The text is not an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotAnId;

impl fmt::Display for NotAnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an id is 25 characters: `c` and 24 of 0-9 and a-z")
    }
}

impl FromStr for Id {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, NotAnId> {
        let bytes: [u8; LENGTH] = text.as_bytes().try_into().map_err(|_| NotAnId)?;
        let shaped =
            bytes[0] == b'c' && bytes[1..].iter().all(|b| b.is_ascii_digit() || b.is_ascii_lowercase());
        if shaped { Ok(Self(bytes)) } else { Err(NotAnId) }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<str>::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for Id {
    fn schema_name() -> Cow<'static, str> {
        "Id".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "cuid" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_cuid_shaped_and_sort_by_time() {
        let early = Id::from_parts(1_800_000_000_000, 7, u64::MAX);
        let late = Id::from_parts(1_800_000_000_001, 0, 0);
        assert_eq!(early.as_str().len(), 25);
        assert!(early < late);
        assert_eq!(early.as_str().parse(), Ok(early));
    }

    #[test]
    fn other_text_is_refused() {
        for text in
            ["", "c", "x000000000000000000000000", "cA00000000000000000000000", "c000000000000000000000000x"]
        {
            assert_eq!(text.parse::<Id>(), Err(NotAnId), "{text}");
        }
    }
}
