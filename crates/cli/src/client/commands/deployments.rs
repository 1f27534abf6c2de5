//! `podium deployment`.

mod processes;
mod update;

use clap::{Args, Subcommand};
use podium_api::enums::DeploymentStatus;
use podium_api::path::OfDeployment;
use podium_api::{Nothing, Patch, WorkspaceId, WrittenTime, deployments as api, options, workspaces};
use serde_json::{Value, json};

use super::{Called, Extra, Failed, Kind, Listing, Noun, Outcome, Session, Verbs, View, read};
use crate::client::follow::Now;

pub(crate) use processes::size;

pub(crate) const EXAMPLES: &str = "\
Examples:
  podium deployment create nightly --workspace Reports --wait
  podium deployment list --workspace Reports --output wide
  podium deployment update nightly --scheduler-size MEDIUM --variable STAGE=production --secret API_KEY
  podium deployment processes nightly
  podium deployment hibernate nightly
  podium deployment transfer nightly --to Archive
  podium deployment delete nightly --yes";

#[derive(Subcommand)]
pub(crate) enum Verb {
    /// List deployments.
    List {
        /// Only deployments of this workspace.
        #[arg(long)]
        workspace: Option<String>,
        #[command(flatten)]
        listing: Listing,
    },
    /// Show a deployment.
    Get(One),
    /// Create a deployment; a name and a workspace are enough.
    Create(Box<Create>),
    /// Change a deployment; other settings are kept.
    Update(Box<update::Update>),
    /// Delete deployments.
    Delete {
        /// Names or ids.
        #[arg(required = true)]
        deployments: Vec<String>,
        /// Workspace of the deployments, if others have the same name.
        #[arg(long)]
        workspace: Option<String>,
        /// Let running tasks finish first, up to the deployment's drain grace.
        #[arg(long)]
        drain: bool,
    },
    /// Wait until a deployment has settled; exits with 7 if it is not healthy then.
    Wait(One),
    /// Put a deployment to sleep, whatever its schedules say.
    Hibernate {
        #[command(flatten)]
        one: One,
        /// Until when, such as 2026-12-01T06:00:00Z; the default is until it is woken.
        #[arg(long, value_name = "TIME")]
        until: Option<String>,
    },
    /// Wake a deployment, whatever its schedules say.
    Wake {
        #[command(flatten)]
        one: One,
        /// Until when; the default is until it is put to sleep.
        #[arg(long, value_name = "TIME")]
        until: Option<String>,
    },
    /// Let a deployment follow its hibernation schedules again.
    EndOverride(One),
    /// Move a deployment to another workspace.
    Transfer {
        #[command(flatten)]
        one: One,
        /// Name or id of the other workspace.
        #[arg(long, value_name = "WORKSPACE")]
        to: String,
    },
    /// Show the processes of a deployment: whether they work, their memory, and how often they were restarted.
    Processes(One),
    /// Show the available runtimes, sizes and limits.
    Options,
}

/// Which deployment.
#[derive(Args)]
pub(crate) struct One {
    /// Name or id.
    deployment: String,
    /// Workspace of the deployment, if others have the same name.
    #[arg(long)]
    workspace: Option<String>,
}

#[derive(Args)]
pub(crate) struct Create {
    /// Name of the deployment.
    name: String,
    /// Workspace to create it in; not needed if there is only one.
    #[arg(long)]
    workspace: Option<String>,
    /// Description of the deployment.
    #[arg(long)]
    description: Option<String>,
    /// Runtime; the default is the newest stable one.
    #[arg(long, value_name = "VERSION")]
    runtime: Option<String>,
    /// CELERY, KUBERNETES or PLATFORM.
    #[arg(long)]
    executor: Option<String>,
    /// SMALL, MEDIUM, LARGE or EXTRA_LARGE.
    #[arg(long, value_name = "SIZE")]
    scheduler_size: Option<String>,
    /// Cluster to run on, by name or id.
    #[arg(long)]
    cluster: Option<String>,
    /// Create a development deployment, which may hibernate.
    #[arg(long)]
    development: bool,
    #[command(flatten)]
    extra: Extra,
}

/// What the fields of requests belong to.
const WHAT: &str = "a deployment";

pub(crate) const VIEW: View = View {
    name: "name",
    columns: "NAME name, ID id, WORKSPACE workspaceName, STATUS status, RUNTIME platformRuntimeVersion",
    wide: "AIRFLOW airflowVersion, EXECUTOR executor, REASON statusReason, URL webServerUrl, \
              CREATED createdAt",
};

const RUNTIMES: View = View {
    name: "version",
    columns: "RUNTIME version, AIRFLOW airflowVersion, CHANNEL channel",
    wide: "RELEASED releaseDate",
};

impl Noun for api::Get {
    type List = api::List;
    const KIND: Kind = Kind::listed("deployment", "deployment list", "workspaceName").asked("names");
    const VIEW: &'static View = &VIEW;
}

impl Verbs for Verb {
    async fn run(self, session: &Session) -> Outcome {
        let organization = session.in_organization().await?;
        match self {
            Self::List { workspace, listing } => {
                let workspace = session.ids_in(workspace.as_deref(), None).await?.0;
                let workspace_ids = workspace.into_iter().map(Into::into).collect();
                let query = api::ListDeployments { workspace_ids, ..api::ListDeployments::default() };
                session.list_where::<api::List>(&organization, &query, &VIEW, &listing).await
            }
            Self::Get(one) => {
                let deployment = session.get::<api::Get>(&one.find(session).await?).await?;
                session.show(&deployment.raw, &VIEW)?;
                let now: Now = deployment.part()?;
                if !now.status.is(DeploymentStatus::Healthy) {
                    session.explain(&now.status_reason);
                }
                Ok(())
            }
            Self::Create(create) => create.run(session).await,
            Self::Update(update) => update.run(session).await,
            Self::Delete { deployments, workspace, drain } => {
                let find = async |name: &str| session.deployment(name, workspace.as_deref()).await;
                let query = api::DeleteDeployment { drain: drain.then_some(true) };
                session.delete::<api::Get, api::Delete>(&deployments, find, &query).await
            }
            Self::Wait(one) => {
                let settled = session.settle(&one.find(session).await?).await?;
                session.show(&settled.raw, &VIEW)
            }
            Self::Hibernate { one, until } => sleep(session, &one, true, until).await,
            Self::Wake { one, until } => sleep(session, &one, false, until).await,
            Self::EndOverride(one) => {
                let path = one.find(session).await?;
                session.post::<api::EndHibernationOverride>(&path, &Nothing).await?;
                eprintln!("{} follows its schedules again.", one.deployment);
                session.settle_if_wanted(&path).await
            }
            Self::Transfer { one, to } => {
                let workspace_id = session.workspace(&to).await?.workspace_id;
                let change = json!({ "workspaceId": workspace_id });
                let changed = update::update(session, &one, &change, &[], &[]).await?.now;
                eprintln!("Moved {} to {to}.", one.deployment);
                followed(session, changed).await
            }
            Self::Processes(one) => processes::show(session, &one.find(session).await?).await,
            Self::Options => {
                let found = session.get::<options::ForDeployments>(&organization).await?;
                match session.format.is_table() {
                    true => session.show_all(&read::<Vec<_>>(&found.raw["runtimeReleases"])?, &RUNTIMES),
                    false => session.show(&found.raw, &RUNTIMES),
                }
            }
        }
    }
}

impl One {
    async fn find(&self, session: &Session) -> Outcome<OfDeployment> {
        session.deployment(&self.deployment, self.workspace.as_deref()).await
    }
}

impl Create {
    async fn run(&self, session: &Session) -> Outcome {
        let cluster_id = match &self.cluster {
            Some(name) => Some(session.cluster(name).await?.cluster_id),
            None => None,
        };
        let body = self.extra.body::<api::Create>(
            WHAT,
            json!({
                "name": self.name,
                "workspaceId": session.chosen_workspace(self.workspace.as_deref()).await?,
                "description": self.description,
                "platformRuntimeVersion": self.runtime,
                "executor": self.executor.as_ref().map(|executor| executor.to_uppercase()),
                "schedulerSize": self.scheduler_size.as_ref().map(|size| size.to_uppercase()),
                "clusterId": cluster_id,
                "isDevelopmentMode": self.development.then_some(true),
            }),
        )?;
        let made = session.post_any::<api::Create>(&session.in_organization().await?, &body).await?;
        eprintln!("Created deployment {}.", self.name);
        followed(session, made.raw).await
    }
}

impl Session {
    /// A workspace: the one that is named, or the only one.
    pub(crate) async fn chosen_workspace(&self, name: Option<&str>) -> Outcome<WorkspaceId> {
        if let Some(name) = name {
            return Ok(self.workspace(name).await?.workspace_id);
        }
        let organization = self.in_organization().await?;
        let found: Vec<Called> = self.all::<workspaces::List, _>(&organization, &Nothing, Some(20)).await?;
        match found.as_slice() {
            [only] => Ok(WorkspaceId::from_raw(only.id)),
            [] => {
                Err(Failed::usage("there is no workspace yet")
                    .hint("Create one: podium workspace create NAME"))
            }
            several => Err(Failed::usage("there are several workspaces: choose one with --workspace")
                .details(several.iter().map(|item| item.name.clone()))),
        }
    }
}

/// Shows a deployment that was made or changed, once it has settled if that is waited for.
async fn followed(session: &Session, changed: Value) -> Outcome {
    if !session.wait.is_wanted() {
        return session.show(&changed, &VIEW);
    }
    let id = read::<Called>(&changed)?.id;
    let settled = session.settle(&session.deployment(id.as_str(), None).await?).await?;
    session.show(&settled.raw, &VIEW)
}

impl Session {
    /// Puts a deployment to sleep or wakes it, whatever its schedules say.
    pub(crate) async fn override_hibernation(
        &self,
        path: &OfDeployment,
        sleeps: bool,
        until: Option<WrittenTime>,
    ) -> Outcome {
        let is_hibernating = Patch::Set(sleeps);
        let body = api::OverrideDeploymentHibernationBody { is_hibernating, override_until: until };
        self.post::<api::OverrideHibernation>(path, &body).await.map(drop)
    }
}

/// Puts a deployment to sleep, or wakes it.
async fn sleep(session: &Session, one: &One, sleeps: bool, until: Option<String>) -> Outcome {
    let path = one.find(session).await?;
    let time = |text: String| {
        let wrong = || Failed::usage(format!("{text:?} is not a time, such as 2026-12-01T06:00:00Z"));
        WrittenTime::parse(&text).ok_or_else(wrong)
    };
    session.override_hibernation(&path, sleeps, until.map(time).transpose()?).await?;
    eprintln!("{} {}.", if sleeps { "Hibernating" } else { "Waking" }, one.deployment);
    session.settle_if_wanted(&path).await
}
