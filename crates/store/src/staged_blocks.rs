//! Staged blocks of archives that are not assembled yet, and the totals of pending uploads.

use podium_api::enums::UploadKind;
use podium_api::{DeployId, DeploymentId};
use podium_db::{Conn, Result, Tx, params, statements};
use podium_domain::deploys::Pending;

use crate::deploys::DeployRow;
use crate::{Scope, System};

statements! {
    PUT = "INSERT INTO staged_blocks (deploy_id, kind, block, deployment_id, organization_id, bytes) \
        VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (deploy_id, kind, block) DO UPDATE SET bytes = excluded.bytes";
    FORGET_ARCHIVE = "DELETE FROM staged_blocks WHERE deploy_id = $1 AND kind = $2";
    FORGET_DEPLOY = "DELETE FROM staged_blocks WHERE deploy_id = $1";
    FORGET_DEPLOYMENT = "DELETE FROM staged_blocks WHERE deployment_id = $1 AND organization_id = $2";
    STAGED = "SELECT CAST(COALESCE(SUM(CASE WHEN deploy_id = $1 THEN bytes ELSE 0 END), 0) AS BIGINT), \
        CAST(COALESCE(SUM(CASE WHEN deployment_id = $2 THEN bytes ELSE 0 END), 0) AS BIGINT), \
        CAST(COALESCE(SUM(bytes), 0) AS BIGINT), COUNT(*) FROM staged_blocks WHERE organization_id = $3";
    UPLOADED = "SELECT CAST(COALESCE(SUM(CASE WHEN u.deploy_id = $1 THEN u.bytes ELSE 0 END), 0) AS BIGINT), \
        CAST(COALESCE(SUM(CASE WHEN u.deployment_id = $2 THEN u.bytes ELSE 0 END), 0) AS BIGINT), \
        CAST(COALESCE(SUM(u.bytes), 0) AS BIGINT), COUNT(*) FROM deploys d JOIN uploads u ON u.deploy_id = d.id \
        WHERE d.organization_id = $3 AND d.status = 'INITIALIZED'";
}

/// Adds a block of an archive, or replaces the one with the same id.
pub fn put(tx: &Tx, _: &System, deploy: &DeployRow, kind: UploadKind, block: &str, bytes: u64) -> Result<()> {
    let DeployRow { id, deployment_id, organization_id, .. } = deploy;
    let values = params![
        id.as_str(),
        kind.as_str(),
        block,
        deployment_id.as_str(),
        organization_id.as_str(),
        bytes.cast_signed(),
    ];
    tx.run(&PUT, values)
}

pub fn forget_archive(tx: &Tx, _: &System, deploy_id: DeployId, kind: UploadKind) -> Result<()> {
    tx.run(&FORGET_ARCHIVE, params![deploy_id.as_str(), kind.as_str()])
}

pub(crate) fn forget_deploy(tx: &Tx, deploy_id: DeployId) -> Result<()> {
    tx.run(&FORGET_DEPLOY, params![deploy_id.as_str()])
}

pub(crate) fn forget_deployment(tx: &Tx, scope: &Scope, deployment_id: DeploymentId) -> Result<()> {
    tx.run(&FORGET_DEPLOYMENT, params![deployment_id.as_str(), scope.organization()])
}

/// Uploads that wait to be finalized: of a deploy, its deployment and its organization.
pub fn pending(conn: &Conn, _: &System, deploy: &DeployRow) -> Result<Pending> {
    let mut sums = [0_u64; 4];
    for statement in [&STAGED, &UPLOADED] {
        let found = conn.query_one(
            statement,
            params![deploy.id.as_str(), deploy.deployment_id.as_str(), deploy.organization_id.as_str()],
            |row| Ok([row.get::<i64>(0)?, row.get::<i64>(1)?, row.get::<i64>(2)?, row.get::<i64>(3)?]),
        )?;
        for (sum, found) in sums.iter_mut().zip(found) {
            *sum = sum.saturating_add(u64::try_from(found).unwrap_or(0));
        }
    }
    let [deploy, deployment, organization, objects] = sums;
    Ok(Pending { deploy, deployment, organization, objects })
}
