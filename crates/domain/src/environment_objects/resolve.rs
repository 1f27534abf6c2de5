//! The objects that apply to a deployment: its own and those of its workspace that are linked to it.
//!
//! A deployment's own object takes precedence over one of the workspace with the same type and key, a link's overrides
//! over the workspace's values, and the deployment's own environment variables over objects of that type.

use std::collections::BTreeSet;

use podium_api::DeploymentId;
use podium_api::enums::{EnvironmentObjectScope, EnvironmentObjectType};

use super::change::Object;
use super::keys::unique;
use super::values::{Secrecy, Values};

/// An object of the deployment or of its workspace.
#[derive(Clone, Debug)]
pub struct Candidate<S, M> {
    pub key: String,
    pub object: Object<S>,
    /// Whatever goes with it.
    pub more: M,
}

/// What a deployment is given by one object.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved<S, M> {
    pub key: String,
    /// The object, without the overrides of other deployments.
    pub object: Object<S>,
    pub values: Values<S>,
    /// Whatever goes with it.
    pub more: M,
}

/// What reaches a deployment that has these environment variables of its own; in the order of the candidates.
pub fn resolve<S: Secrecy, M>(
    deployment_id: DeploymentId,
    candidates: Vec<Candidate<S, M>>,
    variables: &BTreeSet<&str>,
) -> Vec<Resolved<S, M>> {
    let place = |candidate: &Candidate<S, M>| {
        (candidate.object.object_type, unique(candidate.object.object_type, &candidate.key))
    };
    let is_own = |candidate: &Candidate<S, M>| candidate.object.scope == EnvironmentObjectScope::Deployment;
    let own: BTreeSet<_> = candidates.iter().filter(|candidate| is_own(candidate)).map(place).collect();
    let is_beaten = |candidate: &Candidate<S, M>| {
        let by_variable = candidate.object.object_type == EnvironmentObjectType::EnvironmentVariable
            && variables.contains(candidate.key.as_str());
        by_variable || (!is_own(candidate) && own.contains(&place(candidate)))
    };
    let given = |candidate: Candidate<S, M>| {
        let values = candidate.object.given_to(deployment_id)?;
        let mut object = candidate.object;
        object.links.clear();
        object.exclusions.clear();
        Some(Resolved { key: candidate.key, object, values, more: candidate.more })
    };
    candidates.into_iter().filter(|candidate| !is_beaten(candidate)).filter_map(given).collect()
}
