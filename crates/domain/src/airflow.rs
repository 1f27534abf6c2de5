//! What passes through the front door of an environment: which right a request to Apache Airflow needs, and whether the
//! caller holds it.
//!
//! The tables ([`three`], [`two`]) are the fence: what they do not name is refused. A path is judged in one canonical
//! form ([`path`]) and sent on in that form, so what was judged is what Airflow sees. Airflow's own roles ([`roles`])
//! are a second fence behind this one. What an answer holds is not looked at: a list that Airflow cannot narrow to the
//! DAGs of the caller is refused instead.

mod judge;
mod path;
pub mod roles;
mod rules;
mod three;
mod two;

pub use judge::{Passage, Rights, Tagged, judge};
pub use path::AirflowPath;
pub use roles::AirflowRole;
pub use rules::{Line, Rule, closed, find};

#[cfg(test)]
mod pins;
#[cfg(test)]
mod tests;
