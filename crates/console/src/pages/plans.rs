//! What a change would do, before it is made.

use askama::Template;
use podium_api::PlanId;
use podium_api::path::OfPlan;
use podium_api::plans::{self, PlannedOutcome};
use serde_json::{Value, json};

use crate::answer::{Answer, Result};
use crate::calls::Problem;
use crate::shell::Shell;
use crate::visit::OrganizationVisit;

#[derive(Template)]
#[template(path = "plan.html")]
struct PlanPage {
    shell: Shell,
    /// A path, the value before and the value after.
    changes: Vec<(String, Option<String>, Option<String>)>,
    effects: Vec<(String, Vec<String>)>,
    plan_id: String,
    action: String,
    submit: &'static str,
    then: String,
    cancel: String,
}

/// Plans a call and shows what it would do. A call that would be refused is a problem of its own.
pub(crate) async fn show(
    visit: &OrganizationVisit<'_>,
    call: Value,
    submit: &'static str,
    back: &str,
    then: &str,
) -> Result {
    let plan =
        visit.calls().change::<plans::Create>(visit.here(), json!({ "calls": [call] }), None).await?.value;
    let outcome = plan.calls.into_iter().next().ok_or_else(|| Problem::new(500, "The plan is empty."))?;
    let Some(plan_id) = plan.plan_id else { return Err(refusal(outcome)) };
    let changes = outcome
        .changes
        .into_iter()
        .filter(|change| !change.path.ends_with("At") && !change.path.starts_with("updatedBy"));
    let changes =
        changes.map(|change| (change.path, change.from.as_ref().map(text), change.to.as_ref().map(text)));
    let page = PlanPage {
        shell: visit.shell("What this change does").await?.below("Back", back.to_owned()),
        changes: changes.collect(),
        effects: outcome.effects.into_iter().map(|effect| (effect.message, effect.names)).collect(),
        plan_id: plan_id.to_string(),
        action: visit.link("/plans/apply"),
        submit,
        then: then.to_owned(),
        cancel: back.to_owned(),
    };
    Answer::page(&page)
}

/// Why a planned call would be refused.
pub(crate) fn refusal(outcome: PlannedOutcome) -> Problem {
    match outcome.error {
        Some(error) => Problem {
            status: error.status_code,
            message: error.message,
            fields: error.field_errors.unwrap_or_default(),
        },
        None => Problem::new(outcome.status_code, "The change would be refused."),
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Applies a plan that was shown.
pub(crate) async fn apply(visit: &OrganizationVisit<'_>) -> Result {
    let plan_id: PlanId = crate::visit::id(visit.form().get("plan"))?;
    let path = OfPlan { organization_id: visit.organization_id, plan_id };
    visit.calls().act::<plans::Apply>(path, ()).await?;
    let then = visit.form().get("then");
    let is_here = then.starts_with(&visit.link("/")) && !then.contains("//") && !then.contains('\\');
    Answer::redirect(if is_here { then.to_owned() } else { visit.link("") })
}
