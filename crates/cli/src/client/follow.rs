//! Follows what a command has started: each operation live, to its end, and then its target until it has settled.

use podium_api::deployments::{self, Deployment};
use podium_api::enums::{
    DeploymentStatus, OperationCause, OperationKind, OperationState, OperationStepName, OperationTargetType,
};
use podium_api::operations::{self, ListOperations, OperationFailure, OperationProgress};
use podium_api::path::{OfDeployment, OfOperation};
use podium_api::{Id, Named, OperationId, OrganizationId, Shown, SubjectId, Timestamp, TypedId as _};
use podium_client::{Call, Fetched};
use serde::Deserialize;
use serde_json::Value;

use super::answer::{Answer, Word, read};
use super::ending::{Exit, Failed, Outcome, one_line};
use super::progress::{beside, pause};
use super::session::Session;
use super::wait::Watch;

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Operation {
    id: OperationId,
    kind: Word<OperationKind>,
    cause: Word<OperationCause>,
    state: Word<OperationState>,
    target: Target,
    steps: Vec<Step>,
    progress: Option<OperationProgress>,
    failure: Option<OperationFailure>,
    #[serde(default)]
    is_cancellable: bool,
    pub(crate) superseded_by_id: Option<OperationId>,
    ended_at: Option<Timestamp>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Target {
    pub(crate) id: Id,
    name: String,
    #[serde(rename = "type")]
    kind: Word<OperationTargetType>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Step {
    name: Word<OperationStepName>,
    started_at: Timestamp,
    ended_at: Option<Timestamp>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Now {
    pub(crate) name: String,
    pub(crate) status: Word<DeploymentStatus>,
    #[serde(default)]
    pub(crate) status_reason: String,
    dag_tarball_version: Option<String>,
    desired_dag_tarball_version: Option<String>,
}

impl Now {
    pub(crate) fn why(&self) -> String {
        if self.status_reason.is_empty() { String::new() } else { format!(": {}", self.status_reason) }
    }

    /// Whether the data plane has done what it was told. A status that only a newer server knows is waited for.
    fn is_settled(&self) -> bool {
        match self.status.known() {
            Some(DeploymentStatus::Hibernating | DeploymentStatus::Unhealthy) => true,
            Some(DeploymentStatus::Healthy | DeploymentStatus::Unknown) => {
                self.desired_dag_tarball_version == self.dag_tarball_version
            }
            _ => false,
        }
    }
}

pub(crate) type Deployed = Answer<Shown<Deployment>>;

impl Session {
    /// Keeps in mind the operation that a change has started.
    pub(super) fn note_started<T>(&self, sent: Fetched<T>) -> T {
        let started = self.known_organization().zip(sent.operation);
        self.started.borrow_mut().extend(started.map(|(of, id)| operation_path(of, id)));
        sent.body
    }

    /// Follows what this command has started, if that is wanted.
    pub(crate) async fn follow(&self) -> Outcome {
        if !self.wait.is_wanted() {
            return Ok(());
        }
        let watch = Watch::new();
        let ended = self.wait.until(&watch, self.catch_up(&watch)).await?;
        drop(watch);
        for operation in ended {
            eprintln!("{}: {}", one_line(&what(&operation)), one_line(&operation.state.to_string()));
        }
        Ok(())
    }

    /// Follows what the last change of an environment object does to deployments, if that is wanted. Of one that is gone
    /// the time of the change is not known: then what is under way is followed.
    pub(crate) async fn follow_roll_outs(&self, since: Option<Timestamp>) -> Outcome {
        self.follow_own(since, |operation| operation.cause.is(OperationCause::EnvironmentObject)).await
    }

    /// Follows what a plan with deletions or environment objects has started, if that is wanted.
    pub(crate) async fn follow_plan(&self) -> Outcome {
        let is_of_plan = |operation: &Operation| {
            operation.cause.is(OperationCause::EnvironmentObject) || operation.kind.is(OperationKind::Delete)
        };
        self.follow_own(None, is_of_plan).await
    }

    /// Follows the caller's own operations that are chosen, if that is wanted: those since a time, or else those that are
    /// under way.
    async fn follow_own(&self, since: Option<Timestamp>, is_chosen: impl Fn(&Operation) -> bool) -> Outcome {
        if !self.wait.is_wanted() || self.is_planning() {
            return Ok(());
        }
        let states = if since.is_some() { Vec::new() } else { UNDER_WAY.to_vec() };
        let subject_id = Some(Named::<SubjectId>::from("self"));
        let own = ListOperations { subject_id, since, states, ..ListOperations::default() };
        let organization = self.in_organization().await?;
        let all: Vec<Operation> = self.all::<operations::List, _>(&organization, &own, None).await?;
        let ids = all.iter().filter(|operation| is_chosen(operation)).map(|operation| operation.id);
        let paths = ids.map(|id| operation_path(organization.organization_id, id));
        self.started.borrow_mut().extend(paths);
        self.follow().await
    }

    /// Waits until a deployment has settled, if that is wanted.
    pub(crate) async fn settle_if_wanted(&self, path: &OfDeployment) -> Outcome {
        if self.wait.is_wanted() { self.settle(path).await.map(drop) } else { Ok(()) }
    }

    /// Waits until a deployment has settled; it is an error if it did not become healthy.
    pub(crate) async fn settle(&self, path: &OfDeployment) -> Outcome<Deployed> {
        let watch = Watch::new();
        let settled = self.wait.until(&watch, self.settled(path, &watch)).await?;
        drop(watch);
        say_settled(&settled)?;
        Ok(settled)
    }

    /// A deployment once what is done to it has ended; it is an error if it is not healthy then.
    pub(crate) async fn settled(&self, path: &OfDeployment, watch: &Watch) -> Outcome<Deployed> {
        self.catch_up(watch).await?;
        let mut round = 0;
        loop {
            let answer = watch.ask(async || self.get::<deployments::Get>(path).await).await?;
            let now: Now = answer.part()?;
            let (name, status, why) = (&now.name, &now.status, now.why());
            if now.is_settled() {
                return match status.known() {
                    Some(DeploymentStatus::Healthy | DeploymentStatus::Hibernating) => Ok(answer),
                    _ => {
                        let message = format!("{name} is {status}: {}", now.status_reason);
                        Err(Failed::new(Exit::OperationFailed, message).hint(its_logs(name)))
                    }
                };
            }
            watch.say(&format!("{name} is {status}{why}"));
            let again = format!("To wait for it again: podium deployment wait {name:?}");
            watch.note(format!("{name} is still {status}{why}"), again);
            self.watch_target(path.deployment_id.raw(), &mut round, watch).await?;
        }
    }

    /// Follows what is under way for a deployment or a cluster, whoever started it; if nothing is, waits a little.
    pub(crate) async fn watch_target(&self, target: Id, round: &mut usize, watch: &Watch) -> Outcome {
        let organization = self.in_organization().await?;
        let (target_ids, states) = (vec![target.into()], UNDER_WAY.to_vec());
        let open = ListOperations { target_ids, states, ..ListOperations::default() };
        let ask = async || self.all::<operations::List, Operation>(&organization, &open, Some(1)).await;
        match watch.ask(ask).await?.first() {
            Some(first) => {
                _ = self.ended(operation_path(organization.organization_id, first.id), watch).await?;
            }
            None => pause(round).await,
        }
        Ok(())
    }

    /// Follows what this command has started, one after the other. It is an error if the last one of a target did not
    /// succeed: an earlier one does not count any more.
    async fn catch_up(&self, watch: &Watch) -> Outcome<Vec<Operation>> {
        let mut ended: Vec<Operation> = Vec::new();
        for path in self.started.take() {
            match self.to_end(path, watch).await {
                Ok(operation) => {
                    ended.retain(|earlier| earlier.target.id != operation.target.id);
                    ended.push(operation);
                }
                // With the deployment that it deletes, a caller may lose the right to see the operation.
                Err(failed) if failed.exit == Exit::NotFound => {
                    let id = path.operation_id;
                    beside(|| eprintln!("The operation {id} continues, but you can no longer see it."));
                }
                Err(failed) => return Err(failed),
            }
        }
        match ended.iter().find_map(failure) {
            Some(failed) => Err(failed),
            None => Ok(ended),
        }
    }

    /// Follows an operation to its end, or that of the one which took its place.
    async fn to_end(&self, path: OfOperation, watch: &Watch) -> Outcome<Operation> {
        let (mut operation, _) = self.ended(path, watch).await?;
        while operation.state.is(OperationState::Superseded) {
            let Some(next) = operation.superseded_by_id else { break };
            (operation, _) = self.ended(operation_path(path.organization_id, next), watch).await?;
        }
        Ok(operation)
    }

    /// Follows an operation to its end, whatever that is; it comes as it was sent, too.
    pub(crate) async fn ended(&self, path: OfOperation, watch: &Watch) -> Outcome<(Operation, Value)> {
        let id = path.operation_id;
        watch.note(format!("the operation {id} has not ended"), again(id, false));
        let (mut last, mut round, mut told, mut ended) = (None, 0, 0, None);
        loop {
            let mut stream = watch
                .ask(async || {
                    let call = Call::to::<operations::Follow>(&path).after_event(last.clone());
                    Ok(self.client.events(&call).await?)
                })
                .await?;
            while let Ok(Some(event)) = stream.next().await {
                round = 0;
                last = event.id.or(last);
                let raw: Value = serde_json::from_str(&event.data)
                    .map_err(|_| Failed::because("the server sent an operation that is not JSON"))?;
                let operation: Operation = read(&raw)?;
                told = tell(&operation, told, id, watch);
                ended = operation.ended_at.is_some().then_some((operation, raw));
            }
            if let Some(ended) = ended.take() {
                return Ok(ended);
            }
            pause(&mut round).await;
        }
    }
}

/// The states of what has not ended.
pub(crate) const UNDER_WAY: [OperationState; 2] = [OperationState::Pending, OperationState::Running];

fn operation_path(organization_id: OrganizationId, operation_id: OperationId) -> OfOperation {
    OfOperation { organization_id, operation_id }
}

pub(crate) fn say_settled(settled: &Deployed) -> Outcome {
    let now: Now = settled.part()?;
    eprintln!("{} is {}.", one_line(&now.name), one_line(&now.status.to_string()));
    Ok(())
}

/// Says what an operation is doing, and which of its steps have ended since this many were told.
fn tell(operation: &Operation, told: usize, id: OperationId, watch: &Watch) -> usize {
    let ended: Vec<String> = operation.steps.iter().map_while(took).collect();
    ended.iter().skip(told).for_each(|step| watch.keep(step));
    if operation.ended_at.is_some() {
        return told;
    }
    watch.say(&line(operation));
    let stands = format!("{} is still {}", what(operation), operation.state);
    watch.note(stands, again(id, operation.is_cancellable));
    told.max(ended.len())
}

/// How long a step took; none if it has not ended.
fn took(step: &Step) -> Option<String> {
    let millis = step.ended_at?.millis() - step.started_at.millis();
    let seconds = std::time::Duration::from_millis(u64::try_from(millis).unwrap_or_default()).as_secs_f64();
    Some(format!("  {:<9} {seconds:.1} s", step.name.to_string()))
}

/// What to type to come back to an operation.
fn again(id: OperationId, is_cancellable: bool) -> String {
    let follow = format!("To follow it again: podium operation follow {id}");
    match is_cancellable {
        true => format!("{follow}\nTo cancel it: podium operation cancel {id}"),
        false => follow,
    }
}

fn its_logs(name: &str) -> String {
    format!("Its logs: podium logs --deployment {:?} --since 1h", one_line(name))
}

fn what(operation: &Operation) -> String {
    format!("{} of {}", operation.kind, operation.target.name)
}

/// Why an operation did not succeed, if it did not, and what to do about it.
pub(crate) fn failure(operation: &Operation) -> Option<Failed> {
    let failed = |why: String| Failed::new(Exit::OperationFailed, format!("{} {why}", what(operation)));
    match operation.state.known()? {
        OperationState::Failed => {
            let nothing = OperationFailure { reason: String::new(), hint: String::new() };
            let OperationFailure { reason, mut hint } = operation.failure.clone().unwrap_or(nothing);
            let target = &operation.target;
            if target.kind.is(OperationTargetType::Deployment) && !operation.kind.is(OperationKind::Delete) {
                hint = format!("{hint}\n{}", its_logs(&target.name));
            }
            Some(failed(format!("failed: {reason}")).hint(hint))
        }
        OperationState::Cancelled => {
            Some(failed("was cancelled".to_owned()).hint("The previous settings were restored."))
        }
        _ => None,
    }
}

fn line(operation: &Operation) -> String {
    let mut line = format!("{}: {}", what(operation), operation.state);
    if let Some(step) = operation.steps.last().filter(|step| step.ended_at.is_none()) {
        line += &format!(", {}", step.name);
    }
    let Some(progress) = &operation.progress else { return line };
    if let (Some(done), Some(total)) = (progress.done, progress.total) {
        line += &format!(" {done} of {total}");
    }
    if let Some(message) = progress.message.as_ref().filter(|message| !message.is_empty()) {
        line += &format!(": {message}");
    }
    if !progress.waits_for.is_empty() {
        line += &format!(" (waits for {})", progress.waits_for.join(", "));
    }
    line
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "it is written where it is given")]
    fn operation(more: Value) -> Operation {
        let mut operation = json!({
            "id": "c00000000000000000000000a", "kind": "DEPLOY", "cause": "CALL", "state": "PENDING", "steps": [],
            "target": { "id": "c00000000000000000000000b", "name": "nightly", "type": "DEPLOYMENT" },
        });
        operation.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        read(&operation).unwrap()
    }

    fn step(name: &str, ended: Option<&str>) -> Value {
        json!({ "name": name, "startedAt": "2026-11-18T10:00:00.000Z", "endedAt": ended })
    }

    #[test]
    fn a_line_says_what_an_operation_is_doing() {
        assert_eq!(line(&operation(json!({}))), "DEPLOY of nightly: PENDING");
        let running = operation(json!({
            "state": "RUNNING",
            "steps": [step("UNPACK", Some("2026-11-18T10:00:00.000Z")), step("PACKAGES", None)],
            "progress": { "done": 3, "total": 7, "message": "Installing pandas", "waitsFor": ["a/b/c"] },
        }));
        assert_eq!(
            line(&running),
            "DEPLOY of nightly: RUNNING, PACKAGES 3 of 7: Installing pandas (waits for a/b/c)"
        );
    }

    #[test]
    fn a_step_that_has_ended_says_how_long_it_took() {
        let took = |step: Value| super::took(&read(&step).unwrap());
        let ended = step("PACKAGES", Some("2026-11-18T10:00:12.345Z"));
        assert_eq!(took(ended).as_deref(), Some("  PACKAGES  12.3 s"));
        assert_eq!(took(step("PARSE", None)), None);
    }

    #[test]
    fn a_deployment_has_settled_when_it_runs_what_it_was_told() {
        let table = [
            ("CREATING", "", "", false),
            ("DEPLOYING", "2", "2", false),
            ("OF_A_NEWER_SERVER", "2", "2", false),
            ("HEALTHY", "2", "1", false),
            ("HEALTHY", "2", "2", true),
            ("HEALTHY", "", "", true),
            ("UNHEALTHY", "2", "1", true),
            ("HIBERNATING", "2", "1", true),
        ];
        for (status, wanted, live, expected) in table {
            let versions = json!({ "desiredDagTarballVersion": wanted, "dagTarballVersion": live });
            let mut deployment = json!({ "name": "nightly", "status": status });
            deployment.as_object_mut().unwrap().extend(versions.as_object().unwrap().clone());
            assert_eq!(read::<Now>(&deployment).unwrap().is_settled(), expected, "{deployment}");
        }
    }
}
