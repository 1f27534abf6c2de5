//! A project: a folder with `dags/` and a `podium.yaml` that says where it belongs.

use std::path::Path;

use clap::Args;
use podium_api::deployments;
use podium_api::path::OfDeployment;
use podium_client::Call;
use serde::{Deserialize, Serialize};

use super::ending::{Failed, Outcome};
use super::fields::yaml_problem;
use super::session::{Session, text};

/// The name of the file.
pub(crate) const FILE: &str = "podium.yaml";

/// What `podium.yaml` says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Project {
    /// The workspace, by name or id.
    #[serde(default)]
    pub(crate) workspace: Option<String>,
    /// The deployment, by name or id.
    #[serde(default)]
    pub(crate) deployment: Option<String>,
}

impl Project {
    /// Reads the file of a folder; none is like an empty one.
    pub(crate) fn read(folder: &Path) -> Outcome<Self> {
        let path = folder.join(FILE);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(Failed::because(format!("{} cannot be read: {error}", path.display()))),
        };
        serde_saphyr::from_str(&text).map_err(|error| {
            Failed::usage(yaml_problem(&path.display(), &error))
                .hint("It may hold `workspace` and `deployment`, each a name or an id.")
        })
    }
}

/// Which deployment a command is about, where its argument does not say.
#[derive(Args, Clone, Default)]
pub(crate) struct DeploymentFlags {
    /// Workspace of the deployment, where others have the same name.
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
        let call = Call::to::<deployments::List>(&session.in_organization().await?);
        let found = session.client.pages(call, Some(20)).next().await?.unwrap_or_default();
        match found.as_slice() {
            [only] => session.deployment(text(&only["id"]), None).await,
            [] => {
                Err(Failed::usage("there is no deployment yet")
                    .hint("Create one: podium deployment create NAME"))
            }
            several => Err(Failed::usage(format!(
                "name the deployment: there is no {FILE} here, and there are several"
            ))
            .details(several.iter().map(|item| text(&item["name"]).to_owned()))
            .hint("Give --deployment NAME, or write `deployment: NAME` to podium.yaml.")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_says_where_a_project_belongs() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Project::read(folder.path()).unwrap(), Project::default());
        let write = |text: &str| std::fs::write(folder.path().join(FILE), text).unwrap();
        write("# Where this belongs.\nworkspace: Default\ndeployment: hello\n");
        let project = Project::read(folder.path()).unwrap();
        assert_eq!(
            (project.workspace.as_deref(), project.deployment.as_deref()),
            (Some("Default"), Some("hello"))
        );
        write("deploymnt: hello\n");
        assert!(Project::read(folder.path()).is_err());
    }
}
