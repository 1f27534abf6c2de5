//! Hours of UTC: lines of one hour are stored and deleted together.

use std::fmt;
use std::time::Duration;

use podium_api::{DeploymentId, Timestamp};

const HOUR: i64 = Duration::from_hours(1).as_millis() as i64;
const DAY: i64 = Duration::from_hours(24).as_millis() as i64;

/// An hour of UTC, counted from the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Hour(i64);

/// The deployment and hour of lines that are stored together.
pub(crate) type Key = (DeploymentId, Hour);

impl Hour {
    pub(crate) fn of(moment: Timestamp) -> Self {
        Self(moment.millis().div_euclid(HOUR))
    }

    pub(crate) fn begins(self) -> Timestamp {
        Timestamp::from_millis(self.0.saturating_mul(HOUR))
    }

    pub(crate) fn ends(self) -> Timestamp {
        Self(self.0 + 1).begins()
    }

    /// When the day that it belongs to is over.
    pub(crate) fn day_ends(self) -> Timestamp {
        let day = self.begins().millis().div_euclid(DAY);
        Timestamp::from_millis((day + 1).saturating_mul(DAY))
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let hour = Self::of(Timestamp::parse(&format!("{text}:00:00Z"))?);
        (hour.to_string() == text).then_some(hour)
    }
}

impl fmt::Display for Hour {
    /// Like `2027-01-15T08`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.begins().to_string();
        f.write_str(text.split_once(':').map_or(text.as_str(), |(hour, _)| hour))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_displayed_hour_is_parsed_again() {
        for (moment, name) in [
            ("1969-12-31T23:59:59.999Z", "1969-12-31T23"),
            ("1970-01-01T00:00:00Z", "1970-01-01T00"),
            ("2028-02-29T23:59:59.999Z", "2028-02-29T23"),
        ] {
            let hour = Hour::of(Timestamp::parse(moment).unwrap());
            assert_eq!((hour.to_string().as_str(), Hour::parse(name)), (name, Some(hour)));
        }
        for other in ["", "x", "2027-13-01T00", "2027-01-15", "2027-01-15T24", "2027-01-15T8"] {
            assert_eq!(Hour::parse(other), None, "{other}");
        }
        let late = Hour::parse("2027-01-15T23").unwrap();
        assert_eq!((late.ends(), late.day_ends()), (late.day_ends(), late.ends()));
        assert_eq!(Hour::parse("2027-01-15T00").unwrap().day_ends(), late.day_ends());
    }
}
