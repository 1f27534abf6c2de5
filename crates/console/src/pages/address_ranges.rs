//! Address ranges that calls may come from.

use std::net::IpAddr;

use podium_api::AllowedIpAddressRangeId;
use podium_api::allowed_ip_address_ranges::{
    self as ranges, CreateAllowedIpAddressRangeRequest, ListAllowedIpAddressRanges,
};
use podium_api::page::{MAX_LIMIT, Page};

use super::{Answer, Field, Form, Html, OrganizationVisit, Result, Shell, Template, view};

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
pub(crate) async fn list(visit: &OrganizationVisit<'_>) -> Result {
    let query = ListAllowedIpAddressRanges { page: Page::first(MAX_LIMIT).sorted_by("ipAddress") };
    let calls = visit.calls();
    let found = calls.find::<ranges::List>(visit.here(), query).await?.allowed_ip_address_ranges;
    let href = visit.link("/address-ranges");
    let form = calls.may::<ranges::Create>(visit.here()).await.then(|| {
        let range = Field::text("ipAddressRange", "Range").required();
        let fields = vec![range.hint("Such as 203.0.113.0/24 or 2001:db8::/48.")];
        Form::new(href.clone(), "Add the range", fields).after(visit)
    });
    let may_delete = match found.first() {
        Some(first) => calls.may::<ranges::Delete>(visit.at(first.id)).await,
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
        ranges: found.into_iter().map(line).collect(),
        form,
        address: visit.visit.address,
        may_delete,
        href,
    };
    Answer::page(&page)
}

pub(crate) async fn create(visit: &OrganizationVisit<'_>) -> Result {
    let body = CreateAllowedIpAddressRangeRequest { ip_address_range: visit.form().text("ipAddressRange") };
    visit.change::<ranges::Create>(visit.here(), body).await?;
    visit.go("/address-ranges?done=saved")
}

pub(crate) async fn delete(visit: &OrganizationVisit<'_>) -> Result {
    let id: AllowedIpAddressRangeId = crate::visit::id(visit.form().get("range"))?;
    visit.calls().act::<ranges::Delete>(visit.at(id)).await?;
    visit.go("/address-ranges?done=deleted")
}
