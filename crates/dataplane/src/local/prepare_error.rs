//! Why an environment cannot be prepared: whoever reads code, projects and packages says which of both it is.

use podium_domain::Reason;

/// Why an environment cannot be prepared.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PrepareError {
    /// This is missing or broken now, and why; it is tried again.
    Wait(&'static str, Reason),
    /// The release cannot go live, however often it is tried: its author has to change it.
    Refused(Reason),
}

impl From<(&'static str, Reason)> for PrepareError {
    fn from((what, why): (&'static str, Reason)) -> Self {
        Self::Wait(what, why)
    }
}
