//! Every SQL statement of the product; one file for each resource.
//!
//! Functions take a [`Conn`](podium_db::Conn) to read or a [`Tx`](podium_db::Tx) to write, and a proof of the right to
//! do so: a [`Scope`] that only the policy can mint, so that a statement cannot leave its organization, or the
//! [`System`] capability that the opener of the database has. Resources are returned as rows: as their wire types with
//! the version next to them if those match the row exactly, and otherwise as row types, which `app` converts. Nothing
//! here decides what is allowed.

#![allow(clippy::disallowed_types, clippy::disallowed_macros, reason = "every statement is here")]

mod columns;
mod lazy_row;
mod listing;
mod proof;
mod record;
mod stamp;

pub mod agent_tokens;
pub mod alert_firings;
pub mod alert_mails;
pub mod alert_watches;
pub mod alerts;
pub mod allowed_ip_address_ranges;
pub mod audit;
pub mod changes;
pub mod clean_ups;
pub mod clusters;
pub mod counters;
pub mod credentials;
pub mod declared_sets;
pub mod deploy_reports;
pub mod deployments;
pub mod deploys;
pub mod device_sign_ins;
pub mod environment_objects;
pub mod event_spools;
pub mod events;
pub mod front_door;
pub mod grants;
pub mod idempotency;
pub mod invites;
pub mod landmarks;
pub mod nodes;
pub mod operations;
pub mod organizations;
pub mod pictures;
pub mod plans;
pub mod roles;
pub mod sessions;
pub mod settings;
pub mod signing_keys;
pub mod staged_blocks;
pub mod statuses;
pub mod subjects;
pub mod team_members;
pub mod teams;
pub mod tokens;
pub mod user_sessions;
pub mod users;
pub mod webhook_deliveries;
pub mod webhooks;
pub mod work;
pub mod workspaces;

pub use lazy_row::{LazyRow, Render};
pub use listing::{Listed, Paging};
pub use proof::{Doorkeeper, Founder, Housekeeper, InScope, Membership, Scope, Steward, System, open, view};
pub use stamp::Stamp;

use podium_db::{Migration, Sql};

macro_rules! migration {
    ($file:literal) => {
        Migration::of_file(
            $file,
            include_str!(concat!("../../../migrations/sqlite/", $file, ".sql")),
            include_str!(concat!("../../../migrations/postgres/", $file, ".sql")),
        )
    };
}

pub const MIGRATIONS: &[Migration] = &[
    migration!("0001_identity"),
    migration!("0002_deployments"),
    migration!("0003_clusters"),
    migration!("0004_deploys"),
    migration!("0005_environment_objects"),
    migration!("0006_front_door"),
    migration!("0007_row_estimates"),
    migration!("0008_sessions"),
    migration!("0009_nodes"),
    migration!("0012_staged_blocks"),
    migration!("0016_operations"),
    migration!("0017_events"),
    migration!("0019_deploy_reports"),
    migration!("0021_plans"),
    migration!("0022_webhooks"),
    migration!("0023_rolled_back_from"),
    migration!("0024_event_spools"),
    migration!("0026_declared_sets"),
    migration!("0027_applied_plans"),
    migration!("0028_alerts"),
    migration!("0029_device_sign_ins"),
    migration!("0030_clean_ups"),
    migration!("0031_forgotten_firings"),
    migration!("0032_user_sessions"),
    migration!("0033_sealed_webhook_urls"),
    migration!("0034_resting_ports"),
    migration!("0035_planes"),
];

/// Every statement, and each shape of the lists, so that a test can prepare them all. Whoever holds a statement can run
/// it, so only the system gets them.
pub fn statements(_: &System) -> Vec<&'static Sql> {
    all_statements()
}

/// What each of these modules has under this name.
macro_rules! each {
    ($what:ident of $($module:ident)+) => { [$($module::$what),+] };
}

fn all_statements() -> Vec<&'static Sql> {
    let fixed = each!(STATEMENTS of
        agent_tokens alert_firings alert_mails alert_watches alerts allowed_ip_address_ranges
        audit changes clean_ups clusters counters credentials declared_sets deploy_reports
        deployments deploys device_sign_ins environment_objects event_spools events front_door
        grants idempotency invites landmarks nodes operations organizations plans roles sessions
        settings signing_keys staged_blocks statuses subjects team_members teams tokens
        user_sessions users webhook_deliveries webhooks work workspaces
    );
    let lists = each!(TABLE of
        agent_tokens alert_firings alerts allowed_ip_address_ranges clusters declared_sets
        deployments deploys environment_objects operations organizations roles team_members teams
        tokens user_sessions users webhooks workspaces
    );
    let shapes = lists.into_iter().flat_map(listing::Table::shapes).map(|sql| &*Box::leak(Box::new(sql)));
    let links = environment_objects::LINK_STATEMENTS;
    fixed.concat().into_iter().chain(links.iter().copied()).chain(shapes).collect()
}
