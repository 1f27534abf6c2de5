//! Walks over all endpoints, driven by their descriptions: what holds for one holds for every one.

mod audit;
mod authorization;
mod calls;
mod contract;
mod dag_tokens;
mod events;
mod foreign_ids;
mod pagination;
mod plans;
mod properties;
mod revocation;
mod safe_writes;
mod schema;
mod upgrades;
mod visibility;

pub(crate) use properties::for_all;
