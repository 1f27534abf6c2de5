//! Deploys: what may be deployed, what must be uploaded for it, and what the deployment runs afterwards.
//!
//! A deploy records the whole desired state of the deployment at the time it was finalized, so that a rollback can
//! restore it without reading the deploys in between.

pub(crate) mod bundles;
mod create;
mod finalize;
mod git;
mod images;
pub mod reports;
mod revert;

use std::time::Duration;

use podium_api::deploys::DeployGit;
use podium_api::enums::{DeployReportState, DeployStatus, DeployType, UploadKind};
use podium_api::{DeployId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::deployments::{Bundle, Release, Spec};
use crate::refusal::{Refusal, Result};

pub use create::{DeployConditions, may_deploy, new};
pub use finalize::{Waiting, apply, is_strict, outcome, roll_back_to, was_finalized_with};
pub use images::{image_repository, image_tag};
pub use revert::{is_running, want_what_serves};

/// How long a deploy waits to be finalized.
pub const LIFETIME: Duration = Duration::from_hours(24);
/// How many archives can be uploaded for one deploy.
pub const MOST_UPLOADS: usize = 20;

/// The remaining fields of a deploy, stored as one document. Fields are added with `#[serde(default)]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Details {
    pub description: String,
    pub asked_runtime: Option<String>,
    /// The runtime that the deployment had when it was created.
    pub runtime_version: String,
    /// Whether DAGs were deployed apart from images then.
    pub is_dag_deploy_enabled: bool,
    pub bundle_type: Option<String>,
    pub bundle_mount_path: Option<String>,
    pub git: Option<DeployGit>,
    /// The deploy that it brings back.
    pub rollback_from_id: Option<DeployId>,
    pub finalized_with: Option<Versions>,
    /// What the deployment wanted afterwards.
    pub outcome: Option<Outcome>,
    /// Why its rollout failed, if it did: a text for users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wakes: bool,
}

/// The versions that a deploy is finalized with: absent, empty, or the version of an upload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Versions {
    /// Of the DAGs.
    pub dags: String,
    pub bundle: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub strict: bool,
}

/// Everything that a rollback restores.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Outcome {
    pub image_tag: String,
    pub runtime_version: String,
    pub dag_version: Option<String>,
    pub bundles: Vec<Bundle>,
    /// Whether DAGs are deployed apart from images.
    pub is_dag_deploy_enabled: bool,
}

impl Outcome {
    /// What a deployment wants.
    fn of(spec: &Spec) -> Self {
        let Release { image_tag, dag_version, bundles, .. } = spec.release.clone();
        let (runtime_version, is_dag_deploy_enabled) =
            (spec.runtime_version.clone(), spec.is_dag_deploy_enabled);
        Self { image_tag, runtime_version, dag_version, bundles, is_dag_deploy_enabled }
    }
}

/// What is uploaded for a deploy, if anything is.
pub const fn upload_of(kind: DeployType, is_dag_deploy_enabled: bool) -> Option<UploadKind> {
    match kind {
        DeployType::Bundle => Some(UploadKind::Bundle),
        DeployType::ImageAndDag | DeployType::DagOnly if is_dag_deploy_enabled => Some(UploadKind::Dags),
        DeployType::ImageAndDag | DeployType::DagOnly | DeployType::ImageOnly => None,
    }
}

const fn has_image(kind: DeployType) -> bool {
    matches!(kind, DeployType::ImageAndDag | DeployType::ImageOnly)
}

/// When a deploy that was created then fails, unless it is finalized before.
pub fn expires_at(created_at: Timestamp) -> Timestamp {
    created_at + LIFETIME
}

/// The status of a deploy: one that was not finalized in time has failed, whether that is recorded yet or not.
pub fn status(stored: DeployStatus, created_at: Timestamp, now: Timestamp) -> DeployStatus {
    match stored {
        DeployStatus::Initialized if expires_at(created_at) <= now => DeployStatus::Failed,
        stored => stored,
    }
}

/// How far the rollout of a deploy has come: whether a report was written when it ended, and whether the deployment wants
/// it.
pub fn report_state(status: DeployStatus, is_reported: bool, is_wanted: bool) -> DeployReportState {
    match (status, is_reported, is_wanted) {
        (DeployStatus::Initialized, ..) => DeployReportState::Waiting,
        (DeployStatus::Failed, ..) => DeployReportState::Failed,
        (DeployStatus::Deployed, true, _) => DeployReportState::Live,
        (DeployStatus::Deployed, false, true) => DeployReportState::RollingOut,
        (DeployStatus::Deployed, false, false) => DeployReportState::Superseded,
    }
}

/// Refuses an upload for a deploy that takes none any more; one without a status went with its deployment.
pub fn may_upload(status: Option<DeployStatus>, uploads: usize) -> Result<()> {
    let dead = |why: &str| Err(Refusal::Forbidden(format!("This upload URL no longer works: {why}.")));
    match status {
        None => dead("its deployment has been deleted. Create a deploy of another deployment"),
        Some(DeployStatus::Deployed) => dead("its deploy has been finalized. Create another deploy"),
        Some(DeployStatus::Failed) => dead("its deploy has failed. Create another deploy"),
        Some(DeployStatus::Initialized) if uploads >= MOST_UPLOADS => {
            let message = format!("A deploy takes at most {MOST_UPLOADS} uploads: create another deploy.");
            Err(Refusal::invalid(message))
        }
        Some(DeployStatus::Initialized) => Ok(()),
    }
}

/// Bytes that were sent and wait to be finalized, as a multiple of the largest archive: for a deploy, a deployment and
/// an organization.
const MOST_PENDING: [u64; 3] = [2, 4, 16];
/// How many blocks and archives of an organization wait at most.
const MOST_PENDING_OBJECTS: u64 = 20_000;

/// Uploads that wait to be finalized, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pending {
    pub deploy: u64,
    pub deployment: u64,
    pub organization: u64,
    /// How many blocks and archives of the organization that is.
    pub objects: u64,
}

impl Pending {
    /// The message if a limit is exceeded; `archive` is the maximum size of an archive.
    pub fn too_much(&self, archive: u64) -> Option<String> {
        let found = [self.deploy, self.deployment, self.organization];
        let named = ["this deploy", "deploys of this deployment", "deploys of this organization"];
        let mut parts = found.into_iter().zip(MOST_PENDING).zip(named);
        let over = parts.find(|((found, times), _)| *found > archive.saturating_mul(*times));
        let what = match over {
            Some(((_, times), of)) => {
                format!("more than {} bytes of {of}", archive.saturating_mul(times))
            }
            None if self.objects > MOST_PENDING_OBJECTS => {
                format!("more than {MOST_PENDING_OBJECTS} blocks and archives of this organization")
            }
            None => return None,
        };
        Some(format!(
            "Too many uploads are waiting to be finalized: {what} would be pending. Finalize the pending deploys; the others \
             end {} hours after they were created.",
            LIFETIME.as_secs() / 3600
        ))
    }
}

#[cfg(test)]
pub(crate) mod fixtures;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_upload_kind_follows_from_the_deploy_type() {
        use DeployType::{Bundle, DagOnly, ImageAndDag, ImageOnly};
        let table = [
            (ImageAndDag, true, Some(UploadKind::Dags)),
            (DagOnly, true, Some(UploadKind::Dags)),
            (ImageOnly, true, None),
            (Bundle, true, Some(UploadKind::Bundle)),
            (ImageAndDag, false, None),
            (DagOnly, false, None),
            (ImageOnly, false, None),
            (Bundle, false, Some(UploadKind::Bundle)),
        ];
        for (kind, enabled, expected) in table {
            assert_eq!(upload_of(kind, enabled), expected, "{kind} {enabled}");
        }
    }

    #[test]
    fn an_unfinalized_deploy_fails_after_a_day() {
        use DeployStatus::{Deployed, Failed, Initialized};
        let created = Timestamp::from_millis(1_800_000_000_000);
        let day = LIFETIME;
        let table = [
            (Initialized, Duration::ZERO, Initialized),
            (Initialized, day - Duration::from_millis(1), Initialized),
            (Initialized, day, Failed),
            (Deployed, day * 9, Deployed),
            (Failed, Duration::ZERO, Failed),
        ];
        for (stored, after, expected) in table {
            assert_eq!(status(stored, created, created + after), expected, "{stored} after {after:?}");
        }
    }

    #[test]
    fn pending_uploads_are_bounded_for_deploys_deployments_and_organizations() {
        let most = Pending { deploy: 200, deployment: 400, organization: 1600, objects: 20_000 };
        assert_eq!(most.too_much(100), None);
        for (pending, what) in [
            (Pending { deploy: 201, ..most }, "more than 200 bytes of this deploy would be pending"),
            (Pending { deployment: 401, ..most }, "more than 400 bytes of deploys of this deployment would"),
            (Pending { organization: 1601, ..most }, "more than 1600 bytes of deploys of this organization"),
            (Pending { objects: 20_001, ..most }, "more than 20000 blocks and archives of this organization"),
        ] {
            let said = pending.too_much(100).unwrap();
            assert!(said.contains(what) && said.ends_with("24 hours after they were created."), "{said}");
        }
    }

    #[test]
    fn only_a_deploy_that_waits_takes_uploads() {
        let refused = |status, uploads| may_upload(Some(status), uploads).unwrap_err();
        assert_eq!(may_upload(Some(DeployStatus::Initialized), MOST_UPLOADS - 1), Ok(()));
        assert_eq!(refused(DeployStatus::Initialized, MOST_UPLOADS).status(), 400);
        assert_eq!(
            refused(DeployStatus::Deployed, 0).message(),
            "This upload URL no longer works: its deploy has been finalized. Create another deploy."
        );
        assert_eq!(refused(DeployStatus::Failed, 0).status(), 403);
        assert_eq!(may_upload(None, 0).unwrap_err().status(), 403);
    }
}
