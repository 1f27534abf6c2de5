//! A project: a folder with `dags/` and a `podium.yaml` that says where it belongs and what it needs there.
//!
//! This file reads; [`settings`] compares a deployment with what was read, and changes it. Values of variables are never in
//! `podium.yaml`: they come from the environment of the command or from `.env` ([`dotenv`]).

mod dotenv;
mod links;
pub(crate) mod settings;

use std::path::Path;

use clap::Args;
use podium_api::declarations::WorkerQueue;
use podium_api::path::OfDeployment;
use podium_api::{Nothing, deployments};
use serde::Deserialize;

pub(crate) use self::dotenv::FILE as VALUES;
use self::dotenv::{is_name, text_of};
use self::links::Link;
use super::ending::{Failed, Outcome};
use super::fields::yaml_problem;
use super::names::Called;
use super::session::Session;

pub(crate) const FILE: &str = "podium.yaml";
/// The most variables, and the most links.
const MOST_ITEMS: usize = 1_000;

/// What `podium.yaml` says.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Project {
    /// The workspace, by name or id.
    pub(crate) workspace: Option<String>,
    /// The deployment, by name or id.
    pub(crate) deployment: Option<String>,
    /// The runtime; absent is the newest stable one at creation, and stays as it is later.
    runtime: Option<String>,
    queues: Option<Vec<WorkerQueue>>,
    /// The environment variables that it needs, without their values.
    variables: Option<Vec<VariableName>>,
    /// The environment objects of the workspace that it is to be given.
    links: Option<Vec<Link>>,
    /// Whether a link that is not there yet is only said: while a project is written, it may come later.
    #[serde(skip)]
    is_being_written: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
struct VariableName(String);

/// Why a text is not the name of a variable. It does not repeat the text, which may hold a value.
const NO_NAME: &str =
    "name variables here without their values: letters, digits, `_`, `.` and `-`, such as API_KEY";

impl TryFrom<String> for VariableName {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, &'static str> {
        if is_name(&text) { Ok(Self(text)) } else { Err(NO_NAME) }
    }
}

impl Project {
    /// The same while the project is being written.
    pub(crate) fn being_written(self) -> Self {
        Self { is_being_written: true, ..self }
    }

    /// Reads the file of a folder; none is like an empty one.
    pub(crate) fn read(folder: &Path) -> Outcome<Self> {
        let path = folder.join(FILE);
        let Some(text) = text_of(&path)? else { return Ok(Self::default()) };
        let project: Self = serde_saphyr::from_str(&text).map_err(|error| {
            Failed::usage(yaml_problem(&path.display(), &error)).hint(
                "The file may hold workspace, deployment, runtime, queues, variables and links: see docs/guide/project.md",
            )
        })?;
        let counts = [
            ("variables", project.variables.as_ref().map_or(0, Vec::len)),
            ("links", project.links.as_ref().map_or(0, Vec::len)),
        ];
        match counts.iter().find(|(_, count)| *count > MOST_ITEMS) {
            Some((field, count)) => Err(Failed::usage(format!(
                "{}: {field} has {count} items, but may have at most {MOST_ITEMS}",
                path.display()
            ))),
            None => Ok(project),
        }
    }
}

/// Which deployment a command is about, where its argument does not say.
#[derive(Args, Clone, Default)]
pub(crate) struct DeploymentFlags {
    /// Workspace of the deployment, if others have the same name.
    #[arg(long, env = "PODIUM_WORKSPACE")]
    pub(crate) workspace: Option<String>,
}

impl DeploymentFlags {
    /// The deployment that is named, that of `podium.yaml`, or the only one.
    pub(crate) async fn find(
        &self,
        session: &Session,
        named: Option<&str>,
        folder: &Path,
    ) -> Outcome<OfDeployment> {
        let project = Project::read(folder)?;
        let workspace = self.workspace.clone().or(project.workspace.filter(|_| named.is_none()));
        if let Some(name) = named.map(str::to_owned).or(project.deployment) {
            return session.deployment(&name, workspace.as_deref()).await;
        }
        let organization = session.in_organization().await?;
        let found: Vec<Called> =
            session.all::<deployments::List, _>(&organization, &Nothing, Some(20)).await?;
        match found.as_slice() {
            [only] => session.deployment(only.id.as_str(), None).await,
            [] => {
                Err(Failed::usage("there is no deployment yet")
                    .hint("Create one: podium deployment create NAME"))
            }
            several => Err(Failed::usage(format!(
                "name the deployment: there is no {FILE} here, and there are several deployments"
            ))
            .details(several.iter().map(|item| item.name.clone()))
            .hint("Give --deployment NAME, or write `deployment: NAME` to podium.yaml.")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::project::dotenv::MOST_BYTES;

    fn read(text: &str) -> Result<Project, String> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(FILE), text).unwrap();
        let place = folder.path().display().to_string();
        Project::read(folder.path()).map_err(|failed| failed.reason().replace(&place, "."))
    }

    #[test]
    fn the_file_says_where_a_project_belongs_and_what_it_needs() {
        assert_eq!(Project::read(tempfile::tempdir().unwrap().path()).unwrap(), Project::default());
        assert_eq!(read("# Nothing yet.\n").unwrap(), Project::default());
        assert_eq!(read("deployment:\nvariables:\nlinks:\nqueues:\n").unwrap(), Project::default());
        let all = "# Where this belongs.\nworkspace: Default\ndeployment: hello\nruntime: 3.3.2\nqueues:\n  - name: default\n    \
                   minWorkerCount: 0\n    maxWorkerCount: 3\n    workerConcurrency: 8\nvariables: [API_KEY, stage.x-1]\n\
                   links: [warehouse, CONNECTION/db/main]\n";
        let project = read(all).unwrap();
        let plain = (project.workspace.as_deref(), project.deployment.as_deref(), project.runtime.as_deref());
        assert_eq!(plain, (Some("Default"), Some("hello"), Some("3.3.2")));
        assert_eq!(project.queues.unwrap()[0].max_worker_count, 3);
        assert_eq!(project.variables.unwrap()[1], VariableName("stage.x-1".into()));
        assert_eq!(project.links.unwrap().len(), 2);
    }

    #[test]
    fn mistakes_are_named_with_their_place_and_without_values() {
        let table = [
            ("deploymnt: hello\n", "./podium.yaml:1:1: unknown field `deploymnt`"),
            (
                "deployment: a\nqueues:\n  - name: default\n    workers: 3\n",
                "./podium.yaml:4:5: unknown field `workers`",
            ),
            ("queues:\n  - name: default\n    maxWorkerCount: many\n", "./podium.yaml:3:21: "),
            (
                "variables:\n  - API_KEY=hidden\n",
                "./podium.yaml:2:5: name variables here without their values",
            ),
            ("variables:\n  - API_KEY: hidden\n", "./podium.yaml:2:5: "),
            ("variables:\n  API_KEY: hidden\n", "./podium.yaml:2:3: "),
            ("links:\n  - ''\n", "./podium.yaml:2:5: a link is the key of an environment object"),
            ("deployment: [\n", "./podium.yaml:"),
        ];
        for (text, expected) in table {
            let said = read(text).unwrap_err();
            assert!(said.starts_with(expected) && !said.contains("hidden"), "{text}: {said}");
        }
    }

    #[test]
    fn a_file_is_read_up_to_a_bound() {
        let long = format!("# {}\n", "x".repeat(MOST_BYTES as usize));
        assert!(read(&long).unwrap_err().contains("is larger than"));
        let many = format!("variables: [{}]\n", vec!["A"; MOST_ITEMS + 1].join(", "));
        assert!(read(&many).unwrap_err().ends_with("variables has 1001 items, but may have at most 1000"));
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(FILE)).unwrap();
        assert!(Project::read(folder.path()).unwrap_err().reason().ends_with("it is not a file"));
    }
}
