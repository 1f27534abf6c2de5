//! The ports of environments' web servers: outside the kernel's ephemeral range.
//!
//! Tasks may listen on ephemeral ports. A task could wait for any of those to become free, so ours are outside that
//! range.

use std::fs;
use std::ops::RangeInclusive;

/// Below the default ephemeral range, and away from commonly used ports.
const OUR_RANGE: RangeInclusive<u16> = 24_576..=28_671;
/// The kernel's ephemeral port range.
const EPHEMERAL_RANGE_FILE: &str = "/proc/sys/net/ipv4/ip_local_port_range";

/// Whether a port is in our range and not in the ephemeral range.
pub(super) fn is_in_our_range(port: u16) -> bool {
    OUR_RANGE.contains(&port) && !ephemeral_range().is_some_and(|ephemeral| ephemeral.contains(&port))
}

/// Ports to try for an environment, in order: the one that it has, then those of our range, and finally any port.
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
        // Each environment starts at another port, so that the first attempt usually succeeds.
        let first = usize::try_from(slot).unwrap_or(0) % ours.len();
        ours.rotate_left(first);
    }
    std::iter::once(known).filter(|known| *known != 0).chain(ours).chain([0])
}

/// The ephemeral port range.
pub(super) fn ephemeral_range() -> Option<RangeInclusive<u16>> {
    let text = fs::read_to_string(EPHEMERAL_RANGE_FILE).ok()?;
    let mut numbers = text.split_whitespace().map(str::parse);
    Some(numbers.next()?.ok()?..=numbers.next()?.ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_outside_the_ephemeral_range() {
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
