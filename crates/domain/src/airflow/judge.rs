//! May this caller's request be forwarded? By a permission on the deployment, or by a role on the DAG that it
//! concerns.

use podium_api::{DeploymentId, WorkspaceId};

use crate::airflow::roles::AirflowRole;
use crate::airflow::rules::{By, Rule};
use crate::authorize::{Target, require};
use crate::grants::{Grants, On};
use crate::permissions::{Permission, PermissionSet};
use crate::refusal::{Refusal, Result};

/// In Airflow's API this stands for all DAGs.
const ALL_DAGS: &str = "~";
const WEBSITE: Permission = Permission::known("deployment.airflow.website.get");
const TAGS: &str = "tags";
const TAGS_MODE: &str = "tags_match_mode";

/// The caller's rights on a deployment and its DAGs.
#[derive(Clone, Copy, Debug)]
pub struct Rights<'a> {
    /// What it holds in the organization.
    pub grants: &'a Grants,
    pub deployment_id: DeploymentId,
    pub workspace_id: WorkspaceId,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    Unchanged,
    /// If the DAG has the right tags.
    IfTagged(Tagged),
    /// With this query instead of its own.
    Narrowed(Vec<(String, String)>),
}

/// What depends on the tags of a DAG.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tagged {
    pub dag_id: String,
    needs: PermissionSet,
    held: PermissionSet,
    by_tag: Vec<(String, PermissionSet)>,
    refusal: Refusal,
}

impl Tagged {
    /// Whether the request passes, given the tags of the DAG.
    pub fn settle(self, tags: &[String]) -> Result<()> {
        let given = self.by_tag.iter().filter(|(tag, _)| tags.contains(tag));
        let held = given.fold(self.held, |held, (_, more)| held.union(*more));
        if held.contains_all(self.needs) { Ok(()) } else { Err(self.refusal) }
    }
}

impl Rights<'_> {
    /// The least role of Airflow that contains these rights.
    pub fn airflow_role(&self) -> AirflowRole {
        let on_dags = self.grants.on_dags_of(self.deployment_id);
        AirflowRole::least_for(on_dags.fold(self.on_deployment(), |held, (_, more)| held.union(more)))
    }

    fn target(&self) -> Target {
        Target::Deployment { id: self.deployment_id, workspace_id: self.workspace_id }
    }

    fn on_deployment(&self) -> PermissionSet {
        self.grants.on_deployment(self.deployment_id, self.workspace_id)
    }

    fn on_dag(&self, dag_id: &str) -> PermissionSet {
        let (deployment_id, workspace_id) = (self.deployment_id, self.workspace_id);
        self.grants.at(&On::Dag { deployment_id, workspace_id, dag_id: dag_id.to_owned() })
    }
}

pub fn judge(
    rule: &Rule,
    dag_in_path: Option<&str>,
    query: &[(String, String)],
    rights: &Rights<'_>,
) -> Result<Decision> {
    if !rights.grants.sees_deployment(rights.deployment_id, rights.workspace_id) {
        return Err(rights.target().unseen());
    }
    let held = rights.on_deployment();
    let Some(missing) = rule.needs.iter().find(|need| !held.contains(**need)) else {
        return Ok(Decision::Unchanged);
    };
    let Err(refusal) = require(rights.grants, *missing, rights.target()) else {
        return Ok(Decision::Unchanged);
    };
    if rule.by == By::Shell {
        return Ok(Decision::Unchanged);
    }
    let Some(needs) = on_one_dag(&rule.needs, held) else { return Err(refusal) };
    match rule.by {
        By::Path | By::Shell => match dag_in_path {
            Some(dag_id) => on_dag(dag_id, needs, rights, refusal),
            None => Err(refusal),
        },
        By::Query(name) => match values(query, name).as_slice() {
            [dag_id] => on_dag(dag_id, needs, rights, refusal),
            _ => {
                Err(also(refusal, &format!("A role on single DAGs is enough if `{name}` names one of them.")))
            }
        },
        By::Filter { ids, tags } => narrow(ids, tags, query, needs, rights, refusal),
    }
}

/// The same rights on one DAG; what is held on the deployment and has no such twin is not asked for again. Nor is the
/// right to see pages: a page about one DAG is for anyone who may see that DAG.
fn on_one_dag(needs: &[Permission], held: PermissionSet) -> Option<PermissionSet> {
    let twin = |need: &Permission| {
        Permission::named(&format!("dag.{}", need.name().strip_prefix("deployment.").unwrap_or_default()))
    };
    needs.iter().filter(|need| !held.contains(**need) && **need != WEBSITE).map(twin).collect()
}

fn on_dag(dag_id: &str, needs: PermissionSet, rights: &Rights<'_>, refusal: Refusal) -> Result<Decision> {
    if dag_id == ALL_DAGS {
        return Err(refusal);
    }
    let refusal = also(refusal, "So can a role on the DAG.");
    let held = rights.on_dag(dag_id);
    if held.contains_all(needs) {
        return Ok(Decision::Unchanged);
    }
    let by_tag: Vec<_> = tagged(rights).collect();
    let best = by_tag.iter().fold(held, |held, (_, more)| held.union(*more));
    if !best.contains_all(needs) {
        return Err(refusal);
    }
    Ok(Decision::IfTagged(Tagged { dag_id: dag_id.to_owned(), needs, held, by_tag, refusal }))
}

/// Narrows a list to the DAGs of the caller, with the filters that the list has.
fn narrow(
    ids: Option<&'static str>,
    takes_tags: bool,
    query: &[(String, String)],
    needs: PermissionSet,
    rights: &Rights<'_>,
    refusal: Refusal,
) -> Result<Decision> {
    let own_ids: Vec<String> =
        named(rights).filter(|(_, held)| held.contains_all(needs)).map(|(id, _)| id).collect();
    let own_tags: Vec<String> =
        tagged(rights).filter(|(_, held)| held.contains_all(needs)).map(|(tag, _)| tag).collect();
    let asked_tags = values(query, TAGS);
    let choice = match ids {
        // Filters are all applied at once, so a list is narrowed by ids or by tags.
        Some(name) if !own_ids.is_empty() && (own_tags.is_empty() || !values(query, name).is_empty()) => {
            Some((name, kept(&values(query, name), own_ids)))
        }
        _ if takes_tags && !own_tags.is_empty() && (own_ids.is_empty() || !asked_tags.is_empty()) => {
            // Of several modes the last would apply: only a single one is accepted.
            let asks_for_all = values(query, TAGS_MODE) == ["all"];
            if asks_for_all && asked_tags.iter().any(|tag| own_tags.iter().any(|own| own == tag)) {
                return Ok(Decision::Unchanged);
            }
            Some((TAGS, kept(&asked_tags, own_tags)))
        }
        _ => None,
    };
    match choice {
        Some((name, kept)) if !kept.is_empty() => {
            let others = query.iter().filter(|(key, _)| key != name && (name != TAGS || key != TAGS_MODE));
            let kept = kept.into_iter().map(|value| (name.to_owned(), value));
            Ok(Decision::Narrowed(others.cloned().chain(kept).collect()))
        }
        _ => {
            let mut filters: Vec<&str> = ids.into_iter().collect();
            filters.extend(takes_tags.then_some(TAGS));
            let hint = format!(
                "With roles on single DAGs, ask for one DAG, or filter by `{}`.",
                filters.join("` or `")
            );
            Err(also(refusal, &hint))
        }
    }
}

/// The requested entries that the caller may see; all of the caller's if none were requested.
fn kept(requested: &[&str], own: Vec<String>) -> Vec<String> {
    own.into_iter().filter(|own| requested.is_empty() || requested.contains(&own.as_str())).collect()
}

fn named<'a>(rights: &Rights<'a>) -> impl Iterator<Item = (String, PermissionSet)> + use<'a> {
    rights.grants.on_dags_of(rights.deployment_id).filter_map(|(on, held)| match on {
        On::Dag { dag_id, .. } => Some((dag_id.clone(), held)),
        _ => None,
    })
}

fn tagged<'a>(rights: &Rights<'a>) -> impl Iterator<Item = (String, PermissionSet)> + use<'a> {
    rights.grants.on_dags_of(rights.deployment_id).filter_map(|(on, held)| match on {
        On::DagTag { tag, .. } => Some((tag.clone(), held)),
        _ => None,
    })
}

fn values<'a>(query: &'a [(String, String)], name: &str) -> Vec<&'a str> {
    query.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str()).collect()
}

fn also(refusal: Refusal, hint: &str) -> Refusal {
    match refusal {
        Refusal::Forbidden(message) => Refusal::Forbidden(format!("{message} {hint}")),
        other => other,
    }
}
