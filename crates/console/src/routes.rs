//! Which page a path leads to.

use std::pin::Pin;

use podium_api::events::{self, ListEvents};
use podium_api::organizations::{self, ListOrganizations};
use podium_api::page::Page;
use podium_api::{
    self as api, AlertId, EnvironmentObjectId, RoleId, TeamId, Timestamp, TokenId, WebhookId, WorkspaceId,
};

use crate::ROOT;
use crate::answer::{Answer, Result};
use crate::calls::Problem;
use crate::pages::{
    account, address_ranges, alerts, audit, clusters, declared_sets, deployment, deployments, design,
    environment, operations, overview, places, plans, problem, roles, settings, teams, tokens, users,
    webhooks, workspaces,
};
use crate::visit::{OrganizationVisit, Visit, VisitMethod, id};

/// Answers a visit. The form token of a form that is sent has been checked before.
///
/// The future has an erased type, so that the pages are compiled in this crate and not where it is polled.
pub fn answer<'a>(visit: &'a Visit<'_>) -> Pin<Box<dyn Future<Output = Answer> + Send + 'a>> {
    let failed = |_| Answer::Page { status: 500, html: "The page could not be rendered.".to_owned() };
    Box::pin(async move {
        match lead(visit).await {
            Ok(answer) => answer,
            Err(found) => problem::show(visit, found).unwrap_or_else(failed),
        }
    })
}

async fn lead(visit: &Visit<'_>) -> Result {
    let segments = visit.segments();
    match (visit.method, segments.as_slice()) {
        (VisitMethod::Read, []) => home(visit).await,
        (VisitMethod::Read, ["design"]) => design::show(visit),
        (method, [organization, rest @ ..]) => {
            let mut visit =
                OrganizationVisit { visit, organization_id: id(organization)?, seen: None, problem: None };
            if !is_part(rest) {
                visit.seen = last_event(&visit).await?;
            }
            match method {
                VisitMethod::Read => read(&visit, rest).await,
                VisitMethod::Send => match (send(&visit, rest).await, form_of(rest)) {
                    (Err(problem), Some(page)) => {
                        let status = problem.status;
                        visit.problem = Some(problem);
                        Ok(read(&visit, &page).await?.and_status(status))
                    }
                    (answer, _) => answer,
                },
            }
        }
        _ => Err(nothing()),
    }
}

/// Whether a path leads to a part of a page, or to something else that does not follow events.
fn is_part(path: &[&str]) -> bool {
    matches!(path, ["places"] | [.., "part" | "processes" | "histogram" | "download"])
}

/// The end of the events, which is read before anything else: the page follows what happens after it.
async fn last_event(visit: &OrganizationVisit<'_>) -> Result<Option<String>> {
    let query = ListEvents {
        cursor: None,
        limit: 1,
        types: Vec::new(),
        workspace_id: None,
        deployment_id: None,
        since: Timestamp::parse("9999-01-01T00:00:00Z"),
    };
    match visit.calls().find::<events::List>(visit.here(), query).await {
        Ok(page) => Ok(Some(page.next_cursor)),
        // Not everybody may follow events.
        Err(problem) if problem.status == 403 => Ok(None),
        Err(problem) => Err(problem),
    }
}

fn nothing() -> Problem {
    Problem::new(404, "There is no page at this address.")
}

/// The first organization of the person.
async fn home(visit: &Visit<'_>) -> Result {
    let query =
        ListOrganizations { page: Page::first(1).sorted_by("createdAt"), ..ListOrganizations::default() };
    let found = visit.calls.find::<organizations::List>((), query).await?;
    let first = found.organizations.first();
    let first =
        first.ok_or_else(|| Problem::new(404, "You belong to no organization: accept an invite first."))?;
    Answer::redirect(format!("{ROOT}/{}", first.id))
}

async fn read(visit: &OrganizationVisit<'_>, path: &[&str]) -> Result {
    match path {
        [] => overview::show(visit).await,
        ["places"] => places::list(visit).await,
        ["deployments"] => deployments::list(visit).await,
        ["deployments", "new"] => deployments::new(visit).await,
        ["deployments", of] => deployment::overview::show(visit, id(of)?).await,
        ["deployments", of, "dags"] => deployment::dags::show(visit, id(of)?).await,
        ["deployments", of, "dags", "part"] => deployment::dags::part(visit, id(of)?).await,
        ["deployments", of, "deploys"] => deployment::deploys::list(visit, id(of)?).await,
        ["deployments", of, "deploys", "compare"] => deployment::deploys::compare::show(visit, id(of)?).await,
        ["deployments", of, "deploys", deploy] => {
            deployment::deploys::show(visit, id(of)?, id(deploy)?).await
        }
        ["deployments", of, "processes"] => deployment::processes::part(visit, id(of)?).await,
        ["deployments", of, "logs"] => deployment::logs::show(visit, id(of)?).await,
        ["deployments", of, "logs", "histogram"] => deployment::logs::histogram::part(visit, id(of)?).await,
        ["deployments", of, "logs", "download"] => deployment::logs::download(visit, id(of)?).await,
        ["deployments", of, "variables"] => deployment::variables::show(visit, id(of)?).await,
        ["deployments", of, "access"] => deployment::access::show(visit, id(of)?).await,
        ["deployments", of, "operations"] => deployment::overview::operations(visit, id(of)?).await,
        ["deployments", of, "settings"] => deployment::settings::show(visit, id(of)?).await,
        ["deployments", of, "delete"] => deployment::ask_to_delete(visit, id(of)?).await,
        ["operations"] => operations::list(visit).await,
        ["operations", of] => operations::show(visit, id(of)?).await,
        ["workspaces"] => workspaces::list(visit).await,
        ["workspaces", "new"] => workspaces::new(visit).await,
        ["workspaces", of] => workspaces::edit(visit, id(of)?).await,
        ["workspaces", of, "delete"] => workspaces::ask_to_delete(visit, id(of)?).await,
        ["environment"] => environment::list(visit).await,
        ["environment", "new"] => environment::new(visit).await,
        ["environment", of] => environment::show(visit, id(of)?).await,
        ["clusters"] => clusters::list(visit).await,
        ["clusters", "new"] => clusters::create::new(visit).await,
        ["clusters", of] => clusters::show(visit, id(of)?).await,
        ["users"] => users::list(visit).await,
        ["users", "invite"] => users::ask_whom(visit).await,
        ["users", of] => users::show(visit, id(of)?).await,
        ["teams"] => teams::list(visit).await,
        ["teams", "new"] => teams::new(visit).await,
        ["teams", of] => teams::show(visit, id(of)?).await,
        ["roles"] => roles::list(visit).await,
        ["roles", "new"] => roles::new(visit).await,
        ["roles", "default", name] => roles::show_default(visit, name).await,
        ["roles", of] => roles::show(visit, id(of)?).await,
        ["tokens"] => tokens::list(visit).await,
        ["tokens", "new"] => tokens::new(visit).await,
        ["tokens", of] => tokens::show(visit, id(of)?).await,
        ["declared-sets"] => declared_sets::list(visit).await,
        ["webhooks"] => webhooks::list(visit).await,
        ["webhooks", "new"] => webhooks::new(visit).await,
        ["webhooks", of] => webhooks::show(visit, id(of)?).await,
        ["alerts"] => alerts::list(visit).await,
        ["alerts", "new"] => alerts::new(visit).await,
        ["alerts", of] => alerts::show(visit, id(of)?).await,
        ["address-ranges"] => address_ranges::list(visit).await,
        ["audit"] => audit::list(visit).await,
        ["settings"] => settings::show(visit).await,
        ["account"] => account::show(visit).await,
        _ => Err(nothing()),
    }
}

/// The page with the form that is sent to a path, which is shown again with what was wrong. Without one the problem is
/// explained on a page of its own.
fn form_of<'p>(path: &[&'p str]) -> Option<Vec<&'p str>> {
    match *path {
        ["address-ranges" | "settings" | "account"] => Some(path.to_vec()),
        [list] => Some(vec![list, "new"]),
        ["deployments", _, "settings" | "variables"] | ["workspaces" | "deployments", _, "delete"] => {
            Some(path.to_vec())
        }
        ["deployments", of, "variables", "remove"] => Some(vec!["deployments", of, "variables"]),
        ["deployments", ..] | ["plans", _] => None,
        ["environment" | "roles", of, "delete"] => Some(vec![path[0], of]),
        ["tokens", of, "roles"] | ["webhooks", of, "test" | "deliveries", ..] => Some(vec![path[0], of]),
        ["address-ranges", "delete"] => Some(vec!["address-ranges"]),
        ["users" | "workspaces" | "environment" | "roles" | "webhooks" | "alerts", _] => Some(path.to_vec()),
        _ => None,
    }
}

async fn send(visit: &OrganizationVisit<'_>, path: &[&str]) -> Result {
    match path {
        ["deployments"] => deployments::create(visit).await,
        ["deployments", "bulk"] => deployments::bulk::plan(visit).await,
        ["deployments", of, "settings"] => deployment::settings::plan(visit, id(of)?).await,
        ["deployments", of, "variables"] => deployment::variables::change(visit, id(of)?, false).await,
        ["deployments", of, "variables", "remove"] => {
            deployment::variables::change(visit, id(of)?, true).await
        }
        ["deployments", of, "dags", "trigger"] => deployment::dags::trigger(visit, id(of)?).await,
        ["deployments", of, "dags", "pause"] => deployment::dags::pause(visit, id(of)?, true).await,
        ["deployments", of, "dags", "unpause"] => deployment::dags::pause(visit, id(of)?, false).await,
        ["deployments", of, "hibernate"] => deployment::override_hibernation(visit, id(of)?, true).await,
        ["deployments", of, "wake"] => deployment::override_hibernation(visit, id(of)?, false).await,
        ["deployments", of, "delete"] => deployment::delete(visit, id(of)?).await,
        ["deployments", of, "deploys", deploy, "rollback"] => {
            deployment::deploys::roll_back(visit, id(of)?, id(deploy)?).await
        }
        ["plans", "apply"] => plans::apply(visit).await,
        ["operations", of, "cancel"] => operations::cancel(visit, id(of)?).await,
        ["workspaces"] => workspaces::create(visit).await,
        ["workspaces", of] => workspaces::update(visit, id(of)?).await,
        ["workspaces", of, "delete"] => {
            visit.delete::<api::workspaces::Delete, WorkspaceId>(of, "/workspaces").await
        }
        ["environment"] => environment::create(visit).await,
        ["environment", of] => environment::update(visit, id(of)?).await,
        ["environment", of, "delete"] => {
            visit.delete::<api::environment_objects::Delete, EnvironmentObjectId>(of, "/environment").await
        }
        ["clusters"] => clusters::create::create(visit).await,
        ["clusters", of, "failover"] => clusters::fail_over(visit, id(of)?).await,
        ["users", "invite"] => users::invite(visit).await,
        ["users", of] => users::update(visit, id(of)?).await,
        ["teams"] => teams::create(visit).await,
        ["teams", of, "add"] => teams::add(visit, id(of)?).await,
        ["teams", of, "remove"] => teams::remove(visit, id(of)?).await,
        ["teams", of, "delete"] => visit.delete::<api::teams::Delete, TeamId>(of, "/teams").await,
        ["roles"] => roles::create(visit).await,
        ["roles", of] => roles::update(visit, id(of)?).await,
        ["roles", of, "delete"] => visit.delete::<api::roles::Delete, RoleId>(of, "/roles").await,
        ["tokens"] => tokens::create(visit).await,
        ["tokens", of, "roles"] => tokens::roles::update(visit, id(of)?).await,
        ["tokens", of, "rotate"] => tokens::rotate(visit, id(of)?).await,
        ["tokens", of, "delete"] => visit.delete::<api::tokens::Delete, TokenId>(of, "/tokens").await,
        ["webhooks"] => webhooks::create(visit).await,
        ["webhooks", of] => webhooks::update(visit, id(of)?).await,
        ["webhooks", of, "rotate"] => webhooks::rotate(visit, id(of)?).await,
        ["webhooks", of, "test"] => webhooks::test(visit, id(of)?).await,
        ["webhooks", of, "delete"] => visit.delete::<api::webhooks::Delete, WebhookId>(of, "/webhooks").await,
        ["webhooks", of, "deliveries", delivery, "redeliver"] => {
            webhooks::redeliver(visit, id(of)?, id(delivery)?).await
        }
        ["alerts"] => alerts::create(visit).await,
        ["alerts", of] => alerts::update(visit, id(of)?).await,
        ["alerts", of, "delete"] => visit.delete::<api::alerts::Delete, AlertId>(of, "/alerts").await,
        ["address-ranges"] => address_ranges::create(visit).await,
        ["address-ranges", "delete"] => address_ranges::delete(visit).await,
        ["settings"] => settings::update(visit).await,
        ["account"] => account::update(visit).await,
        ["account", "sessions", "end-others"] => account::end_other_sessions(visit).await,
        ["account", "sessions", of, "end"] => account::end_session(visit, id(of)?).await,
        _ => Err(nothing()),
    }
}
