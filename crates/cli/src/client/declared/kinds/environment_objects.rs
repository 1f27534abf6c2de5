//! Environment objects: connections, variables and metrics exports.

use podium_api::declarations::{EnvironmentObject, Link};
use podium_api::enums::{EnvironmentObjectScope, LinkScope};
use podium_api::environment_objects::links::{
    CreateEnvironmentObjectLinkRequest, ExcludeLinkEnvironmentObjectRequest, OverridesRequest,
    UpdateEnvironmentObjectLinkRequest, UpdateEnvironmentObjectOverridesRequest,
};
use podium_api::environment_objects::{
    self as api, CreateEnvironmentObjectRequest, UpdateEnvironmentObjectRequest,
};
use podium_api::{DeploymentId, EntityId, WorkspaceId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{Difference, Entry, Kind, Names, Outcome, Planner, Resource, merged, object, read, same};
use crate::client::answer::Word;
use crate::client::declared::references::secret;
use crate::client::fields::given;

/// What is read of an object to show it as files do.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Shown {
    object_key: String,
    scope: Word<EnvironmentObjectScope>,
    scope_entity_id: EntityId,
    #[serde(default)]
    set_fields: Vec<String>,
    #[serde(default)]
    links: Vec<Linked>,
    #[serde(default)]
    exclude_links: Vec<Excluded>,
    #[serde(flatten)]
    bodies: Bodies,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Linked {
    scope_entity_id: DeploymentId,
    #[serde(default)]
    set_fields: Vec<String>,
    #[serde(flatten)]
    overrides: Bodies,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Excluded {
    scope_entity_id: DeploymentId,
}

/// What an object holds, or what differs of it for a deployment: the one body that fits its type.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Bodies {
    #[serde(alias = "connectionOverrides")]
    connection: Option<Map<String, Value>>,
    #[serde(alias = "environmentVariableOverrides")]
    environment_variable: Option<Map<String, Value>>,
    #[serde(alias = "airflowVariableOverrides")]
    airflow_variable: Option<Map<String, Value>>,
    #[serde(alias = "metricsExportOverrides")]
    metrics_export: Option<Map<String, Value>>,
}

impl Bodies {
    /// In the form of files, with what stands for secrets in the place of those that are set and not shown.
    fn shown(mut self, set: &[String], words: &[&str]) -> Value {
        if let Some(connection) = &mut self.connection {
            let auth_type = connection.get("connectionAuthType").map_or(Value::Null, |it| it["id"].clone());
            connection.insert("authTypeId".into(), auth_type);
        }
        let bodies = [
            &mut self.connection,
            &mut self.environment_variable,
            &mut self.airflow_variable,
            &mut self.metrics_export,
        ];
        for body in bodies.into_iter().flatten() {
            body.retain(|_, value| !value.is_null());
            for field in set {
                let (place, name) = match field.split_once('.') {
                    Some((map, name)) => (body.entry(map).or_insert_with(|| json!({})).as_object_mut(), name),
                    None => (Some(&mut *body), field.as_str()),
                };
                let Some(place) = place else { continue };
                if place.get(name).is_none_or(|value| value == "") {
                    place.insert(name.to_owned(), secret(&[words, &[name]].concat()));
                }
            }
        }
        given(json!(self))
    }
}

impl Resource for EnvironmentObject {
    type List = api::List;
    type Get = api::Get;

    // A secret that stays as it is, is sent as an empty text.
    const KEPT: Value = Value::String(String::new());

    fn reshaped(names: &Names, wire: &Value) -> Outcome<Value> {
        let Shown { object_key: key, scope, scope_entity_id, set_fields, links, exclude_links, bodies } =
            read(wire)?;
        let id = scope_entity_id.as_str();
        let home = names.of(id);
        let place = match scope.is(EnvironmentObjectScope::Deployment) {
            true => json!({ "workspace": names.workspace_of(id), "deployment": home }),
            false => json!({ "workspace": home }),
        };
        let link = |Linked { scope_entity_id, set_fields, overrides }| {
            let deployment = names.of(scope_entity_id.as_str());
            let overrides = overrides.shown(&set_fields, &[&home, &key, &deployment]);
            merged(json!({ "deployment": deployment }), overrides)
        };
        let links: Vec<Value> = links.into_iter().map(link).collect();
        let excluded = names.all(exclude_links.iter().map(|it| it.scope_entity_id.as_str()));
        let parts = json!({ "links": links, "excludedDeployments": excluded });
        Ok(merged(merged(place, parts), bodies.shown(&set_fields, &[&home, &key])))
    }

    fn create(mut self, planner: &mut Planner<'_>, entry: &Entry) -> Outcome {
        let (workspace, at) = (&self.workspace, entry.at.as_str());
        let (scope, id): (_, EntityId) = match &self.deployment {
            Some(name) => {
                (EnvironmentObjectScope::Deployment, planner.deployment(workspace, name, at)?.into())
            }
            None => (
                EnvironmentObjectScope::Workspace,
                planner.id::<WorkspaceId>(Kind::Workspace, workspace, at)?.into(),
            ),
        };
        let links = self.links.take();
        let fields = merged(object(&self), json!({ "scope": scope, "scopeEntityId": id }));
        let mut body: CreateEnvironmentObjectRequest = same(fields, at)?;
        let link = |link: Link| {
            let set: OverridesRequest = same(object(&link), at)?;
            Ok(CreateEnvironmentObjectLinkRequest {
                scope: LinkScope::Deployment,
                scope_entity_id: planner.deployment(&self.workspace, &link.deployment, at)?,
                overrides: Some(set).filter(|set| object(set) != json!({})),
            })
        };
        body.links = links.map(|all| all.into_iter().map(link).collect::<Outcome<_>>()).transpose()?;
        body.exclude_links = excluded(planner, entry, &self)?;
        planner.create::<api::Create>(entry, &body).map(drop)
    }

    fn change(planner: &mut Planner<'_>, entry: &Entry, found: Difference<Self>) -> Outcome {
        let mut changed = found.changed.clone();
        let links = changed.links.take();
        let mut body: UpdateEnvironmentObjectRequest = same(object(&changed), &entry.at)?;
        let shown: Shown = found.now()?;
        let link = |link: Link| {
            let scope_entity_id = planner.deployment(&changed.workspace, &link.deployment, &entry.at)?;
            let known = shown.links.iter().find(|known| known.scope_entity_id == scope_entity_id);
            let set: OverridesRequest = same(object(&link), &entry.at)?;
            let unset_fields = known.map_or_else(Vec::new, |known| no_more_different(known, &link));
            let is_plain = unset_fields.is_empty() && object(&set) == json!({});
            let overrides = UpdateEnvironmentObjectOverridesRequest { set, unset_fields };
            let overrides = Some(overrides).filter(|_| !is_plain);
            Ok(UpdateEnvironmentObjectLinkRequest {
                scope: LinkScope::Deployment,
                scope_entity_id,
                overrides,
            })
        };
        body.links = links.map(|all| all.into_iter().map(link).collect::<Outcome<_>>()).transpose()?;
        body.exclude_links = excluded(planner, entry, &changed)?;
        planner.change::<api::Update, _>(entry, &found, &body).map(drop)
    }
}

fn excluded(
    planner: &Planner<'_>,
    entry: &Entry,
    declared: &EnvironmentObject,
) -> Outcome<Option<Vec<ExcludeLinkEnvironmentObjectRequest>>> {
    let one = |name: &String| {
        let scope_entity_id = planner.deployment(&declared.workspace, name, &entry.at)?;
        Ok(ExcludeLinkEnvironmentObjectRequest { scope: LinkScope::Deployment, scope_entity_id })
    };
    let names = declared.excluded_deployments.as_ref();
    names.map(|names| names.iter().map(one).collect()).transpose()
}

/// The fields that a link overrides, and that are not declared for it.
fn no_more_different(known: &Linked, declared: &Link) -> Vec<String> {
    let bodies = object(declared);
    let is_declared = |field: &&String| {
        let mut bodies = bodies.as_object().into_iter().flatten();
        bodies.any(|(_, body)| field.split('.').try_fold(body, |at, name| at.get(name)).is_some())
    };
    known.set_fields.iter().filter(|field| !is_declared(field)).cloned().collect()
}
