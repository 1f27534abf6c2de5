//! Values that nobody may see by accident.

use std::fmt;

use zeroize::Zeroizing;

/// A value that no log, error or debugger's print shows. It is wiped from memory when it is dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Hidden(Zeroizing<String>);

impl Hidden {
    /// Hides a value.
    pub fn new(value: String) -> Self {
        Self(Zeroizing::new(value))
    }

    /// The value, for the plane that needs it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hidden_value_is_not_printed() {
        let hidden = Hidden::new("s3cret".into());
        assert_eq!(format!("{hidden:?} {:?}", Some(&hidden)), "(hidden) Some((hidden))");
        assert_eq!(hidden.reveal(), "s3cret");
    }
}
