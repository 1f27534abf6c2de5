//! The ports of environments' web servers: outside the kernel's ephemeral range. And the loopback addresses of servers that
//! URLs name.
//!
//! Tasks may listen on ephemeral ports. A task could wait for any of those to become free, so ours are outside that
//! range.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs as _};
use std::ops::RangeInclusive;

use podium_airflow::database_url;

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

/// The port of a URL whose host is this machine's loopback address; any URL with a host will do.
pub(super) fn loopback_port(url: &str, usual: u16) -> Option<u16> {
    loopback(url, usual).first().map(SocketAddr::port)
}

/// The loopback addresses of a URL's host. A name is resolved once.
pub(super) fn loopback(url: &str, usual: u16) -> Vec<SocketAddr> {
    let Some((named, port)) = database_url::address(url) else { return Vec::new() };
    let port = port.unwrap_or(usual);
    let mut found: Vec<SocketAddr> = match named.parse::<IpAddr>() {
        Ok(address) => vec![(address, port).into()],
        // Clients that try IPv6 first are refused there and fall back.
        Err(_) if named.eq_ignore_ascii_case("localhost") => vec![(Ipv4Addr::LOCALHOST, port).into()],
        Err(_) => (named, port).to_socket_addrs().map(Iterator::collect).unwrap_or_default(),
    };
    found.retain(|address| address.ip().is_loopback());
    found
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

    #[test]
    fn the_port_of_a_server_on_loopback_is_recognised() {
        let port = |url: &str| loopback_port(url, 5432);
        assert_eq!(port("postgres://a:b@127.0.0.1:5433/postgres"), Some(5433));
        assert_eq!(port("postgres://a@localhost/postgres?sslmode=disable"), Some(5432));
        assert_eq!(port("postgres://a@[::1]:5434/postgres"), Some(5434));
        assert_eq!(port("postgres:///postgres?host=127.0.0.1&port=5435"), Some(5435));
        assert_eq!(port("redis://:pw@127.0.0.1"), Some(5432));
        for elsewhere in
            ["postgres://a@db.example.com/p", "postgres:///p?host=/run/postgresql", "redis://10.0.0.1:6379/0"]
        {
            assert_eq!(port(elsewhere), None, "{elsewhere}");
        }
    }
}
