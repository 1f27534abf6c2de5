//! Every operation and the function behind it.

use std::sync::Arc;

use podium_api::decode::Check;
use podium_api::openapi::Document;
use podium_api::{OPERATIONS, Spec};
use podium_app as app;

use crate::agents::bind_agents;
use crate::bind::{Endpoint, Env, bind, bind_lines, bind_public};
use crate::events::bind_events;
use crate::incoming::Checks;
use crate::metrics::Meter;

/// An operation, bound.
pub(crate) struct Route {
    pub(crate) spec: &'static Spec,
    pub(crate) endpoint: Endpoint,
    pub(crate) meter: Meter,
}

/// Binds every operation.
pub(crate) fn all(document: &Document, env: &Arc<Env>) -> Vec<Route> {
    let mut routes = Vec::new();
    macro_rules! route {
        ($bind:ident, $operation:path, $function:path) => {{
            let (spec, checks) = prepare(document, $operation.spec.id);
            let endpoint = $bind(&$operation, spec, checks, Arc::clone(env), $function);
            routes.push(Route { spec, endpoint, meter: Meter::default() });
        }};
    }
    use podium_api as api;
    route!(bind, api::authorization::LIST_PERMISSION_GROUPS, app::authorization::list_permission_groups);
    route!(bind, api::organizations::LIST, app::organizations::list);
    route!(bind, api::organizations::GET, app::organizations::get);
    route!(bind, api::organizations::UPDATE, app::organizations::update);
    route!(bind_lines, api::organizations::AUDIT_LOGS, app::organizations::audit_logs);
    route!(bind, api::allowed_ip_address_ranges::LIST, app::allowed_ip_address_ranges::list);
    route!(bind, api::allowed_ip_address_ranges::CREATE, app::allowed_ip_address_ranges::create);
    route!(bind, api::allowed_ip_address_ranges::DELETE, app::allowed_ip_address_ranges::delete);
    route!(bind, api::allowed_ip_address_ranges::BULK_CREATE, app::allowed_ip_address_ranges::bulk_create);
    route!(bind, api::allowed_ip_address_ranges::BULK_DELETE, app::allowed_ip_address_ranges::bulk_delete);
    route!(bind, api::clusters::LIST, app::clusters::list);
    route!(bind, api::clusters::CREATE, app::clusters::create);
    route!(bind, api::clusters::GET, app::clusters::get);
    route!(bind, api::clusters::UPDATE, app::clusters::update);
    route!(bind, api::clusters::DELETE, app::clusters::delete);
    route!(bind, api::deployment_logs::GET, app::deployment_logs::get);
    route!(bind_events, api::deployment_logs::FOLLOW, app::log_events::follow);
    route!(bind, api::environment_objects::LIST, app::environment_objects::list);
    route!(bind, api::environment_objects::CREATE, app::environment_objects::create);
    route!(bind, api::environment_objects::GET, app::environment_objects::get);
    route!(bind, api::environment_objects::UPDATE, app::environment_objects::update);
    route!(bind, api::environment_objects::DELETE, app::environment_objects::delete);
    route!(bind, api::environment_objects::EXCLUDE_LINKING, app::environment_objects::exclude_linking);
    route!(bind, api::deploys::LIST, app::deploys::list);
    route!(bind, api::deploys::CREATE, app::deploys::create);
    route!(bind, api::deploys::GET, app::deploys::get);
    route!(bind, api::deploys::UPDATE, app::deploys::update);
    route!(bind, api::deploys::FINALIZE, app::deploys::finalize);
    route!(bind, api::deploys::ROLLBACK, app::deploys::rollback);
    route!(bind, api::invites::CREATE, app::invites::create);
    route!(bind, api::invites::DELETE, app::invites::delete);
    route!(bind, api::invites::CREATE_LINK, app::invites::create_link);
    route!(bind, api::options::CLUSTER, app::options::cluster);
    route!(bind, api::options::DEPLOYMENT, app::options::deployment);
    route!(bind, api::roles::LIST_TEMPLATES, app::roles::list_templates);
    route!(bind, api::roles::LIST, app::roles::list);
    route!(bind, api::roles::CREATE, app::roles::create);
    route!(bind, api::roles::GET, app::roles::get);
    route!(bind, api::roles::UPDATE, app::roles::update);
    route!(bind, api::roles::DELETE, app::roles::delete);
    route!(bind, api::teams::LIST, app::teams::list);
    route!(bind, api::teams::CREATE, app::teams::create);
    route!(bind, api::teams::GET, app::teams::get);
    route!(bind, api::teams::UPDATE, app::teams::update);
    route!(bind, api::teams::DELETE, app::teams::delete);
    route!(bind, api::teams::LIST_MEMBERS, app::teams::list_members);
    route!(bind, api::teams::ADD_MEMBERS, app::teams::add_members);
    route!(bind, api::teams::REMOVE_MEMBER, app::teams::remove_member);
    route!(bind, api::teams::UPDATE_ROLES, app::teams::update_roles);
    route!(bind, api::tokens::LIST, app::tokens::list);
    route!(bind, api::tokens::CREATE, app::tokens::create);
    route!(bind, api::tokens::GET, app::tokens::get);
    route!(bind, api::tokens::UPDATE, app::tokens::update);
    route!(bind, api::tokens::DELETE, app::tokens::delete);
    route!(bind, api::tokens::UPDATE_ROLES, app::tokens::update_roles);
    route!(bind, api::tokens::ROTATE, app::tokens::rotate);
    route!(bind, api::users::LIST, app::users::list);
    route!(bind, api::users::GET, app::users::get);
    route!(bind, api::users::UPDATE_ROLES, app::users::update_roles);
    route!(bind, api::users::LIST_TEAMS, app::users::list_teams);
    route!(bind, api::users::GET_SELF, app::users::get_self);
    route!(bind, api::workspaces::LIST, app::workspaces::list);
    route!(bind, api::workspaces::CREATE, app::workspaces::create);
    route!(bind, api::workspaces::GET, app::workspaces::get);
    route!(bind, api::workspaces::UPDATE, app::workspaces::update);
    route!(bind, api::workspaces::DELETE, app::workspaces::delete);
    route!(bind, api::deployments::LIST, app::deployments::list);
    route!(bind, api::deployments::CREATE, app::deployments::create);
    route!(bind, api::deployments::GET, app::deployments::get);
    route!(bind, api::deployments::UPDATE, app::deployments::update);
    route!(bind, api::deployments::DELETE, app::deployments::delete);
    route!(bind, api::deployments::OVERRIDE_HIBERNATION, app::deployments::override_hibernation);
    route!(bind, api::deployments::END_HIBERNATION_OVERRIDE, app::deployments::end_hibernation_override);
    route!(bind, api::front_door::OPEN, app::front_door::open);
    route!(bind, api::agent_tokens::LIST, app::agent_tokens::list);
    route!(bind, api::agent_tokens::CREATE, app::agent_tokens::create);
    route!(bind, api::agent_tokens::GET, app::agent_tokens::get);
    route!(bind, api::agent_tokens::DELETE, app::agent_tokens::delete);
    route!(bind_agents, api::agent_logs::SEND, app::agent_logs::send);
    route!(bind_public, api::auth::ACCEPT_INVITE, app::auth::accept_invite);
    route!(bind_public, api::auth::SIGN_IN, app::auth::sign_in);
    route!(bind, api::auth::RENEW, app::auth::renew);
    route!(bind, api::auth::SIGN_OUT, app::auth::sign_out);
    route!(bind, api::auth::CHANGE_PASSWORD, app::auth::change_password);
    assert_eq!(routes.len(), OPERATIONS.len(), "every operation is bound, and once");
    routes
}

/// The constant in the list of all, and the checks made from the schemas that the document shows.
fn prepare(document: &Document, id: &str) -> (&'static Spec, Checks) {
    let index = OPERATIONS.iter().position(|spec| spec.id == id).expect("OPERATIONS lists every operation");
    let schemas = &document.operations[index];
    let check =
        |schema: &Option<serde_json::Value>| Some(Check::compile(schema.as_ref()?, &document.schemas));
    let spec = &OPERATIONS[index];
    (spec, Checks { query: check(&schemas.query), body: check(&schemas.body), target: spec.target_in_body })
}
