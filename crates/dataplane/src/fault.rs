//! Errors of data plane calls.

use podium_domain::Reason;

/// Why a data plane call failed. Its `Display` text is for operators; users see the user text of its reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The data plane does not respond: the call may or may not have taken effect.
    #[error("{0}")]
    Unreachable(Reason),
    /// The data plane reported a failure.
    #[error("{0}")]
    Failed(Reason),
}

impl Fault {
    /// Whether it is unknown if the call took effect.
    pub fn is_unreachable(&self) -> bool {
        matches!(self, Self::Unreachable(_))
    }

    pub fn reason(&self) -> &Reason {
        match self {
            Self::Unreachable(why) | Self::Failed(why) => why,
        }
    }

    pub fn into_reason(self) -> Reason {
        match self {
            Self::Unreachable(why) | Self::Failed(why) => why,
        }
    }
}

/// A reason is a reported failure.
impl From<Reason> for Fault {
    fn from(why: Reason) -> Self {
        Self::Failed(why)
    }
}
