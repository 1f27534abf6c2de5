//! Variables that only the platform may set, and why.
//!
//! A variable that is accepted takes effect. So every variable that a data plane has to set itself is refused here,
//! with the reason; a test of the local data plane checks all variables that it sets for its processes.

/// Variables in groups: why they are refused, in words that follow the name of the variable, and their names below that.
const GROUPS: &str = include_str!("../../../data/reserved-variables.txt");

/// Why a variable that is not in a group by its name is refused, by how it begins.
const PREFIXES: &[(&str, &str)] = &[
    ("LD_DEBUG", "changes how programs are loaded, including those of the platform"),
    ("PODIUM_", "begins with `PODIUM_`, which is reserved for the platform's own variables"),
];

/// Why a variable is refused, in words that follow its name; also in the forms that name a command or a secret instead.
pub fn refused(key: &str) -> Option<&'static str> {
    let key = key.to_ascii_uppercase();
    let plain = key.strip_suffix("_CMD").or_else(|| key.strip_suffix("_SECRET")).unwrap_or(&key);
    let mut reason = "";
    for line in GROUPS.lines() {
        match line.strip_prefix("    ") {
            None => reason = line,
            Some(name) if name == key || name == plain => return Some(reason),
            Some(_) => {}
        }
    }
    PREFIXES.iter().find(|(prefix, _)| key.starts_with(prefix)).map(|(_, reason)| *reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_platforms_own_keys_are_known_in_every_form() {
        let known = "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN AIRFLOW__DATABASE__SQL_ALCHEMY_CONN_CMD \
            AIRFLOW__CORE__FERNET_KEY_SECRET airflow__core__executor AIRFLOW__WEBSERVER__SECRET_KEY \
            AIRFLOW__CORE__AUTH_MANAGER AIRFLOW__API__PORT LD_PRELOAD LD_AUDIT LD_DEBUG LD_DEBUG_OUTPUT \
            PYTHONSTARTUP PYTHONHOME PODIUM_ENVIRONMENT PODIUM_ANYTHING";
        for key in known.split(' ') {
            assert!(refused(key).is_some(), "{key}");
        }
        let free = "AIRFLOW__CORE__PARALLELISM PYTHONPATH PYTHONWARNINGS LD_LIBRARY_PATH LD_SDK_KEY MY_SECRET \
            AIRFLOW__CORE TZ";
        for key in free.split(' ') {
            assert_eq!(refused(key), None, "{key}");
        }
    }

    #[test]
    fn every_key_has_one_reason() {
        let mut all: Vec<&str> = GROUPS.lines().filter_map(|line| line.strip_prefix("    ")).collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
