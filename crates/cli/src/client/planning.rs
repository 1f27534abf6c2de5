//! `--plan`: shows what a command would change, and stops.
//!
//! Every change of a command passes through here. With `--plan` nothing is sent but a plan of the calls, so that a command that
//! forgets to ask changes nothing either.

pub(crate) mod printing;

use std::collections::HashMap;
use std::io::Write as _;

use podium_api::plans::{self as api, PlannedCall};
use podium_client::Call;
use serde_json::Value;

use super::answer::Answer;
use super::ending::{Exit, Failed, Outcome};
use super::output::View;
use super::session::Session;
use printing::Planned;

const VIEW: View = View::plain("planId", "PLAN planId, EXPIRES expiresAt");

impl Session {
    /// Whether changes are only planned.
    pub(crate) fn is_planning(&self) -> bool {
        self.planning.is_some()
    }

    /// Plans a call in the place of sending it. The command ends with that, unless the plan is held.
    pub(crate) async fn is_planned(&self, call: &Call) -> Outcome<bool> {
        let Some(planning) = self.planning.as_ref().filter(|_| !call.is_read()) else { return Ok(false) };
        planning.calls.borrow_mut().push(call.planned());
        // A version is good for one call; the plan itself pins what follows.
        planning.calls.borrow_mut().iter_mut().skip(1).for_each(|call| call.if_match = None);
        if !planning.is_held.get() {
            self.show_plan().await?;
        }
        Ok(true)
    }

    /// Waits with the plan until a command has named all of its changes, and calls [`Session::show_plan`].
    pub(crate) fn hold_plan(&self) {
        if let Some(planning) = &self.planning {
            planning.is_held.set(true);
        }
    }

    /// Shows the plan and ends the command, if changes are only planned.
    pub(crate) async fn show_plan(&self) -> Outcome {
        let Some(planning) = &self.planning else { return Ok(()) };
        let calls = planning.calls.take();
        let plan = self.plan_of(calls.clone()).await?;
        let outcomes = plan.part::<Planned>()?.calls;
        match self.format.is_table() {
            true => {
                let mut out = std::io::stdout().lock();
                out.write_all(printing::calls(&calls, &outcomes, &HashMap::new()).as_bytes())?;
            }
            false => self.show(&plan.raw, &VIEW)?,
        }
        printing::refused(&calls, &outcomes)?;
        eprintln!("Nothing was changed.");
        Err(Failed::new(Exit::Fine, ""))
    }

    /// What the server says that calls would do.
    pub(crate) async fn plan_of(&self, calls: Vec<PlannedCall>) -> Outcome<Answer<api::Plan>> {
        let call = Call::to::<api::Create>(&self.in_organization().await?);
        let body = api::CreatePlanRequest { calls };
        Ok(self.client.send::<Value>(call.body(&body)?).await?.body.into())
    }

    /// Refuses to plan what cannot be planned.
    pub(crate) fn never_plans(&self, instead: &str) -> Outcome {
        match self.is_planning() {
            true => Err(Failed::usage("this cannot be planned").hint(instead)),
            false => Ok(()),
        }
    }
}
