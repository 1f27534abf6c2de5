//! Placement of deployments on nodes, if deployments are bound to machines: chosen once, and never changed by a loop.

use podium_api::enums::DeploymentStatus::{Creating, Unknown};
use podium_api::{DeploymentId, NodeId};
use podium_app::nodes::Node;
use podium_domain::deployments::plan::Verdict;
use podium_domain::{Given, UserText};
use podium_store::nodes::{self, Placement};
use podium_store::{deployments, deployments::DeploymentRow};

use crate::deployments::{Deployments, record};
use crate::operations::Phase;
use crate::reconciler::{Backoff, Failure, Next, StepResult};

/// The status reason of a deployment from before there were nodes, until a node reports that it runs it.
const NOBODY_HAS_IT: &str = "No node reports that it runs this deployment: start the node that does, or, if that node is gone for good, have an operator run `podium node forget --unknown`.";

impl Deployments {
    /// Makes sure that a deployment is placed on this node; otherwise returns the result of the step.
    pub(crate) async fn place(&self, id: DeploymentId) -> Result<Option<StepResult>, Failure> {
        let Some(own) = self.app.node() else { return Ok(None) };
        let system = self.system;
        let read = self.app.db(&self.system).read(None, move |conn| {
            Ok::<_, podium_db::Error>((
                nodes::placement(conn, &system, id)?,
                deployments::state(conn, &system, id)?,
            ))
        });
        match read.await? {
            (Placement::On { node_id, .. }, _) if node_id == own.id => Ok(None),
            (Placement::On { node_id, name }, row) => self.hand_over(id, node_id, &name, row).await.map(Some),
            // Deleted and placed nowhere: clean up what is left here.
            (_, None) => Ok(None),
            (Placement::Unknown, Some(row)) if row.status != Creating => {
                Ok(Some(self.wait_for_its_node(&row)))
            }
            (_, Some(row)) => self.choose(own, row).await,
        }
    }

    async fn choose(&self, own: &Node, row: DeploymentRow) -> Result<Option<StepResult>, Failure> {
        let (system, id, now) = (self.system, row.id, self.app.world.now());
        let chosen = self.app.choose_node(own.id, now).await.map_err(|error| Failure(error.to_string()))?;
        let chosen = chosen.map_or(own.id, |node| node.id);
        match self.app.db(&self.system).write(None, move |tx| nodes::place(tx, &system, id, chosen)).await? {
            Placement::On { node_id, .. } if node_id == own.id => Ok(None),
            Placement::On { node_id, name } => {
                tracing::info!(%id, node = name, "a deployment was placed on another node");
                self.hand_over(id, node_id, &name, Some(row)).await.map(Some)
            }
            Placement::Unknown | Placement::Forgotten => Err(Failure("no node could be chosen".into())),
        }
    }

    /// Hands a deployment over to its node, with a status reason while it is being created.
    async fn hand_over(
        &self,
        id: DeploymentId,
        node_id: NodeId,
        name: &str,
        row: Option<DeploymentRow>,
    ) -> Result<StepResult, Failure> {
        let system = self.system;
        self.app.db(&self.system).write(None, move |tx| nodes::place(tx, &system, id, node_id)).await?;
        let now = self.app.world.now();
        let next = Next::At { at: now, reason: format!("Handed over to node {name}.") };
        Ok(match row {
            Some(row) if row.status == Creating => {
                let reason = UserText::filled("Being created on node {}.", &[&Given::word(name)]).into();
                let verdict = Verdict { status: row.status, reason, running: None };
                record(self.system, &row, (verdict, Phase::Waiting), None, next, now)
            }
            _ => StepResult { next, progressed: true, effect: None },
        })
    }

    fn wait_for_its_node(&self, row: &DeploymentRow) -> StepResult {
        let verdict = Verdict { status: Unknown, reason: NOBODY_HAS_IT.into(), running: None };
        let next = Next::Retry { reason: NOBODY_HAS_IT.into(), backoff: Backoff::Long, no_later_than: None };
        record(self.system, row, (verdict, Phase::Waiting), None, next, self.app.world.now())
    }

    /// Adds the node's name to the reason while a deployment is being created.
    pub(crate) fn with_node_name(&self, verdict: Verdict) -> Verdict {
        match self.app.node() {
            Some(node) if verdict.status == Creating => {
                let lead = UserText::filled("Being created on node {}.", &[&Given::word(&node.name)]);
                Verdict { reason: verdict.reason.after(lead), ..verdict }
            }
            _ => verdict,
        }
    }
}
