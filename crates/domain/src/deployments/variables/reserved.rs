//! Variables that only the platform may set, and why.
//!
//! A variable that is accepted takes effect. So every variable that a data plane has to set itself is refused here,
//! with the reason; a test of the local data plane checks all variables that it sets for its processes.

/// A group of variables and why they are refused, in words that follow the variable's name.
struct Group {
    names: &'static [&'static str],
    reason: &'static str,
}

const GROUPS: &[Group] = &[
    Group {
        names: &[
            "AIRFLOW__CORE__SQL_ALCHEMY_CONN",
            "AIRFLOW__DATABASE__LOAD_DEFAULT_CONNECTIONS",
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN",
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN_ASYNC",
            "AIRFLOW__DATABASE__SQL_ALCHEMY_MAX_OVERFLOW",
            "AIRFLOW__DATABASE__SQL_ALCHEMY_POOL_ENABLED",
            "AIRFLOW__DATABASE__SQL_ALCHEMY_POOL_SIZE",
        ],
        reason: "is set by the platform, which creates the metadata database and limits the connections to it",
    },
    Group {
        names: &[
            "AIRFLOW__API__SECRET_KEY",
            "AIRFLOW__API_AUTH__JWT_ALGORITHM",
            "AIRFLOW__API_AUTH__JWT_AUDIENCE",
            "AIRFLOW__API_AUTH__JWT_ISSUER",
            "AIRFLOW__API_AUTH__JWT_KID",
            "AIRFLOW__API_AUTH__JWT_PRIVATE_KEY_PATH",
            "AIRFLOW__API_AUTH__JWT_SECRET",
            "AIRFLOW__API_AUTH__TRUSTED_JWKS_URL",
            "AIRFLOW__CORE__FERNET_KEY",
            "AIRFLOW__WEBSERVER__SECRET_KEY",
        ],
        reason: "is set by the platform, which creates and stores the keys of every deployment",
    },
    Group {
        names: &[
            "AIRFLOW__API__AUTH_BACKENDS",
            "AIRFLOW__CORE__AUTH_MANAGER",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS",
            "AIRFLOW__FAB__AUTH_BACKENDS",
            "AIRFLOW__FAB__CONFIG_FILE",
            "AIRFLOW__WEBSERVER__CONFIG_FILE",
        ],
        reason: "is set by the platform: users sign in to the platform, and its roles decide what they may do in Airflow",
    },
    Group {
        names: &[
            "AIRFLOW__API__BASE_URL",
            "AIRFLOW__API__HOST",
            "AIRFLOW__API__PORT",
            "AIRFLOW__API__SSL_CERT",
            "AIRFLOW__API__SSL_KEY",
            "AIRFLOW__API__WORKERS",
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL",
            "AIRFLOW__WEBSERVER__BASE_URL",
            "AIRFLOW__WEBSERVER__ENABLE_PROXY_FIX",
            "AIRFLOW__WEBSERVER__WEB_SERVER_HOST",
            "AIRFLOW__WEBSERVER__WEB_SERVER_PORT",
            "AIRFLOW__WEBSERVER__WEB_SERVER_SSL_CERT",
            "AIRFLOW__WEBSERVER__WEB_SERVER_SSL_KEY",
            "AIRFLOW__WEBSERVER__WORKERS",
        ],
        reason: "is set by the platform, which runs the web server and forwards requests to it",
    },
    Group {
        names: &[
            "AIRFLOW__CELERY__BROKER_URL",
            "AIRFLOW__CELERY__RESULT_BACKEND",
            "AIRFLOW__CORE__EXECUTOR",
            "AIRFLOW__OPERATORS__DEFAULT_QUEUE",
        ],
        reason: "is set by the platform: it follows from the deployment's `executor` and `workerQueues`",
    },
    Group {
        names: &[
            "AIRFLOW_CONFIG",
            "AIRFLOW_HOME",
            "AIRFLOW__CORE__DAGS_FOLDER",
            "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST",
            "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_STORAGE_PATH",
        ],
        reason: "is set by the platform: deploys determine where DAGs and files are",
    },
    Group {
        names: &[
            "AIRFLOW__LOGGING__BASE_LOG_FOLDER",
            "AIRFLOW__LOGGING__DAG_PROCESSOR_CHILD_PROCESS_LOG_DIRECTORY",
            "AIRFLOW__LOGGING__DAG_PROCESSOR_LOG_TARGET",
            "AIRFLOW__LOGGING__DAG_PROCESSOR_MANAGER_LOG_LOCATION",
            "AIRFLOW__LOGGING__JSON_LOGS",
            "AIRFLOW__LOGGING__REMOTE_BASE_LOG_FOLDER",
            "AIRFLOW__LOGGING__REMOTE_LOGGING",
            "AIRFLOW__LOGGING__REMOTE_LOG_CONN_ID",
            "AIRFLOW__SCHEDULER__CHILD_PROCESS_LOG_DIRECTORY",
        ],
        reason: "is set by the platform, which collects and stores the logs",
    },
    Group {
        names: &["HOME", "LOGNAME", "PATH", "TMPDIR", "USER"],
        reason: "is set by the platform, which determines the user and the directories of a deployment",
    },
    Group {
        names: &[
            "GCONV_PATH",
            "GLIBC_TUNABLES",
            "LD_AUDIT",
            "LD_DYNAMIC_WEAK",
            "LD_ORIGIN_PATH",
            "LD_PRELOAD",
            "LD_PROFILE",
            "LD_PROFILE_OUTPUT",
            "LD_SHOW_AUXV",
            "LD_TRACE_LOADED_OBJECTS",
        ],
        reason: "changes how programs are loaded, including those of the platform: `LD_LIBRARY_PATH` names directories of \
                 libraries",
    },
    Group {
        names: &[
            "PYTHONBREAKPOINT",
            "PYTHONCASEOK",
            "PYTHONEXECUTABLE",
            "PYTHONHOME",
            "PYTHONINSPECT",
            "PYTHONNOUSERSITE",
            "PYTHONPLATLIBDIR",
            "PYTHONPYCACHEPREFIX",
            "PYTHONSAFEPATH",
            "PYTHONSTARTUP",
            "PYTHONUSERBASE",
        ],
        reason: "changes how Python starts, including for the platform's own programs: `PYTHONPATH` names directories of \
                 modules",
    },
];

/// Why a variable that is not in a group by its name is refused, by how it begins.
const PREFIXES: &[(&str, &str)] = &[
    ("LD_DEBUG", "changes how programs are loaded, including those of the platform"),
    ("PODIUM_", "begins with `PODIUM_`, which is reserved for the platform's own variables"),
];

/// Why a variable is refused, in words that follow its name; also in the forms that name a command or a secret instead.
pub fn refused(key: &str) -> Option<&'static str> {
    let key = key.to_ascii_uppercase();
    let plain = key.strip_suffix("_CMD").or_else(|| key.strip_suffix("_SECRET")).unwrap_or(&key);
    let is_meant = |group: &&Group| group.names.iter().any(|name| *name == key || *name == plain);
    let by_name = GROUPS.iter().find(is_meant).map(|group| group.reason);
    let by_prefix = || PREFIXES.iter().find(|(prefix, _)| key.starts_with(prefix)).map(|(_, reason)| *reason);
    by_name.or_else(by_prefix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_platforms_own_keys_are_known_in_every_form() {
        for key in [
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN",
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN_CMD",
            "AIRFLOW__CORE__FERNET_KEY_SECRET",
            "airflow__core__executor",
            "AIRFLOW__WEBSERVER__SECRET_KEY",
            "AIRFLOW__CORE__AUTH_MANAGER",
            "AIRFLOW__API__PORT",
            "LD_PRELOAD",
            "LD_AUDIT",
            "LD_DEBUG",
            "LD_DEBUG_OUTPUT",
            "PYTHONSTARTUP",
            "PYTHONHOME",
            "PODIUM_ENVIRONMENT",
            "PODIUM_ANYTHING",
        ] {
            assert!(refused(key).is_some(), "{key}");
        }
        for key in [
            "AIRFLOW__CORE__PARALLELISM",
            "PYTHONPATH",
            "PYTHONWARNINGS",
            "LD_LIBRARY_PATH",
            "LD_SDK_KEY",
            "MY_SECRET",
            "AIRFLOW__CORE",
            "TZ",
        ] {
            assert_eq!(refused(key), None, "{key}");
        }
    }

    #[test]
    fn every_key_has_one_reason() {
        let mut all: Vec<&str> = GROUPS.iter().flat_map(|group| group.names).copied().collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
