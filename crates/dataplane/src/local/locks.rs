//! The locked package list of each runtime: every machine installs the same versions.

macro_rules! locks {
    ($($version:literal),* $(,)?) => {
        const LOCKS: &[(&str, &str)] = &[$(($version, include_str!(concat!("locks/", $version, ".txt")))),*];
    };
}

locks![
    "2.9.0", "2.9.1", "2.9.2", "2.9.3", "2.10.0", "2.10.1", "2.10.2", "2.10.3", "2.10.4", "2.10.5", "2.11.0",
    "2.11.1", "2.11.2", "3.0.0", "3.0.1", "3.0.2", "3.0.3", "3.0.4", "3.0.6", "3.1.0", "3.1.1", "3.1.2",
    "3.1.3", "3.1.5", "3.1.6", "3.1.7", "3.1.8", "3.2.0", "3.2.1", "3.2.2", "3.3.0", "3.3.1", "3.3.2",
];

/// The packages of a runtime, one per line.
pub(super) fn of(version: &str) -> Option<&'static str> {
    LOCKS.iter().find(|(known, _)| *known == version).map(|(_, lock)| *lock)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_runtime_of_the_catalogue_has_its_packages() {
        for runtime in podium_domain::options::runtimes() {
            let lock = of(&runtime.name).unwrap_or_else(|| panic!("no packages of {}", runtime.name));
            let itself = format!("apache-airflow=={}", runtime.name);
            assert!(lock.lines().any(|line| line == itself), "{itself}");
        }
    }
}
