//! Your account: your password.

use podium_api::auth;
use serde_json::json;

use crate::answer::{Answer, Result};
use crate::calls::Problem;
use crate::form::{Field, FieldKind, Form, FormPage};
use crate::visit::OrganizationVisit;

/// The form that changes a password.
pub(crate) async fn show(visit: &OrganizationVisit<'_>, problem: Option<Problem>) -> Result {
    let form = Form {
        action: visit.link("/account"),
        fields: vec![
            Field::text("currentPassword", "Current password").of(FieldKind::Password),
            Field::text("newPassword", "New password").of(FieldKind::Password).required(),
        ],
        submit: "Change the password".to_owned(),
        ..Form::default()
    };
    let form = form.after(visit.form(), problem);
    let lead =
        format!("You are signed in as {}. A new password ends every other session.", visit.visit.person);
    FormPage { shell: visit.shell("Your account").await?, lead, form }.answer()
}

/// Changes it.
pub(crate) async fn update(visit: &OrganizationVisit<'_>) -> Result {
    let sent = visit.form();
    let body =
        json!({ "currentPassword": sent.get("currentPassword"), "newPassword": sent.get("newPassword") });
    match visit.calls().act::<auth::ChangePassword>((), body).await {
        Ok(_) => Answer::redirect(visit.link("/account?done=password")),
        Err(problem) => show(visit, Some(problem)).await,
    }
}
