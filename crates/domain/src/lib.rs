//! The rules, pure: who may do what, and what a valid request is.
//!
//! Functions here take facts that the caller has loaded and return a decision, so every rule can be tested with a
//! table. There is no I/O, no clock, no randomness, no SQL and no HTTP in this crate; it knows the wire types and
//! nothing else of the service.

pub mod airflow;
pub mod alerts;
pub mod allowance;
pub mod allowed_ip_address_ranges;
pub mod assignable;
pub mod authorize;
pub mod clusters;
pub mod custom_roles;
pub mod dag_viewers;
pub mod deployment_logs;
pub mod deployments;
pub mod deploys;
pub mod device_sign_ins;
pub mod emails;
pub mod environment_objects;
pub mod events;
pub mod grants;
pub mod groups;
pub mod last_owner;
pub mod names;
pub mod no_escalation;
pub mod operations;
pub mod options;
pub mod passwords;
mod patterns;
pub mod permissions;
pub mod pictures;
pub mod planes;
pub mod plans;
mod quoted;
pub mod reason;
pub mod refusal;
pub mod requirement;
pub mod role_updates;
pub mod roles;
pub mod subject_roles;
pub mod token_roles;
pub mod tokens;
pub mod urls;
mod verbs;
pub mod webhooks;

#[cfg(test)]
mod fixtures;

pub use authorize::{Target, require};
pub use grants::{DeploymentReach, Grant, Grants, Held, On, Reach};
pub use permissions::{Permission, PermissionSet};
pub use quoted::Quoted;
pub use reason::{Given, Reason, UserText};
pub use refusal::{Fields, Refusal, Result};
pub use requirement::Requirement;
