//! Why a plane could not do what it was asked.

use podium_domain::Reason;

/// Why a plane could not do what it was asked. It shows itself to operators; users see what its reason tells them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// Nobody answers: what was asked may or may not have happened.
    #[error("{0}")]
    Unreachable(Reason),
    /// It answered that it cannot.
    #[error("{0}")]
    Failed(Reason),
}

impl Fault {
    /// Whether it is not known what became of what was asked.
    pub fn is_unreachable(&self) -> bool {
        matches!(self, Self::Unreachable(_))
    }

    /// Why, for users and for operators.
    pub fn reason(&self) -> &Reason {
        match self {
            Self::Unreachable(why) | Self::Failed(why) => why,
        }
    }

    /// Why, and nothing else.
    pub fn into_reason(self) -> Reason {
        match self {
            Self::Unreachable(why) | Self::Failed(why) => why,
        }
    }
}

/// What fails for a reason has answered.
impl From<Reason> for Fault {
    fn from(why: Reason) -> Self {
        Self::Failed(why)
    }
}
