//! What is true of Apache Airflow on any data plane: which processes an environment consists of and what they are told,
//! what they say about themselves, and what follows from it.
//!
//! Nothing here runs a process, opens a file or knows where an environment runs. A plane says where the files of an
//! environment are and how its processes reach each other, runs what it is told to run, and hands over what it finds.

pub mod api;
pub mod check;
pub mod clean_up;
pub mod components;
pub mod database_url;
pub mod drain;
mod environment;
pub mod files;
pub mod health;
pub mod lines;
pub mod migration;
pub mod parsing;
pub mod requirements;
mod secret;
pub mod settings;
pub mod spool;
pub mod support;
pub mod web_client;

pub use api::RunningTasks;
pub use clean_up::{CleanUp, CleanUpState};
pub use environment::{Environment, Objects, Setting};
pub use secret::Secret;
