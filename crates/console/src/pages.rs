//! The pages, one module for each resource.

pub(crate) mod account;
pub(crate) mod address_ranges;
pub(crate) mod alerts;
pub(crate) mod audit;
pub(crate) mod clusters;
pub(crate) mod declared_sets;
pub(crate) mod deployment;
pub(crate) mod deployments;
pub(crate) mod design;
pub(crate) mod environment;
pub(crate) mod operations;
pub(crate) mod overview;
pub(crate) mod places;
pub(crate) mod plans;
pub(crate) mod problem;
pub(crate) mod roles;
pub(crate) mod settings;
pub(crate) mod teams;
pub(crate) mod tokens;
pub(crate) mod users;
pub(crate) mod webhooks;
pub(crate) mod workspaces;
