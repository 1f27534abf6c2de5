//! Address ranges that an organization may be reached from.
//!
//! A range has only one valid form, so that the same one cannot be listed twice. Determining a request's address is
//! not done here.

use std::net::IpAddr;

use ipnet::IpNet;
use podium_api::FieldError;

use crate::refusal::{Fields, Refusal, Result};

pub fn range(field: &str, text: &str) -> std::result::Result<IpNet, FieldError> {
    let wrong = |message: String| Err(FieldError::new(field, "format", message));
    let text = text.trim();
    let (address, prefix) = match text.split_once('/') {
        Some((address, prefix)) => (address.parse::<IpAddr>().ok(), Some(prefix)),
        None => (text.parse::<IpAddr>().ok(), None),
    };
    let Some(address) = address else {
        return wrong("must be a range in CIDR notation such as 203.0.113.0/24 or 2001:db8::/32".into());
    };
    let bits = if address.is_ipv4() { 32 } else { 128 };
    let Some(prefix) = prefix else {
        return wrong(format!("must have a prefix length; for this single address write {address}/{bits}"));
    };
    let Some(net) = prefix_length(prefix).and_then(|length| IpNet::new(address, length).ok()) else {
        return wrong(format!("must have a prefix length from 0 to {bits} after the slash"));
    };
    if let Some(v4) = as_ipv4(net) {
        return wrong(format!("must be written as an IPv4 range: {v4}"));
    }
    if net.trunc() != net {
        return wrong(format!("must have no bits set after its prefix; write {}", net.trunc()));
    }
    Ok(net)
}

/// Digits only, without leading zeros.
fn prefix_length(text: &str) -> Option<u8> {
    text.parse::<u8>().ok().filter(|length| length.to_string() == text)
}

/// The IPv4 range that an IPv4-mapped IPv6 range means: clients in it are always compared as IPv4.
fn as_ipv4(net: IpNet) -> Option<IpNet> {
    let IpNet::V6(v6) = net else { return None };
    let address = v6.addr().to_ipv4_mapped()?;
    IpNet::new(address.into(), v6.prefix_len().checked_sub(96)?).ok().map(|net| net.trunc())
}

/// Checks many ranges at once; the same one twice is a conflict.
pub fn ranges(field: &str, texts: &[String]) -> Result<Vec<IpNet>> {
    let mut fields = Fields::new();
    let checked = texts.iter().enumerate();
    let nets: Vec<IpNet> =
        checked.filter_map(|(index, text)| fields.take(range(&format!("{field}[{index}]"), text))).collect();
    fields.into_result()?;
    let mut sorted = nets.clone();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => {
            Err(Refusal::Conflict(format!("The request lists {} twice; list every range once.", pair[0])))
        }
        None => Ok(nets),
    }
}

pub fn covers(ranges: &[IpNet], address: IpAddr) -> bool {
    let address = address.to_canonical();
    ranges.iter().any(|range| range.contains(&address))
}

/// The ranges that requests may come from, as they were read from where they are stored.
///
/// A text that is no range admits nobody, and yet it counts as one: a list of nothing else is a closed door, not an
/// open one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    ranges: Vec<IpNet>,
    unreadable: Vec<String>,
}

impl Allowed {
    pub fn read(stored: Vec<String>) -> Self {
        let mut allowed = Self::default();
        for text in stored {
            match text.parse() {
                Ok(range) => allowed.ranges.push(range),
                Err(_) => allowed.unreadable.push(text),
            }
        }
        allowed
    }

    /// Whether a request from the address may come in: no range at all leaves the door open.
    pub fn admits(&self, address: IpAddr) -> bool {
        (self.ranges.is_empty() && self.unreadable.is_empty()) || covers(&self.ranges, address)
    }

    /// The texts that are no ranges: nothing but a fault puts one there.
    pub fn unreadable(&self) -> &[String] {
        &self.unreadable
    }
}

/// Refuses a list of ranges that would lock out the caller who makes it.
pub fn keeps_caller_in(after: &Allowed, address: IpAddr) -> Result<()> {
    if after.admits(address) {
        return Ok(());
    }
    let address = address.to_canonical();
    Err(Refusal::invalid(format!(
        "This would lock you out: your address {address} would be in none of the allowed ranges. Allow it first."
    )))
}

/// A text that sorts as the ranges do: IPv4 before IPv6, then by address, then the wider range first.
pub fn sort_key(range: IpNet) -> String {
    match range {
        IpNet::V4(net) => format!("4:{:08x}/{:03}", net.addr().to_bits(), net.prefix_len()),
        IpNet::V6(net) => format!("6:{:032x}/{:03}", net.addr().to_bits(), net.prefix_len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn net(text: &str) -> IpNet {
        range("ipAddressRange", text).unwrap()
    }

    #[test]
    fn ranges_are_canonical() {
        for (text, stored) in [
            ("10.0.0.0/8", "10.0.0.0/8"),
            (" 0.0.0.0/0 ", "0.0.0.0/0"),
            ("203.0.113.7/32", "203.0.113.7/32"),
            ("2001:DB8:0::/32", "2001:db8::/32"),
            ("::/0", "::/0"),
        ] {
            assert_eq!(net(text).to_string(), stored);
        }
        for (text, hint) in [
            ("10.1.2.3/8", "write 10.0.0.0/8"),
            ("2001:db8::1/32", "write 2001:db8::/32"),
            ("203.0.113.7", "write 203.0.113.7/32"),
            ("2001:db8::1", "write 2001:db8::1/128"),
            ("10.0.0.0/33", "from 0 to 32"),
            ("2001:db8::/129", "from 0 to 128"),
            ("10.0.0.0/08", "from 0 to 32"),
            ("10.0.0.0/+8", "from 0 to 32"),
            ("::ffff:10.0.0.0/104", "IPv4 range: 10.0.0.0/8"),
            ("010.0.0.0/8", "CIDR notation"),
            ("10.0.0/8", "CIDR notation"),
            ("everywhere", "CIDR notation"),
            ("", "CIDR notation"),
        ] {
            let error = range("ipAddressRange", text).unwrap_err();
            assert!(error.message.contains(hint), "{text}: {}", error.message);
        }
    }

    #[test]
    fn many_are_checked_at_once() {
        let list = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let field = "allowedIpAddressRanges";
        assert_eq!(ranges(field, &list(&["10.0.0.0/8", "::/0"])).unwrap().len(), 2);
        assert_eq!(ranges(field, &list(&["::/0", "10.0.0.0/8", "::/0"])).unwrap_err().status(), 409);
        let Err(Refusal::Invalid { fields, .. }) = ranges(field, &list(&["x", "10.0.0.0/8", "y"])) else {
            panic!()
        };
        let paths: Vec<_> = fields.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(paths, ["allowedIpAddressRanges[0]", "allowedIpAddressRanges[2]"]);
    }

    #[test]
    fn clients_are_admitted_by_their_real_address() {
        let office = [net("203.0.113.0/24"), net("2001:db8::/32")];
        for (address, inside) in [
            ("203.0.113.9", true),
            ("::ffff:203.0.113.9", true),
            ("2001:db8::7", true),
            ("203.0.114.1", false),
            ("2001:db9::7", false),
        ] {
            let address = address.parse().unwrap();
            assert_eq!(covers(&office, address), inside, "{address}");
            let allowed = Allowed::read(office.iter().map(IpNet::to_string).collect());
            assert_eq!(keeps_caller_in(&allowed, address).is_ok(), inside, "{address}");
            assert!(Allowed::default().admits(address) && !covers(&[], address));
        }
    }

    #[test]
    fn a_range_that_cannot_be_parsed_admits_nobody() {
        let (inside, outside) = ("203.0.113.9".parse().unwrap(), "198.51.100.1".parse().unwrap());
        let broken = Allowed::read(vec!["203.0.113.0/99".into()]);
        assert!(!broken.admits(inside) && !broken.admits(outside));
        assert_eq!(broken.unreadable(), ["203.0.113.0/99"]);
        let with_another = Allowed::read(vec!["".into(), "203.0.113.0/24".into()]);
        assert!(with_another.admits(inside) && !with_another.admits(outside));
    }

    #[test]
    fn keys_sort_as_addresses_do() {
        let sorted =
            ["9.0.0.0/8", "10.0.0.0/8", "10.0.0.0/16", "100.0.0.0/8", "::/0", "2001:db8::/32", "fe80::/10"];
        assert!(sorted.map(|text| sort_key(net(text))).is_sorted());
    }
}
