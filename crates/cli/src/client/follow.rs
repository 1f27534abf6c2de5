//! Follows what a command has started: each operation live, to its end, and then its target until it has settled.

use podium_api::path::{OfDeployment, OfOperation};
use podium_api::{OperationId, OrganizationId, Timestamp, deployments, operations};
use podium_client::{Call, Fetched};
use serde_json::{Value, json};

use super::ending::{Exit, Failed, Outcome, one_line};
use super::progress::{beside, pause};
use super::session::{Session, text};
use super::wait::Watch;

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
            eprintln!("{}: {}", one_line(&what(&operation)), one_line(text(&operation["state"])));
        }
        Ok(())
    }

    /// Follows what the last change of an environment object does to deployments, if that is wanted. Of one that is gone
    /// the time of the change is not known: then what is under way is followed.
    pub(crate) async fn follow_roll_outs(&self, object: Option<&Value>) -> Outcome {
        let since = object.and_then(|object| object["updatedAt"].as_str());
        self.follow_own(since, |operation| text(&operation["cause"]) == "ENVIRONMENT_OBJECT").await
    }

    /// Follows the caller's own operations that are chosen, if that is wanted: those since a time, or else those that are
    /// under way.
    pub(crate) async fn follow_own(
        &self,
        since: Option<&str>,
        is_chosen: impl Fn(&Value) -> bool,
    ) -> Outcome {
        if !self.wait.is_wanted() || self.is_planning() {
            return Ok(());
        }
        let own = match since {
            Some(time) => json!({ "subjectId": "self", "since": time }),
            None => json!({ "subjectId": "self", "states": ["PENDING", "RUNNING"] }),
        };
        let organization = self.in_organization().await?;
        let call = Call::to::<operations::List>(&organization).query_params(&own)?;
        let mut pages = self.client.pages(call, None);
        while let Some(page) = pages.next().await? {
            let ids = page.iter().filter(|operation| is_chosen(operation)).filter_map(id_of);
            let paths = ids.map(|id| operation_path(organization.organization_id, id));
            self.started.borrow_mut().extend(paths);
        }
        self.follow().await
    }

    /// Waits until a deployment has settled, if that is wanted.
    pub(crate) async fn settle_if_wanted(&self, path: &OfDeployment) -> Outcome {
        if self.wait.is_wanted() { self.settle(path).await.map(drop) } else { Ok(()) }
    }

    /// Waits until a deployment has settled; it is an error if it did not become healthy.
    pub(crate) async fn settle(&self, path: &OfDeployment) -> Outcome<Value> {
        let watch = Watch::new();
        let settled = self.wait.until(&watch, self.settled(path, &watch)).await?;
        drop(watch);
        say_settled(&settled);
        Ok(settled)
    }

    /// A deployment once what is done to it has ended; it is an error if it is not healthy then.
    pub(crate) async fn settled(&self, path: &OfDeployment, watch: &Watch) -> Outcome<Value> {
        self.catch_up(watch).await?;
        let mut round = 0;
        loop {
            let now = watch.ask(async || self.get::<deployments::Get>(path).await).await?;
            let (name, status, reason) =
                (text(&now["name"]), text(&now["status"]), text(&now["statusReason"]));
            if is_settled(&now) {
                return match status {
                    "HEALTHY" | "HIBERNATING" => Ok(now),
                    _ => {
                        let message = format!("{name} is {status}: {reason}");
                        Err(Failed::new(Exit::OperationFailed, message).hint(its_logs(name)))
                    }
                };
            }
            let why = if reason.is_empty() { String::new() } else { format!(": {reason}") };
            watch.say(&format!("{name} is {status}{why}"));
            let again = format!("To wait for it again: podium deployment wait {name:?}");
            watch.note(format!("{name} is still {status}{why}"), again);
            self.watch_target(path.deployment_id.as_str(), round, watch).await?;
            round += 1;
        }
    }

    /// Follows what is under way for a deployment or a cluster, whoever started it; if nothing is, waits a little.
    pub(crate) async fn watch_target(&self, target: &str, round: usize, watch: &Watch) -> Outcome {
        let organization = self.in_organization().await?;
        let open = json!({ "targetIds": [target], "states": ["PENDING", "RUNNING"] });
        let call = Call::to::<operations::List>(&organization).query_params(&open)?;
        let page = watch.ask(async || Ok(self.client.pages(call.clone(), Some(1)).next().await?)).await?;
        match page.unwrap_or_default().first().and_then(id_of) {
            Some(id) => _ = self.ended(operation_path(organization.organization_id, id), watch).await?,
            None => pause(round).await,
        }
        Ok(())
    }

    /// Follows what this command has started, one after the other. It is an error if the last one of a target did not
    /// succeed: an earlier one does not count any more.
    async fn catch_up(&self, watch: &Watch) -> Outcome<Vec<Value>> {
        let mut ended: Vec<Value> = Vec::new();
        for path in self.started.take() {
            match self.to_end(path, watch).await {
                Ok(operation) => {
                    ended.retain(|earlier| earlier["target"]["id"] != operation["target"]["id"]);
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
    async fn to_end(&self, path: OfOperation, watch: &Watch) -> Outcome<Value> {
        let mut operation = self.ended(path, watch).await?;
        while text(&operation["state"]) == "SUPERSEDED" {
            let Ok(next) = text(&operation["supersededById"]).parse() else { break };
            operation = self.ended(operation_path(path.organization_id, next), watch).await?;
        }
        Ok(operation)
    }

    /// Follows an operation to its end, whatever that is.
    pub(crate) async fn ended(&self, path: OfOperation, watch: &Watch) -> Outcome<Value> {
        let id = path.operation_id;
        watch.note(format!("the operation {id} has not ended"), again(id, false));
        let (mut last, mut round, mut told, mut operation) = (None, 0, 0, Value::Null);
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
                operation = serde_json::from_str(&event.data)
                    .map_err(|_| Failed::because("the server sent an operation that is not JSON"))?;
                told = tell(&operation, told, id, watch);
            }
            if is_ended(&operation) {
                return Ok(operation);
            }
            pause(round).await;
            round += 1;
        }
    }
}

fn operation_path(organization_id: OrganizationId, operation_id: OperationId) -> OfOperation {
    OfOperation { organization_id, operation_id }
}

fn id_of(operation: &Value) -> Option<OperationId> {
    text(&operation["id"]).parse().ok()
}

/// Says how a deployment has settled.
pub(crate) fn say_settled(deployment: &Value) {
    eprintln!("{} is {}.", one_line(text(&deployment["name"])), one_line(text(&deployment["status"])));
}

/// Says what an operation is doing, and which of its steps have ended since this many were told.
fn tell(operation: &Value, told: usize, id: OperationId, watch: &Watch) -> usize {
    let ended: Vec<String> = operation["steps"].as_array().into_iter().flatten().map_while(took).collect();
    ended.iter().skip(told).for_each(|step| watch.keep(step));
    if is_ended(operation) {
        return told;
    }
    watch.say(&line(operation));
    let is_cancellable = operation["isCancellable"] == json!(true);
    let stands = format!("{} is still {}", what(operation), text(&operation["state"]));
    watch.note(stands, again(id, is_cancellable));
    told.max(ended.len())
}

/// How long a step took; none if it has not ended.
fn took(step: &Value) -> Option<String> {
    let time = |field: &str| Timestamp::parse(text(&step[field])).map(Timestamp::millis);
    let seconds = std::time::Duration::from_millis(
        u64::try_from(time("endedAt")? - time("startedAt")?).unwrap_or_default(),
    )
    .as_secs_f64();
    Some(format!("  {:<9} {seconds:.1} s", text(&step["name"])))
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

fn what(operation: &Value) -> String {
    format!("{} of {}", text(&operation["kind"]), text(&operation["target"]["name"]))
}

/// Why an operation did not succeed, if it did not, and what to do about it.
pub(crate) fn failure(operation: &Value) -> Option<Failed> {
    let (target, failure) = (&operation["target"], &operation["failure"]);
    match text(&operation["state"]) {
        "FAILED" => {
            let message = format!("{} failed: {}", what(operation), text(&failure["reason"]));
            let mut hint = text(&failure["hint"]).to_owned();
            if text(&target["type"]) == "DEPLOYMENT" && text(&operation["kind"]) != "DELETE" {
                hint = format!("{hint}\n{}", its_logs(text(&target["name"])));
            }
            Some(Failed::new(Exit::OperationFailed, message).hint(hint))
        }
        "CANCELLED" => {
            let failed = Failed::new(Exit::OperationFailed, format!("{} was cancelled", what(operation)));
            Some(failed.hint("The previous settings were restored."))
        }
        _ => None,
    }
}

fn is_ended(operation: &Value) -> bool {
    operation.get("endedAt").is_some()
}

/// What an operation is doing, in one line.
fn line(operation: &Value) -> String {
    let mut line = format!("{}: {}", what(operation), text(&operation["state"]));
    let step = operation["steps"].as_array().and_then(|steps| steps.last());
    if let Some(step) = step.filter(|step| step.get("endedAt").is_none()) {
        line += &format!(", {}", text(&step["name"]));
    }
    let progress = &operation["progress"];
    if let (Some(done), Some(total)) = (progress["done"].as_u64(), progress["total"].as_u64()) {
        line += &format!(" {done} of {total}");
    }
    if !text(&progress["message"]).is_empty() {
        line += &format!(": {}", text(&progress["message"]));
    }
    let tasks: Vec<&str> = progress["waitsFor"].as_array().into_iter().flatten().map(text).collect();
    if !tasks.is_empty() {
        line += &format!(" (waits for {})", tasks.join(", "));
    }
    line
}

/// Whether the data plane has done what it was told. A status that only a newer server knows is waited for.
fn is_settled(deployment: &Value) -> bool {
    let is_known = matches!(text(&deployment["status"]), "HEALTHY" | "UNHEALTHY" | "HIBERNATING" | "UNKNOWN");
    let (wanted, live) = (&deployment["desiredDagTarballVersion"], &deployment["dagTarballVersion"]);
    let is_hibernating = text(&deployment["status"]) == "HIBERNATING";
    let is_failed = text(&deployment["status"]) == "UNHEALTHY";
    is_known && (is_hibernating || is_failed || text(wanted) == text(live))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_an_operation_is_doing() {
        let target = json!({ "name": "nightly" });
        let pending = json!({ "kind": "DEPLOY", "target": target, "state": "PENDING", "steps": [] });
        assert_eq!(line(&pending), "DEPLOY of nightly: PENDING");
        let running = json!({
            "kind": "DEPLOY", "target": target, "state": "RUNNING",
            "steps": [{ "name": "UNPACK", "endedAt": "x" }, { "name": "PACKAGES" }],
            "progress": { "done": 3, "total": 7, "message": "Installing pandas", "waitsFor": ["a/b/c"] },
        });
        assert_eq!(
            line(&running),
            "DEPLOY of nightly: RUNNING, PACKAGES 3 of 7: Installing pandas (waits for a/b/c)"
        );
    }

    #[test]
    fn a_step_that_has_ended_says_how_long_it_took() {
        let step = json!({
            "name": "PACKAGES", "startedAt": "2026-11-18T10:00:00.000Z", "endedAt": "2026-11-18T10:00:12.345Z",
        });
        assert_eq!(took(&step).as_deref(), Some("  PACKAGES  12.3 s"));
        assert_eq!(took(&json!({ "name": "PARSE", "startedAt": "2026-11-18T10:00:00.000Z" })), None);
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
            let deployment =
                json!({ "status": status, "desiredDagTarballVersion": wanted, "dagTarballVersion": live });
            assert_eq!(is_settled(&deployment), expected, "{deployment}");
        }
    }
}
