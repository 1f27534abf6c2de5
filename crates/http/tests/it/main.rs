//! The product over HTTP, as named actors, on both engines. Files mirror the URL tree; `coverage` walks all operations.

#![allow(clippy::disallowed_types, clippy::disallowed_macros, reason = "tests look at what is stored")]

mod agent_logs;
mod agent_tokens;
mod alerts;
mod allowed_ip_address_ranges;
mod auth;
mod authorization;
mod cached_rows;
mod captured_log;
mod clusters;
mod console;
mod coverage;
mod declared_sets;
mod deployment_logs;
mod deployment_processes;
mod deployments;
mod deploys;
mod environment_objects;
mod events;
mod front_door;
mod invites;
mod operations;
mod options;
mod organizations;
mod pages;
mod plans;
mod replicas;
mod revocation;
mod roles;
mod scopes;
mod secrecy;
mod serving;
mod storage;
mod teams;
mod tokens;
mod users;
mod webhooks;
mod wire;
mod workspaces;
