//! Why a plane could not do what it was asked.

/// Why a plane could not do what it was asked. The texts are for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// Nobody answers: what was asked may or may not have happened.
    #[error("{0}")]
    Unreachable(String),
    /// It answered that it cannot.
    #[error("{0}")]
    Failed(String),
}

impl Fault {
    /// Whether it is not known what became of what was asked.
    pub fn is_silence(&self) -> bool {
        matches!(self, Self::Unreachable(_))
    }
}
