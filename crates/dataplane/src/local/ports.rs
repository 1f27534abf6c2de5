//! Which ports the web servers of environments listen on: some that the kernel gives to nobody by itself.
//!
//! Tasks may listen where the kernel picks the port. From those that it picks a task could wait for any, so ours are others.

use std::fs;
use std::ops::RangeInclusive;

/// Below what kernels pick from unless they are told otherwise, and beside what is commonly served.
const OUR_RANGE: RangeInclusive<u16> = 24_576..=28_671;
/// What kernels pick from, as this one says.
const EPHEMERAL_RANGE_FILE: &str = "/proc/sys/net/ipv4/ip_local_port_range";

/// Whether a port is one that the kernel gives to nobody by itself.
pub(super) fn is_in_our_range(port: u16) -> bool {
    OUR_RANGE.contains(&port) && !ephemeral_range().is_some_and(|ephemeral| ephemeral.contains(&port))
}

/// Ports to try for an environment, one after the other: the one that it has, or those that are for us, and in the end
/// whichever the kernel picks.
pub(super) fn candidates(
    known: u16,
    slot: u32,
    avoided: Option<&RangeInclusive<u16>>,
) -> impl Iterator<Item = u16> {
    let ephemeral = ephemeral_range();
    let is_free = move |port: &u16, avoided: Option<&RangeInclusive<u16>>| {
        !ephemeral.as_ref().is_some_and(|ephemeral| ephemeral.contains(port))
            && !avoided.is_some_and(|avoided| avoided.contains(port))
    };
    let mut ours: Vec<u16> = OUR_RANGE.filter(|port| is_free(port, avoided)).collect();
    if !ours.is_empty() {
        // Each begins elsewhere, so that hardly one is tried in vain.
        let first = usize::try_from(slot).unwrap_or(0) % ours.len();
        ours.rotate_left(first);
    }
    std::iter::once(known).filter(|known| *known != 0).chain(ours).chain([0])
}

/// What the kernel picks from.
pub(super) fn ephemeral_range() -> Option<RangeInclusive<u16>> {
    let text = fs::read_to_string(EPHEMERAL_RANGE_FILE).ok()?;
    let mut numbers = text.split_whitespace().map(str::parse);
    Some(numbers.next()?.ok()?..=numbers.next()?.ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_none_that_a_task_can_wait_for() {
        let ephemeral = ephemeral_range().unwrap();
        let all: Vec<u16> = candidates(0, 7, None).collect();
        let (last, ours) = all.split_last().unwrap();
        assert_eq!(*last, 0, "the last resort");
        assert!(ours.iter().all(|port| !ephemeral.contains(port)));
        assert!(ours.iter().all(|port| is_in_our_range(*port)));
        assert_eq!(candidates(4000, 7, None).next(), Some(4000), "it stays where it is");
        let avoided: Vec<u16> = candidates(0, 7, Some(&(1..=u16::MAX))).collect();
        assert_eq!(avoided, [0], "those are for tasks");
        if !ephemeral.contains(OUR_RANGE.start()) {
            assert_eq!(candidates(0, 2, None).next(), Some(OUR_RANGE.start() + 2));
        }
    }
}
