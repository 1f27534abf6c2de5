//! What there is of a kind: a resource, what it is called, and how it differs from what is declared.

use std::collections::HashMap;

use podium_api::Id;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::keys::Kind;
use crate::client::answer::read;
use crate::client::ending::Outcome;
use crate::client::names::{Called, Pools};

pub(super) struct Existing {
    pub(super) id: Id,
    pub(super) name: String,
    pub(super) wire: Value,
    /// In the form of the files.
    pub(super) form: Value,
}

/// A resource that is there, with its `ETag`.
pub(super) type Found = (Existing, Option<String>);

/// What is read of a resource to call it by its name.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Known {
    #[serde(flatten)]
    pub(super) called: Called,
    #[serde(default)]
    workspace_id: String,
    #[serde(flatten)]
    pools: Pools,
}

#[derive(Default)]
pub(super) struct Names {
    names: HashMap<String, String>,
    workspaces: HashMap<String, String>,
}

impl Names {
    pub(super) fn read(wires: &[(Kind, Known, Value)]) -> Self {
        let mut all = Self::default();
        for (kind, Known { called, workspace_id, pools }, _) in wires {
            let named = std::iter::once(called).chain(&pools.node_pools);
            all.names.extend(named.map(|called| (called.id.to_string(), called.name.clone())));
            if *kind == Kind::Deployment {
                all.workspaces.insert(called.id.to_string(), workspace_id.clone());
            }
        }
        all
    }

    /// The name of what has this id; the id itself if it is not known.
    pub(super) fn of(&self, id: &str) -> String {
        self.names.get(id).map_or(id, String::as_str).to_owned()
    }

    /// The names of a list of ids, in order.
    pub(super) fn all<'a>(&self, ids: impl Iterator<Item = &'a str>) -> Vec<String> {
        let mut names: Vec<String> = ids.map(|id| self.of(id)).collect();
        names.sort_unstable();
        names
    }

    /// The name of a deployment's workspace; empty if it is not known.
    pub(super) fn workspace_of(&self, deployment_id: &str) -> String {
        self.workspaces.get(deployment_id).map_or_else(String::new, |workspace| self.of(workspace))
    }
}

/// A resource that differs from what is declared.
pub(super) struct Difference<R> {
    pub(super) declared: R,
    /// The same without what is as declared already.
    pub(super) changed: R,
    pub(super) fields: Vec<String>,
    pub(super) existing: Existing,
    pub(super) etag: Option<String>,
}

impl<R> Difference<R> {
    pub(super) fn now<T: DeserializeOwned>(&self) -> Outcome<T> {
        read(&self.existing.wire)
    }
}
