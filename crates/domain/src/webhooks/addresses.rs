//! Which addresses events may be sent to: those of the public Internet, and the ranges that the operator allows.
//!
//! Callers choose the host, so without this a webhook could reach what only this machine can: its own services, the
//! neighbours in its network, and the metadata service of its cloud.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Encrypted.
    Https,
    /// In the clear: only within ranges that the operator allows.
    Http,
}

/// The ranges that the operator allows beyond the public Internet.
#[derive(Clone, Debug, Default)]
pub struct Destinations(Vec<IpNet>);

impl Destinations {
    pub const fn new(allowed: Vec<IpNet>) -> Self {
        Self(allowed)
    }

    pub const fn has_allowed(&self) -> bool {
        !self.0.is_empty()
    }

    /// Whether events may be sent to an address.
    pub fn admit(&self, scheme: Scheme, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let embedded = embedded(address);
        let is_allowed = |address: &IpAddr| self.0.iter().any(|range| range.contains(address));
        let is_listed = is_allowed(&address) || embedded.is_some_and(|address| is_allowed(&address.into()));
        is_listed || (scheme == Scheme::Https && is_public(address))
    }
}

/// The IPv4 address that an IPv6 address stands for, where a gateway translates it.
fn embedded(address: IpAddr) -> Option<Ipv4Addr> {
    let IpAddr::V6(v6) = address else { return None };
    let octets = v6.octets();
    let four =
        |first: usize| Ipv4Addr::new(octets[first], octets[first + 1], octets[first + 2], octets[first + 3]);
    match v6.segments() {
        // NAT64.
        [0x64, 0xff9b, 0, 0, 0, 0, _, _] => Some(four(12)),
        // 6to4.
        [0x2002, ..] => Some(four(2)),
        _ => None,
    }
}

fn is_public(address: IpAddr) -> bool {
    match (address, embedded(address)) {
        (_, Some(v4)) | (IpAddr::V4(v4), None) => is_public_v4(v4),
        (IpAddr::V6(v6), None) => is_public_v6(v6),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, d] = address.octets();
    let is_special = match (a, b, c) {
        // This network, loopback, multicast and reserved.
        (0 | 127 | 224.., ..) => true,
        // Private, and shared between a provider and its customers.
        (10, ..) | (172, 16..=31, _) | (192, 168, _) | (100, 64..=127, _) => true,
        // Link-local, where clouds have their metadata.
        (169, 254, _) => true,
        // Protocols, relays, documentation and benchmarks.
        (192, 0, 0 | 2) | (192, 88, 99) | (198, 18..=19, _) | (198, 51, 100) | (203, 0, 113) => true,
        // A public address at which a cloud serves its own machines.
        (168, 63, 129) => d == 16,
        _ => false,
    };
    !is_special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [first, second, ..] = address.segments();
    let is_global_unicast = first & 0xe000 == 0x2000;
    // Protocols and tunnels, and documentation.
    let is_special =
        (first == 0x2001 && (second < 0x200 || second == 0xdb8)) || (first == 0x3fff && second < 0x1000);
    is_global_unicast && !is_special
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admits(allowed: &[&str], scheme: Scheme, address: &str) -> bool {
        let allowed = allowed.iter().map(|range| range.parse().unwrap()).collect();
        Destinations::new(allowed).admit(scheme, address.parse().unwrap())
    }

    #[test]
    fn only_public_addresses_are_admitted_by_default() {
        let public = "8.8.8.8 1.1.1.1 172.15.0.1 172.32.0.1 100.63.0.1 100.128.0.1 192.167.1.1 168.63.129.17 \
            198.17.0.1 2606:4700::1111 2a00:1450::1 2001:4860:4860::8888 ::ffff:8.8.8.8 64:ff9b::8.8.8.8 \
            2002:808:808::1";
        for address in public.split(' ') {
            assert!(admits(&[], Scheme::Https, address), "{address}");
            assert!(!admits(&[], Scheme::Http, address), "{address}");
        }
        let refused = "0.0.0.0 0.1.2.3 10.0.0.1 100.64.0.1 100.100.100.200 127.0.0.1 127.255.0.1 168.63.129.16 \
            169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.192 192.0.2.1 192.88.99.1 192.168.1.1 \
            198.18.0.1 198.51.100.1 203.0.113.1 224.0.0.1 240.0.0.1 255.255.255.255 :: ::1 ::127.0.0.1 \
            ::ffff:127.0.0.1 ::ffff:10.0.0.1 64:ff9b::127.0.0.1 64:ff9b::a9fe:a9fe 64:ff9b:1::8.8.8.8 \
            2002:7f00:1::1 2002:a00:1::1 2001::1 2001:db8::1 3fff::1 fc00::1 fd00:ec2::254 fe80::1 \
            fec0::1 ff02::1 100::1 4000::1";
        for address in refused.split(' ') {
            assert!(!admits(&[], Scheme::Https, address), "{address}");
        }
    }

    #[test]
    fn an_allowed_range_is_admitted_in_every_form_and_nothing_else_is() {
        let allowed = &["10.1.0.0/16", "fd00::/8"];
        for scheme in [Scheme::Https, Scheme::Http] {
            for address in ["10.1.2.3", "::ffff:10.1.2.3", "64:ff9b::10.1.2.3", "2002:a01:203::1", "fd12::1"]
            {
                assert!(admits(allowed, scheme, address), "{address}");
            }
            for address in ["10.2.0.1", "127.0.0.1", "::ffff:10.2.0.1", "fe80::1", "64:ff9b::127.0.0.1"] {
                assert!(!admits(allowed, scheme, address), "{address}");
            }
        }
    }
}
