//! Reports of deploys: what changed, what is broken, and how long it took.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::enums::{DeployReportState, DeployStep};
use crate::path::OfDeploy;
use crate::reply::Many;
use crate::{DeployId, Timestamp};

endpoints! {
    tag "Deploy";

    /// Get the report of a deploy
    Get: GET "/organizations/{organizationId}/deployments/{deploymentId}/deploys/{deployId}/report"
        as "GetDeployReport" {
        path: OfDeploy, reply: Many<DeployReport>,
        permission: "deployment.deploys.get",
    }
}

wire! {
    /// What came of a deploy.
    pub struct DeployReport {
        /// The deploy.
        pub deploy_id: DeployId,
        /// How far its rollout has come.
        pub state: DeployReportState,
        /// Why the deploy failed.
        pub reason: Option<String>,
        /// When its rollout ended.
        pub finished_at: Option<Timestamp>,
        /// The rollback that it was current before, if it was rolled back from.
        pub rolled_back_by_id: Option<DeployId>,
        /// The files of its DAGs that differ from the files that ran before.
        pub files: Option<ReportedChanges>,
        /// The DAGs that differ from the DAGs before, according to Airflow.
        pub dags: Option<ReportedChanges>,
        /// The files that Airflow could not import; at most 50.
        pub import_errors: Vec<ReportedImportError>,
        /// How many files Airflow could not import.
        pub import_error_count: u64,
        /// Whether Airflow has read every file; if not, DAGs and import errors may be incomplete.
        pub is_parsed: Option<bool>,
        /// How long each step of its rollout took.
        pub steps: Vec<ReportedStep>,
    }
}

/// The findings of a data plane about a rollout.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RolloutReport {
    /// The files that differ.
    pub files: Option<ReportedChanges>,
    /// The DAGs that differ.
    pub dags: Option<ReportedChanges>,
    /// What could not be imported.
    pub import_errors: Vec<ReportedImportError>,
    /// How many files could not be imported.
    pub import_error_count: u64,
    /// Whether every file was read.
    pub is_parsed: Option<bool>,
    /// How long each step took.
    pub steps: Vec<ReportedStep>,
}

wire! {
    /// What differs: at most 200 names of each kind, and how many there are.
    #[derive(Default, PartialEq, Eq)]
    pub struct ReportedChanges {
        /// Names that are new.
        pub added: Vec<String>,
        /// Names whose content has changed.
        pub changed: Vec<String>,
        /// Names that are gone.
        pub removed: Vec<String>,
        /// Number of new names.
        pub added_count: u64,
        /// Number of changed names.
        pub changed_count: u64,
        /// Number of names that are gone.
        pub removed_count: u64,
    }

    /// A file that Airflow could not import, as Airflow describes it.
    #[derive(PartialEq, Eq)]
    pub struct ReportedImportError {
        /// The file, relative to the DAGs.
        pub file: String,
        /// The line, if it is known.
        pub line: Option<u32>,
        /// The error.
        pub message: String,
        /// The traceback of the error.
        pub traceback: String,
        /// The DAGs that the file had before, if the deploy failed because of them; at most 20.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub dag_ids: Vec<String>,
    }

    /// How long a step took.
    #[derive(Copy, PartialEq, Eq)]
    pub struct ReportedStep {
        /// The step.
        pub step: DeployStep,
        /// How long it took.
        pub milliseconds: u64,
    }
}
