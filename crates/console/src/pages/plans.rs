//! What a change would do, before it is made.

use podium_api::enums::PlannedMethod;
use podium_api::path::PathParams as _;
use podium_api::plans::{self, CreatePlanRequest, PlannedCall, PlannedOutcome};
use podium_api::{Endpoint, Method, PlanId};
use serde_json::Value;

use super::{Answer, OrganizationVisit, Problem, Result, Shell, Template, to_value};

#[derive(Template)]
#[template(path = "plan.html")]
struct PlanPage {
    shell: Shell,
    parts: Vec<PlanPart>,
    plan_id: String,
    action: String,
    submit: String,
    /// What has to be typed before it can be applied.
    word: Option<&'static str>,
    then: String,
    cancel: String,
}

/// What one call would do.
struct PlanPart {
    /// What it is about, where there are several.
    title: Option<String>,
    /// A path, the value before and the value after.
    changes: Vec<(String, Option<String>, Option<String>)>,
    effects: Vec<(String, Vec<String>)>,
}

/// How a plan is shown, and where one goes from there.
pub(crate) struct Ways<'a> {
    /// What the button says.
    pub(crate) submit: String,
    /// What has to be typed before it can be applied.
    pub(crate) word: Option<&'static str>,
    /// Where to go instead.
    pub(crate) back: &'a str,
    /// Where to go afterwards.
    pub(crate) then: &'a str,
}

/// A call as part of a plan.
pub(crate) fn planned<E: Endpoint>(
    path: &E::Path,
    body: E::Body,
    if_match: Option<String>,
) -> Result<PlannedCall> {
    let method = match E::DESCRIPTION.method {
        Method::Delete => PlannedMethod::Delete,
        Method::Get | Method::Post => PlannedMethod::Post,
    };
    let body = to_value(body)?.as_object().cloned();
    Ok(PlannedCall { method, path: path.fill(E::DESCRIPTION.path), body, if_match })
}

/// Plans a call and shows what it would do. A call that would be refused is a problem of its own.
pub(crate) async fn show(
    visit: &OrganizationVisit<'_>,
    call: PlannedCall,
    submit: &str,
    (back, then): (&str, &str),
) -> Result {
    let ways = Ways { submit: submit.to_owned(), word: None, back, then };
    show_all(visit, vec![(None, call)], ways).await
}

/// Plans several calls, each with what it is about, and shows what they would do. All of them happen, or none.
pub(crate) async fn show_all(
    visit: &OrganizationVisit<'_>,
    calls: Vec<(Option<String>, PlannedCall)>,
    ways: Ways<'_>,
) -> Result {
    let (titles, calls): (Vec<_>, Vec<_>) = calls.into_iter().unzip();
    let plan = visit.calls().change::<plans::Create>(visit.here(), CreatePlanRequest { calls }, None).await?;
    let Some(plan_id) = plan.plan_id else {
        let refused = plan.calls.into_iter().zip(titles).find(|(outcome, _)| outcome.error.is_some());
        let (outcome, title) = refused.ok_or_else(|| Problem::new(500, "The plan is empty."))?;
        let mut problem = refusal(outcome);
        problem.message =
            title.map_or(problem.message.clone(), |title| format!("{title}: {}", problem.message));
        return Err(problem);
    };
    let page = PlanPage {
        shell: visit.shell("What this change does").await?.below("Back", ways.back.to_owned()),
        parts: plan.calls.into_iter().zip(titles).map(|(outcome, title)| part(outcome, title)).collect(),
        plan_id: plan_id.to_string(),
        action: visit.link("/plans/apply"),
        submit: ways.submit,
        word: ways.word,
        then: ways.then.to_owned(),
        cancel: ways.back.to_owned(),
    };
    Answer::page(&page)
}

fn part(outcome: PlannedOutcome, title: Option<String>) -> PlanPart {
    let is_told = |path: &str| !path.ends_with("At") && !path.starts_with("updatedBy");
    let changes = outcome.changes.into_iter().filter(|change| is_told(&change.path));
    let changes = changes.map(|change| match (change.path.is_empty(), &change.to) {
        (true, None) => ("everything".to_owned(), Some("exists".to_owned()), Some("deleted".to_owned())),
        _ => (change.path, change.from.as_ref().map(text), change.to.as_ref().map(text)),
    });
    let effects = outcome.effects.into_iter().map(|effect| (effect.message, effect.names));
    PlanPart { title, changes: changes.collect(), effects: effects.collect() }
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

pub(crate) async fn apply(visit: &OrganizationVisit<'_>) -> Result {
    let plan_id: PlanId = crate::visit::id(visit.form().get("plan"))?;
    visit.calls().act::<plans::Apply>(visit.at(plan_id)).await?;
    let then = visit.form().get("then");
    let is_here = then.starts_with(&visit.link("/")) && !then.contains("//") && !then.contains('\\');
    Answer::redirect(if is_here { then.to_owned() } else { visit.link("") })
}
