//! Plans: calls that are tried in one transaction and taken back, and later made in one transaction.
//!
//! A planned call is handled by the same code as a call over the network, from its path to its reply: the units of work
//! that it consists of join the transaction of the plan. So it is authorized, validated and audited like any other call,
//! and what a plan shows is what the same calls do when it is applied, or it is refused (decision 42).

mod access;
mod after;
mod attempt;
mod begun;
mod calls;
mod effects;
mod making;
mod outcome;
mod running;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use podium_api::enums::PlannedMethod;
use podium_api::plans::{self as api, AppliedPlan, Plan, PlannedCall};
use podium_api::{Many, Method, One, PlanId, Timestamp};
use podium_domain::Refusal;
use podium_store::Scope;
use podium_store::plans::{self, PlanRow};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub(crate) use self::after::once_committed;
use self::attempt::{Attempt, Ended};
pub(crate) use self::begun::note_begun;
pub use self::calls::{CallKey, Calls, Found, Handled, JoinedCall};
use self::outcome::{Expected, MadeIds, Outcome};
use crate::cx::{Call, Cx};
use crate::error::{Error, Result};

/// A plan never changes.
const VERSION: i64 = 1;
/// How long a plan can be applied.
const LASTS: Duration = Duration::from_hours(1);
/// How long the response to applying a plan is repeated. It may hold secrets.
const REPEATED_FOR: Duration = Duration::from_mins(10);
/// How many plans of one subject wait to be applied.
const MOST_WAITING: u64 = 100;
const MOST_BYTES: usize = 1024 * 1024;
/// How many refused calls a plan shows before it stops.
const MOST_REFUSED: usize = 8;

/// A plan that waits to be applied, as it is stored.
#[derive(Serialize, Deserialize)]
struct Stored {
    calls: Vec<PlannedCall>,
    expected: Vec<Expected>,
}

#[derive(Serialize, Deserialize)]
struct Applied {
    calls: Vec<PlannedCall>,
    response: AppliedPlan,
}

/// Finds out what a list of calls would do. It costs as many reads as there are calls.
pub async fn create(cx: Cx<Scope>, call: Call<api::Create>) -> Result<One<Plan>> {
    let calls = Arc::new(call.body.calls);
    cx.app().rate_limits.count_more(cx.subject_id(), Method::Get, calls.len())?;
    let mut refused: Vec<(usize, Outcome)> = Vec::new();
    let outcomes = loop {
        let attempt = Attempt::new(Arc::clone(&calls), &refused);
        match cx.rehearse(move |cx, tx| attempt.run(cx, tx)).await? {
            Ended::Done(outcomes) => break outcomes,
            Ended::Refused(index, outcome) => refused.push((index, *outcome)),
        }
        if refused.len() >= MOST_REFUSED {
            let is_left = |index: &usize| refused.iter().all(|(known, _)| known != index);
            break (0..calls.len()).filter(is_left).map(|index| (index, Outcome::not_tried())).collect();
        }
    };
    let is_refused = !refused.is_empty();
    let mut all: Vec<(usize, Outcome)> = outcomes.into_iter().chain(refused).collect();
    all.sort_by_key(|(index, _)| *index);
    let mut outcomes: Vec<Outcome> = all.into_iter().map(|(_, outcome)| outcome).collect();
    running::observe(&cx, &mut outcomes).await?;
    let kept = if is_refused { None } else { Some(keep(&cx, &calls, &outcomes).await?) };
    let (plan_id, expires_at) = kept.unzip();
    let calls = outcomes.into_iter().map(Outcome::planned).collect();
    Ok(One { version: VERSION, body: Plan { plan_id, expires_at, calls } })
}

async fn keep(cx: &Cx<Scope>, calls: &[PlannedCall], outcomes: &[Outcome]) -> Result<(PlanId, Timestamp)> {
    let (id, expires_at): (PlanId, _) = (cx.new_id(), cx.now() + LASTS);
    let made = MadeIds::of(outcomes.iter());
    let expected = outcomes.iter().map(|outcome| outcome.expected(&made)).collect();
    let stored = Stored { calls: calls.to_vec(), expected };
    let document = to_json(&stored)?;
    if document.len() > MOST_BYTES {
        let message = format!(
            "The plan is too large: {} bytes, at most {MOST_BYTES}. Plan fewer calls at once.",
            document.len()
        );
        return Err(Refusal::invalid(message).into());
    }
    let app = cx.app();
    let document = app.secrets.seal(&app.world, id.as_str(), &document);
    let row = PlanRow { document, expires_at, applied_at: None };
    cx.write_unaudited(move |cx, tx| {
        let (scope, subject_id) = (cx.scope(), cx.subject_id());
        if plans::count(tx, scope, subject_id, cx.now())? >= MOST_WAITING {
            let message = format!(
                "You have {MOST_WAITING} plans that wait to be applied: apply one, or wait until one expires."
            );
            return Err(Refusal::Conflict(message).into());
        }
        plans::insert(tx, scope, id, subject_id, &row)?;
        Ok((id, expires_at))
    })
    .await
}

/// Makes the calls of a plan of the caller, all or none. Applied again within ten minutes, it changes nothing and gives the
/// same response, so that one that was lost on its way loses no secret.
pub async fn apply(cx: Cx<Scope>, call: Call<api::Apply>) -> Result<Many<AppliedPlan>> {
    let plan_id = call.path.plan_id;
    let row = cx.read(move |cx, conn| Ok(plans::get(conn, cx.scope(), plan_id, cx.subject_id())?)).await?;
    let row = row.filter(|row| row.expires_at > cx.now()).ok_or_else(gone)?;
    let document = cx.app().secrets.open(plan_id.as_str(), &row.document);
    let document = document.map_err(|_| Error::Internal("a stored plan cannot be opened".into()))?;
    if row.applied_at.is_some() {
        // One that an earlier version of this program applied is not kept in this form, and not repeated.
        let applied: Applied = serde_json::from_slice(&document).map_err(|_| gone())?;
        return repeat(&cx, applied).await;
    }
    let stored: Stored = from_json(&document)?;
    pay(&cx, &stored.calls)?;
    let calls = Arc::new(stored.calls);
    let attempt = Attempt::kept_under(Arc::clone(&calls), plan_id);
    let after = Arc::new(Mutex::new(Vec::new()));
    let collected = Arc::clone(&after);
    let applied = cx
        .change_rights(move |cx, tx| {
            if !plans::take(tx, cx.scope(), plan_id, cx.now())? {
                let message = "The plan has just been applied: apply it again to get the response.";
                return Err(Refusal::Conflict(message.into()).into());
            }
            let outcomes = match attempt.run(cx, tx)? {
                Ended::Done(outcomes) => outcomes,
                Ended::Refused(index, outcome) => return Err(outcome.refusal(index)),
            };
            cx.expect_version(VERSION)?;
            let made = MadeIds::of(outcomes.iter().map(|(_, outcome)| outcome));
            for ((index, outcome), planned) in outcomes.iter().zip(&stored.expected) {
                outcome.is_as_planned(*index, planned, &made)?;
            }
            *collected.lock().unwrap_or_else(PoisonError::into_inner) = after::take();
            let results =
                outcomes.into_iter().map(|(_, outcome)| outcome.applied()).collect::<Result<_>>()?;
            let applied = AppliedPlan { plan_id, calls: results };
            let kept = Applied { calls: calls.to_vec(), response: applied.clone() };
            let app = cx.app();
            let sealed = app.secrets.seal(&app.world, plan_id.as_str(), &to_json(&kept)?);
            plans::keep_response(tx, cx.scope(), plan_id, &sealed, cx.now() + REPEATED_FOR)?;
            Ok(Many(applied))
        })
        .await?;
    for task in std::mem::take(&mut *after.lock().unwrap_or_else(PoisonError::into_inner)) {
        task();
    }
    Ok(applied)
}

/// Gives the response to a plan again that was applied. Each call is judged again, like one that is repeated under an
/// `Idempotency-Key`, with the rights that the caller has now; what it answered comes from what is kept of it.
async fn repeat(cx: &Cx<Scope>, applied: Applied) -> Result<Many<AppliedPlan>> {
    let attempt = Attempt::replay(Arc::new(applied.calls), applied.response.plan_id);
    let results = cx.rehearse(move |cx, tx| attempt.answers(cx, tx)).await?;
    let mut response = applied.response;
    for (call, result) in response.calls.iter_mut().zip(results) {
        call.result = result;
    }
    Ok(Many(response))
}

/// Counts the calls of a plan like calls that are made one by one; the call that applies it stands for one of them.
fn pay(cx: &Cx<Scope>, calls: &[PlannedCall]) -> Result<()> {
    let deletes = calls.iter().filter(|call| call.method == PlannedMethod::Delete).count();
    let posts = (calls.len() - deletes).saturating_sub(1);
    for (method, more) in [(Method::Post, posts), (Method::Delete, deletes)] {
        cx.app().rate_limits.count_more(cx.subject_id(), method, more)?;
    }
    Ok(())
}

fn to_json(value: &impl Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(|error| Error::Internal(error.to_string()))
}

fn from_json<T: DeserializeOwned>(document: &[u8]) -> Result<T> {
    serde_json::from_slice(document).map_err(|error| Error::Internal(error.to_string()))
}

/// Somebody else's plan is none.
fn gone() -> Refusal {
    Refusal::not_found("plan that waits to be applied")
}
