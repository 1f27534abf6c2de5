//! Allowed address ranges.

use ipnet::IpNet;
use podium_api::allowed_ip_address_ranges::{
    self as api, AllowedIpAddressRange, AllowedIpAddressRangesList, AllowedIpAddressRangesPaginated,
};
use podium_api::{AllowedIpAddressRangeId, Many, Nothing, One};
use podium_db::{Conn, Tx};
use podium_domain::events::Resource;
use podium_domain::{Fields, Refusal, Target, allowed_ip_address_ranges as rules};
use podium_store::{Paging, Scope, Stamp, System, allowed_ip_address_ranges as ranges};

use crate::authority::{rights_change, rights_lock};
use crate::cx::{Call, Cx};
use crate::error::{Error, OrConflict, Result};
use crate::{App, allowed_addresses};

pub async fn list(cx: Cx<Scope>, call: Call<api::List>) -> Result<Many<AllowedIpAddressRangesPaginated>> {
    let read = |cx: &Cx<Scope>, conn: &Conn, paging: &Paging| Ok(ranges::list(conn, cx.scope(), paging)?);
    cx.list(&call.query.page, read, |range| range).await
}

pub async fn create(cx: Cx<Scope>, call: Call<api::Create>) -> Result<One<AllowedIpAddressRange>> {
    let range = rules::range("ipAddressRange", &call.body.ip_address_range)?;
    let id = cx.new_id();
    cx.change_rights(move |cx, tx| {
        let body = insert(cx, tx, &[(id, range)])?.pop().expect("one was added");
        Ok(One { version: 1, body })
    })
    .await
}

/// Adds many ranges, all or none.
pub async fn bulk_create(
    cx: Cx<Scope>,
    call: Call<api::BulkCreate>,
) -> Result<Many<AllowedIpAddressRangesList>> {
    let parsed = rules::ranges("allowedIpAddressRanges", &call.body.allowed_ip_address_ranges)?;
    let added: Vec<(AllowedIpAddressRangeId, IpNet)> =
        parsed.into_iter().map(|range| (cx.new_id(), range)).collect();
    cx.change_rights(move |cx, tx| {
        Ok(Many(AllowedIpAddressRangesList { allowed_ip_address_ranges: insert(cx, tx, &added)? }))
    })
    .await
}

pub async fn delete(cx: Cx<Scope>, call: Call<api::Delete>) -> Result<Nothing> {
    let id = call.path.allowed_ip_address_range_id;
    cx.change_rights(move |cx, tx| {
        cx.rights_change(tx)?;
        let found = ranges::get_each(tx, cx.scope(), &[id])?.pop();
        let range = found.ok_or_else(|| Refusal::not_found("allowed IP address range"))?;
        cx.expect_version(range.version)?;
        remove(cx, tx, &[range])
    })
    .await
}

/// Removes many ranges, all or none.
pub async fn bulk_delete(cx: Cx<Scope>, call: Call<api::BulkDelete>) -> Result<Nothing> {
    let ids = call.body.allowed_ip_address_range_ids;
    cx.change_rights(move |cx, tx| {
        cx.rights_change(tx)?;
        let ranges = ranges::get_each(tx, cx.scope(), &ids)?;
        let found: Vec<AllowedIpAddressRangeId> = ranges.iter().map(|range| range.body.id).collect();
        let mut fields = Fields::new();
        for (index, id) in ids.iter().enumerate() {
            let field = format!("allowedIpAddressRangeIds[{index}]");
            if !found.contains(id) {
                fields.push(field, "notFound", "is not the id of an allowed address range");
            } else if ids[..index].contains(id) {
                fields.push(field, "duplicate", "is listed twice");
            }
        }
        fields.into_result()?;
        remove(cx, tx, &ranges)
    })
    .await
}

impl App {
    /// Removes every range of every organization: for an operator who is locked out.
    pub async fn reset_allowed_ip_address_ranges(&self, system: &System) -> Result<u64> {
        let now = self.world.now();
        let (system, mut removed) = (*system, 0);
        for organization_id in
            self.db(&system).read(None, move |conn| ranges::organizations(conn, &system)).await?
        {
            let clear = move |tx: &Tx| {
                let scope = system.scope(organization_id);
                rights_change(tx, &scope, now)?;
                Ok::<_, Error>(ranges::clear(tx, &scope)?)
            };
            removed += self
                .db(&system)
                .write_locked(None, vec![rights_lock(organization_id.id(), true)], clear)
                .await?;
        }
        Ok(removed)
    }
}

fn insert(
    cx: &Cx<Scope>,
    tx: &Tx,
    added: &[(AllowedIpAddressRangeId, IpNet)],
) -> Result<Vec<AllowedIpAddressRange>> {
    cx.rights_change(tx)?;
    let stamp = Stamp::new(cx.profile(), cx.now());
    let insert_one = |(id, range): &(AllowedIpAddressRangeId, IpNet)| {
        let body = AllowedIpAddressRange {
            id: *id,
            ip_address_range: range.to_string(),
            organization_id: cx.organization_id(),
            created_at: stamp.created_at,
            created_by: Some(stamp.created_by.clone()),
            updated_at: stamp.updated_at,
            updated_by: Some(stamp.updated_by.clone()),
        };
        ranges::insert(tx, cx.scope(), &body, &rules::sort_key(*range), &stamp)
            .or_conflict(|| format!("The range {range} is already allowed."))?;
        cx.changed(tx, ranges::KIND, stamp.version, about(&body))?;
        Ok(body)
    };
    let bodies = added.iter().map(insert_one).collect::<Result<_>>()?;
    keeps_caller_in(cx, tx)?;
    Ok(bodies)
}

fn remove(cx: &Cx<Scope>, tx: &Tx, removed: &[One<AllowedIpAddressRange>]) -> Result<Nothing> {
    for One { body, .. } in removed {
        ranges::delete(tx, cx.scope(), body.id)?;
        cx.changed(tx, ranges::KIND, 2, about(body))?;
    }
    keeps_caller_in(cx, tx)?;
    Ok(Nothing)
}

/// A range, as an event names it.
fn about(range: &AllowedIpAddressRange) -> Resource<'_> {
    Resource::new(range.id.id(), Target::Organization).named(&range.ip_address_range)
}

/// Callers cannot lock themselves out.
fn keeps_caller_in(cx: &Cx<Scope>, conn: &Conn) -> Result<()> {
    let after = allowed_addresses::of(conn, cx.scope())?;
    Ok(rules::keeps_caller_in(&after, cx.request().address)?)
}
