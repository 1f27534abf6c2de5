//! The loops on both engines: every step may fail, every step may run twice, and nothing is forgotten.

mod backoff;
mod clusters;
mod deployments;
mod dispatcher;
mod gated;
mod hibernation;
mod leases;
mod nodes;
mod work;
