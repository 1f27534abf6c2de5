//! Which running tasks the calls of a plan wait for or stop: an observation of the moment, not part of what is compared
//! when the plan is applied.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use podium_api::DeploymentId;
use podium_api::enums::PlannedEffectType;
use podium_api::plans::PlannedEffect;
use podium_domain::UserText;
use podium_store::{Scope, deployments};

use super::outcome::{Interrupted, Outcome};
use crate::cx::Cx;
use crate::error::Result;
use crate::observer::RunningTasks;

const MOST_ASKED: usize = 20;

/// Adds to each call the tasks that it would wait for or stop.
pub(super) async fn observe(cx: &Cx<Scope>, outcomes: &mut [Outcome]) -> Result<()> {
    let Some(observer) = cx.app().observer.get() else { return Ok(()) };
    let mut asked: Vec<DeploymentId> = outcomes.iter().flat_map(Outcome::interrupted).collect();
    asked.sort_unstable();
    asked.dedup();
    asked.truncate(MOST_ASKED);
    if asked.is_empty() {
        return Ok(());
    }
    let elsewhere = cx.app().on_other_nodes(&asked).await?;
    let located = cx.read(move |cx, conn| Ok(deployments::located(conn, cx.scope(), &asked)?)).await?;
    let observing = located.iter().map(|at| async {
        match elsewhere.contains(&at.get().id) {
            true => Err("it runs on another node".into()),
            false => observer.running_tasks(at).await,
        }
    });
    let observed = join_all(observing).await;
    let observed: BTreeMap<DeploymentId, _> = located.iter().map(|at| at.get().id).zip(observed).collect();
    for outcome in outcomes {
        let mut not_asked = 0;
        outcome.add_effects(|interrupted| {
            let Some(tasks) = observed.get(&interrupted.deployment_id) else {
                not_asked += 1;
                return None;
            };
            let effect = effect(interrupted, tasks.as_ref().map(Option::as_ref))?;
            Some(PlannedEffect { observed_at: Some(cx.now()), ..effect })
        });
        if not_asked > 0 {
            outcome.add_effect(PlannedEffect {
                kind: PlannedEffectType::Drain,
                message: "Which tasks of further deployments are running was not asked.".to_owned(),
                names: Vec::new(),
                count: Some(not_asked),
                observed_at: None,
            });
        }
    }
    Ok(())
}

/// The effect on running tasks; `None` if the environment is not up.
fn effect(
    interrupted: &Interrupted,
    tasks: Result<Option<&RunningTasks>, &UserText>,
) -> Option<PlannedEffect> {
    let name = &interrupted.name;
    let (message, tasks) = match tasks {
        Ok(None) => return None,
        Ok(Some(tasks)) if tasks.count == 0 => (format!("No task of {name} is running."), Some(tasks)),
        Ok(Some(tasks)) if interrupted.waits => {
            (format!("Running tasks of {name} end first, up to the deployment's grace period."), Some(tasks))
        }
        Ok(Some(tasks)) => (format!("Running tasks of {name} are stopped."), Some(tasks)),
        Err(why) => (format!("Which tasks of {name} are running is not known: {why}."), None),
    };
    let kind = if interrupted.waits { PlannedEffectType::Drain } else { PlannedEffectType::Stop };
    Some(PlannedEffect {
        kind,
        message,
        names: tasks.map(|tasks| tasks.names.clone()).unwrap_or_default(),
        count: tasks.map(|tasks| tasks.count),
        observed_at: None,
    })
}
