//! Clusters: what a valid one is, what may be done with it in which state, and what its loop does next.
//!
//! Nothing here knows how a cluster is built; the data plane does.

mod create;
mod networks;
mod node_pools;
pub mod plan;
mod recovery;
mod settings;
pub mod states;
mod update;

#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod tests;

pub use create::create;
pub use plan::plan;
pub use update::{event, update};

use podium_api::clusters::ClusterDetails;
use podium_api::{ClusterId, NodePoolId, Timestamp, WorkspaceId};
use std::collections::BTreeSet;

use crate::names::Name;

/// What the rules must know to judge a request.
#[derive(Clone, Debug)]
pub struct Facts<'a> {
    pub cluster_id: ClusterId,
    /// Ids for new node pools: as many as the request has pools.
    pub pool_ids: &'a [NodePoolId],
    /// Those of the workspaces in the request that there are.
    pub workspaces: &'a BTreeSet<WorkspaceId>,
    pub in_use_by: &'a BTreeSet<WorkspaceId>,
    pub now: Timestamp,
}

/// What a valid request makes of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    pub name: Name,
    /// What its owner has chosen.
    pub details: ClusterDetails,
    /// The only workspaces that it takes, in order; none means all.
    pub workspace_ids: Vec<WorkspaceId>,
}

/// Text that is not blank.
fn given(text: Option<&String>) -> Option<&str> {
    text.map(|text| text.trim()).filter(|text| !text.is_empty())
}
