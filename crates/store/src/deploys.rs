//! Deploys, and their uploads.

use podium_api::enums::{DeployStatus, DeployType, EventType, UploadKind};
use podium_api::{DeployId, DeploymentId, OrganizationId, SubjectId, Timestamp, UploadId, WorkspaceId};
use podium_db::{Conn, Result, Tx, params, statements};
use podium_domain::Target;
use podium_domain::deploys::{Details, expires_at};
use podium_domain::events::{NewEvent, Resource};

use crate::columns::{Columns, document};
use crate::listing::{Filter, Listed, Paging, Table, Total};
use crate::record::record;
use crate::stamp::{Stamp, stamp_joins};
use crate::{InScope, Scope, Steward, System};
use crate::{deploy_reports, events, staged_blocks, work};

/// The kind of their changes and their work items, which fail deploys that are not finalized.
pub const KIND: &str = "deploys";

record! {
    #[derive(Clone, Debug)]
    pub struct DeployRow as columns! {
        pub id: DeployId = id "t.id",
        pub organization_id: OrganizationId = id "t.organization_id",
        pub deployment_id: DeploymentId = id "t.deployment_id",
        pub kind: DeployType = word "t.type",
        /// How far it has come, as far as anybody has noticed.
        pub status: DeployStatus = word "t.status",
        pub image_tag: String = get "t.image_tag",
        /// The rest of it.
        pub details: Details = document "t.details",
        /// The rollback that it was current before.
        pub rolled_back_by: Option<DeployId> = id_opt "t.rolled_back_by",
        pub stamp: Stamp = stamp,
    }
}

record! {
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct UploadRow as upload_columns! {
        pub id: UploadId = id "id",
        pub kind: UploadKind = word "kind",
        pub bytes: i64 = get "bytes",
        /// The SHA-256 of it.
        pub sha256: String = get "sha256",
        pub object_key: String = get "object_key",
    }
}

const DEPLOYMENT: &str = "t.deployment_id = {}";
const ORGANIZATION: &str = "t.organization_id = {}";

pub(crate) const TABLE: Table = Table {
    name: "deploys",
    columns: columns!(),
    sorts: &[("createdAt", "created_at")],
    filters: &[DEPLOYMENT, ORGANIZATION],
    ..Table::NAMED
};

statements! {
    GET = concat!("SELECT ", columns!(), " FROM deploys t", stamp_joins!(),
        " WHERE t.id = $1 AND t.deployment_id = $2 AND t.organization_id = $3");
    STATE = concat!("SELECT ", columns!(), " FROM deploys t", stamp_joins!(), " WHERE t.id = $1");
    INSERT = "INSERT INTO deploys (id, organization_id, deployment_id, type, status, image_tag, details, version, \
        created_at, created_by, updated_at, updated_by) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";
    UPDATE = "UPDATE deploys SET status = $4, details = $5, version = version + 1, updated_at = $6, updated_by = $7 \
        WHERE id = $1 AND organization_id = $2 AND version = $3 AND status IN ($4, 'INITIALIZED')";
    LOCK = "UPDATE deploys SET version = version WHERE id = $1";
    LOCK_DEPLOYMENT = "UPDATE deployments SET version = version WHERE id = $1 AND organization_id = $2";
    FAIL = "UPDATE deploys SET status = 'FAILED' WHERE id = $1 AND status = 'INITIALIZED'";
    CANCEL = "UPDATE deploys SET status = 'FAILED', version = version + 1, updated_at = $4, updated_by = $5 \
        WHERE id = $1 AND deployment_id = $2 AND organization_id = $3 AND status = 'DEPLOYED'";
    ROLL_BACK = "UPDATE deploys SET rolled_back_by = $4, version = version + 1 \
        WHERE id = $1 AND deployment_id = $2 AND organization_id = $3 RETURNING version";
    TAKE_BACK_ROLLBACK = "UPDATE deploys SET rolled_back_by = NULL, version = version + 1 \
        WHERE deployment_id = $1 AND organization_id = $2 AND rolled_back_by = $3";
    RUNS = "UPDATE deploys SET has_run = TRUE WHERE id = $1 AND organization_id = $2 AND NOT has_run";
    FAIL_ROLLOUT = "UPDATE deploys SET status = 'FAILED', details = $2 WHERE id = $1 AND status = 'DEPLOYED'";
    DEPLOYED = concat!("SELECT ", columns!(), " FROM deploys t", stamp_joins!(),
        " WHERE t.deployment_id = $1 AND t.status = 'DEPLOYED' ORDER BY t.created_at DESC, t.id DESC LIMIT 50");
    DELETE_OF_DEPLOYMENT = "DELETE FROM deploys WHERE deployment_id = $1 AND organization_id = $2 \
        RETURNING id, status";
    UPLOADS = concat!("SELECT ", upload_columns!(), " FROM uploads WHERE deploy_id IN \
        (SELECT id FROM deploys WHERE id = $1 AND organization_id = $2) ORDER BY id");
    UPLOAD = concat!("SELECT ", upload_columns!(), " FROM uploads WHERE id = $1 AND deployment_id = $2");
    UPLOAD_IN = concat!("SELECT ", upload_columns!(), " FROM uploads WHERE id = $1 AND deployment_id IN \
        (SELECT id FROM deployments WHERE id = $2 AND organization_id = $3)");
    INSERT_UPLOAD = "INSERT INTO uploads (id, deployment_id, deploy_id, kind, bytes, unpacked, entries, sha256, \
        object_key, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
    DELETE_UPLOADS = "DELETE FROM uploads WHERE deploy_id = $1";
    DELETE_UPLOADS_OF_DEPLOYMENT = "DELETE FROM uploads WHERE deployment_id IN \
        (SELECT id FROM deployments WHERE id = $1 AND organization_id = $2)";
}

#[derive(Clone, Debug)]
pub struct NewUpload {
    pub id: UploadId,
    pub kind: UploadKind,
    /// How large it is, unpacked how large it is, and how many entries it has.
    pub sizes: [u64; 3],
    /// The SHA-256 of it.
    pub sha256: String,
    pub object_key: String,
    pub created_at: Timestamp,
}

/// Reads a page of a deployment's deploys, and how many there are.
pub fn list(
    conn: &Conn,
    scope: &Scope,
    deployment_id: DeploymentId,
    paging: &Paging,
) -> Result<Listed<DeployRow>> {
    let mut filter = Filter::new(DEPLOYMENT, deployment_id.as_str());
    filter.and(ORGANIZATION, Some(scope.organization()));
    TABLE.page(conn, filter, paging, Total::Count, DeployRow::read)
}

pub fn get(
    conn: &Conn,
    scope: &Scope,
    deployment_id: DeploymentId,
    id: DeployId,
) -> Result<Option<DeployRow>> {
    conn.query_opt(&GET, params![id.as_str(), deployment_id.as_str(), scope.organization()], DeployRow::read)
}

/// A deploy, and the proof that a scope has found it and its deployment.
pub type ProvenDeploy = (InScope<(DeploymentId, DeployId)>, DeployRow);

/// Reads a deploy together with the proof that the scope has found it; that of its deployment comes first.
pub fn proven(
    deployment: InScope<DeploymentId>,
    conn: &Conn,
    scope: &Scope,
    id: DeployId,
) -> Result<Option<ProvenDeploy>> {
    let deployment_id = *deployment.get();
    Ok(get(conn, scope, deployment_id, id)?.map(|row| (InScope::found((deployment_id, row.id)), row)))
}

/// Reads a deploy for the loops and for uploads, which belong to no caller.
pub fn state(conn: &Conn, _: &Steward, id: DeployId) -> Result<Option<DeployRow>> {
    conn.query_opt(&STATE, params![id.as_str()], DeployRow::read)
}

/// Holds a deployment until the end of the transaction, so that it is not deleted meanwhile.
pub fn lock_deployment(tx: &Tx, scope: &Scope, deployment_id: DeploymentId) -> Result<()> {
    tx.run(&LOCK_DEPLOYMENT, params![deployment_id.as_str(), scope.organization()])
}

/// Reads a deploy and holds it until the end of the transaction.
pub fn lock(tx: &Tx, system: &Steward, id: DeployId) -> Result<Option<DeployRow>> {
    tx.execute(&LOCK, params![id.as_str()])?;
    state(tx, system, id)
}

/// Adds a deploy; one that waits to be finalized is enqueued for its expiry.
pub fn insert(tx: &Tx, scope: &Scope, row: &DeployRow) -> Result<()> {
    let stamp = &row.stamp;
    let details = document(&row.details)?;
    let values = params![
        row.id.as_str(),
        scope.organization(),
        row.deployment_id.as_str(),
        row.kind.as_str(),
        row.status.as_str(),
        &row.image_tag,
        &details,
    ];
    tx.execute(&INSERT, &[values, &stamp.values()].concat())?;
    match row.status {
        DeployStatus::Initialized => {
            work::add(tx, KIND, row.id.id(), expires_at(stamp.created_at), stamp.created_at)
        }
        DeployStatus::Deployed | DeployStatus::Failed => Ok(()),
    }
}

/// Replaces a deploy whose version is still the one before its stamp's; one that no longer waits is not changed.
pub fn update(tx: &Tx, scope: &Scope, row: &DeployRow) -> Result<()> {
    let stamp = &row.stamp;
    let details = document(&row.details)?;
    let values = params![
        row.id.as_str(),
        scope.organization(),
        stamp.version - 1,
        row.status.as_str(),
        &details,
        stamp.updated_at.millis(),
        stamp.updated_by.id.as_str(),
    ];
    tx.run_on_one(&UPDATE, values)?;
    if row.status != DeployStatus::Initialized {
        work::cancel(tx, KIND, row.id.id())?;
        staged_blocks::forget_deploy(tx, row.id)?;
    }
    Ok(())
}

/// Fails a deploy that still waits, and deletes its uploads; returns whether it did.
pub fn fail(tx: &Tx, _: &Steward, id: DeployId) -> Result<bool> {
    if tx.execute(&FAIL, params![id.as_str()])? != 1 {
        return Ok(false);
    }
    tx.execute(&DELETE_UPLOADS, params![id.as_str()])?;
    staged_blocks::forget_deploy(tx, id)?;
    Ok(true)
}

/// Fails a deploy whose rollout was cancelled; returns whether it did.
pub fn cancel(
    tx: &Tx,
    scope: &Scope,
    deployment_id: DeploymentId,
    id: DeployId,
    (by, at): (SubjectId, Timestamp),
) -> Result<bool> {
    let params = params![id.as_str(), deployment_id.as_str(), scope.organization(), at.millis(), by.as_str()];
    Ok(tx.execute(&CANCEL, params)? == 1)
}

/// Marks the current deploy as the one that a rollback goes back from; returns its new version, if it is there.
pub fn mark_rolled_back(
    tx: &Tx,
    scope: &Scope,
    deployment_id: DeploymentId,
    id: DeployId,
    by: DeployId,
) -> Result<Option<i64>> {
    let params = params![id.as_str(), deployment_id.as_str(), scope.organization(), by.as_str()];
    tx.query_opt(&ROLL_BACK, params, |row| row.get(0))
}

/// Removes the mark of a rollback that did not come to be.
pub fn unmark_rolled_back(tx: &Tx, scope: &Scope, deployment_id: DeploymentId, by: DeployId) -> Result<()> {
    let params = params![deployment_id.as_str(), scope.organization(), by.as_str()];
    tx.run(&TAKE_BACK_ROLLBACK, params)
}

/// Fails a deploy whose rollout failed, with the reason in its details; returns whether it did.
pub fn fail_rollout(tx: &Tx, _: &Steward, id: DeployId, details: &Details) -> Result<bool> {
    Ok(tx.execute(&FAIL_ROLLOUT, params![id.as_str(), &document(details)?])? == 1)
}

/// The newest deploys of a deployment that were put into effect.
pub fn deployed(conn: &Conn, _: &Steward, deployment_id: DeploymentId) -> Result<Vec<DeployRow>> {
    conn.query(&DEPLOYED, params![deployment_id.as_str()], DeployRow::read)
}

/// Removes the deploys of a deployment, with all that was uploaded; the objects are removed afterwards.
pub fn delete_of_deployment(tx: &Tx, scope: &Scope, deployment_id: DeploymentId) -> Result<()> {
    // In this order: adding an upload locks its deploy, and a worker on a deploy settles its work last.
    let deleted =
        tx.query(&DELETE_OF_DEPLOYMENT, params![deployment_id.as_str(), scope.organization()], |row| {
            Ok((row.id(0)?, row.word::<DeployStatus>(1)?))
        })?;
    tx.execute(&DELETE_UPLOADS_OF_DEPLOYMENT, params![deployment_id.as_str(), scope.organization()])?;
    staged_blocks::forget_deployment(tx, scope, deployment_id)?;
    deploy_reports::delete_of_deployment(tx, scope, deployment_id)?;
    let waiting = deleted.iter().filter(|(_, status)| *status != DeployStatus::Deployed);
    waiting.into_iter().try_for_each(|(id, _)| work::cancel(tx, KIND, *id).map(drop))
}

/// Notes that a deploy was seen to run, and appends the event the first time.
pub fn note_running(
    tx: &Tx,
    scope: &Scope,
    id: DeployId,
    (deployment_id, workspace_id): (DeploymentId, WorkspaceId),
    now: Timestamp,
) -> Result<()> {
    if tx.execute(&RUNS, params![id.as_str(), scope.organization()])? != 1 {
        return Ok(());
    }
    let about = Resource::new(id.id(), Target::Deployment { id: deployment_id, workspace_id });
    let about = about.in_status(DeployStatus::Deployed.as_str(), None);
    let event = NewEvent::new(EventType::DeploySucceeded, scope.organization_id(), about, None);
    events::append(tx, scope, now, &event)
}

/// Appends the event of a deploy that failed although it had been put into effect, or because it never was.
pub fn append_failed(
    tx: &Tx,
    scope: &Scope,
    id: DeployId,
    (deployment_id, workspace_id): (DeploymentId, WorkspaceId),
    now: Timestamp,
) -> Result<()> {
    let about = Resource::new(id.id(), Target::Deployment { id: deployment_id, workspace_id });
    let about = about.in_status(DeployStatus::Failed.as_str(), None);
    let event = NewEvent::new(EventType::DeployFailed, scope.organization_id(), about, None);
    events::append(tx, scope, now, &event)
}

pub fn uploads(conn: &Conn, scope: &Scope, deploy_id: DeployId) -> Result<Vec<UploadRow>> {
    conn.query(&UPLOADS, params![deploy_id.as_str(), scope.organization()], UploadRow::read)
}

pub fn upload(
    conn: &Conn,
    _: &Steward,
    deployment_id: DeploymentId,
    version: &str,
) -> Result<Option<UploadRow>> {
    conn.query_opt(&UPLOAD, params![version, deployment_id.as_str()], UploadRow::read)
}

/// The upload of a deployment with this version, for a caller.
pub fn upload_in(
    conn: &Conn,
    scope: &Scope,
    deployment: InScope<DeploymentId>,
    version: &str,
) -> Result<Option<InScope<UploadRow>>> {
    let params = params![version, deployment.get().as_str(), scope.organization()];
    Ok(conn.query_opt(&UPLOAD_IN, params, UploadRow::read)?.map(InScope::found))
}

pub fn insert_upload(tx: &Tx, _: &System, deploy: &DeployRow, upload: &NewUpload) -> Result<()> {
    let [bytes, unpacked, entries] = upload.sizes.map(u64::cast_signed);
    let values = params![
        upload.id.as_str(),
        deploy.deployment_id.as_str(),
        deploy.id.as_str(),
        upload.kind.as_str(),
        bytes,
        unpacked,
        entries,
        &upload.sha256,
        &upload.object_key,
        upload.created_at.millis(),
    ];
    tx.run(&INSERT_UPLOAD, values)
}
