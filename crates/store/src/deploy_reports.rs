//! Reports of deploys, written once when their rollout ends.

use podium_api::deploy_reports::RolloutReport;
use podium_api::{DeployId, DeploymentId, OrganizationId, Timestamp};
use podium_db::{Conn, Result, Row, Tx, params, statements};

use crate::columns::{Columns, document};
use crate::{Scope, Steward};

statements! {
    GET = "SELECT report, finished_at FROM deploy_reports \
        WHERE deploy_id = $1 AND deployment_id = $2 AND organization_id = $3";
    INSERT = "INSERT INTO deploy_reports (deploy_id, deployment_id, organization_id, report, finished_at) \
        SELECT id, deployment_id, organization_id, $4, $5 FROM deploys \
        WHERE id = $1 AND deployment_id = $2 AND organization_id = $3 ON CONFLICT (deploy_id) DO NOTHING";
    DELETE_OF_DEPLOYMENT = "DELETE FROM deploy_reports WHERE deployment_id = $1 AND organization_id = $2";
}

/// A report, and when the rollout ended.
pub type ReportRow = (RolloutReport, Timestamp);

/// Reads the report of a deploy; `None` if its rollout has not ended.
pub fn get(
    conn: &Conn,
    scope: &Scope,
    deployment_id: DeploymentId,
    deploy_id: DeployId,
) -> Result<Option<ReportRow>> {
    let read = |row: &Row<'_>| Ok((row.document(0)?, Timestamp::from_millis(row.get(1)?)));
    conn.query_opt(&GET, params![deploy_id.as_str(), deployment_id.as_str(), scope.organization()], read)
}

/// Adds the report of a deploy, unless it has one or is gone.
pub fn insert(
    tx: &Tx,
    _: &Steward,
    (organization_id, deployment_id, deploy_id): (OrganizationId, DeploymentId, DeployId),
    report: &RolloutReport,
    now: Timestamp,
) -> Result<()> {
    let report = document(report)?;
    let params =
        params![deploy_id.as_str(), deployment_id.as_str(), organization_id.as_str(), &report, now.millis()];
    tx.run(&INSERT, params)
}

pub(crate) fn delete_of_deployment(tx: &Tx, scope: &Scope, deployment_id: DeploymentId) -> Result<()> {
    tx.run(&DELETE_OF_DEPLOYMENT, params![deployment_id.as_str(), scope.organization()])
}
