//! The override of a deployment's hibernation schedules.

use podium_api::deployments::{self as api, DeploymentHibernationOverride};
use podium_api::enums::{EventType, OperationKind};
use podium_api::{Nothing, One, Patch};
use podium_db::Tx;
use podium_domain::deployments::{HibernationOverride, hibernation};
use podium_domain::{Refusal, names};
use podium_store::Scope;
use podium_store::deployments::{self, DeploymentRow};

use super::shown::hibernation_override;
use super::{about_now, changed, find};
use crate::cx::{Call, Cx};
use crate::error::Result;
use crate::operations;

/// Overrides the schedules of a deployment; `null` goes back to them.
pub async fn override_hibernation(
    cx: Cx<Scope>,
    call: Call<api::OverrideHibernation>,
) -> Result<One<DeploymentHibernationOverride>> {
    let (id, body) = (call.path.deployment_id, call.body);
    let wanted = match body.is_hibernating {
        Patch::Set(is_hibernating) => {
            hibernation::check_until("overrideUntil", body.override_until.as_ref(), cx.now())?;
            Some(HibernationOverride { is_hibernating, until: body.override_until })
        }
        Patch::Keep | Patch::Clear => None,
    };
    cx.mutate(move |cx, tx| {
        let stored = find(tx, cx.scope(), id)?;
        cx.expect_version(stored.stamp.version)?;
        if !stored.spec.is_development_mode {
            let message =
                "Only deployments in development mode hibernate, and this one is not in development mode.";
            return Err(Refusal::invalid(message).into());
        }
        let row = set(cx, tx, stored, wanted.clone(), EventType::DeploymentHibernationOverrideSet)?;
        let body = hibernation_override(wanted.as_ref(), cx.now()).unwrap_or(DeploymentHibernationOverride {
            is_active: Some(false),
            is_hibernating: None,
            override_until: None,
        });
        Ok(One { version: row.stamp.version, body })
    })
    .await
}

/// Goes back to the schedules of a deployment; there need not be an override.
pub async fn end_hibernation_override(
    cx: Cx<Scope>,
    call: Call<api::EndHibernationOverride>,
) -> Result<Nothing> {
    let id = call.path.deployment_id;
    cx.mutate(move |cx, tx| {
        let stored = find(tx, cx.scope(), id)?;
        cx.expect_version(stored.stamp.version)?;
        if stored.spec.hibernation.override_.is_some() {
            set(cx, tx, stored, None, EventType::DeploymentHibernationOverrideRemoved)?;
        }
        Ok(Nothing)
    })
    .await
}

/// Wakes a deployment that hibernates, until its schedules hibernate it again.
pub(crate) fn wake(cx: &Cx<Scope>, tx: &Tx, stored: DeploymentRow) -> Result<DeploymentRow> {
    let spec = &stored.spec;
    if !hibernation::state(&spec.hibernation, spec.is_development_mode, cx.now()).is_hibernating {
        return Ok(stored);
    }
    let wanted = hibernation::awake(&spec.hibernation, cx.now());
    let event = match wanted {
        Some(_) => EventType::DeploymentHibernationOverrideSet,
        None => EventType::DeploymentHibernationOverrideRemoved,
    };
    set(cx, tx, stored, wanted, event)
}

fn set(
    cx: &Cx<Scope>,
    tx: &Tx,
    stored: DeploymentRow,
    wanted: Option<HibernationOverride>,
    event: EventType,
) -> Result<DeploymentRow> {
    let undo = operations::undo_to(&stored);
    let mut row = changed(cx, stored);
    row.spec.hibernation.override_ = wanted;
    deployments::update(tx, cx.scope(), &row, &names::fold(&row.name))?;
    let after = hibernation::state(&row.spec.hibernation, row.spec.is_development_mode, cx.now());
    let kind = if after.is_hibernating { OperationKind::Hibernate } else { OperationKind::Wake };
    operations::begin(cx, tx, kind, operations::of_deployment(&row), Some(undo))?;
    cx.logged(tx, deployments::KIND, row.id.id(), row.stamp.version)?;
    cx.event_of(tx, event, about_now(&row))?;
    Ok(row)
}
