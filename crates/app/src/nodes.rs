//! Nodes: several machines on one database, each of which runs some of the environments.
//!
//! If the data plane is bound to the machine and the database is shared, a server is a node: it has a name, sends a
//! heartbeat every few seconds, and manages the deployments placed on it and no others. Otherwise there are no nodes,
//! and this module is not used.

use std::time::Duration;

use podium_api::{DeploymentId, NodeId, Timestamp};
use podium_db::Tx;
use podium_store::nodes::{self, NodeRow, Placement};

use crate::App;
use crate::error::{Error, OrConflict as _, Result};

crate::system::acts_for_the_system!();
crate::system::reaches_rows!();

const EVERY: Duration = Duration::from_secs(10);
/// A node without a heartbeat for this long gets no new deployments, and may be forgotten.
pub const NODE_TIMEOUT: Duration = Duration::from_secs(60);

/// The machine of this process, as others know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its id, which is stored in its data directory.
    pub id: NodeId,
    /// Its name, for people.
    pub name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JoinReport {
    /// Environments on this machine that another node runs by now.
    pub on_other_nodes: Vec<DeploymentId>,
    /// Environments on this machine that the database does not know.
    pub unknown: Vec<DeploymentId>,
}

impl App {
    /// Registers this machine as a node that already has these environments. With a database of its own there is one
    /// node, which runs everything.
    pub async fn join(&self, node: Node, kept: Vec<DeploymentId>) -> Result<JoinReport> {
        let system = system(self);
        let (now, joining) = (self.world.now(), node.clone());
        let taken = format!(
            "another node is called {:?}: give this one a name with --node-name, or, if that node is gone for good, \
             run `podium node forget {}`",
            node.name, node.name
        );
        if !db(self).is_shared() {
            let unit = move |tx: &Tx| nodes::join_alone(tx, &system, joining.id, &joining.name, now);
            db(self).write(None, unit).await?;
            return Ok(JoinReport::default());
        }
        let joined =
            db(self).write(None, move |tx| nodes::join(tx, &system, joining.id, &joining.name, now)).await;
        joined.or_conflict(|| taken)?;
        let id = node.id;
        let found = db(self)
            .write(None, move |tx| {
                let unknown = nodes::adopt(tx, &system, &kept, id)?;
                Ok::<_, Error>(JoinReport {
                    unknown,
                    on_other_nodes: nodes::on_other_nodes(tx, &system, &kept, id)?,
                })
            })
            .await?;
        let _ = self.node.set(node);
        Ok(found)
    }

    /// The node that this process is; none where deployments are not bound to machines, or there is only one.
    pub fn node(&self) -> Option<&Node> {
        self.node.get()
    }

    /// Sends heartbeats until the node has been forgotten.
    pub async fn send_heartbeats(&self) {
        let Some(node) = self.node() else { return std::future::pending().await };
        let mut ticks = tokio::time::interval(EVERY);
        loop {
            ticks.tick().await;
            let (system, id, now) = (system(self), node.id, self.world.now());
            match db(self).write(None, move |tx| nodes::heartbeat(tx, &system, id, now)).await {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => tracing::warn!(%error, "cannot send this node's heartbeat"),
            }
        }
    }

    /// The name of the node that a deployment runs on, where that is not this one.
    pub async fn other_node_of(&self, deployment_id: DeploymentId) -> Result<Option<String>> {
        let Some(node) = self.node() else { return Ok(None) };
        let system = system(self);
        let placed = db(self).read(None, move |conn| nodes::placement(conn, &system, deployment_id)).await?;
        Ok(match placed {
            Placement::On { node_id, name } if node_id != node.id => Some(name),
            _ => None,
        })
    }

    /// Those of these deployments that run on another node.
    pub(crate) async fn on_other_nodes(&self, ids: &[DeploymentId]) -> Result<Vec<DeploymentId>> {
        let Some(node) = self.node().map(|node| node.id).filter(|_| !ids.is_empty()) else {
            return Ok(Vec::new());
        };
        let (system, ids) = (system(self), ids.to_vec());
        Ok(db(self).read(None, move |conn| nodes::on_other_nodes(conn, &system, &ids, node)).await?)
    }

    /// Refuses requests that only the deployment's node can answer.
    pub(crate) async fn require_local(&self, deployment_id: DeploymentId) -> Result<()> {
        match self.other_node_of(deployment_id).await? {
            Some(name) => Err(Error::OtherNode(name)),
            None => Ok(()),
        }
    }

    /// The node for a deployment without one: of those with a recent heartbeat, the one with the fewest deployments,
    /// then by name.
    pub async fn choose_node(&self, own: NodeId, now: Timestamp) -> Result<Option<NodeRow>> {
        let system = system(self);
        db(self)
            .read(None, move |conn| Ok(nodes::least_loaded(conn, &system, now - NODE_TIMEOUT, own)?))
            .await
    }
}
