//! Settings of the organization.

use podium_api::organizations::{self, UpdateOrganizationRequest};

use super::{Field, FieldKind, Form, FormPage, OrganizationVisit, Result};

pub(crate) async fn show(visit: &OrganizationVisit<'_>) -> Result {
    let (of, version) = visit.calls().get_versioned::<organizations::Get>(visit.here()).await?;
    let billing = Field::text("billingEmail", "Billing contact").of(FieldKind::Email);
    let fields = vec![
        Field::text("name", "Name").required().value(of.name),
        billing.value(of.billing_email.unwrap_or_default()),
        Field::hidden("version", version),
    ];
    let form = Form::new(visit.link("/settings"), "Save the settings", fields).after(visit);
    FormPage { shell: visit.shell("Settings").await?, lead: "The organization.".to_owned(), form }.answer()
}

pub(crate) async fn update(visit: &OrganizationVisit<'_>) -> Result {
    let of = visit.calls().get::<organizations::Get>(visit.here()).await?;
    let sent = visit.form();
    let body = UpdateOrganizationRequest {
        name: sent.text("name"),
        billing_email: sent.text("billingEmail"),
        is_scim_enabled: of.is_scim_enabled,
        should_enforce_dedicated_clusters: None,
        allow_enhanced_support_access: None,
        has_ai_features_disabled: None,
    };
    visit.change::<organizations::Update>(visit.here(), body).await?;
    visit.go("/settings?done=saved")
}
