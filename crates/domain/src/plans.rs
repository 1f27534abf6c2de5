//! Plans: what a list of calls would do.
//!
//! Pure parts of it: how a call refers to the results of earlier ones, what differs between a resource before and after a
//! call, and what follows from that for what runs.

mod difference;
mod effects;
mod references;

pub use difference::{created, deleted, difference};
pub use effects::{of_deployment, restart_of_all};
pub use references::{resolve_body, resolve_path};

/// Endpoints that change something and cannot be planned: what they hand out works at once, or they are about plans.
const NOT_PLANNED: &[&str] = &["OpenDeployment", "CreatePlan", "ApplyPlan"];

/// Whether a call of the endpoint can be part of a plan.
pub fn can_be_planned(endpoint: &podium_api::Description) -> bool {
    use podium_api::Access::{Member, Permission};
    endpoint.audited
        && matches!(endpoint.access, Member | Permission(_))
        && !NOT_PLANNED.contains(&endpoint.id)
}
