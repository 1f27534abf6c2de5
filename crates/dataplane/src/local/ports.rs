//! Which ports the web servers of environments listen on: some that the kernel gives to nobody by itself.
//!
//! Tasks may listen where the kernel picks the port. From those that it picks a task could wait for any, so ours are others.

use std::fs;
use std::ops::RangeInclusive;

/// Below what kernels pick from unless they are told otherwise, and beside what is commonly served.
const OURS: RangeInclusive<u16> = 24_576..=28_671;
/// What kernels pick from, as this one says.
const PICKED: &str = "/proc/sys/net/ipv4/ip_local_port_range";

/// Whether a port is one that the kernel gives to nobody by itself.
pub(super) fn are_for_us(port: u16) -> bool {
    OURS.contains(&port) && !picked().is_some_and(|picked| picked.contains(&port))
}

/// Ports to try for an environment, one after the other: the one that it has, or those that are for us, and in the end
/// whichever the kernel picks.
pub(super) fn candidates(
    known: u16,
    slot: u32,
    avoided: Option<&RangeInclusive<u16>>,
) -> impl Iterator<Item = u16> {
    let picked = picked();
    let is_free = move |port: &u16, avoided: Option<&RangeInclusive<u16>>| {
        !picked.as_ref().is_some_and(|picked| picked.contains(port))
            && !avoided.is_some_and(|avoided| avoided.contains(port))
    };
    let mut ours: Vec<u16> = OURS.filter(|port| is_free(port, avoided)).collect();
    if !ours.is_empty() {
        // Each begins elsewhere, so that hardly one is tried in vain.
        let first = usize::try_from(slot).unwrap_or(0) % ours.len();
        ours.rotate_left(first);
    }
    std::iter::once(known).filter(|known| *known != 0).chain(ours).chain([0])
}

/// What the kernel picks from.
pub(super) fn picked() -> Option<RangeInclusive<u16>> {
    let text = fs::read_to_string(PICKED).ok()?;
    let mut numbers = text.split_whitespace().map(str::parse);
    Some(numbers.next()?.ok()?..=numbers.next()?.ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_none_that_a_task_can_wait_for() {
        let picked = picked().unwrap();
        let all: Vec<u16> = candidates(0, 7, None).collect();
        let (last, ours) = all.split_last().unwrap();
        assert_eq!(*last, 0, "the last resort");
        assert!(ours.iter().all(|port| !picked.contains(port)));
        assert!(ours.iter().all(|port| are_for_us(*port)));
        assert_eq!(candidates(4000, 7, None).next(), Some(4000), "it stays where it is");
        let avoided: Vec<u16> = candidates(0, 7, Some(&(1..=u16::MAX))).collect();
        assert_eq!(avoided, [0], "those are for tasks");
        if !picked.contains(OURS.start()) {
            assert_eq!(candidates(0, 2, None).next(), Some(OURS.start() + 2));
        }
    }
}
