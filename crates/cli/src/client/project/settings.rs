//! What `podium.yaml` says about a deployment, compared with the deployment, and the changes that this takes.
//!
//! Everything is looked up before anything is changed, and all problems are said at once. What the file does not name stays, and
//! where nothing differs nothing is sent: whoever may only deploy still can. The runtime moves with the deploy itself, so that code
//! and runtime go live, and come back, together.

use std::collections::HashMap;
use std::path::Path;

use podium_api::deployments::{
    self, CreateDeploymentRequest, DeploymentEnvironmentVariableRequest as Variable, WorkerQueueRequest,
};
use podium_api::enums::ErrorCode;
use podium_api::options::{self, GetDeploymentOptions};
use podium_api::path::{OfCluster, OfDeployment, OfWorkspace};
use podium_api::{ClusterId, NodePoolId, Nothing, WorkspaceId, clusters, workspaces};
use serde::Deserialize;
use serde_json::{Value, json};

use super::links::{self, Current, Unlinked};
use super::{FILE, Project, VariableName, dotenv};
use crate::client::answer::read;
use crate::client::declared::has;
use crate::client::ending::{Exit, Failed, Outcome, one_line};
use crate::client::fields::given;
use crate::client::follow::Deployed;
use crate::client::kept::Kept;
use crate::client::names::{Called, Pools};
use crate::client::progress::beside;
use crate::client::session::Session;

/// How many runtimes are named to choose from.
const MOST_RUNTIMES: usize = 5;

struct Lacking {
    runtime: Option<String>,
    queues: Option<Vec<WorkerQueueRequest>>,
    /// Secrets.
    variables: Vec<Variable>,
    links: Vec<Unlinked>,
}

impl Project {
    /// A new deployment, or all reasons why it cannot be as the file says.
    pub(crate) async fn creation(
        &self,
        session: &Session,
        folder: &Path,
        name: &str,
        workspace_id: WorkspaceId,
    ) -> Outcome<CreateDeploymentRequest> {
        let new = Current { workspace_id: Some(workspace_id), ..Current::default() };
        let lacking = self.lacking(session, folder, &new).await?;
        let named: CreateDeploymentRequest = read(&json!({ "name": name, "workspaceId": workspace_id }))?;
        Ok(CreateDeploymentRequest {
            platform_runtime_version: lacking.runtime,
            worker_queues: lacking.queues,
            environment_variables: Some(lacking.variables).filter(|all| !all.is_empty()),
            ..named
        })
    }

    /// Says all reasons why a deployment cannot be made whose workspace is not there yet.
    pub(crate) async fn can_be_created(&self, session: &Session, folder: &Path) -> Outcome {
        self.lacking(session, folder, &Current::default()).await.map(drop)
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
        let current: Current = session.get::<deployments::Get>(path).await?.part()?;
        let lacking = self.lacking(session, folder, &current).await?;
        let name = one_line(&current.name);
        let own = lacking.own();
        if !own.is_empty() {
            let edit = |now: &Deployed| Ok(lacking.body(now.part()?));
            let changed = session.edit_part::<deployments::Get, deployments::Update, _>(path, edit).await;
            say(&name, &own, changed.map(drop))?;
        }
        for link in &lacking.links {
            say(&name, &format!("link {}", link.name), links::add(session, link, path).await)?;
        }
        if let Some(runtime) = &lacking.runtime {
            let before = one_line(&current.platform_runtime_version);
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
        let current: Current = session.get::<deployments::Get>(path).await?.part()?;
        let lacking = self.lacking(session, folder, &current).await?;
        let before = &current.platform_runtime_version;
        let runtime = lacking.runtime.iter().map(|runtime| format!("runtime {before} -> {runtime}"));
        let links = lacking.links.iter().map(|link| format!("link {}", link.name));
        let own = Some(lacking.own()).filter(|own| !own.is_empty());
        Ok(runtime.chain(own).chain(links).collect())
    }

    /// What a deployment lacks; one that is not there yet has no id.
    async fn lacking(&self, session: &Session, folder: &Path, current: &Current) -> Outcome<Lacking> {
        let (mut problems, mut unknown) = (Vec::new(), Vec::new());
        // A new deployment is linked later, by the first deploy.
        let is_linked_later = self.is_being_written && current.id.is_none();
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
        current: &Current,
        problems: &mut Vec<String>,
    ) -> Outcome<Option<String>> {
        let before = current.platform_runtime_version.as_str();
        let Some(wanted) = self.runtime.as_ref().filter(|wanted| *wanted != before) else { return Ok(None) };
        let deployment_id = current.id.map(Into::into);
        let query = GetDeploymentOptions { deployment_id, ..GetDeploymentOptions::default() };
        let organization = session.in_organization().await?;
        let options = session.ask::<options::ForDeployments>(&organization, &query).await?.raw;
        let releases = options["runtimeReleases"].as_array().into_iter().flatten();
        let offered: Vec<&str> = releases.filter_map(|release| release["version"].as_str()).collect();
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
        current: &Current,
        problems: &mut Vec<String>,
    ) -> Outcome<Option<Vec<WorkerQueueRequest>>> {
        let Some(queues) = &self.queues else { return Ok(None) };
        let mut pools = Vec::new();
        if queues.iter().any(|queue| queue.node_pool.is_some())
            && let Some(path) = cluster_of(session, current).await?
        {
            pools = session.get::<clusters::Get>(&path).await?.part::<Pools>()?.node_pools;
        }
        let mut requests = Vec::new();
        for (index, queue) in queues.iter().enumerate() {
            let mut node_pool_id = None;
            if let Some(name) = &queue.node_pool {
                match pools.iter().find(|pool| pool.name.eq_ignore_ascii_case(name)) {
                    Some(pool) => node_pool_id = Some(NodePoolId::from_raw(pool.id)),
                    None => problems.push(format!(
                        "queues[{index}].nodePool: the deployment's cluster has no node pool {name}: see podium cluster get"
                    )),
                }
            }
            requests.push(WorkerQueueRequest {
                id: None,
                name: queue.name.clone(),
                is_default: queue.name == "default",
                platform_machine: queue.platform_machine,
                node_pool_id,
                min_worker_count: queue.min_worker_count,
                max_worker_count: queue.max_worker_count,
                worker_concurrency: queue.worker_concurrency,
                pod_ephemeral_storage: queue.pod_ephemeral_storage.clone(),
            });
        }
        let is_same = has("workerQueues", &json!(requests), Some(&current.worker_queues));
        Ok(Some(requests).filter(|_| !is_same))
    }

    /// The variables that are not set yet, with their values.
    fn variables(&self, folder: &Path, current: &Current, problems: &mut Vec<String>) -> Vec<Variable> {
        let mut values = Values { folder, of_file: None };
        let mut found: Vec<Variable> = Vec::new();
        for VariableName(name) in self.variables.iter().flatten() {
            if current.environment_variables.iter().chain(&found).any(|variable| variable.key == *name) {
                continue;
            }
            match values.of(name) {
                Ok(value) => {
                    found.push(Variable { key: name.clone(), value: Some(value), is_secret: true });
                }
                Err(failed) => problems.push(failed.reason()),
            }
        }
        problems.dedup();
        found
    }
}

/// Where new deployments of a workspace are.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Defaults {
    default_cluster_id: Option<ClusterId>,
    default_cloud_provider: Option<String>,
}

/// The cluster of a deployment: where it is, or where a new one will be, if that is certain.
async fn cluster_of(session: &Session, current: &Current) -> Outcome<Option<OfCluster>> {
    let organization = session.in_organization().await?;
    let organization_id = organization.organization_id;
    let of = |cluster_id| Some(OfCluster { organization_id, cluster_id });
    if let Some(id) = current.cluster_id {
        return Ok(of(id));
    }
    let Some(workspace_id) = current.workspace_id else { return Ok(None) };
    let path = OfWorkspace { organization_id, workspace_id };
    let defaults: Defaults = session.get::<workspaces::Get>(&path).await?.part()?;
    if defaults.default_cluster_id.is_some() || defaults.default_cloud_provider.is_some() {
        return Ok(defaults.default_cluster_id.and_then(of));
    }
    let found: Vec<Called> = session.all::<clusters::List, _>(&organization, &Nothing, Some(2)).await?;
    Ok(if let [only] = found.as_slice() { of(ClusterId::from_raw(only.id)) } else { None })
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
        let variables = self.variables.iter().map(|variable| format!("variable {}", variable.key));
        queues.chain(variables).collect::<Vec<_>>().join(", ")
    }

    /// The body of an update. A variable that somebody set meanwhile is kept.
    fn body(&self, now: Kept) -> Value {
        let change = given(json!({ "workerQueues": self.queues }));
        let is_new =
            |variable: &&Variable| !now.environment_variables.iter().any(|it| it.key == variable.key);
        let set: Vec<Variable> = self.variables.iter().filter(is_new).cloned().collect();
        now.changed(&change, &set, &[])
    }
}

/// Says what was changed; or why it was not, and what to do about it.
fn say(name: &str, what: &str, done: Outcome) -> Outcome {
    match done {
        Ok(()) => {
            beside(|| eprintln!("Changed {name} as {FILE} says: {}.", one_line(what)));
            Ok(())
        }
        Err(failed) if failed.code() == Some(ErrorCode::Forbidden) => {
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
    match failed.code() {
        Some(ErrorCode::Invalid) => failed.hint(format!(
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
        let set = |key: &str| Variable { key: key.into(), value: Some("hidden".into()), is_secret: true };
        let current = Current { environment_variables: vec![set("A_OF_TEST")], ..Current::default() };
        let mut problems = Vec::new();
        let found = project.variables(folder.path(), &current, &mut problems);
        assert_eq!(json!(found), json!([set("B_OF_TEST")]));
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].starts_with("variables: C_OF_TEST has no value"), "{problems:?}");
        std::fs::write(folder.path().join(".env"), "hidden\n").unwrap();
        let mut problems = Vec::new();
        project.variables(folder.path(), &Current::default(), &mut problems);
        assert!(problems.len() == 1 && problems[0].ends_with("/.env:1: write KEY=VALUE"), "{problems:?}");
    }

    #[test]
    fn a_variable_that_was_set_meanwhile_is_kept() {
        let set = |key: &str| Variable { key: key.into(), value: Some("mine".into()), is_secret: true };
        let queue = json!({
            "name": "default", "isDefault": true, "minWorkerCount": 0, "maxWorkerCount": 1, "workerConcurrency": 1,
        });
        let lacking = Lacking {
            runtime: None,
            queues: Some(vec![read(&queue).unwrap()]),
            variables: vec![set("A"), set("B")],
            links: Vec::new(),
        };
        assert_eq!(lacking.own(), "queues, variable A, variable B");
        let current = json!({ "name": "x", "environmentVariables": [{ "key": "A", "isSecret": true }, { "key": "Z", "value": "z", "isSecret": false }] });
        let body = lacking.body(read(&current).unwrap());
        let expected = json!([{ "key": "A", "isSecret": true }, { "key": "Z", "value": "z", "isSecret": false }, set("B")]);
        assert_eq!((&body["environmentVariables"], &body["workerQueues"]), (&expected, &json!([queue])));
    }
}
