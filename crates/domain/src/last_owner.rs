//! An organization never loses its last active owner.
//!
//! The store counts owners (including those through teams), inside the transaction that makes the change; this is only
//! the rule and its message.

use crate::refusal::{Refusal, Result};

/// Refuses a change after which no active owner is left.
pub fn keeps_an_owner(active_owners_after: usize) -> Result<()> {
    if active_owners_after > 0 {
        return Ok(());
    }
    Err(Refusal::invalid(
        "This would leave the organization without an active owner. Make somebody else an organization owner first.",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_owner_is_enough_and_none_is_not() {
        for (owners, allowed) in [(0, false), (1, true), (2, true)] {
            assert_eq!(keeps_an_owner(owners).is_ok(), allowed, "{owners}");
        }
    }
}
