//! The loops on both engines: every step may fail or run twice, and nothing is lost.

mod backoff;
mod clusters;
mod deployments;
mod dispatcher;
mod gated;
mod hibernation;
mod leases;
mod nodes;
mod operations;
mod planes;
mod stopping;
mod webhooks;
mod work;
