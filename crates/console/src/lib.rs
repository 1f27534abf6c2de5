//! The web console: pages rendered on the server, which work without scripts.
//!
//! The crate turns a [`Visit`] into an [`Answer`]. It knows no HTTP library, no database and no rules: whatever a page shows or
//! changes goes through the endpoints of the API ([`Calls`]), and what a person may not do is not offered.

mod airflow;
mod answer;
mod assets;
mod calls;
pub mod door;
mod form;
mod list;
mod pages;
mod params;
mod routes;
mod shell;
mod view;
mod visit;

pub use airflow::{AirflowCall, AirflowQuestion, AirflowReply};
pub use answer::Answer;
pub use assets::{Asset, find as asset};
pub use calls::{ApiCall, ApiReply, Calling, Calls, Problem};
pub use params::Params;
pub use routes::answer;
pub use visit::{Visit, VisitMethod};

pub const ROOT: &str = "/console";
