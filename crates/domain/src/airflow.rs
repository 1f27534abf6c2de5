//! The rules of the front door: which permission a request to Apache Airflow requires, and whether the caller holds
//! it.
//!
//! The tables ([`rules`]) are an allowlist: requests that they do not name are refused. A path is checked in
//! one canonical form ([`path`]) and forwarded in that form, so what was checked is what Airflow sees. Airflow's own
//! roles ([`roles`]) are a second line of defence. Responses are not inspected: a list that Airflow cannot narrow to
//! the caller's DAGs is refused instead.

mod judge;
mod path;
pub mod roles;
mod rules;

pub use judge::{Decision, Rights, Tagged, judge};
pub use path::AirflowPath;
pub use roles::AirflowRole;
pub use rules::{Line, Rule, closed, find, load};

#[cfg(test)]
mod pins;
#[cfg(test)]
mod tests;
