//! The wire: ids, enums, requests and responses, and one constant for each operation.
//!
//! Compiles alone and knows no HTTP library, no database and no async. Everything that speaks of an operation (the
//! router, the OpenAPI document, the client, the tests) starts from the constants here.

pub mod agent_logs;
pub mod agent_tokens;
pub mod allowed_ip_address_ranges;
pub mod auth;
pub mod authorization;
pub mod clusters;
pub mod decode;
pub mod deployment_logs;
pub mod deployments;
pub mod deploys;
pub mod enums;
pub mod environment_objects;
mod error;
pub mod front_door;
mod id;
mod ids;
pub mod invites;
pub mod openapi;
pub mod operation;
pub mod options;
pub mod organizations;
pub mod page;
mod patch;
pub mod path;
mod reply;
pub mod roles;
pub mod subjects;
pub mod teams;
pub mod text;
mod time;
pub mod tokens;
pub mod union;
pub mod uploads;
pub mod users;
pub mod workspaces;

pub use error::{ErrorBody, FieldError, counted};
pub use id::{Id, NotAnId};
pub use ids::*;
pub use operation::{Access, Method, Nothing, Operation, Spec};
pub use patch::Patch;
pub use reply::{Blank, Events, Lines, Many, One, Reply, ReplyKind};
pub use time::Timestamp;

/// Every operation.
pub const OPERATIONS: &[Spec] = &[
    authorization::LIST_PERMISSION_GROUPS.spec,
    organizations::LIST.spec,
    organizations::GET.spec,
    organizations::UPDATE.spec,
    organizations::AUDIT_LOGS.spec,
    allowed_ip_address_ranges::LIST.spec,
    allowed_ip_address_ranges::CREATE.spec,
    allowed_ip_address_ranges::DELETE.spec,
    allowed_ip_address_ranges::BULK_CREATE.spec,
    allowed_ip_address_ranges::BULK_DELETE.spec,
    clusters::LIST.spec,
    clusters::CREATE.spec,
    clusters::GET.spec,
    clusters::UPDATE.spec,
    clusters::DELETE.spec,
    deployment_logs::GET.spec,
    deployment_logs::FOLLOW.spec,
    environment_objects::LIST.spec,
    environment_objects::CREATE.spec,
    environment_objects::GET.spec,
    environment_objects::UPDATE.spec,
    environment_objects::DELETE.spec,
    environment_objects::EXCLUDE_LINKING.spec,
    deploys::LIST.spec,
    deploys::CREATE.spec,
    deploys::GET.spec,
    deploys::UPDATE.spec,
    deploys::FINALIZE.spec,
    deploys::ROLLBACK.spec,
    invites::CREATE.spec,
    invites::DELETE.spec,
    invites::CREATE_LINK.spec,
    options::CLUSTER.spec,
    options::DEPLOYMENT.spec,
    roles::LIST_TEMPLATES.spec,
    roles::LIST.spec,
    roles::CREATE.spec,
    roles::GET.spec,
    roles::UPDATE.spec,
    roles::DELETE.spec,
    teams::LIST.spec,
    teams::CREATE.spec,
    teams::GET.spec,
    teams::UPDATE.spec,
    teams::DELETE.spec,
    teams::LIST_MEMBERS.spec,
    teams::ADD_MEMBERS.spec,
    teams::REMOVE_MEMBER.spec,
    teams::UPDATE_ROLES.spec,
    tokens::LIST.spec,
    tokens::CREATE.spec,
    tokens::GET.spec,
    tokens::UPDATE.spec,
    tokens::DELETE.spec,
    tokens::UPDATE_ROLES.spec,
    tokens::ROTATE.spec,
    users::LIST.spec,
    users::GET.spec,
    users::UPDATE_ROLES.spec,
    users::LIST_TEAMS.spec,
    users::GET_SELF.spec,
    workspaces::LIST.spec,
    workspaces::CREATE.spec,
    workspaces::GET.spec,
    workspaces::UPDATE.spec,
    workspaces::DELETE.spec,
    deployments::LIST.spec,
    deployments::CREATE.spec,
    deployments::GET.spec,
    deployments::UPDATE.spec,
    deployments::DELETE.spec,
    deployments::OVERRIDE_HIBERNATION.spec,
    deployments::END_HIBERNATION_OVERRIDE.spec,
    front_door::OPEN.spec,
    agent_tokens::LIST.spec,
    agent_tokens::CREATE.spec,
    agent_tokens::GET.spec,
    agent_tokens::DELETE.spec,
    agent_logs::SEND.spec,
    auth::ACCEPT_INVITE.spec,
    auth::SIGN_IN.spec,
    auth::RENEW.spec,
    auth::SIGN_OUT.spec,
    auth::CHANGE_PASSWORD.spec,
];
