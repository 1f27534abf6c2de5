//! One file for each noun, named as in the other layers; each is thin.

pub(crate) mod allowed_ip_address_ranges;
pub(crate) mod api;
pub(crate) mod audit;
pub(crate) mod clusters;
pub(crate) mod completion;
pub(crate) mod contexts;
pub(crate) mod declarations;
pub(crate) mod deployment_logs;
pub(crate) mod deployments;
pub(crate) mod deploys;
pub(crate) mod environment_objects;
pub(crate) mod front_door;
pub(crate) mod init;
pub(crate) mod invites;
pub(crate) mod login;
pub(crate) mod manual;
pub(crate) mod operations;
pub(crate) mod organizations;
pub(crate) mod plans;
pub(crate) mod roles;
pub(crate) mod teams;
pub(crate) mod tokens;
pub(crate) mod users;
pub(crate) mod version;
pub(crate) mod workspaces;
