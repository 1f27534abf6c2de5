//! Deploys: created, uploaded to, finalized, and rolled back to.

pub(crate) mod expiry;
mod shown;
pub(crate) mod uploads;

use std::sync::{Arc, OnceLock};

use podium_api::deploys::{self as api, Deploy, DeployGit, DeploysPaginated};
use podium_api::enums::{DeployStatus, DeploymentStatus, OperationKind};
use podium_api::path::OfDeploy;
use podium_api::{DeployId, DeploymentId, Many, One};
use podium_db::{Conn, Tx};
use podium_domain::deployments::hibernation;
use podium_domain::deploys::{self as rules, DeployConditions, Details, Outcome, Waiting};
use podium_domain::events::{Resource, of_deployment_status};
use podium_domain::{Permission, Refusal, UserText, names};
use podium_store::deployments::{self, DeploymentRow};
use podium_store::deploys::{self, DeployRow, ProvenDeploy};
use podium_store::{InScope, Paging, Scope, Stamp};

use crate::cx::{Call, Cx};
use crate::deployments::{about as about_deployment, changed, find as find_deployment, wake};
use crate::error::Result;
use crate::operations;
use shown::Place;

pub use expiry::{ExpiryOutcome, expire};
pub(crate) use uploads::measure_uploads;
pub use uploads::{Part, Receiving, Ticket};

const CREATE: Permission = Permission::known("deployment.deploys.create");
const WAKE: Permission = Permission::known("deployment.update");

pub async fn list(cx: Cx<Scope>, call: Call<api::List>) -> Result<Many<DeploysPaginated>> {
    let id = call.path.deployment_id;
    let read = move |cx: &Cx<Scope>, conn: &Conn, paging: &Paging| {
        let deployment = find_deployment(conn, cx.scope(), id)?;
        let place = Place::of(cx, &deployment);
        let (rows, total) = deploys::list(conn, cx.scope(), id, paging)?;
        Ok((rows.into_iter().map(|row| place.show(row)).collect::<Vec<_>>(), total))
    };
    cx.list(&call.query.page, read, |deploy| deploy).await
}

/// Creates a deploy, and returns its upload URLs.
pub async fn create(cx: Cx<Scope>, call: Call<api::Create>) -> Result<One<Deploy>> {
    let (deployment_id, body) = (call.path.deployment_id, call.body);
    let (id, image_tag) = (cx.new_id(), new_image_tag(&cx));
    let stamp = Stamp::new(cx.profile(), cx.now());
    let wakes = body.wake.unwrap_or_default();
    let may = move |cx: &Cx<Scope>, _: &Tx| may_wake(cx, wakes);
    cx.mutate_where(may, move |cx, tx| {
        may_wake(cx, wakes)?;
        deploys::lock_deployment(tx, cx.scope(), deployment_id)?;
        let mut deployment = find_deployment(tx, cx.scope(), deployment_id)?;
        cx.expect_version(deployment.stamp.version)?;
        rules::may_deploy(conditions(cx, &deployment, wakes))?;
        let row = DeployRow {
            id,
            organization_id: cx.organization_id(),
            deployment_id,
            kind: body.kind,
            status: DeployStatus::Initialized,
            image_tag: image_tag.clone(),
            details: rules::new(&body, &deployment.spec, runs_images(cx, &deployment))?,
            rolled_back_by: None,
            stamp: stamp.clone(),
        };
        if wakes {
            deployment = wake(cx, tx, deployment)?;
        }
        deploys::insert(tx, cx.scope(), &row)?;
        cx.changed(tx, deploys::KIND, stamp.version, about(cx, &row))?;
        let urls = uploads::urls(cx.app(), &row);
        let mut deploy = Place::of(cx, &deployment).show(row);
        (deploy.dags_upload_url, deploy.bundle_upload_url) = urls;
        Ok(One { version: stamp.version, body: deploy })
    })
    .await
}

pub async fn get(cx: Cx<Scope>, call: Call<api::Get>) -> Result<One<Deploy>> {
    cx.read(move |cx, conn| {
        let (deployment, row) = find(conn, cx.scope(), &call.path)?;
        Ok(answer(cx, &deployment, row))
    })
    .await
}

pub async fn update(cx: Cx<Scope>, call: Call<api::Update>) -> Result<One<Deploy>> {
    cx.mutate(move |cx, tx| {
        let (deployment, mut row) = find(tx, cx.scope(), &call.path)?;
        cx.expect_version(row.stamp.version)?;
        if let Some(description) = &call.body.description {
            row.details.description.clone_from(description);
        }
        let row = advance(cx, tx, row)?;
        Ok(answer(cx, &deployment, row))
    })
    .await
}

/// Puts a deploy into effect: its content becomes the deployment's desired state.
pub async fn finalize(cx: Cx<Scope>, call: Call<api::Finalize>) -> Result<One<Deploy>> {
    let Call { path, body, .. } = call;
    let deploy_id = path.deploy_id;
    let staged = Arc::new(OnceLock::new());
    let (of_repeated, of_finalized) = (Arc::clone(&staged), Arc::clone(&staged));
    let may = move |cx: &Cx<Scope>, tx: &Tx| {
        let (_, (proof, row)) = proven(tx, cx.scope(), &path)?;
        of_repeated.get_or_init(|| proof);
        is_permitted(cx, &row)
    };
    let finalized = cx
        .mutate_where(may, move |cx, tx| {
            let ((_, deployment), (proof, mut row)) = proven(tx, cx.scope(), &path)?;
            of_finalized.get_or_init(|| proof);
            is_permitted(cx, &row)?;
            cx.expect_version(row.stamp.version)?;
            match rules::status(row.status, row.stamp.created_at, cx.now()) {
                DeployStatus::Deployed => {
                    rules::was_finalized_with(&row.details, &body)?;
                    return Ok(answer(cx, &deployment, row));
                }
                DeployStatus::Failed => {
                    let message = match (&row.details.failure, &row.details.outcome) {
                        (Some(_), _) => "The deploy failed because it could not go live: create another one.",
                        (None, Some(_)) => "The deploy was cancelled: create another one.",
                        (None, None) => {
                            "The deploy failed because it was not finalized in time: create another one."
                        }
                    };
                    return Err(Refusal::invalid(message).into());
                }
                DeployStatus::Initialized => {}
            }
            // It may have fallen asleep again since the deploy was created.
            let wakes = row.details.wakes && is_asleep(cx, &deployment);
            may_wake(cx, wakes)?;
            rules::may_deploy(conditions(cx, &deployment, row.details.wakes))?;
            let uploaded = deploys::uploads(tx, cx.scope(), row.id)?;
            let uploaded: Vec<_> = uploaded.iter().map(|upload| (upload.kind, upload.id)).collect();
            let waiting = Waiting {
                id: row.id,
                kind: row.kind,
                image_tag: &row.image_tag,
                details: &row.details,
                uploaded: &uploaded,
                runs_images: runs_images(cx, &deployment),
            };
            let (outcome, versions) = rules::outcome(waiting, &body, &deployment.spec)?;
            let reason = UserText::new("A deploy is rolling out.");
            let kind = match outcome.runtime_version == deployment.spec.runtime_version {
                true => OperationKind::Deploy,
                false => OperationKind::RuntimeUpgrade,
            };
            let git = row.details.git.clone();
            let is_strict = rules::is_strict(&body, &deployment.spec);
            let release = NewRelease { deploy_id: row.id, kind, git, is_strict, wakes };
            let deployment = want(cx, tx, deployment, release, &outcome, reason)?;
            row.status = DeployStatus::Deployed;
            row.details.outcome = Some(outcome);
            row.details.finalized_with = Some(versions);
            let row = advance(cx, tx, row)?;
            Ok(answer(cx, &deployment, row))
        })
        .await?;
    let app = cx.app().clone();
    let discard = async move {
        let Some(deploy) = staged.get() else { return };
        if let Err(error) = app.discard_staged(*deploy).await {
            tracing::warn!(%error, %deploy_id, "could not remove the staged blocks of a deploy");
        }
    };
    if podium_db::joined::is_joined() {
        crate::plans::once_committed(move || drop(tokio::spawn(discard)));
    } else {
        discard.await;
    }
    Ok(finalized)
}

/// Rolls back to a deploy, with a new deploy that restores its state.
pub async fn rollback(cx: Cx<Scope>, call: Call<api::Rollback>) -> Result<One<Deploy>> {
    let Call { path, body, .. } = call;
    let (id, image_tag) = (cx.new_id(), new_image_tag(&cx));
    let stamp = Stamp::new(cx.profile(), cx.now());
    cx.mutate(move |cx, tx| {
        let (deployment, target) = find(tx, cx.scope(), &path)?;
        cx.expect_version(target.stamp.version)?;
        rules::may_deploy(conditions(cx, &deployment, false))?;
        let status = rules::status(target.status, target.stamp.created_at, cx.now());
        let current = deployment.spec.release.deploy_id;
        let outcome = rules::roll_back_to(target.id, status, &target.details, current)?;
        let reason = UserText::new("A rollback is rolling out.");
        let git = target.details.git.clone();
        let kind = OperationKind::Rollback;
        // Going back is never held up by what it goes back to.
        let release = NewRelease { deploy_id: id, kind, git, is_strict: false, wakes: false };
        let deployment = want(cx, tx, deployment, release, &outcome, reason)?;
        if let Some(current) = current {
            let version = deploys::mark_rolled_back(tx, cx.scope(), deployment.id, current, id)?;
            if let Some(version) = version {
                cx.logged(tx, deploys::KIND, current.id(), version)?;
            }
        }
        let row = DeployRow {
            id,
            image_tag: image_tag.clone(),
            status: DeployStatus::Deployed,
            details: Details {
                description: body.description.clone().unwrap_or_default(),
                rollback_from_id: Some(target.id),
                finalized_with: None,
                outcome: Some(outcome),
                wakes: false,
                ..target.details
            },
            rolled_back_by: None,
            stamp: stamp.clone(),
            ..target
        };
        deploys::insert(tx, cx.scope(), &row)?;
        cx.changed(tx, deploys::KIND, stamp.version, about(cx, &row))?;
        Ok(answer(cx, &deployment, row))
    })
    .await
}

/// Who may only create deploys may finalize its own.
fn is_permitted(cx: &Cx<Scope>, row: &DeployRow) -> Result<()> {
    if cx.scope().permission() != Some(CREATE) || row.stamp.created_by.id == cx.subject_id() {
        return Ok(());
    }
    let message = "You may finalize the deploys that you created, and this one is somebody else's: the permission \
        `deployment.deploys.update` is for all of them.";
    Err(Refusal::Forbidden(message.into()).into())
}

fn conditions(cx: &Cx<Scope>, deployment: &DeploymentRow, wakes: bool) -> DeployConditions {
    DeployConditions {
        is_api_token: cx.authority().is_api_token(),
        status: deployment.status,
        is_hibernating: is_asleep(cx, deployment),
        is_cicd_enforced: deployment.spec.is_cicd_enforced,
        wakes,
    }
}

fn runs_images(cx: &Cx<Scope>, deployment: &DeploymentRow) -> bool {
    cx.app().observer.get().is_none_or(|observer| observer.runs_images(deployment.location().plane()))
}

fn is_asleep(cx: &Cx<Scope>, deployment: &DeploymentRow) -> bool {
    let spec = &deployment.spec;
    hibernation::state(&spec.hibernation, spec.is_development_mode, cx.now()).is_hibernating
}

/// Who wakes a deployment with a deploy needs the right to wake it.
fn may_wake(cx: &Cx<Scope>, wakes: bool) -> Result<()> {
    if wakes { cx.require(WAKE, cx.scope().target()) } else { Ok(()) }
}

/// What a deploy makes of its deployment, beside its outcome.
struct NewRelease {
    deploy_id: DeployId,
    kind: OperationKind,
    git: Option<DeployGit>,
    is_strict: bool,
    wakes: bool,
}

/// Makes the deployment want what came of a deploy.
fn want(
    cx: &Cx<Scope>,
    tx: &Tx,
    deployment: DeploymentRow,
    release: NewRelease,
    outcome: &Outcome,
    reason: UserText,
) -> Result<DeploymentRow> {
    let NewRelease { deploy_id, kind, git, is_strict, wakes } = release;
    let undo = operations::undo_to(&deployment);
    let mut deployment = changed(cx, deployment);
    if deployment.status == DeploymentStatus::Deploying {
        deployment.status_reason = reason;
    }
    rules::apply(&mut deployment.spec, deploy_id, outcome, git);
    deployment.spec.release.is_strict = is_strict;
    if wakes {
        let hibernation = &mut deployment.spec.hibernation;
        hibernation.override_ = hibernation::awake(hibernation, cx.now());
    }
    deployments::update(tx, cx.scope(), &deployment, &names::fold(&deployment.name))?;
    operations::begin(cx, tx, kind, operations::of_deployment(&deployment), Some(undo))?;
    cx.logged(tx, deployments::KIND, deployment.id.id(), deployment.stamp.version)?;
    let status = (deployment.status, &deployment.status_reason);
    let about = about_deployment(&deployment).in_status(status.0.as_str(), Some(status.1));
    cx.event_of(tx, of_deployment_status(status.0), about)?;
    Ok(deployment)
}

fn advance(cx: &Cx<Scope>, tx: &Tx, mut row: DeployRow) -> Result<DeployRow> {
    row.stamp = row.stamp.changed(cx.profile(), cx.now());
    deploys::update(tx, cx.scope(), &row)?;
    cx.changed(tx, deploys::KIND, row.stamp.version, about(cx, &row))?;
    Ok(row)
}

/// A deploy, as an event names it: where its endpoints were admitted, and without a name.
fn about(cx: &Cx<Scope>, row: &DeployRow) -> Resource<'static> {
    Resource::new(row.id.id(), cx.scope().target()).in_status(row.status.as_str(), None)
}

fn answer(cx: &Cx<Scope>, deployment: &DeploymentRow, row: DeployRow) -> One<Deploy> {
    One { version: row.stamp.version, body: Place::of(cx, deployment).show(row) }
}

fn new_image_tag(cx: &Cx<Scope>) -> String {
    let mut random = [0; 8];
    cx.app().world.fill(&mut random);
    rules::image_tag(cx.now(), u64::from_le_bytes(random))
}

pub(crate) fn find(conn: &Conn, scope: &Scope, path: &OfDeploy) -> Result<(DeploymentRow, DeployRow)> {
    let ((_, deployment), (_, row)) = proven(conn, scope, path)?;
    Ok((deployment, row))
}

/// A deploy and its deployment as they were found, each with the proof of that.
type Proven = ((InScope<DeploymentId>, DeploymentRow), ProvenDeploy);

/// The same, with the proof that they were found.
pub(crate) fn proven(conn: &Conn, scope: &Scope, path: &OfDeploy) -> Result<Proven> {
    let deployment = deployments::proven(conn, scope, path.deployment_id)?;
    let deployment = deployment.ok_or_else(|| Refusal::not_found("deployment"))?;
    let deploy = deploys::proven(deployment.0, conn, scope, path.deploy_id)?;
    Ok((deployment, deploy.ok_or_else(|| Refusal::not_found("deploy"))?))
}
