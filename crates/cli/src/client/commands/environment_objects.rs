//! `podium env`.

use clap::{Args, Subcommand};
use podium_api::{Endpoint, environment_objects as api};
use podium_client::Call;
use serde_json::{Value, json};

use crate::client::ending::{Failed, Outcome};
use crate::client::fields::{Extra, given, set as assign};
use crate::client::output::{Listing, View, column, wide};
use crate::client::session::{Session, Setup, text};

/// Connections, variables and metrics exports for deployments.
#[derive(Args)]
#[command(after_help = "\
Examples:
  podium env list --workspace Reports
  podium env create STAGE --value production --workspace Reports --link-all
  podium env create API_KEY --secret API_KEY --deployment nightly
  podium env create warehouse --type CONNECTION --workspace Reports --set connection.type=postgres --set connection.host=db
  podium env update STAGE --workspace Reports --value staging
  podium env exclude STAGE nightly --workspace Reports")]
pub(crate) struct EnvironmentObjects {
    #[command(flatten)]
    setup: Setup,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// List environment objects.
    List {
        #[command(flatten)]
        place: Place,
        /// Show the objects that the deployment receives, with links resolved.
        #[arg(long)]
        resolve: bool,
        #[command(flatten)]
        listing: Listing,
    },
    /// Show an environment object.
    Get {
        /// Key or id.
        key: String,
        #[command(flatten)]
        place: Place,
    },
    /// Create an environment object; variables need only a key and a value.
    Create {
        /// Key of the object.
        key: String,
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        content: Content,
    },
    /// Change an environment object; other settings are kept.
    Update {
        /// Key or id.
        key: String,
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        content: Content,
    },
    /// Delete environment objects.
    Delete {
        /// Keys or ids.
        #[arg(required = true)]
        keys: Vec<String>,
        #[command(flatten)]
        place: Place,
    },
    /// Exclude a deployment from an object that is linked to its whole workspace.
    Exclude {
        /// Key or id.
        key: String,
        /// Name or id of the deployment.
        excluded: String,
        #[command(flatten)]
        place: Place,
    },
}

/// Where an object is.
#[derive(Args)]
struct Place {
    /// Workspace that the object belongs to.
    #[arg(long)]
    workspace: Option<String>,
    /// Deployment that the object belongs to.
    #[arg(long)]
    deployment: Option<String>,
    /// ENVIRONMENT_VARIABLE, AIRFLOW_VARIABLE, CONNECTION or METRICS_EXPORT.
    #[arg(long = "type")]
    kind: Option<String>,
}

/// What an object holds.
#[derive(Args)]
struct Content {
    /// Value of a variable.
    #[arg(long, conflicts_with = "secret")]
    value: Option<String>,
    /// Secret value of a variable, taken from this environment variable of the command.
    #[arg(long, value_name = "NAME")]
    secret: Option<String>,
    /// Description of the object.
    #[arg(long)]
    description: Option<String>,
    /// Link the object to every deployment of the workspace.
    #[arg(long)]
    link_all: bool,
    #[command(flatten)]
    extra: Extra,
}

const VIEW: View = View {
    name: "objectKey",
    columns: &[
        column("KEY", "objectKey"),
        column("TYPE", "objectType"),
        column("SCOPE", "scope"),
        column("LINKED TO ALL", "autoLinkDeployments"),
        column("ID", "id"),
        wide("SET FIELDS", "setFields"),
        wide("DESCRIPTION", "description"),
        wide("UPDATED", "updatedAt"),
    ],
};

const VARIABLE: &str = "ENVIRONMENT_VARIABLE";

impl EnvironmentObjects {
    pub(crate) async fn run(self) -> Outcome {
        let session = self.setup.open()?;
        let organization = session.in_organization().await?;
        match self.verb {
            Verb::List { place, resolve, listing } => {
                let params = place.params(&session).await?;
                let call = Call::to::<api::List>(&organization).query_params(&params)?;
                let call = call.query_params(&json!({ "resolveLinked": resolve.then_some(true) }))?;
                session.list(call, &VIEW, &listing).await
            }
            Verb::Get { key, place } => {
                let path = session.object(&place.params(&session).await?, &key).await?;
                session.show(&session.get::<api::Get>(&path).await?, &VIEW)
            }
            Verb::Create { key, place, content } => {
                let kind = place.kind.clone().unwrap_or_else(|| VARIABLE.into()).to_uppercase();
                if kind == VARIABLE && content.has_no_value() {
                    return Err(Failed::usage(format!("{key} needs a value")).hint(
                        "Give --value TEXT, or --secret NAME to read the environment variable NAME instead.",
                    ));
                }
                let (scope, id) = place.scope(&session).await?;
                let base = json!({
                    "objectKey": key, "objectType": kind, "scope": scope, "scopeEntityId": id,
                });
                let body = content.body::<api::Create>(base, &kind, true)?;
                let made = session.post::<api::Create>(&organization, &body).await?;
                eprintln!("Created {key}.");
                let path = session.object(&json!({}), text(&made["id"])).await?;
                let made = session.get::<api::Get>(&path).await?;
                session.follow_roll_outs(Some(&made)).await?;
                session.show(&made, &VIEW)
            }
            Verb::Update { key, place, content } => {
                let path = session.object(&place.params(&session).await?, &key).await?;
                if content.is_empty() {
                    return Err(Failed::usage("nothing to change: see podium env update --help"));
                }
                let edit = |current: &Value| content.change(current);
                let edited = session.edit::<api::Get, api::Update>(&path, edit).await?;
                let changed = edited.told(&key);
                session.follow_roll_outs(Some(&changed)).await?;
                session.show(&changed, &VIEW)
            }
            Verb::Delete { keys, place } => {
                let params = place.params(&session).await?;
                let mut all = Vec::new();
                for key in keys {
                    all.push((session.object(&params, &key).await?, key));
                }
                session.delete::<api::Delete>("environment object", &all).await?;
                session.follow_roll_outs(None).await
            }
            Verb::Exclude { key, excluded, place } => {
                let path = session.object(&place.params(&session).await?, &key).await?;
                let id = session.deployment(&excluded, None).await?.deployment_id;
                let body = json!({ "scope": "DEPLOYMENT", "scopeEntityId": id });
                session.change(Call::to::<api::ExcludeLinking>(&path).body(&body)?).await?;
                eprintln!("{excluded} no longer receives {key}.");
                session.follow_roll_outs(Some(&session.get::<api::Get>(&path).await?)).await
            }
        }
    }
}

impl Place {
    /// The parameters of a list that look there.
    async fn params(&self, session: &Session) -> Outcome<Value> {
        let workspace_id = match &self.workspace {
            Some(name) => Some(session.workspace(name).await?.workspace_id),
            None => None,
        };
        let deployment_id = match &self.deployment {
            Some(name) => Some(session.deployment(name, None).await?.deployment_id),
            None => None,
        };
        let kind = self.kind.as_ref().map(|kind| kind.to_uppercase());
        Ok(given(json!({ "workspaceId": workspace_id, "deploymentId": deployment_id, "objectType": kind })))
    }

    /// What a new object belongs to.
    async fn scope(&self, session: &Session) -> Outcome<(&'static str, String)> {
        match &self.deployment {
            Some(name) => {
                let path = session.deployment(name, self.workspace.as_deref()).await?;
                Ok(("DEPLOYMENT", path.deployment_id.to_string()))
            }
            None => Ok(("WORKSPACE", session.chosen_workspace(self.workspace.as_deref()).await?)),
        }
    }
}

impl Content {
    fn is_empty(&self) -> bool {
        let Self { value, secret, description, link_all, extra } = self;
        value.is_none() && secret.is_none() && description.is_none() && !link_all && extra.is_empty()
    }

    fn has_no_value(&self) -> bool {
        self.value.is_none() && self.secret.is_none() && self.extra.is_empty()
    }

    /// The body of an update; a connection is always sent its type.
    fn change(&self, current: &Value) -> Outcome<Value> {
        let mut body = self.body::<api::Update>(json!({}), text(&current["objectType"]), false)?;
        if let Some(connection) = body.get_mut("connection").and_then(Value::as_object_mut) {
            connection.entry("type").or_insert_with(|| current["connection"]["type"].clone());
        }
        Ok(body)
    }

    /// The body of a request for an object of this type.
    fn body<E: Endpoint>(&self, base: Value, kind: &str, is_new: bool) -> Outcome<Value> {
        let mut flags = base;
        flags["description"] = self.description.clone().into();
        flags["autoLinkDeployments"] = self.link_all.then_some(true).into();
        let mut body = self.extra.body::<E>("an environment object", flags)?;
        let value = match (&self.value, &self.secret) {
            (Some(value), _) => Some(value.clone()),
            (None, Some(name)) => Some(std::env::var(name).map_err(|_| {
                Failed::usage(format!("the environment variable {name} has no value"))
                    .hint(format!("Set it for this command: {name}=..."))
            })?),
            (None, None) => None,
        };
        if let Some(value) = value {
            let field = match kind {
                VARIABLE => "environmentVariable",
                "AIRFLOW_VARIABLE" => "airflowVariable",
                other => {
                    return Err(Failed::usage(format!(
                        "--value goes with variables, not with {other}: use --set"
                    )));
                }
            };
            assign(&mut body, &format!("{field}.value={}", Value::String(value)))?;
            if is_new {
                assign(&mut body, &format!("{field}.isSecret={}", self.secret.is_some()))?;
            }
        }
        Ok(body)
    }
}
