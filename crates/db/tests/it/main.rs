//! The promises of the seam, kept by both engines.

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
