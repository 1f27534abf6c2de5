//! `podium deployment`.

mod processes;
mod update;

use clap::{Args, Subcommand};
use podium_api::{deployments as api, options};
use podium_client::Call;
use serde_json::{Value, json};

use crate::client::ending::{Failed, Outcome};
use crate::client::fields::Extra;
use crate::client::output::{Listing, View, column, wide};
use crate::client::session::{Session, Setup, text};

pub(crate) use processes::size;
pub(crate) use update::update_body;

/// Apache Airflow environments.
#[derive(Args)]
#[command(after_help = "\
Examples:
  podium deployment create nightly --workspace Reports --wait
  podium deployment list --workspace Reports --output wide
  podium deployment update nightly --scheduler-size MEDIUM --variable STAGE=production --secret API_KEY
  podium deployment processes nightly
  podium deployment hibernate nightly
  podium deployment transfer nightly --to Archive
  podium deployment delete nightly --yes")]
pub(crate) struct Deployments {
    #[command(flatten)]
    setup: Setup,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
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
struct One {
    /// Name or id.
    deployment: String,
    /// Workspace of the deployment, if others have the same name.
    #[arg(long)]
    workspace: Option<String>,
}

#[derive(Args)]
struct Create {
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
    columns: &[
        column("NAME", "name"),
        column("ID", "id"),
        column("WORKSPACE", "workspaceName"),
        column("STATUS", "status"),
        column("RUNTIME", "platformRuntimeVersion"),
        wide("AIRFLOW", "airflowVersion"),
        wide("EXECUTOR", "executor"),
        wide("REASON", "statusReason"),
        wide("URL", "webServerUrl"),
        wide("CREATED", "createdAt"),
    ],
};

const RUNTIMES: View = View {
    name: "version",
    columns: &[
        column("RUNTIME", "version"),
        column("AIRFLOW", "airflowVersion"),
        column("CHANNEL", "channel"),
        wide("RELEASED", "releaseDate"),
    ],
};

impl Deployments {
    pub(crate) async fn run(self) -> Outcome {
        let session = self.setup.open()?;
        let organization = session.in_organization().await?;
        match self.verb {
            Verb::List { workspace, listing } => {
                let mut ids = Vec::new();
                if let Some(name) = workspace {
                    ids.push(session.workspace(&name).await?.workspace_id);
                }
                let call =
                    Call::to::<api::List>(&organization).query_params(&json!({ "workspaceIds": ids }))?;
                session.list(call, &VIEW, &listing).await
            }
            Verb::Get(one) => {
                let path = one.find(&session).await?;
                let deployment = session.get::<api::Get>(&path).await?;
                session.show(&deployment, &VIEW)?;
                if text(&deployment["status"]) != "HEALTHY" {
                    session.explain(text(&deployment["statusReason"]));
                }
                Ok(())
            }
            Verb::Create(create) => {
                let made = create.run(&session).await?;
                session.show(&made, &VIEW)
            }
            Verb::Update(update) => update.run(&session).await,
            Verb::Delete { deployments, workspace, drain } => {
                let mut all = Vec::new();
                for name in deployments {
                    all.push((session.deployment(&name, workspace.as_deref()).await?, name));
                }
                let query = if drain { json!({ "drain": true }) } else { Value::Null };
                session.delete_with::<api::Delete>("deployment", &all, &query).await
            }
            Verb::Wait(one) => {
                let path = one.find(&session).await?;
                let settled = session.settle(&path).await?;
                session.show(&settled, &VIEW)
            }
            Verb::Hibernate { one, until } => sleep(&session, &one, true, until).await,
            Verb::Wake { one, until } => sleep(&session, &one, false, until).await,
            Verb::EndOverride(one) => {
                let path = one.find(&session).await?;
                session.change(Call::to::<api::EndHibernationOverride>(&path)).await?;
                eprintln!("{} follows its schedules again.", one.deployment);
                session.settle_if_wanted(&path).await
            }
            Verb::Transfer { one, to } => {
                let workspace_id = session.workspace(&to).await?.workspace_id;
                let change = json!({ "workspaceId": workspace_id });
                let changed = update::update(&session, &one, &change, &[], &[]).await?.now;
                eprintln!("Moved {} to {to}.", one.deployment);
                let path = session.deployment(text(&changed["id"]), None).await?;
                match session.wait.is_wanted() {
                    true => session.show(&session.settle(&path).await?, &VIEW),
                    false => session.show(&changed, &VIEW),
                }
            }
            Verb::Processes(one) => processes::show(&session, &one.find(&session).await?).await,
            Verb::Options => {
                let found = session.get::<options::ForDeployments>(&organization).await?;
                match session.format.is_table() {
                    true => session
                        .show_all(found["runtimeReleases"].as_array().map_or(&[], Vec::as_slice), &RUNTIMES),
                    false => session.show(&found, &RUNTIMES),
                }
            }
        }
    }
}

impl One {
    async fn find(&self, session: &Session) -> Outcome<podium_api::path::OfDeployment> {
        session.deployment(&self.deployment, self.workspace.as_deref()).await
    }
}

impl Create {
    async fn run(&self, session: &Session) -> Outcome<Value> {
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
        let made = session.post::<api::Create>(&session.in_organization().await?, &body).await?;
        eprintln!("Created deployment {}.", self.name);
        if !session.wait.is_wanted() {
            return Ok(made);
        }
        session.settle(&session.deployment(text(&made["id"]), None).await?).await
    }
}

impl Session {
    /// The id of a workspace: the one that is named, or the only one.
    pub(crate) async fn chosen_workspace(&self, name: Option<&str>) -> Outcome<String> {
        if let Some(name) = name {
            return Ok(self.workspace(name).await?.workspace_id.to_string());
        }
        let call = Call::to::<podium_api::workspaces::List>(&self.in_organization().await?);
        let found = self.client.pages(call, Some(20)).next().await?.unwrap_or_default();
        match found.as_slice() {
            [only] => Ok(text(&only["id"]).to_owned()),
            [] => {
                Err(Failed::usage("there is no workspace yet")
                    .hint("Create one: podium workspace create NAME"))
            }
            several => Err(Failed::usage("there are several workspaces: choose one with --workspace")
                .details(several.iter().map(|item| text(&item["name"]).to_owned()))),
        }
    }
}

/// Puts a deployment to sleep, or wakes it.
async fn sleep(session: &Session, one: &One, sleeps: bool, until: Option<String>) -> Outcome {
    let path = one.find(session).await?;
    let mut body = json!({ "isHibernating": sleeps });
    if let Some(until) = until {
        body["overrideUntil"] = until.into();
    }
    session.post::<api::OverrideHibernation>(&path, &body).await?;
    eprintln!("{} {}.", if sleeps { "Hibernating" } else { "Waking" }, one.deployment);
    session.settle_if_wanted(&path).await
}
