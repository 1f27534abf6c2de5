//! Why a command did not do what it was asked.

/// Why a command did not do what it was asked, in words for whoever typed it. Nothing looks into it: it is shown, and the
/// program ends.
pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;
