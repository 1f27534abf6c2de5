//! The role that a caller gets inside Apache Airflow: the lowest that allows what its permissions allow.
//!
//! It is a second line of defence. Airflow's roles are coarser than permissions (a role that may read connections
//! there may also change them), so the tables decide first, request by request.

use std::sync::LazyLock;

use crate::permissions::{Permission, PermissionSet};

/// A role of Apache Airflow, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AirflowRole {
    /// Reads DAGs and what comes of them.
    Viewer,
    /// Also acts on DAGs.
    User,
    /// Also handles connections, variables, pools and the configuration.
    Op,
    Admin,
}

impl AirflowRole {
    /// Its name in Airflow 3.
    pub fn upper(self) -> String {
        self.title().to_ascii_uppercase()
    }

    /// Its name in Airflow 2.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Viewer => "Viewer",
            Self::User => "User",
            Self::Op => "Op",
            Self::Admin => "Admin",
        }
    }

    /// The lowest role that covers the permissions on a deployment or its DAGs.
    pub fn least_for(held: PermissionSet) -> Self {
        if held.contains_all(*ALL) {
            return Self::Admin;
        }
        held.iter().map(least_for_one).max().unwrap_or(Self::Viewer)
    }
}

/// Every right inside Airflow.
static ALL: LazyLock<PermissionSet> =
    LazyLock::new(|| Permission::all().filter(|permission| inside(*permission).is_some()).collect());

/// The name of a right on the deployment inside Airflow, such as `pool.get`.
fn inside(permission: Permission) -> Option<&'static str> {
    permission.name().strip_prefix("deployment.airflow.")
}

fn least_for_one(permission: Permission) -> AirflowRole {
    let Some(name) = inside(permission).or_else(|| permission.name().strip_prefix("dag.airflow.")) else {
        return AirflowRole::Viewer;
    };
    let (thing, verb) = name.split_once('.').unwrap_or((name, ""));
    match (thing, verb) {
        ("adminMenu" | "config" | "connection" | "plugin" | "provider" | "variable", _) => AirflowRole::Op,
        (_, "get") => AirflowRole::Viewer,
        ("pool", _) | ("xcom", "delete") => AirflowRole::Op,
        _ => AirflowRole::User,
    }
}
