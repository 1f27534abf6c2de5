//! Organizations, and the export of their audit log.

use std::time::Duration;

use podium_api::enums::OrganizationStatus;
use podium_api::organizations::{self as api, Organization, OrganizationsPaginated};
use podium_api::{Many, One, Timestamp};
use podium_db::Conn;
use podium_domain::events::Resource;
use podium_domain::{Fields, Refusal, Target, emails, names};
use podium_store::audit::{self, Cursor};
use podium_store::organizations::{self, OrganizationRow};
use podium_store::{Paging, Scope};

use crate::cx::{Call, Cx};
use crate::error::Result;
use crate::own;

const EXPORTED_AT_ONCE: u32 = 500;

/// Lists the organizations that the caller belongs to.
pub async fn list(cx: Cx<()>, call: Call<api::List>) -> Result<Many<OrganizationsPaginated>> {
    let product = call.query.product;
    let has_plan = call.query.product_plan.is_none() && call.query.platform_product.is_none();
    let read = move |cx: &Cx<()>, conn: &Conn, paging: &Paging| {
        // No organization is on a plan, so filtering by plan matches none.
        if !has_plan {
            return Ok((Vec::new(), 0));
        }
        own::organizations(cx, conn, product, paging)
    };
    cx.list(&call.query.page, read, show).await
}

pub async fn get(cx: Cx<Scope>, call: Call<api::Get>) -> Result<One<Organization>> {
    let row = cx.read(|cx, conn| find(conn, cx.scope())).await?;
    let (version, mut body) = (row.stamp.version, show(row));
    if call.query.is_look_up_only == Some(true) {
        body.billing_email = None;
        body.payment_method = None;
        body.managed_domains = None;
        body.trial_expires_at = None;
    }
    Ok(One { version, body })
}

pub async fn update(cx: Cx<Scope>, call: Call<api::Update>) -> Result<One<Organization>> {
    let body = call.body;
    let mut fields = Fields::new();
    let name = fields.take(names::name("name", &body.name, 50));
    let billing_email = match body.billing_email.as_str() {
        "" => Some(String::new()),
        text => fields.take(emails::email("billingEmail", text)).map(|email| email.address),
    };
    fields.into_result()?;
    let (name, billing_email) = name.zip(billing_email).expect("both were checked");
    cx.mutate(move |cx, tx| {
        let stored = find(tx, cx.scope())?;
        cx.expect_version(stored.stamp.version)?;
        let organization = OrganizationRow {
            name: name.text.clone(),
            billing_email: billing_email.clone(),
            is_scim_enabled: body.is_scim_enabled,
            should_enforce_dedicated_clusters: body
                .should_enforce_dedicated_clusters
                .unwrap_or(stored.should_enforce_dedicated_clusters),
            allow_enhanced_support_access: body
                .allow_enhanced_support_access
                .unwrap_or(stored.allow_enhanced_support_access),
            has_ai_features_disabled: body
                .has_ai_features_disabled
                .unwrap_or(stored.has_ai_features_disabled),
            stamp: stored.stamp.changed(cx.profile(), cx.now()),
            ..stored
        };
        organizations::update(tx, cx.scope(), &organization, &name.key)?;
        let version = organization.stamp.version;
        let about = Resource::new(organization.id.id(), Target::Organization).named(&organization.name);
        cx.changed(tx, organizations::KIND, version, about)?;
        Ok(One { version, body: show(organization) })
    })
    .await
}

/// An export of the audit log that is under way.
pub struct AuditExport {
    cx: Cx<Scope>,
    cursor: Cursor,
    end: Timestamp,
    done: bool,
}

pub async fn audit_logs(cx: Cx<Scope>, call: Call<api::AuditLogs>) -> Result<AuditExport> {
    // Records of this very millisecond are part of an export until now.
    let end = call.query.end_date.unwrap_or(cx.now() + Duration::from_millis(1));
    let start = call.query.start_date.unwrap_or(end - Duration::from_hours(24));
    if start >= end {
        return Err(Refusal::field("startDate", "order", "must be before `endDate`").into());
    }
    Ok(AuditExport { cx, cursor: Cursor::from(start), end, done: false })
}

impl AuditExport {
    /// The next lines, or `None` at the end.
    pub async fn next(&mut self) -> Option<Result<Vec<u8>>> {
        if self.done {
            return None;
        }
        let (mut cursor, end) = (self.cursor.clone(), self.end);
        // An export may take long: it ends with the caller's session and with the right to it.
        let next = self.cx.scan_on(move |cx, conn| {
            let mut lines = Vec::new();
            let count = audit::export(conn, cx.scope(), &mut cursor, end, EXPORTED_AT_ONCE, &mut lines)?;
            Ok((cursor.clone(), lines, count))
        });
        match next.await {
            Ok((cursor, lines, count)) => {
                self.cursor = cursor;
                self.done = count < EXPORTED_AT_ONCE as usize;
                (count > 0).then_some(Ok(lines))
            }
            Err(error) => {
                self.done = true;
                Some(Err(error))
            }
        }
    }
}

fn find(conn: &Conn, scope: &Scope) -> Result<OrganizationRow> {
    organizations::get(conn, scope)?.ok_or_else(|| Refusal::not_found("organization").into())
}

/// An organization as its members see it. Plans, payment, trials and managed domains are not offered here, and every
/// organization is active.
fn show(row: OrganizationRow) -> Organization {
    Organization {
        id: row.id,
        name: row.name,
        billing_email: Some(row.billing_email),
        status: Some(OrganizationStatus::Active),
        product: Some(row.product),
        product_plans: Vec::new(),
        payment_method: None,
        trial_expires_at: None,
        has_allowed_ip_address_ranges: row.has_allowed_ip_address_ranges,
        is_scim_enabled: row.is_scim_enabled,
        should_enforce_dedicated_clusters: row.should_enforce_dedicated_clusters,
        allow_enhanced_support_access: row.allow_enhanced_support_access,
        has_ai_features_disabled: Some(row.has_ai_features_disabled),
        is_blocked_enable_ai_features: false,
        managed_domains: Some(Vec::new()),
        created_at: row.stamp.created_at,
        created_by: row.stamp.created_by,
        updated_at: row.stamp.updated_at,
        updated_by: row.stamp.updated_by,
    }
}
