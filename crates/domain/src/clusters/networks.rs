//! Ranges of a cluster's networks: canonical, private, and not overlapping within a region.

use ipnet::{IpNet, Ipv4Net};
use podium_api::FieldError;

use crate::allowed_ip_address_ranges;
use crate::refusal::Fields;

const PRIVATE: [&str; 4] = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10"];
const SECONDARY: std::ops::RangeInclusive<u8> = 16..=20;

/// The ranges of one region, as they are checked.
#[derive(Default)]
pub(super) struct Region(Vec<Taken>);

struct Taken {
    field: &'static str,
    net: Ipv4Net,
    is_inherited: bool,
}

impl Region {
    /// Checks a range; returns it in its stored form.
    pub(super) fn range(&mut self, fields: &mut Fields, field: &'static str, text: &str) -> String {
        let Some(net) = fields.take(private(field, text)) else { return String::new() };
        self.take(fields, field, net, false)
    }

    /// Checks a secondary range; returns it in its stored form.
    pub(super) fn secondary(&mut self, fields: &mut Fields, field: &'static str, text: &str) -> String {
        let Some(net) = fields.take(private(field, text)) else { return String::new() };
        if !SECONDARY.contains(&net.prefix_len()) {
            let message =
                format!("must have a prefix length from {} to {}", SECONDARY.start(), SECONDARY.end());
            fields.push(field, "range", message);
        }
        self.take(fields, field, net, false)
    }

    /// Takes over a range of another region, whose own faults were told there.
    pub(super) fn inherit(&mut self, fields: &mut Fields, field: &'static str, text: &str) -> Option<String> {
        let net = private(field, text).ok()?;
        Some(self.take(fields, field, net, true))
    }

    fn take(&mut self, fields: &mut Fields, field: &'static str, net: Ipv4Net, is_inherited: bool) -> String {
        let near = |taken: &&Taken| overlap(taken.net, net) && !(taken.is_inherited && is_inherited);
        if let Some(Taken { field: other, net, .. }) = self.0.iter().find(near) {
            fields.push(field, "overlap", format!("must not overlap `{other}`, which is {net}"));
        }
        self.0.push(Taken { field, net, is_inherited });
        net.to_string()
    }
}

fn private(field: &str, text: &str) -> Result<Ipv4Net, FieldError> {
    let net = allowed_ip_address_ranges::range(field, text)?;
    let is_private = |net: &Ipv4Net| {
        PRIVATE.iter().filter_map(|range| range.parse().ok()).any(|range: Ipv4Net| range.contains(net))
    };
    match net {
        IpNet::V4(net) if is_private(&net) => Ok(net),
        _ => {
            let message = format!("must be a private range, within one of {}", PRIVATE.join(", "));
            Err(FieldError::new(field, "private", message))
        }
    }
}

fn overlap(one: Ipv4Net, other: Ipv4Net) -> bool {
    one.contains(&other) || other.contains(&one)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::wrong;

    #[test]
    fn ranges_are_canonical_and_private() {
        let table = [
            ("172.20.0.0/20", ""),
            ("10.0.0.0/8", ""),
            ("100.64.0.0/10", ""),
            ("192.168.7.0/24", ""),
            (" 10.1.0.0/16 ", ""),
            ("172.20.0.1/20", "format"),
            ("172.20.0.0", "format"),
            ("172.20.0.0/33", "format"),
            ("everywhere", "format"),
            ("", "format"),
            ("8.8.8.0/24", "private"),
            ("172.0.0.0/8", "private"),
            ("172.32.0.0/16", "private"),
            ("0.0.0.0/0", "private"),
            ("fd00::/8", "private"),
        ];
        for (text, code) in table {
            let mut fields = Fields::new();
            let kept = Region::default().range(&mut fields, "vpcSubnetRange", text);
            let expected = if code.is_empty() { vec![] } else { vec![format!("vpcSubnetRange: {code}")] };
            assert_eq!(wrong(fields.into_result()), expected, "{text}");
            assert_eq!(kept, if code.is_empty() { text.trim() } else { "" }, "{text}");
        }
    }

    #[test]
    fn ranges_of_a_region_are_apart() {
        let table = [
            ("172.20.0.0/20", "172.21.0.0/20", false),
            ("172.20.0.0/20", "172.20.16.0/20", false),
            ("172.20.0.0/20", "172.20.0.0/20", true),
            ("172.20.0.0/20", "172.20.8.0/22", true),
            ("172.20.8.0/22", "172.16.0.0/12", true),
        ];
        for (one, other, overlaps) in table {
            let (mut fields, mut region) = (Fields::new(), Region::default());
            region.range(&mut fields, "vpcSubnetRange", one);
            region.range(&mut fields, "podSubnetRange", other);
            let expected: &[&str] = if overlaps { &["podSubnetRange: overlap"] } else { &[] };
            assert_eq!(wrong(fields.into_result()), expected, "{one} {other}");
        }
    }

    #[test]
    fn a_secondary_range_has_the_right_size() {
        for (text, fits) in
            [("10.0.0.0/15", false), ("10.0.0.0/16", true), ("10.0.0.0/20", true), ("10.0.0.0/21", false)]
        {
            let mut fields = Fields::new();
            Region::default().secondary(&mut fields, "secondaryVpcCidr", text);
            let expected: &[&str] = if fits { &[] } else { &["secondaryVpcCidr: range"] };
            assert_eq!(wrong(fields.into_result()), expected, "{text}");
        }
    }
}
