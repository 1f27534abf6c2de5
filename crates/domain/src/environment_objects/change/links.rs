//! Links and exclusions: which deployments they may name, and what happens to overrides.

use std::collections::{BTreeMap, BTreeSet};

use podium_api::DeploymentId;
use podium_api::enums::{EnvironmentObjectScope, EnvironmentObjectType};

use super::super::fields::{body_name, named};
use super::super::metrics;
use super::super::values::{Given, Values, covers};
use super::Object;
use super::requested::{Requested, RequestedLink};
use crate::refusal::Fields;

impl Object {
    pub(super) fn change_links(
        &mut self,
        requested: &Requested,
        neighbours: &BTreeSet<DeploymentId>,
        fields: &mut Fields,
    ) {
        if self.scope == EnvironmentObjectScope::Deployment {
            takes_none(requested, fields);
            return;
        }
        self.auto_link = requested.auto_link.unwrap_or(self.auto_link);
        if let Some(links) = &requested.links {
            let targets: Vec<DeploymentId> = links.iter().map(|link| link.deployment_id).collect();
            check_targets("links", &targets, neighbours, fields);
            let mut changed = BTreeMap::new();
            for (index, link) in links.iter().enumerate() {
                let stored = self.links.remove(&link.deployment_id).unwrap_or_default();
                let at = format!("links[{index}].overrides");
                changed.insert(link.deployment_id, self.overrides(stored, link, &at, fields));
            }
            self.links = changed;
        }
        if let Some(exclusions) = &requested.exclusions {
            check_targets("excludeLinks", exclusions, neighbours, fields);
            self.exclusions = exclusions.iter().copied().collect();
        }
        self.check_both(requested, fields);
    }

    /// The overrides of one deployment after the change.
    fn overrides(&self, mut stored: Values, link: &RequestedLink, at: &str, fields: &mut Fields) -> Values {
        let body = link.bodies.the_one_for(self.object_type, &format!("{at}."), fields);
        let given = body.map(|body| Given::from_body(self.object_type, body)).unwrap_or_default();
        for (index, name) in link.unset.iter().enumerate() {
            let at = format!("{at}.unsetFields[{index}]");
            if named(self.object_type, name).is_none() {
                let message =
                    format!("must be the name of a field of a {}, as in `setFields`", self.object_type);
                fields.push(at, "unknown", message);
            } else if given.values.keys().any(|set| covers(name, set)) {
                fields.push(at, "conflict", "must not be a field that the same link sets");
            } else {
                stored.unset(name);
            }
        }
        stored.write(&given, self.nature());
        let body_at = format!("{at}.{}", body_name(self.object_type));
        if given.values.get("type").is_some_and(|kind| kind == "") {
            fields.push(format!("{body_at}.type"), "required", "must not be empty");
        }
        if self.object_type == EnvironmentObjectType::MetricsExport && !stored.is_empty() {
            metrics::check(&self.values.overlaid(&stored), &body_at, fields);
        }
        stored
    }

    /// No deployment is both linked and excluded.
    fn check_both(&self, requested: &Requested, fields: &mut Fields) {
        let message = "must not be both linked and excluded";
        if let Some(links) = &requested.links {
            for (index, link) in links.iter().enumerate() {
                if self.exclusions.contains(&link.deployment_id) {
                    fields.push(format!("links[{index}].scopeEntityId"), "conflict", message);
                }
            }
        } else if let Some(exclusions) = &requested.exclusions {
            for (index, id) in exclusions.iter().enumerate() {
                if self.links.contains_key(id) {
                    fields.push(format!("excludeLinks[{index}].scopeEntityId"), "conflict", message);
                }
            }
        }
    }
}

/// Deployments that are named once each, and are of the object's workspace.
fn check_targets(
    list: &str,
    targets: &[DeploymentId],
    neighbours: &BTreeSet<DeploymentId>,
    fields: &mut Fields,
) {
    let mut seen = BTreeSet::new();
    for (index, id) in targets.iter().enumerate() {
        let at = format!("{list}[{index}].scopeEntityId");
        if !neighbours.contains(id) {
            let message = format!("must be the id of a deployment in the object's workspace; {id} is not");
            fields.push(at, "unknown", message);
        } else if !seen.insert(id) {
            fields.push(at, "duplicate", "must be listed only once");
        }
    }
}

/// An object of a deployment applies only to it.
fn takes_none(requested: &Requested, fields: &mut Fields) {
    let message = "must be omitted: an object of a deployment applies to no other deployment";
    let given = [
        ("links", requested.links.as_ref().is_some_and(|links| !links.is_empty())),
        ("excludeLinks", requested.exclusions.as_ref().is_some_and(|ids| !ids.is_empty())),
        ("autoLinkDeployments", requested.auto_link == Some(true)),
    ];
    fields.push_each(given, "excluded", message);
}
