//! `podium plan` and `podium apply`.

use std::io::Write as _;

use clap::Args;
use podium_api::enums::ClusterStatus;
use podium_api::path::{OfCluster, OfPlan};
use podium_api::plans::{self as api, AppliedCall};
use podium_api::{PlanId, TypedId as _, clusters};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Answer, Exit, Failed, Outcome, Session, Setup, View, Watch, Word, id, one_line};
use crate::client::declared::Source;
use crate::client::planning::printing::Made;

const MOST_PARTS: usize = 100;

/// Show the changes that make the server match the files.
#[derive(Args)]
#[command(after_help = "\
Examples:
  podium plan -f production.yaml
  podium plan -f environments/ --prune
  podium plan -f production.yaml --exit-code
  podium plan -f production.yaml --output json")]
pub(crate) struct Plan {
    /// Exit with code 8 if something differs.
    #[arg(long)]
    exit_code: bool,
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    setup: Setup,
}

/// Make the server match the files: all changes or none.
#[derive(Args)]
#[command(after_help = "\
Examples:
  podium apply -f production.yaml
  podium apply -f environments/ --prune --yes
  podium export | podium apply -f - --yes --context other
  podium apply cmywpiww00004000000000000 --yes")]
pub(crate) struct Apply {
    /// Apply a plan that podium plan has made, by its id.
    #[arg(value_name = "PLAN", conflicts_with_all = ["file", "prune", "update_secrets", "in_parts"])]
    planned: Option<String>,
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    setup: Setup,
}

const VIEW: View = View::plain("planId", "PLAN planId, EXPIRES expiresAt");

impl Plan {
    pub(crate) async fn run(self) -> Outcome {
        let session = self.setup.open()?;
        let made = self.source.plan(&session).await?;
        let is_table = session.format.is_table();
        let Some(made) = made else {
            eprintln!("Nothing to change.");
            return if is_table { Ok(()) } else { session.show(&json!({ "calls": [] }), &VIEW) };
        };
        if is_table {
            made.show()?;
        } else {
            session.show(&made.raw, &VIEW)?;
        }
        made.refusals()?;
        if !made.is_last {
            eprintln!("This is the first of several plans: podium apply --in-parts");
        } else if let (true, Some(id)) = (is_table, made.plan_id()) {
            eprintln!("To apply exactly this: podium apply {id}");
        }
        match self.exit_code {
            true => Err(Failed::new(Exit::Differs, "")),
            false => Ok(()),
        }
    }
}

impl Apply {
    pub(crate) async fn run(self) -> Outcome {
        let session = self.setup.open()?;
        if session.is_planning() {
            return Plan { exit_code: false, source: self.source, setup: self.setup }.run().await;
        }
        if let Some(planned) = &self.planned {
            let plan_id = plan_id(planned)?;
            session.agree(&format!("Apply the plan {planned}?"))?;
            let applied = apply(&session, plan_id).await?;
            let calls = applied.body()?.calls;
            eprintln!("Applied {} calls.", calls.len());
            match session.format.is_table() {
                true => show_secrets(&calls)?,
                false => session.show(&applied.raw, &VIEW)?,
            }
            return settle(&session, &calls).await;
        }
        for _ in 0..MOST_PARTS {
            let Some(made) = self.source.plan(&session).await? else {
                eprintln!("Nothing to change.");
                return Ok(());
            };
            let is_table = session.format.is_table();
            if is_table {
                made.show()?;
            }
            made.refusals()?;
            session.agree("Apply this plan?")?;
            let Some(id) = made.plan_id() else { return Err(Failed::because("the plan has no id")) };
            let applied = apply(&session, id).await?;
            let calls = applied.body()?.calls;
            if is_table {
                made.show_values(&calls)?;
            } else {
                session.show(&applied.raw, &VIEW)?;
            }
            eprintln!("Applied: {}.", made.counted());
            if made.is_last {
                return settle(&session, &calls).await;
            }
            // The next plan creates deployments on them.
            clusters_are_ready(&session, &calls).await?;
        }
        Err(Failed::because(format!("{MOST_PARTS} plans were applied, and there is still more to change")))
    }
}

/// Follows what a plan has done to deployments and clusters, if that is wanted.
async fn settle(session: &Session, applied: &[AppliedCall]) -> Outcome {
    if !session.wait.is_wanted() {
        return Ok(());
    }
    clusters_are_ready(session, applied).await?;
    for id in made_by(applied, ["CreateDeployment", "UpdateDeployment"]) {
        session.settle(&session.deployment(&id, None).await?).await?;
    }
    let mut names = applied.iter().map(|call| call.operation_id.as_str());
    if names.any(|name| name.contains("EnvironmentObject") || name.starts_with("Delete")) {
        session.follow_plan().await?;
    }
    Ok(())
}

/// Waits for the clusters that a plan has made or changed.
async fn clusters_are_ready(session: &Session, applied: &[AppliedCall]) -> Outcome {
    for id in made_by(applied, ["CreateCluster", "UpdateCluster"]) {
        let path = session.cluster(&id).await?;
        let watch = Watch::new();
        session.wait.until(&watch, is_ready(session, &path, &watch)).await?;
    }
    Ok(())
}

/// The ids of what these operations of a plan have made or changed.
fn made_by(applied: &[AppliedCall], of: [&str; 2]) -> Vec<String> {
    let calls = applied.iter().filter(|call| of.contains(&call.operation_id.as_str()));
    calls.filter_map(|call| Made::by(call).id).collect()
}

#[derive(Deserialize)]
struct Growing {
    name: String,
    status: Word<ClusterStatus>,
}

/// Waits until a cluster is ready.
async fn is_ready(session: &Session, path: &OfCluster, watch: &Watch) -> Outcome {
    const AGAIN: &str = "When the cluster is ready, apply the files again: existing resources are kept.";
    use ClusterStatus::{CreateFailed, Created, FailoverFailed, UpdateFailed};
    let mut round = 0;
    loop {
        let answer = watch.ask(async || session.get::<clusters::Get>(path).await).await?;
        let cluster: Growing = answer.part()?;
        let message = format!("the cluster {} is {}", cluster.name, cluster.status);
        match cluster.status.known() {
            Some(Created) => return Ok(()),
            Some(CreateFailed | UpdateFailed | FailoverFailed) => {
                return Err(Failed::new(Exit::OperationFailed, message).hint(AGAIN));
            }
            _ => {}
        }
        watch.say(&message);
        session.watch_target(path.cluster_id.raw(), &mut round, watch).await?;
        watch.note(message, AGAIN.into());
    }
}

fn plan_id(text: &str) -> Outcome<PlanId> {
    let hint =
        "podium plan -f FILE shows the id of the plan that it makes. To apply a file: podium apply -f FILE";
    id(text, "a plan", hint)
}

/// Applies a plan, all of it or nothing.
async fn apply(session: &Session, plan_id: PlanId) -> Outcome<Answer<api::AppliedPlan>> {
    let path = OfPlan { organization_id: session.organization().await?, plan_id };
    let applied = session
        .client
        .send::<Value>(podium_client::Call::to::<api::Apply>(&path))
        .await
        .map_err(Failed::from);
    applied.map(|done| done.body.into()).map_err(|failed| match failed.exit {
        Exit::Conflict => failed.hint("Make a new plan: podium plan -f FILE"),
        _ => failed,
    })
}

/// Shows what is shown only once, of a plan whose calls are not known here.
fn show_secrets(applied: &[AppliedCall]) -> Outcome {
    let mut out = std::io::stdout().lock();
    for Made { name, token, secret, invite_id, .. } in applied.iter().map(Made::by) {
        let name = name.unwrap_or_default();
        for (word, value) in [("token", token), ("secret", secret)] {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                writeln!(out, "{word} {}: {value}", one_line(&name))?;
            }
        }
        if let Some(id) = invite_id {
            eprintln!("Invited somebody. A link to accept: podium invite link {id}");
        }
    }
    Ok(())
}
