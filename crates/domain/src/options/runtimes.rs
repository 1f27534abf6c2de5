//! Runtimes: the releases of Apache Airflow that deployments can run.
//!
//! The list is `data/runtimes.json`. Withdrawn releases are not in it; the 2.x line is no longer maintained upstream,
//! and deprecated.

use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use podium_api::Timestamp;
use serde::Deserialize;

/// A version: three numbers, compared one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version([u32; 3]);

impl Version {
    /// The first number: two versions of different majors are different programs.
    pub const fn major(self) -> u32 {
        self.0[0]
    }
}

impl FromStr for Version {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut numbers = text.split('.').map(|part| {
            let plain =
                part.bytes().all(|byte| byte.is_ascii_digit()) && (part == "0" || !part.starts_with('0'));
            part.parse().ok().filter(|_| plain).ok_or(())
        });
        let mut next = || numbers.next().unwrap_or(Err(()));
        let version = Self([next()?, next()?, next()?]);
        if numbers.next().is_none() { Ok(version) } else { Err(()) }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.0;
        write!(f, "{major}.{minor}.{patch}")
    }
}

/// A runtime; its version is that of Airflow.
#[derive(Clone, Debug)]
pub struct Runtime {
    pub version: Version,
    /// The same, as text.
    pub name: String,
    /// How far it is maintained: `stable` or `deprecated`.
    pub channel: String,
    pub released_at: Timestamp,
    /// Whether it brings a new schema of Airflow's database.
    pub migrates_database: bool,
}

impl Runtime {
    /// Whether new deployments should run it.
    pub fn is_stable(&self) -> bool {
        self.channel == "stable"
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    version: String,
    release_date: String,
    channel: String,
    migrates_database: bool,
}

static RUNTIMES: LazyLock<Vec<Runtime>> = LazyLock::new(|| {
    let entries: Vec<Entry> = serde_json::from_str(include_str!("../../data/runtimes.json"))
        .expect("runtimes.json is a list of runtimes");
    let runtime = |entry: Entry| Runtime {
        version: entry.version.parse().expect("a runtime has a version"),
        released_at: Timestamp::parse(&format!("{}T00:00:00Z", entry.release_date))
            .expect("a runtime has a date"),
        name: entry.version,
        channel: entry.channel,
        migrates_database: entry.migrates_database,
    };
    entries.into_iter().map(runtime).collect()
});

/// Every runtime, the newest first.
pub fn runtimes() -> &'static [Runtime] {
    &RUNTIMES
}

pub fn newest_stable() -> &'static Runtime {
    runtimes().iter().find(|runtime| runtime.is_stable()).expect("there is a stable runtime")
}

pub fn runtime(version: &str) -> Option<&'static Runtime> {
    runtimes().iter().find(|runtime| runtime.name == version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_number() {
        let version = |text: &str| text.parse::<Version>().unwrap();
        assert!(version("2.9.3") < version("2.10.0") && version("2.11.2") < version("3.0.0"));
        assert_eq!(version("3.10.2").to_string(), "3.10.2");
        for text in
            ["", "3", "3.0", "3.0.0.0", "3.0.x", "3.0.-1", "3.0.01", "v3.0.0", "3..0", "3.0.0rc1", "+3.0.0"]
        {
            assert_eq!(text.parse::<Version>(), Err(()), "{text}");
        }
    }

    #[test]
    fn runtimes_are_in_order_and_make_sense() {
        let all = runtimes();
        assert!(all.windows(2).all(|pair| pair[0].version > pair[1].version), "the newest first, each once");
        let lines = |runtime: &Runtime| (runtime.version.0[0], runtime.version.0[1]);
        for pair in all.windows(2).filter(|pair| lines(&pair[0]) == lines(&pair[1])) {
            assert!(pair[0].released_at > pair[1].released_at, "{} came before it was due", pair[0].name);
        }
        for entry in all {
            assert_eq!(entry.version.to_string(), entry.name);
            assert!(["stable", "deprecated"].contains(&entry.channel.as_str()), "{}", entry.name);
            assert!((2..=3).contains(&entry.version.major()), "{}", entry.name);
            assert_eq!(entry.is_stable(), entry.version.major() == 3, "{}", entry.name);
            assert_eq!(runtime(&entry.name).unwrap().version, entry.version);
        }
        assert_eq!((all[0].name.as_str(), all.len()), ("3.3.2", 33));
        assert_eq!(newest_stable().name, "3.3.2");
        assert_eq!(
            runtime("2.11.2").map(|runtime| runtime.released_at.to_string()).as_deref(),
            Some("2026-03-14T00:00:00.000Z")
        );
        assert!(runtime("3.1.4").is_none(), "a withdrawn release is not offered");
    }
}
