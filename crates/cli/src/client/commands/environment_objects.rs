//! `podium env`.

use clap::{Args, Subcommand};
use podium_api::enums::{EnvironmentObjectScope, EnvironmentObjectType, LinkScope};
use podium_api::environment_objects::links::ExcludeLinkEnvironmentObjectRequest;
use podium_api::path::OfEnvironmentObject;
use podium_api::{Endpoint, EntityId, Nothing, Timestamp, environment_objects as api};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    Answer, Extra, Failed, Kind, Listing, Noun, Outcome, Session, Verbs, View, Word, merged, one_of, read,
};
use crate::client::fields::set as assign;

pub(crate) const EXAMPLES: &str = "\
Examples:
  podium env list --workspace Reports
  podium env create STAGE --value production --workspace Reports --link-all
  podium env create API_KEY --secret API_KEY --deployment nightly
  podium env create warehouse --type CONNECTION --workspace Reports --set connection.type=postgres --set connection.host=db
  podium env update STAGE --workspace Reports --value staging
  podium env exclude STAGE nightly --workspace Reports";

#[derive(Subcommand)]
pub(crate) enum Verb {
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
pub(crate) struct Place {
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
pub(crate) struct Content {
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

const VARIABLE: EnvironmentObjectType = EnvironmentObjectType::EnvironmentVariable;

impl Noun for api::Get {
    type List = api::List;
    const KIND: Kind = Kind::listed("environment object", "env list", "objectType").asked("objectKey");
    const VIEW: &'static View = &View {
        name: "objectKey",
        columns: "KEY objectKey, TYPE objectType, SCOPE scope, LINKED TO ALL autoLinkDeployments, ID id",
        wide: "SET FIELDS setFields, DESCRIPTION description, UPDATED updatedAt",
    };
}

/// What a change of an object needs to know of it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Now {
    object_type: Word<EnvironmentObjectType>,
    #[serde(default)]
    connection: Value,
    updated_at: Option<Timestamp>,
}

impl Verbs for Verb {
    async fn run(self, session: &Session) -> Outcome {
        let organization = session.in_organization().await?;
        match self {
            Self::List { place, resolve, listing } => {
                let query = api::ListEnvironmentObjects {
                    resolve_linked: resolve.then_some(true),
                    ..place.query(session).await?
                };
                session.list_where::<api::List>(&organization, &query, api::Get::VIEW, &listing).await
            }
            Self::Get { key, place } => {
                session.show_at::<api::Get>(&place.find(session, &key).await?, api::Get::VIEW).await
            }
            Self::Create { key, place, content } => {
                let kind = place.kind.as_ref().map(|kind| one_of(EnvironmentObjectType::ALL, kind));
                let kind = kind.transpose()?.unwrap_or(VARIABLE);
                if kind == VARIABLE && content.has_no_value() {
                    return Err(Failed::usage(format!("{key} needs a value")).hint(
                        "Give --value TEXT, or --secret NAME to read the environment variable NAME instead.",
                    ));
                }
                let (scope, id) = place.scope(session).await?;
                let base = json!({
                    "objectKey": key, "objectType": kind, "scope": scope, "scopeEntityId": id,
                });
                let body = content.body::<api::Create>(base, &Word::Known(kind), true)?;
                let made = session.post_any::<api::Create>(&organization, &body).await?.body()?;
                eprintln!("Created {key}.");
                let path = session.find::<api::Get>(&organization, &Nothing, &made.id.to_string()).await?;
                show(session, session.get::<api::Get>(&path).await?.raw).await
            }
            Self::Update { key, place, content } => {
                let path = place.find(session, &key).await?;
                if content.is_empty() {
                    return Err(Failed::usage("nothing to change: see podium env update --help"));
                }
                let edit = |now: &Answer<api::EnvironmentObject>| content.change(&now.part()?);
                let edited = session.edit_part::<api::Get, api::Update, _>(&path, edit).await?;
                show(session, edited.told(&key)).await
            }
            Self::Delete { keys, place } => {
                let find = async |key: &str| place.find(session, key).await;
                session.delete::<api::Get, api::Delete>(&keys, find, &Nothing).await?;
                session.follow_roll_outs(None).await
            }
            Self::Exclude { key, excluded, place } => {
                let path = place.find(session, &key).await?;
                let scope_entity_id = session.deployment(&excluded, None).await?.deployment_id;
                let scope = LinkScope::Deployment;
                let body = ExcludeLinkEnvironmentObjectRequest { scope, scope_entity_id };
                session.post::<api::ExcludeLinking>(&path, &body).await?;
                eprintln!("{excluded} no longer receives {key}.");
                let now: Now = session.get::<api::Get>(&path).await?.part()?;
                session.follow_roll_outs(now.updated_at).await
            }
        }
    }
}

/// Follows what a change of an object does to deployments, and shows the object.
async fn show(session: &Session, object: Value) -> Outcome {
    session.follow_roll_outs(read::<Now>(&object)?.updated_at).await?;
    session.show(&object, api::Get::VIEW)
}

impl Place {
    /// What a list is asked to look there.
    async fn query(&self, session: &Session) -> Outcome<api::ListEnvironmentObjects> {
        let (workspace, deployment) =
            session.ids_in(self.workspace.as_deref(), self.deployment.as_deref()).await?;
        let kind = self.kind.as_ref().map(|kind| one_of(EnvironmentObjectType::ALL, kind));
        Ok(api::ListEnvironmentObjects {
            workspace_id: workspace.map(Into::into),
            deployment_id: deployment.map(Into::into),
            object_type: kind.transpose()?,
            ..Default::default()
        })
    }

    async fn find(&self, session: &Session, key: &str) -> Outcome<OfEnvironmentObject> {
        let (organization, query) = (session.in_organization().await?, self.query(session).await?);
        session.find::<api::Get>(&organization, &query, key).await
    }

    async fn scope(&self, session: &Session) -> Outcome<(EnvironmentObjectScope, EntityId)> {
        match &self.deployment {
            Some(name) => {
                let path = session.deployment(name, self.workspace.as_deref()).await?;
                Ok((EnvironmentObjectScope::Deployment, path.deployment_id.into()))
            }
            None => {
                let id = session.chosen_workspace(self.workspace.as_deref()).await?;
                Ok((EnvironmentObjectScope::Workspace, id.into()))
            }
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
    fn change(&self, now: &Now) -> Outcome<Value> {
        let mut body = self.body::<api::Update>(json!({}), &now.object_type, false)?;
        if let Some(connection) = body.get_mut("connection").and_then(Value::as_object_mut) {
            connection.entry("type").or_insert_with(|| now.connection["type"].clone());
        }
        Ok(body)
    }

    fn body<E: Endpoint>(
        &self,
        base: Value,
        kind: &Word<EnvironmentObjectType>,
        is_new: bool,
    ) -> Outcome<Value> {
        let more = json!({
            "description": self.description, "autoLinkDeployments": self.link_all.then_some(true),
        });
        let mut body = self.extra.body::<E>("an environment object", merged(base, more))?;
        let value = match (&self.value, &self.secret) {
            (Some(value), _) => Some(value.clone()),
            (None, Some(name)) => Some(std::env::var(name).map_err(|_| {
                Failed::usage(format!("the environment variable {name} has no value"))
                    .hint(format!("Set it for this command: {name}=..."))
            })?),
            (None, None) => None,
        };
        if let Some(value) = value {
            let field = match kind.known() {
                Some(EnvironmentObjectType::EnvironmentVariable) => "environmentVariable",
                Some(EnvironmentObjectType::AirflowVariable) => "airflowVariable",
                _ => {
                    return Err(Failed::usage(format!(
                        "--value goes with variables, not with {kind}: use --set"
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
