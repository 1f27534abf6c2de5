//! The promises of the seam, kept by both engines.

#![allow(clippy::disallowed_types, clippy::disallowed_macros, reason = "statements are what is tested")]

mod concurrency;
mod guards;
mod migrations;
mod pipelines;
mod postgres;
mod row_changes;
mod schema;
mod sqlite;
mod support;
mod units;
mod values;
