//! `podium plan` and `podium apply`.

use std::collections::{BTreeSet, HashMap};
use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;
use podium_api::enums::ClusterStatus;
use podium_api::path::{OfCluster, OfPlan};
use podium_api::plans::{self as api, AppliedCall};
use podium_api::{PlanId, TypedId as _, clusters};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::client::answer::{Answer, Word};
use crate::client::declared::calls::{Planned as Call, Verb, rendered};
use crate::client::declared::files::Declared;
use crate::client::declared::keys::Kind;
use crate::client::declared::planner::{Manner, kinds_of, plan};
use crate::client::declared::printing::{self, Count, Made, Planned};
use crate::client::declared::sets::Sets;
use crate::client::declared::state::State;
use crate::client::ending::{Exit, Failed, Outcome, one_line};
use crate::client::fields::id;
use crate::client::output::View;
use crate::client::session::{Session, Setup, text};
use crate::client::wait::Watch;

/// The most calls of a plan.
const MOST_CALLS: usize = 100;
/// The most plans that one command applies.
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

/// What to apply.
#[derive(Args)]
struct Source {
    /// File or folder of declarations (YAML or JSON); - is standard input. Can be repeated.
    #[arg(long, short, value_name = "FILE")]
    file: Vec<PathBuf>,
    /// Delete resources that the set of the files owns but the files no longer declare.
    #[arg(long)]
    prune: bool,
    /// Send secrets again that already exist; by default existing secrets are kept.
    #[arg(long)]
    update_secrets: bool,
    /// Apply several plans, one after the other, if one is not enough.
    #[arg(long)]
    in_parts: bool,
}

/// Calls, and what the server says that they would do.
struct Changes {
    calls: Vec<Call>,
    plan: Planned,
    raw: Value,
    is_last: bool,
    /// Names by id.
    names: HashMap<String, String>,
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
        printing::refusals(&made.calls, &made.plan.calls)?;
        if !made.is_last {
            eprintln!("This is the first of several plans: podium apply --in-parts");
        } else if let (true, Some(id)) = (is_table, made.plan.plan_id) {
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
            printing::refusals(&made.calls, &made.plan.calls)?;
            session.agree("Apply this plan?")?;
            let Some(id) = made.plan.plan_id else { return Err(Failed::because("the plan has no id")) };
            let applied = apply(&session, id).await?;
            let calls = applied.body()?.calls;
            if is_table {
                show_values(&made.calls, &calls)?;
            } else {
                session.show(&applied.raw, &VIEW)?;
            }
            let count = Count::of(&made.calls).in_words(["created", "changed", "deleted"]);
            eprintln!("Applied: {count}.");
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

/// What a call has answered.
fn result(call: &AppliedCall) -> Made {
    Made::of(call.result.clone().map(Value::Object).as_ref())
}

/// The ids of what these operations of a plan have made or changed.
fn made_by(applied: &[AppliedCall], of: [&str; 2]) -> Vec<String> {
    let calls = applied.iter().filter(|call| of.contains(&call.operation_id.as_str()));
    calls.filter_map(|call| result(call).id).collect()
}

/// What is waited for of a cluster.
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
        session.watch_target(path.cluster_id.raw(), round, watch).await?;
        watch.note(message, AGAIN.into());
        round += 1;
    }
}

/// Whether a call creates a deployment on a cluster that another call creates.
fn is_on_new_cluster(call: &Call, calls: &[Call]) -> bool {
    let Some(body) =
        call.body.as_ref().filter(|_| call.key.kind == Kind::Deployment && call.verb == Verb::Create)
    else {
        return false;
    };
    match body.get("clusterId") {
        Some(cluster) => !cluster.is_string(),
        None if body.get("cloudProvider").is_some() => false,
        // The workspace decides.
        None => calls.iter().any(|other| {
            let is_home = other.key.kind == Kind::Workspace && other.is_about(&body["workspaceId"]);
            let default = other.body.as_ref().and_then(|body| body.get("defaultClusterId"));
            is_home && default.is_some_and(Value::is_object)
        }),
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
    for Made { name, token, secret, invite_id, .. } in applied.iter().map(result) {
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

/// Shows what is shown only once: the values of new tokens.
fn show_values(planned: &[Call], applied: &[AppliedCall]) -> Outcome {
    let mut out = std::io::stdout().lock();
    for (call, made) in planned.iter().zip(applied.iter().map(result)) {
        if let (Kind::Token, Some(value)) = (call.key.kind, made.token) {
            writeln!(out, "token {}: {value}", call.label)?;
        }
        if let Some(id) = made.invite_id {
            eprintln!("Invited {}. A link to accept: podium invite link {id}", call.label);
        }
    }
    Ok(())
}

impl Source {
    /// Plans what it takes; none if everything is as declared.
    async fn plan(&self, session: &Session) -> Outcome<Option<Changes>> {
        if self.file.is_empty() {
            return Err(Failed::usage("no file was given").hint("Name a file or a folder: -f FILE"));
        }
        let declared = Declared::read(&self.file)?;
        if self.prune && declared.set.is_none() {
            return Err(Failed::usage("--prune needs a set: add `set: NAME` to the file")
                .hint("Only resources that the set owns are deleted: those that its files have declared."));
        }
        let sets = Sets::read(session, declared.set.as_deref()).await?;
        let names: BTreeSet<(Kind, String)> = declared
            .entries
            .iter()
            .map(|entry| (entry.key.kind, entry.fields.get("name").map_or("", text).to_lowercase()))
            .collect();
        let is_declared = |kind: Kind, name: &str| names.contains(&(kind, name.to_lowercase()));
        let state = State::read(session, &kinds_of(&declared, &sets), &is_declared).await?;
        let manner = Manner { prunes: self.prune, updates_secrets: self.update_secrets };
        let (mut calls, notes) = plan(session, &state, &declared, &sets, manner).await?;
        for note in notes {
            eprintln!("{note}");
        }
        let most = if declared.set.is_some() { MOST_CALLS - 1 } else { MOST_CALLS };
        let waiting = calls.iter().position(|call| is_on_new_cluster(call, &calls));
        let is_last = calls.len() <= most && waiting.is_none();
        if !is_last && !self.in_parts {
            let message = match waiting {
                Some(index) => format!(
                    "{} runs on a cluster that is new, and a cluster must be ready before deployments are created on it",
                    calls[index].at
                ),
                None => format!("the changes take {} calls, and a plan has at most {most}", calls.len()),
            };
            return Err(Failed::usage(message)
                .hint("Apply fewer files at once, or several plans one after the other: --in-parts"));
        }
        calls.truncate(most.min(waiting.unwrap_or(most)));
        calls.extend(sets.record(&state, &declared, &calls));
        if calls.is_empty() {
            return Ok(None);
        }
        let organization = session.in_organization().await?;
        let planned = rendered(&calls, organization.organization_id.as_str());
        let plan = session.plan_of(planned).await?;
        Ok(Some(Changes { calls, plan: plan.part()?, raw: plan.raw, is_last, names: state.labels() }))
    }
}

impl Changes {
    fn show(&self) -> Outcome {
        let mut out = std::io::stdout().lock();
        out.write_all(printing::plan(&self.calls, &self.plan.calls, self.names.clone()).as_bytes())?;
        Ok(())
    }
}
