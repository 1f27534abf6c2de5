//! Settings of the organization.

use podium_api::organizations;
use serde_json::json;

use crate::answer::{Answer, Result};
use crate::calls::Problem;
use crate::form::{Field, FieldKind, Form, FormPage};
use crate::visit::OrganizationVisit;

/// The form.
pub(crate) async fn show(visit: &OrganizationVisit<'_>, problem: Option<Problem>) -> Result {
    let read = visit.calls().get_versioned::<organizations::Get>(visit.here(), &[]).await?;
    let of = read.value;
    let form = Form {
        action: visit.link("/settings"),
        fields: vec![
            Field::text("name", "Name").required().value(of.name),
            Field::text("billingEmail", "Billing contact")
                .of(FieldKind::Email)
                .value(of.billing_email.unwrap_or_default()),
            Field::hidden("version", read.etag.unwrap_or_default()),
        ],
        submit: "Save the settings".to_owned(),
        ..Form::default()
    };
    let form = form.after(visit.form(), problem);
    FormPage { shell: visit.shell("Settings").await?, lead: "The organization.".to_owned(), form }.answer()
}

/// Saves them.
pub(crate) async fn update(visit: &OrganizationVisit<'_>) -> Result {
    let of = visit.calls().get::<organizations::Get>(visit.here(), &[]).await?;
    let sent = visit.form();
    let body = json!({
        "name": sent.get("name").trim(),
        "billingEmail": sent.get("billingEmail").trim(),
        "isScimEnabled": of.is_scim_enabled,
    });
    let version = sent.filled("version").map(str::to_owned);
    match visit.calls().change::<organizations::Update>(visit.here(), body, version).await {
        Ok(_) => Answer::redirect(visit.link("/settings?done=saved")),
        Err(problem) => show(visit, Some(problem)).await,
    }
}
