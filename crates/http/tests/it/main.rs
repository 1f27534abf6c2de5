//! The product over HTTP, as named actors, on both engines. Files mirror the URL tree; `coverage` walks all operations.

mod agent_logs;
mod agent_tokens;
mod allowed_ip_address_ranges;
mod auth;
mod authorization;
mod clusters;
mod coverage;
mod deployment_logs;
mod deployments;
mod deploys;
mod environment_objects;
mod invites;
mod kept_log;
mod options;
mod organizations;
mod pages;
mod replicas;
mod roles;
mod secrecy;
mod serving;
mod storage;
mod teams;
mod tokens;
mod users;
mod wire;
mod workspaces;
