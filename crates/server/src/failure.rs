//! Errors of commands.

/// Why a command failed, for the person who typed it. It is printed, and the program exits.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;
