//! The result of a step of a command. A person reads the failure, so it is a sentence.

/// Success, or a sentence that says what went wrong and what to do.
pub(crate) type Outcome<T = ()> = Result<T, String>;

/// Says what was being done when an error happened.
pub(crate) trait While<T> {
    /// Turns the error into "`what`: error".
    fn doing(self, what: &str) -> Outcome<T>;
}

impl<T, E: std::fmt::Display> While<T> for Result<T, E> {
    fn doing(self, what: &str) -> Outcome<T> {
        self.map_err(|error| format!("{what}: {error}"))
    }
}
