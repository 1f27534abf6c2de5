//! Days of UTC, and the names of their files.

use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::civil::Date;
use podium_api::{Id, Timestamp};

const DAY: i64 = Duration::from_hours(24).as_millis() as i64;
const ENDING: &str = ".log";

/// A day of UTC, counted from the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Day(i64);

impl Day {
    /// The day of a moment.
    pub(crate) fn of(moment: Timestamp) -> Self {
        Self(moment.millis().div_euclid(DAY))
    }

    /// When it begins.
    pub(crate) fn begins(self) -> Timestamp {
        Timestamp::from_millis(self.0.saturating_mul(DAY))
    }

    /// When it is over.
    pub(crate) fn ends(self) -> Timestamp {
        Self(self.0 + 1).begins()
    }

    /// Its file, in the directory of a deployment.
    pub(crate) fn path(self, root: &Path, deployment_id: Id) -> PathBuf {
        let date = self.begins().to_string();
        let (date, _) = date.split_once('T').unwrap_or((&date, ""));
        root.join(deployment_id.as_str()).join(format!("{date}{ENDING}"))
    }

    /// The day whose file has this name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        let date: Date = name.strip_suffix(ENDING)?.parse().ok()?;
        let midnight = Timestamp::parse(&format!("{date}T00:00:00Z"))?;
        Some(Self::of(midnight))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_found_again_by_the_name_of_its_file() {
        let id = Id::from_parts(0, 0, 0);
        for (moment, name) in [
            ("1969-12-31T23:59:59.999Z", "1969-12-31.log"),
            ("1970-01-01T00:00:00Z", "1970-01-01.log"),
            ("2028-02-29T23:59:59.999Z", "2028-02-29.log"),
        ] {
            let day = Day::of(Timestamp::parse(moment).unwrap());
            assert_eq!(day.path(Path::new("logs"), id), Path::new("logs").join(id.as_str()).join(name));
            assert_eq!(Day::from_name(name), Some(day));
        }
        for other in ["", "x.log", "2027-13-01.log", "2027-01-15", "2027-01-15.log.tmp"] {
            assert_eq!(Day::from_name(other), None, "{other}");
        }
    }
}
