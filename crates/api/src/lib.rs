//! The wire: ids, enums, requests and responses, and one type for each endpoint.
//!
//! Compiles alone and depends on no HTTP library, no database and no async code. Everything that deals with an endpoint
//! (the router, the OpenAPI document, the client, the tests) starts from the types declared here.

#![warn(missing_docs)]

#[macro_use]
mod declare;
#[macro_use]
mod wire;

pub mod agent_logs;
pub mod agent_tokens;
pub mod airflow_logs;
pub mod alerts;
pub mod allowed_ip_address_ranges;
pub mod auth;
pub mod authorization;
pub mod clusters;
pub mod const_text;
pub mod declarations;
pub mod declared_sets;
pub mod decode;
pub mod deploy_files;
pub mod deploy_reports;
pub mod deployment_logs;
pub mod deployment_processes;
pub mod deployments;
pub mod deploys;
pub mod device_sign_ins;
#[doc(hidden)]
pub mod distinct;
pub mod endpoint;
pub mod enums;
pub mod environment_objects;
mod error;
pub mod events;
pub mod front_door;
mod hex;
mod id;
mod ids;
pub mod invites;
pub mod json;
mod named;
pub mod openapi;
pub mod operations;
pub mod options;
pub mod organizations;
pub mod page;
mod patch;
pub mod path;
pub mod plans;
mod reply;
pub mod roles;
pub mod schedules;
mod shown;
pub mod subjects;
pub mod teams;
pub mod text;
mod time;
pub mod tokens;
pub mod union;
pub mod uploads;
pub mod user_sessions;
pub mod users;
pub mod webhooks;
pub mod workspaces;

pub use endpoint::{Access, Description, Endpoint, Method, Nothing};
pub use error::{ErrorBody, FieldError, counted};
pub use hex::{hex, unhex};
pub use id::{Id, NotAnId};
pub use ids::*;
pub use named::Named;
pub use patch::Patch;
pub use reply::{Blank, Events, Lines, Many, One, Reply, ReplyKind};
pub use shown::Shown;
pub use time::{Timestamp, WrittenTime};

registry! {
    authorization,
    organizations,
    allowed_ip_address_ranges,
    clusters,
    deployment_logs,
    environment_objects,
    deploys,
    invites,
    options,
    roles,
    teams,
    tokens,
    users,
    workspaces,
    deployments,
    front_door,
    agent_tokens,
    agent_logs,
    auth,
    device_sign_ins,
    user_sessions,
    operations,
    events,
    plans,
    declared_sets,
    deploy_reports,
    deploy_files,
    webhooks,
    alerts,
    deployment_processes,
}
