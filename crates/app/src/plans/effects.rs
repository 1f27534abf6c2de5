//! What a planned call causes beyond the fields that it changes.

use podium_api::enums::{OperationCause, OperationKind, PlannedEffectType};
use podium_api::plans::{PlannedChange, PlannedEffect};
use podium_api::{ClusterId, Description};
use podium_domain::plans as rules;
use podium_store::clusters;
use podium_store::operations::OperationTarget;
use serde_json::Value;

use super::begun::Begun;
use super::making::{Making, Resource};
use super::outcome::Interrupted;
use crate::error::Result;

pub(super) const MOST_NAMED: usize = 20;

impl Making<'_> {
    /// What is lost along with a resource that is deleted.
    pub(super) fn deleted_along(
        &self,
        endpoint: &Description,
        before: &Resource,
    ) -> Result<Vec<PlannedEffect>> {
        let id = before.get("id").and_then(Value::as_str).unwrap_or_default();
        let lists = match endpoint.id {
            "DeleteWorkspace" => vec![
                ("Its API tokens are deleted.", format!("tokens?workspaceId={id}")),
                ("Its environment objects are deleted.", format!("environment-objects?workspaceId={id}")),
            ],
            "DeleteDeployment" => vec![
                ("Its deploys are deleted.", format!("deployments/{id}/deploys?offset=0")),
                ("Its API tokens are deleted.", format!("tokens?deploymentId={id}")),
            ],
            _ => Vec::new(),
        };
        let mut effects = Vec::new();
        for (message, list) in lists {
            if let Some((_, count)) = self.listed(&format!("{list}&limit=0"), "")? {
                let message = message.to_owned();
                let (kind, count) = (PlannedEffectType::Delete, Some(count));
                effects.push(PlannedEffect { kind, message, names: Vec::new(), count, observed_at: None });
            }
        }
        Ok(effects)
    }

    /// What a call does to running environments, through the operations that it has begun.
    pub(super) fn rolled_out(
        &self,
        (endpoint, path): (&Description, &str),
        changes: &[PlannedChange],
        begun: Vec<Begun>,
    ) -> Result<(Vec<PlannedEffect>, Vec<Interrupted>)> {
        let reach = self.cx.grants().visible_deployments();
        let (mut effects, mut interrupted, mut around) = (Vec::new(), Vec::new(), Vec::new());
        if endpoint.id == "ForceOperation" {
            effects.push(effect(
                PlannedEffectType::Stop,
                "The running tasks that the operation waits for are ended.",
            ));
        }
        for Begun { kind, cause, target } in begun {
            let (deployment_id, workspace_id, name) = match target {
                OperationTarget::Deployment(id, workspace_id, name) => (id, workspace_id, name),
                OperationTarget::Cluster(id, _) => {
                    effects.extend(self.moved_with_cluster(id, kind)?);
                    continue;
                }
            };
            if !reach.contains(workspace_id, deployment_id) {
                continue;
            }
            let mut waits = true;
            let found = match kind {
                _ if cause == OperationCause::EnvironmentObject => {
                    around.push(name.clone());
                    Vec::new()
                }
                OperationKind::Delete => {
                    let query = path.split_once('?').map_or("", |(_, query)| query);
                    waits = query.split('&').any(|pair| pair == "drain=true");
                    vec![effect(
                        PlannedEffectType::Stop,
                        "Its environment is stopped and its data is deleted.",
                    )]
                }
                OperationKind::Hibernate => {
                    let message = "Its environment is stopped once running tasks have ended, at the latest after the deployment's grace period.";
                    vec![effect(PlannedEffectType::Stop, message)]
                }
                OperationKind::Deploy | OperationKind::Rollback => {
                    let message = "The other version goes live. Components restart only if its packages or its image differ, and then wait for running tasks.";
                    vec![effect(PlannedEffectType::Restart, message)]
                }
                OperationKind::RuntimeUpgrade => vec![rules::restart_of_all()],
                OperationKind::Update | OperationKind::Transfer if endpoint.id == "UpdateDeployment" => {
                    let mut restarts = rules::of_deployment(changes);
                    if kind == OperationKind::Transfer {
                        let message = "Environment objects, links and roles of the workspace that it leaves no longer apply to it; components restart if they are started with something else then.";
                        restarts.push(effect(PlannedEffectType::Access, message));
                    }
                    if restarts.is_empty() {
                        continue;
                    }
                    restarts
                }
                // Of an operation that is cancelled, the changes say nothing about the deployment.
                OperationKind::Update | OperationKind::Transfer => {
                    let message = "What was wanted before is rolled out again: components that it concerns restart after their running tasks have ended.";
                    vec![effect(PlannedEffectType::Restart, message)]
                }
                _ => continue,
            };
            effects.extend(found);
            interrupted.push(Interrupted { deployment_id, name, waits });
        }
        if !around.is_empty() {
            let message = "The components of these deployments restart after their running tasks have ended, at the latest after the grace period of each.";
            around.sort_unstable();
            effects.insert(0, naming(effect(PlannedEffectType::Restart, message), around));
        }
        Ok((effects, interrupted))
    }

    /// What the failover of a cluster, or the way back, does to the deployments on it.
    fn moved_with_cluster(&self, id: ClusterId, kind: OperationKind) -> Result<Option<PlannedEffect>> {
        let message = match kind {
            OperationKind::Failover => {
                "These deployments move to the standby region. Their ids, names and URLs stay."
            }
            OperationKind::Failback => {
                "These deployments move back to the primary region. Their ids, names and URLs stay."
            }
            _ => return Ok(None),
        };
        let reach = self.cx.grants().visible_deployments();
        let on_it = clusters::deployments_on(self.tx, self.cx.scope(), id)?.into_iter();
        let names = on_it.filter(|(id, workspace_id, _)| reach.contains(*workspace_id, *id));
        let names: Vec<String> = names.map(|(_, _, name)| name).collect();
        let moved = effect(PlannedEffectType::Restart, message);
        Ok((!names.is_empty()).then(|| naming(moved, names)))
    }

    /// The names in a list of the organization, as far as they are shown, and how many there are; `None` if there are none.
    pub(super) fn listed(&self, list: &str, name: &str) -> Result<Option<(Vec<String>, u64)>> {
        let path = format!("/organizations/{}/{list}", self.cx.organization_id());
        let Some((_, page)) = self.read_opt(Some(&path))? else { return Ok(None) };
        let count = page.get("totalCount").and_then(Value::as_u64).unwrap_or_default();
        let items = page.values().find_map(Value::as_array).into_iter().flatten();
        let names = items.filter_map(|item| item.get(name)?.as_str().map(str::to_owned));
        let mut names: Vec<String> = names.collect();
        names.sort_unstable();
        Ok((count > 0).then_some((names, count)))
    }
}

/// An effect on all that have these names; as many as are shown are named.
fn naming(effect: PlannedEffect, mut names: Vec<String>) -> PlannedEffect {
    let count = Some(names.len() as u64);
    names.truncate(MOST_NAMED);
    PlannedEffect { names, count, ..effect }
}

/// An effect without names.
pub(super) fn effect(kind: PlannedEffectType, message: &str) -> PlannedEffect {
    PlannedEffect { kind, message: message.to_owned(), names: Vec::new(), count: None, observed_at: None }
}
