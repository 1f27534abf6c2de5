//! Every endpoint and the function behind it.

use std::sync::Arc;

use podium_api::{Description, ENDPOINTS, Endpoint, const_text};

use crate::bind::{Env, Handler, bind};
use crate::metrics::Meter;

pub(crate) struct Route {
    pub(crate) endpoint: &'static Description,
    pub(crate) handler: Handler,
    pub(crate) meter: Meter,
}

/// Binds endpoints of a module of `podium-api` to functions of the module of that name in `podium-app`.
macro_rules! routes {
    ($($resource:ident { $($endpoint:ident => $function:ident),+ $(,)? })+) => {
        const BOUND: &[&str] = &[$($(<podium_api::$resource::$endpoint as Endpoint>::DESCRIPTION.id),+),+];

        /// Binds every endpoint.
        pub(crate) fn all(env: &Arc<Env>) -> Vec<Route> {
            vec![$($({
                type Bound = podium_api::$resource::$endpoint;
                let handler = bind::<Bound, _, _>(Arc::clone(env), podium_app::$resource::$function);
                Route { endpoint: Bound::DESCRIPTION, handler, meter: Meter::default() }
            }),+),+]
        }
    };
}

routes! {
    authorization { ListGroups => list_permission_groups }
    organizations { List => list, Get => get, Update => update, AuditLogs => audit_logs }
    allowed_ip_address_ranges {
        List => list, Create => create, Delete => delete, BulkCreate => bulk_create,
        BulkDelete => bulk_delete,
    }
    clusters { List => list, Create => create, Get => get, Update => update, Delete => delete }
    deployment_logs { Get => get, Count => count, Follow => follow }
    environment_objects {
        List => list, Create => create, Get => get, Update => update, Delete => delete,
        ExcludeLinking => exclude_linking,
    }
    deploys {
        List => list, Create => create, Get => get, Update => update, Finalize => finalize,
        Rollback => rollback,
    }
    deploy_reports { Get => get }
    deploy_files { List => list }
    invites { Create => create, Delete => delete, CreateLink => create_link }
    options { ForClusters => cluster, ForDeployments => deployment }
    roles {
        ListTemplates => list_templates, List => list, Create => create, Get => get, Update => update,
        Delete => delete,
    }
    teams {
        List => list, Create => create, Get => get, Update => update, Delete => delete,
        ListMembers => list_members, AddMembers => add_members, RemoveMember => remove_member,
        UpdateRoles => update_roles,
    }
    tokens {
        List => list, Create => create, Get => get, Update => update, Delete => delete,
        UpdateRoles => update_roles, Rotate => rotate,
    }
    users {
        List => list, Get => get, UpdateRoles => update_roles, ListTeams => list_teams, GetSelf => get_self,
    }
    workspaces { List => list, Create => create, Get => get, Update => update, Delete => delete }
    deployments {
        List => list, Create => create, Get => get, Update => update, Delete => delete,
        OverrideHibernation => override_hibernation, EndHibernationOverride => end_hibernation_override,
    }
    front_door { Open => open }
    agent_tokens { List => list, Create => create, Get => get, Delete => delete }
    agent_logs { SendLogs => send }
    auth {
        AcceptInvite => accept_invite, SignIn => sign_in, Renew => renew, SignOut => sign_out,
        ChangePassword => change_password,
    }
    device_sign_ins { Start => start, Finish => finish, Decide => decide }
    user_sessions { List => list, End => end, EndOthers => end_others }
    operations { List => list, Get => get, Cancel => cancel, Force => force, Follow => follow }
    events { List => list, Follow => follow }
    plans { Create => create, Apply => apply }
    webhooks {
        List => list, Create => create, Get => get, Update => update, Delete => delete,
        RotateSecret => rotate_secret, Test => test, ListDeliveries => list_deliveries,
        GetDelivery => get_delivery, Redeliver => redeliver,
    }
    alerts {
        List => list, Create => create, Get => get, Update => update, Delete => delete,
        ListFirings => list_firings,
    }
    deployment_processes { List => list }
    declared_sets { List => list, Create => create, Get => get, Update => update, Delete => delete }
}

/// The paths of endpoints, and the indices of those at each.
pub(crate) fn by_path(routes: &[Arc<Route>]) -> Vec<(&'static str, Vec<usize>)> {
    let mut paths: Vec<(&'static str, Vec<usize>)> = Vec::new();
    for (index, route) in routes.iter().enumerate() {
        match paths.iter_mut().find(|(path, _)| *path == route.endpoint.path) {
            Some((_, indices)) => indices.push(index),
            None => paths.push((route.endpoint.path, vec![index])),
        }
    }
    paths
}

const _: () = {
    if let Some(id) = left_out(ENDPOINTS, BOUND) {
        this_endpoint_is_not_bound(id);
    }
    if let Some(id) = repeated(BOUND) {
        this_endpoint_is_bound_twice(id);
    }
};

/// The first endpoint that is not bound.
const fn left_out(endpoints: &[Description], bound: &[&str]) -> Option<&'static str> {
    let mut index = 0;
    while index < endpoints.len() {
        if !const_text::contains(bound, endpoints[index].id) {
            return Some(endpoints[index].id);
        }
        index += 1;
    }
    None
}

/// The first id that is there twice.
const fn repeated(bound: &[&'static str]) -> Option<&'static str> {
    let mut rest = bound;
    while let [first, others @ ..] = rest {
        if const_text::contains(others, first) {
            return Some(first);
        }
        rest = others;
    }
    None
}

// A failed build shows the names of these functions along with the id.

const fn this_endpoint_is_not_bound(id: &str) -> ! {
    panic!("{}", id)
}

const fn this_endpoint_is_bound_twice(id: &str) -> ! {
    panic!("{}", id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_bound_or_bound_twice_is_named() {
        let ids: Vec<&str> = ENDPOINTS.iter().map(|endpoint| endpoint.id).collect();
        assert_eq!((left_out(ENDPOINTS, &ids), repeated(&ids)), (None, None));
        // As many as there are, and yet one is missing.
        let mut wrong = ids.clone();
        wrong[3] = ids[7];
        assert_eq!((left_out(ENDPOINTS, &wrong), repeated(&wrong)), (Some(ids[3]), Some(ids[7])));
    }
}
