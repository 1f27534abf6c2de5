//! Timestamps on the wire: RFC 3339. Those that the server sets are UTC, to the millisecond; those that a caller sets
//! are answered as they were written.

use std::borrow::Cow;
use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A point in time, stored as milliseconds since the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

/// The first and the last time that a wire timestamp can express.
const RANGE: std::ops::RangeInclusive<i64> = -62_135_596_800_000..=253_402_300_799_999;

impl Timestamp {
    /// From milliseconds since the epoch, clamped to the range that RFC 3339 can express.
    pub fn from_millis(millis: i64) -> Self {
        Self(millis.clamp(*RANGE.start(), *RANGE.end()))
    }

    /// Milliseconds since the epoch.
    pub fn millis(self) -> i64 {
        self.0
    }

    /// Reads RFC 3339 text with any offset.
    pub fn parse(text: &str) -> Option<Self> {
        let millis = text.parse::<jiff::Timestamp>().ok()?.as_millisecond();
        RANGE.contains(&millis).then_some(Self(millis))
    }
}

impl Add<Duration> for Timestamp {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self::from_millis(self.0.saturating_add(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)))
    }
}

impl Sub<Duration> for Timestamp {
    type Output = Self;

    fn sub(self, duration: Duration) -> Self {
        Self::from_millis(self.0.saturating_sub(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let moment = jiff::Timestamp::from_millisecond(self.0).map_err(|_| fmt::Error)?;
        write!(f, "{moment:.3}")
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&Cow::<str>::deserialize(deserializer)?)
            .ok_or_else(|| de::Error::custom("not an RFC 3339 timestamp"))
    }
}

impl JsonSchema for Timestamp {
    fn schema_name() -> Cow<'static, str> {
        "Timestamp".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "date-time" })
    }
}

/// A point in time as a caller wrote it. Only the moment counts; the writing is for answers.
///
/// Text that names a moment without being RFC 3339 to the letter (with a blank for the `T`, say) is answered in UTC,
/// since clients may not be able to read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenTime {
    at: Timestamp,
    text: Box<str>,
}

impl WrittenTime {
    /// Reads RFC 3339 text with any offset.
    pub fn parse(text: &str) -> Option<Self> {
        let at = Timestamp::parse(text)?;
        Some(if is_rfc_3339(text) { Self { at, text: text.into() } } else { at.into() })
    }

    /// The moment.
    pub fn at(&self) -> Timestamp {
        self.at
    }
}

/// Whether a text that names a moment is one of RFC 3339, with capital letters and without a leap second.
fn is_rfc_3339(text: &str) -> bool {
    let has_form = |text: &str, form: &str| {
        let fits = |(c, form): (u8, u8)| if form == b'0' { c.is_ascii_digit() } else { c == form };
        text.len() == form.len() && text.bytes().zip(form.bytes()).all(fits)
    };
    let Some((time, rest)) = text.split_at_checked("0000-00-00T00:00:00".len()) else { return false };
    let offset = match rest.strip_prefix('.') {
        Some(fraction) => fraction.trim_start_matches(|c: char| c.is_ascii_digit()),
        None => rest,
    };
    let is_offset = ["Z", "+00:00", "-00:00"].into_iter().any(|form| has_form(offset, form));
    has_form(time, "0000-00-00T00:00:00") && !time.ends_with("60") && !rest.starts_with(".Z") && is_offset
}

impl From<Timestamp> for WrittenTime {
    fn from(at: Timestamp) -> Self {
        Self { at, text: at.to_string().into() }
    }
}

impl Serialize for WrittenTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for WrittenTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&Cow::<str>::deserialize(deserializer)?)
            .ok_or_else(|| de::Error::custom("not an RFC 3339 timestamp"))
    }
}

impl JsonSchema for WrittenTime {
    fn schema_name() -> Cow<'static, str> {
        Timestamp::schema_name()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Timestamp::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wire_text_is_utc_with_milliseconds() {
        let moment = Timestamp::parse("2027-01-15T09:00:00+01:00").unwrap();
        assert_eq!(moment.to_string(), "2027-01-15T08:00:00.000Z");
        assert_eq!(Timestamp::parse("yesterday"), None);
    }

    #[test]
    fn a_callers_time_is_shown_as_it_was_written() {
        let shown = |text: &str| serde_json::to_value(WrittenTime::parse(text).unwrap()).unwrap();
        for text in [
            "2027-01-15T09:00:00+01:00",
            "2027-01-15T08:00:00Z",
            "2027-01-15T08:00:00.5Z",
            "2027-01-15T08:00:00.123456789-00:00",
            "2027-01-15T02:30:00.000-05:30",
        ] {
            assert_eq!(shown(text), text);
        }
        for (text, instead) in [
            ("2027-01-15 09:00:00+01:00", "2027-01-15T08:00:00.000Z"),
            ("2027-01-15t08:00:00z", "2027-01-15T08:00:00.000Z"),
            ("20270115T080000Z", "2027-01-15T08:00:00.000Z"),
            ("2027-01-15T09:00:00+01", "2027-01-15T08:00:00.000Z"),
            ("2027-01-15T09:00+01:00", "2027-01-15T08:00:00.000Z"),
            ("2027-01-15T09:00:00+01:00:00", "2027-01-15T08:00:00.000Z"),
            ("2026-12-31T23:59:60Z", "2026-12-31T23:59:59.000Z"),
        ] {
            assert_eq!(shown(text), instead, "{text}");
        }
        let (one, other) = ("2027-01-15T09:00:00+01:00", "2027-01-15T08:00:00Z");
        assert_eq!(WrittenTime::parse(one).unwrap().at(), WrittenTime::parse(other).unwrap().at());
        assert_eq!(WrittenTime::parse("2027-01-15T08:00:00"), None, "no offset, no moment");
    }
}
