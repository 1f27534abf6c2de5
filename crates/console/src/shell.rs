//! What surrounds every page: navigation, breadcrumb, title, the person who is signed in.

use podium_api::{
    alerts, allowed_ip_address_ranges as ranges, clusters, declared_sets, environment_objects, organizations,
    roles, teams, tokens, users, webhooks, workspaces,
};

use crate::answer::Result;
use crate::assets;
use crate::visit::OrganizationVisit;

#[derive(Debug, Default)]
pub(crate) struct Shell {
    pub(crate) title: String,
    pub(crate) organization: String,
    /// Where the organization begins.
    pub(crate) home: String,
    pub(crate) groups: Vec<Vec<NavigationItem>>,
    /// The pages above this one.
    pub(crate) crumbs: Vec<(String, String)>,
    pub(crate) person: String,
    /// What was done just now.
    pub(crate) done: Option<&'static str>,
    pub(crate) is_simulated: bool,
    /// What a form has to send along.
    pub(crate) form_token: String,
    /// The deployment whose events the page changes with, or empty for those of all. Without it the page is not live.
    pub(crate) live: Option<String>,
    /// The last event before the page was read; a live page follows those after it.
    pub(crate) seen: Option<String>,
}

#[derive(Debug)]
pub(crate) struct NavigationItem {
    pub(crate) href: String,
    pub(crate) label: &'static str,
    pub(crate) is_current: bool,
}

/// What pages say after a form was sent; the query names it, so that nobody can put words into a link.
const DONE: &[(&str, &str)] = &[
    ("created", "Created."),
    ("saved", "Saved."),
    ("deleted", "Deleted."),
    ("session", "Ended. Anyone who used the session has to sign in again."),
    ("unchanged", "Nothing was changed: there were no differences."),
    ("invited", "Invited. They accept with the link below."),
    ("cancelled", "The operation is being cancelled."),
    ("hibernating", "The deployment is going to sleep."),
    ("waking", "The deployment is waking up."),
    ("applied", "The change was applied."),
    ("rolled-back", "The rollback has started."),
    ("sent", "Sent. The result is below."),
    ("triggered", "A run was queued. If the DAG is paused, the run begins once the DAG is unpaused."),
    ("paused", "The DAG is paused: no more runs begin."),
    ("unpaused", "The DAG runs on its schedule again."),
    ("password", "Your password was changed."),
];

impl Shell {
    pub(crate) fn style(&self) -> &'static str {
        assets::style()
    }

    pub(crate) fn script(&self) -> &'static str {
        assets::script()
    }

    pub(crate) fn icon(&self) -> &'static str {
        assets::icon()
    }

    /// Adds a page above this one to the breadcrumb.
    pub(crate) fn below(mut self, label: impl Into<String>, href: String) -> Self {
        self.crumbs.push((label.into(), href));
        self
    }

    /// Makes the page live: it changes with the events of a deployment, or of all.
    pub(crate) fn live(mut self, deployment: impl Into<String>) -> Self {
        self.live = Some(deployment.into());
        self
    }
}

impl OrganizationVisit<'_> {
    /// The surroundings of a page of the organization. What the person may not read is not in the navigation.
    pub(crate) async fn shell(&self, title: impl Into<String>) -> Result<Shell> {
        let (calls, here) = (self.calls(), self.here());
        let organization = calls.get::<organizations::Get>(here).await?;
        let at = self.visit.segments().get(1).copied().unwrap_or_default();
        let group = |links: &[(bool, &'static str, &'static str)]| {
            let offered = links.iter().filter(|(is_offered, ..)| *is_offered);
            let item = |(_, label, to): &(bool, &'static str, &'static str)| NavigationItem {
                href: self.link(to),
                label,
                is_current: to.trim_start_matches('/') == at,
            };
            offered.map(item).collect()
        };
        let groups = vec![
            group(&[
                (true, "Overview", ""),
                (true, "Deployments", "/deployments"),
                (true, "Operations", "/operations"),
            ]),
            group(&[
                (calls.may::<workspaces::List>(here).await, "Workspaces", "/workspaces"),
                (calls.may::<environment_objects::List>(here).await, "Environment", "/environment"),
                (calls.may::<clusters::List>(here).await, "Clusters", "/clusters"),
            ]),
            group(&[
                (calls.may::<users::List>(here).await, "Users", "/users"),
                (calls.may::<teams::List>(here).await, "Teams", "/teams"),
                (calls.may::<roles::List>(here).await, "Roles", "/roles"),
                (calls.may::<tokens::List>(here).await, "API tokens", "/tokens"),
            ]),
            group(&[
                (calls.may::<ranges::List>(here).await, "Address ranges", "/address-ranges"),
                (calls.may::<declared_sets::List>(here).await, "Declared sets", "/declared-sets"),
                (calls.may::<alerts::List>(here).await, "Alerts", "/alerts"),
                (calls.may::<webhooks::List>(here).await, "Webhooks", "/webhooks"),
                (calls.may::<organizations::AuditLogs>(here).await, "Audit log", "/audit"),
                (calls.may::<organizations::Update>(here).await, "Settings", "/settings"),
            ]),
        ];
        let done = self.query().opt("done");
        Ok(Shell {
            title: title.into(),
            organization: organization.name,
            home: self.link(""),
            groups,
            crumbs: Vec::new(),
            person: self.visit.person.clone(),
            done: done.and_then(|done| DONE.iter().find(|(word, _)| *word == done)).map(|(_, text)| *text),
            is_simulated: calls.simulates(),
            form_token: self.visit.form_token.clone(),
            live: None,
            seen: self.seen.clone(),
        })
    }
}
