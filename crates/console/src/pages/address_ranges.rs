//! Address ranges that calls may come from.

use std::net::IpAddr;

use askama::Template;
use podium_api::AllowedIpAddressRangeId;
use podium_api::allowed_ip_address_ranges as ranges;
use podium_api::path::OfAllowedIpAddressRange;
use serde_json::json;

use crate::answer::{Answer, Result};
use crate::calls::Problem;
use crate::form::{Field, Form};
use crate::shell::Shell;
use crate::view::{self, Html};
use crate::visit::OrganizationVisit;

#[derive(Template)]
#[template(path = "address-ranges.html")]
struct RangesPage {
    shell: Shell,
    ranges: Vec<RangeLine>,
    form: Option<Form>,
    address: IpAddr,
    may_delete: bool,
    href: String,
}

struct RangeLine {
    id: String,
    range: String,
    by: String,
    created: Html,
}

/// The ranges, and what adding one would mean for the person who looks.
pub(crate) async fn list(visit: &OrganizationVisit<'_>, problem: Option<Problem>) -> Result {
    let found = visit
        .calls()
        .get::<ranges::List>(visit.here(), &[("limit", "1000"), ("sorts", "ipAddress:asc")])
        .await?;
    let status = problem.as_ref().map_or(200, |problem| problem.status);
    let href = visit.link("/address-ranges");
    let may_create = visit.calls().may::<ranges::Create>(visit.here()).await;
    let form = may_create.then(|| Form {
        action: href.clone(),
        fields: vec![
            Field::text("ipAddressRange", "Range")
                .required()
                .hint("Such as 203.0.113.0/24 or 2001:db8::/48."),
        ],
        submit: "Add the range".to_owned(),
        ..Form::default()
    });
    let form = form.map(|form| form.after(visit.form(), problem));
    let any_path = |id| OfAllowedIpAddressRange {
        organization_id: visit.organization_id,
        allowed_ip_address_range_id: id,
    };
    let may_delete = match found.allowed_ip_address_ranges.first() {
        Some(first) => visit.calls().may::<ranges::Delete>(any_path(first.id)).await,
        None => false,
    };
    let line = |of: ranges::AllowedIpAddressRange| RangeLine {
        id: of.id.to_string(),
        range: of.ip_address_range,
        by: view::subject(of.created_by.as_ref()),
        created: view::time(of.created_at, visit.visit.now),
    };
    let page = RangesPage {
        shell: visit.shell("Address ranges").await?.live(""),
        ranges: found.allowed_ip_address_ranges.into_iter().map(line).collect(),
        form,
        address: visit.visit.address,
        may_delete,
        href,
    };
    Answer::with_status(status, &page)
}

/// Adds a range.
pub(crate) async fn create(visit: &OrganizationVisit<'_>) -> Result {
    let body = json!({ "ipAddressRange": visit.form().get("ipAddressRange").trim() });
    match visit.calls().change::<ranges::Create>(visit.here(), body, None).await {
        Ok(_) => Answer::redirect(visit.link("/address-ranges?done=saved")),
        Err(problem) => list(visit, Some(problem)).await,
    }
}

/// Deletes a range.
pub(crate) async fn delete(visit: &OrganizationVisit<'_>) -> Result {
    let id: AllowedIpAddressRangeId = crate::visit::id(visit.form().get("range"))?;
    let path =
        OfAllowedIpAddressRange { organization_id: visit.organization_id, allowed_ip_address_range_id: id };
    match visit.calls().act::<ranges::Delete>(path, ()).await {
        Ok(_) => Answer::redirect(visit.link("/address-ranges?done=deleted")),
        Err(problem) => list(visit, Some(problem)).await,
    }
}
