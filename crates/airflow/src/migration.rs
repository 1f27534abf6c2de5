//! How a metadata database is brought from one version of Apache Airflow to another.

use podium_domain::options::Version;

/// Whether the version goes down. Then the program of the version before has to migrate: only the newer of the two can do
/// it in both directions.
pub fn goes_down(before: &str, to: &Version) -> bool {
    before.parse::<Version>().is_ok_and(|before| before > *to)
}

pub fn arguments(goes_down: bool, to: &Version) -> Vec<String> {
    let to = to.to_string();
    let all: &[&str] =
        if goes_down { &["db", "downgrade", "--yes", "--to-version", &to] } else { &["db", "migrate"] };
    all.iter().copied().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newer_version_migrates_in_both_directions() {
        let (old, new) = ("2.10.5".parse::<Version>().unwrap(), "3.0.2".parse::<Version>().unwrap());
        assert!(goes_down("3.0.2", &old) && !goes_down("2.10.5", &new) && !goes_down("unknown", &old));
        assert_eq!(arguments(false, &new), ["db", "migrate"]);
        assert_eq!(arguments(true, &old), ["db", "downgrade", "--yes", "--to-version", "2.10.5"]);
    }
}
