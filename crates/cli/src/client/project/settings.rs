//! What `podium.yaml` says about a deployment, compared with the deployment, and the changes that this takes.
//!
//! Everything is looked up before anything is changed, and all problems are said at once. What the file does not name stays, and
//! where nothing differs nothing is sent: whoever may only deploy still can. The runtime moves with the deploy itself, so that code
//! and runtime go live, and come back, together.

use std::collections::HashMap;
use std::path::Path;

use podium_api::path::OfDeployment;
use podium_api::{clusters, deployments, options, workspaces};
use podium_client::Call;
use serde_json::{Map, Value, json};

use super::links::{self, Unlinked};
use super::{FILE, Project, VariableName, dotenv};
use crate::client::commands::deployments::update_body;
use crate::client::declared::compare::has;
use crate::client::declared::kinds::queue_request;
use crate::client::ending::{Exit, Failed, Outcome, one_line};
use crate::client::fields::given;
use crate::client::progress::beside;
use crate::client::session::{Session, text};

/// How many runtimes are named to choose from.
const MOST_RUNTIMES: usize = 5;

/// What a deployment lacks.
struct Lacking {
    runtime: Option<String>,
    queues: Option<Value>,
    /// Secrets, as requests take them.
    variables: Vec<Value>,
    links: Vec<Unlinked>,
}

impl Project {
    /// The fields of a new deployment, or all reasons why it cannot be as the file says. Without a workspace there is none yet.
    pub(crate) async fn creation(
        &self,
        session: &Session,
        folder: &Path,
        workspace_id: Option<&str>,
    ) -> Outcome<Map<String, Value>> {
        let new = given(json!({ "workspaceId": workspace_id }));
        let lacking = self.lacking(session, folder, &new).await?;
        let mut fields = Map::new();
        fields.extend(lacking.runtime.map(|runtime| ("platformRuntimeVersion".into(), runtime.into())));
        fields.extend(lacking.queues.map(|queues| ("workerQueues".into(), queues)));
        if !lacking.variables.is_empty() {
            fields.insert("environmentVariables".into(), lacking.variables.into());
        }
        Ok(fields)
    }

    /// Changes a deployment to what the file says; gives the runtime that the next deploy has to move it to.
    pub(crate) async fn apply(
        &self,
        session: &Session,
        folder: &Path,
        path: &OfDeployment,
    ) -> Outcome<Option<String>> {
        let Self { runtime, queues, variables, links, .. } = self;
        if runtime.is_none() && queues.is_none() && variables.is_none() && links.is_none() {
            return Ok(None);
        }
        let current = session.get::<deployments::Get>(path).await?;
        let lacking = self.lacking(session, folder, &current).await?;
        let name = one_line(text(&current["name"]));
        let own = lacking.own();
        if !own.is_empty() {
            let edit = |current: &Value| Ok(lacking.body(current));
            let changed = session.edit::<deployments::Get, deployments::Update>(path, edit).await;
            say(&name, &own, changed.map(drop))?;
        }
        for link in &lacking.links {
            say(&name, &format!("link {}", link.name), links::add(session, link, path).await)?;
        }
        if let Some(runtime) = &lacking.runtime {
            let before = one_line(text(&current["platformRuntimeVersion"]));
            beside(|| {
                eprintln!("This deploy moves {name} to runtime {runtime} (from {before}), as {FILE} says.");
            });
        }
        Ok(lacking.runtime)
    }

    /// What the next deploy changes of the deployment itself, a line each.
    pub(crate) async fn planned(
        &self,
        session: &Session,
        folder: &Path,
        path: &OfDeployment,
    ) -> Outcome<Vec<String>> {
        let current = session.get::<deployments::Get>(path).await?;
        let lacking = self.lacking(session, folder, &current).await?;
        let before = text(&current["platformRuntimeVersion"]);
        let runtime = lacking.runtime.iter().map(|runtime| format!("runtime {before} -> {runtime}"));
        let links = lacking.links.iter().map(|link| format!("link {}", link.name));
        let own = Some(lacking.own()).filter(|own| !own.is_empty());
        Ok(runtime.chain(own).chain(links).collect())
    }

    /// What a deployment lacks; one that is not there yet has no id.
    async fn lacking(&self, session: &Session, folder: &Path, current: &Value) -> Outcome<Lacking> {
        let (mut problems, mut unknown) = (Vec::new(), Vec::new());
        // A new deployment is linked later, by the first deploy.
        let is_linked_later = self.is_being_written && current.get("id").is_none();
        let links = self.links.as_deref().filter(|_| !is_linked_later).unwrap_or_default();
        let lacking = Lacking {
            runtime: self.runtime(session, current, &mut problems).await?,
            queues: self.queues(session, current, &mut problems).await?,
            variables: self.variables(folder, current, &mut problems),
            links: links::lacking(session, links, current, &mut unknown).await?,
        };
        match self.is_being_written {
            true => beside(|| unknown.iter().for_each(|problem| eprintln!("Not yet: {}", one_line(problem)))),
            false => problems.append(&mut unknown),
        }
        match problems.is_empty() {
            true => Ok(lacking),
            false => {
                Err(Failed::usage(format!("nothing was done: {FILE} cannot be applied")).details(problems))
            }
        }
    }

    async fn runtime(
        &self,
        session: &Session,
        current: &Value,
        problems: &mut Vec<String>,
    ) -> Outcome<Option<String>> {
        let before = text(&current["platformRuntimeVersion"]);
        let Some(wanted) = self.runtime.as_ref().filter(|wanted| *wanted != before) else { return Ok(None) };
        let call = Call::to::<options::ForDeployments>(&session.in_organization().await?)
            .query_params(&given(json!({ "deploymentId": current.get("id") })))?;
        let options: Value = session.client.send(call).await?.body;
        let releases = options["runtimeReleases"].as_array().into_iter().flatten();
        let offered: Vec<&str> = releases.map(|release| text(&release["version"])).collect();
        if offered.contains(&wanted.as_str()) {
            return Ok(Some(wanted.clone()));
        }
        let choice: Vec<&str> = offered.iter().copied().filter(|version| *version != before).collect();
        let choice = match choice[..choice.len().min(MOST_RUNTIMES)].join(", ") {
            none if none.is_empty() => "no other runtime is offered".to_owned(),
            some => format!("choose from {some}"),
        };
        problems.push(match before {
            "" => format!("runtime: {wanted} is not offered: {choice} (podium deployment options)"),
            before => format!(
                "runtime: {before} cannot be moved to {wanted}: {choice}. To go back to an earlier runtime: podium deploy rollback."
            ),
        });
        Ok(None)
    }

    async fn queues(
        &self,
        session: &Session,
        current: &Value,
        problems: &mut Vec<String>,
    ) -> Outcome<Option<Value>> {
        let Some(queues) = &self.queues else { return Ok(None) };
        let mut pools = Value::Null;
        if queues.iter().any(|queue| queue.node_pool.is_some())
            && let Some(id) = cluster_of(session, current).await?
        {
            pools = session.get::<clusters::Get>(&session.cluster(&id).await?).await?["nodePools"].take();
        }
        let mut requests = Vec::new();
        for (index, queue) in queues.iter().enumerate() {
            let declared = serde_json::to_value(queue).map_err(|error| Failed::because(error.to_string()))?;
            let mut request = queue_request(&declared);
            if let Some(name) = &queue.node_pool {
                let pool = pools
                    .as_array()
                    .into_iter()
                    .flatten()
                    .find(|pool| text(&pool["name"]).eq_ignore_ascii_case(name));
                match pool {
                    Some(pool) => drop(request.insert("nodePoolId".into(), pool["id"].clone())),
                    None => problems.push(format!(
                        "queues[{index}].nodePool: the deployment's cluster has no node pool {name}: see podium cluster get"
                    )),
                }
            }
            requests.push(Value::Object(request));
        }
        let requests = Value::Array(requests);
        let is_same = has("workerQueues", &requests, current.get("workerQueues"));
        Ok(Some(requests).filter(|_| !is_same))
    }

    /// The variables that are not set yet, with their values.
    fn variables(&self, folder: &Path, current: &Value, problems: &mut Vec<String>) -> Vec<Value> {
        let mut values = Values { folder, of_file: None };
        let mut found: Vec<Value> = Vec::new();
        for VariableName(name) in self.variables.iter().flatten() {
            let is_named = |variable: &Value| text(&variable["key"]) == name;
            if is_set(current, name) || found.iter().any(is_named) {
                continue;
            }
            match values.of(name) {
                Ok(value) => found.push(json!({ "key": name, "value": value, "isSecret": true })),
                Err(failed) => problems.push(failed.reason()),
            }
        }
        problems.dedup();
        found
    }
}

/// The cluster of a deployment: where it is, or where a new one will be, if that is certain.
async fn cluster_of(session: &Session, current: &Value) -> Outcome<Option<String>> {
    if let Some(id) = current["clusterId"].as_str() {
        return Ok(Some(id.to_owned()));
    }
    let Some(workspace) = current["workspaceId"].as_str() else { return Ok(None) };
    let workspace = session.get::<workspaces::Get>(&session.workspace(workspace).await?).await?;
    if let Some(id) = workspace["defaultClusterId"].as_str() {
        return Ok(Some(id.to_owned()));
    }
    if workspace["defaultCloudProvider"].is_string() {
        return Ok(None);
    }
    let call = Call::to::<clusters::List>(&session.in_organization().await?);
    let found = session.client.pages(call, Some(2)).next().await?.unwrap_or_default();
    match found.as_slice() {
        [only] => Ok(Some(text(&only["id"]).to_owned())),
        _ => Ok(None),
    }
}

/// Whether a deployment has a variable of this name.
fn is_set(current: &Value, name: &str) -> bool {
    let mut variables = current["environmentVariables"].as_array().into_iter().flatten();
    variables.any(|variable| text(&variable["key"]) == name)
}

/// Where values of variables come from: the environment of the command, or else `.env`.
struct Values<'a> {
    folder: &'a Path,
    of_file: Option<Outcome<HashMap<String, String>>>,
}

impl Values<'_> {
    fn of(&mut self, name: &str) -> Outcome<String> {
        match std::env::var(name) {
            Ok(value) if !value.is_empty() => return Ok(value),
            Err(std::env::VarError::NotUnicode(_)) => {
                return Err(Failed::usage(format!(
                    "variables: the value of {name} in the environment is not valid UTF-8"
                )));
            }
            _ => {}
        }
        let of_file = match self.of_file.get_or_insert_with(|| dotenv::read(self.folder)) {
            Ok(of_file) => of_file,
            Err(failed) => return Err(Failed::usage(failed.reason())),
        };
        of_file.get(name).filter(|value| !value.is_empty()).cloned().ok_or_else(|| {
            let file = self.folder.join(dotenv::FILE);
            Failed::usage(format!(
                "variables: {name} has no value: set it in the environment of this command, or in {}",
                file.display()
            ))
        })
    }
}

impl Lacking {
    /// What changes of the deployment itself, in words.
    fn own(&self) -> String {
        let queues = self.queues.iter().map(|_| "queues".to_owned());
        let variables = self.variables.iter().map(|variable| format!("variable {}", text(&variable["key"])));
        queues.chain(variables).collect::<Vec<_>>().join(", ")
    }

    /// The body of an update. A variable that somebody set meanwhile is kept.
    fn body(&self, current: &Value) -> Value {
        let change = given(json!({ "workerQueues": self.queues }));
        let is_new = |variable: &&Value| !is_set(current, text(&variable["key"]));
        let set: Vec<Value> = self.variables.iter().filter(is_new).cloned().collect();
        update_body(current, &change, &set)
    }
}

/// Says what was changed; or why it was not, and what to do about it.
fn say(name: &str, what: &str, done: Outcome) -> Outcome {
    match done {
        Ok(()) => {
            beside(|| eprintln!("Changed {name} as {FILE} says: {}.", one_line(what)));
            Ok(())
        }
        Err(failed) if failed.status() == Some(403) => {
            let message = format!("{name} differs from {FILE} ({what}), and you may not change that");
            Err(Failed::new(Exit::Refused, message).details([failed.reason()]).hint(format!(
                "Nothing was deployed. Ask somebody who may change it to run podium deploy once, or remove it from {FILE}."
            )))
        }
        Err(failed) => Err(translated(failed)),
    }
}

/// Says what the API's fields are called in the file.
pub(crate) fn translated(failed: Failed) -> Failed {
    match failed.status() {
        Some(400) => failed.hint(format!(
            "In {FILE}, workerQueues are `queues`, environmentVariables `variables`, and platformRuntimeVersion is `runtime`."
        )),
        _ => failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(text: &str) -> Project {
        serde_saphyr::from_str(text).unwrap()
    }

    #[test]
    fn values_come_from_the_environment_or_else_from_the_file() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(".env"), "PATH=not this\nOF_FILE=hidden\nEMPTY=\n").unwrap();
        let mut values = Values { folder: folder.path(), of_file: None };
        assert_eq!(values.of("PATH").ok(), std::env::var("PATH").ok());
        assert_eq!(values.of("OF_FILE").unwrap(), "hidden");
        for name in ["EMPTY", "NOWHERE_AT_ALL"] {
            let said = values.of(name).unwrap_err().reason();
            assert!(said.contains(name) && said.ends_with("/.env"), "{said}");
        }
    }

    #[test]
    fn only_variables_that_are_not_set_need_a_value() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(".env"), "B_OF_TEST=hidden\n").unwrap();
        let project = project("variables: [A_OF_TEST, B_OF_TEST, C_OF_TEST, B_OF_TEST]\n");
        let current = json!({ "environmentVariables": [{ "key": "A_OF_TEST", "isSecret": true }] });
        let mut problems = Vec::new();
        let found = project.variables(folder.path(), &current, &mut problems);
        assert_eq!(found, [json!({ "key": "B_OF_TEST", "value": "hidden", "isSecret": true })]);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].starts_with("variables: C_OF_TEST has no value"), "{problems:?}");
        std::fs::write(folder.path().join(".env"), "hidden\n").unwrap();
        let mut problems = Vec::new();
        project.variables(folder.path(), &json!({}), &mut problems);
        assert!(problems.len() == 1 && problems[0].ends_with("/.env:1: write KEY=VALUE"), "{problems:?}");
    }

    #[test]
    fn a_variable_that_was_set_meanwhile_is_kept() {
        let set = |key: &str| json!({ "key": key, "value": "mine", "isSecret": true });
        let lacking = Lacking {
            runtime: None,
            queues: Some(json!([{ "name": "default" }])),
            variables: vec![set("A"), set("B")],
            links: Vec::new(),
        };
        assert_eq!(lacking.own(), "queues, variable A, variable B");
        let current = json!({ "name": "x", "environmentVariables": [{ "key": "A", "isSecret": true }, { "key": "Z", "value": "z", "isSecret": false }] });
        let body = lacking.body(&current);
        let expected = json!([{ "key": "A", "isSecret": true }, { "key": "Z", "value": "z", "isSecret": false }, set("B")]);
        assert_eq!(
            (&body["environmentVariables"], &body["workerQueues"]),
            (&expected, &json!([{ "name": "default" }]))
        );
    }
}
