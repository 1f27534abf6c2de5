//! Disaster recovery: a standby region of the same provider, with networks of its own.

use podium_api::clusters::ClusterDetails;
use podium_api::enums::CloudProvider;

use super::networks::Region;
use crate::options::Provider;
use crate::refusal::Fields;

const SECONDARY: &str = "drSecondaryVpcCidr";

/// The fields of the standby region by their names on the wire. Requests and stored values are in this order.
pub(super) const FIELDS: [&str; 6] = [
    "drRegion",
    "drVpcSubnetRange",
    "drPodSubnetRange",
    "drServiceSubnetRange",
    "drServicePeeringRange",
    SECONDARY,
];

/// A text for each field, where there is one.
pub(super) type Texts<'a> = [Option<&'a str>; 6];

/// Which fields are given, by their names on the wire.
pub(super) fn given(requested: Texts<'_>) -> impl Iterator<Item = (&'static str, bool)> {
    FIELDS.into_iter().zip(requested.map(|text| text.is_some()))
}

pub(super) fn stored(details: &ClusterDetails) -> Texts<'_> {
    [
        Some(details.dr_region.as_str()).filter(|region| !region.is_empty()),
        details.dr_vpc_subnet_range.as_deref(),
        details.dr_pod_subnet_range.as_deref(),
        details.dr_service_subnet_range.as_deref(),
        details.dr_service_peering_range.as_deref(),
        details.dr_secondary_vpc_cidr.as_deref(),
    ]
}

/// Makes a region stand by; ranges that are not given are those of the first region.
pub(super) fn switch_on(
    fields: &mut Fields,
    provider: &Provider,
    home: &str,
    [standby, requested @ ..]: Texts<'_>,
    details: &mut ClusterDetails,
) {
    let word = provider.provider;
    match standby {
        None => fields.push("drRegion", "required", "is required: name the standby region"),
        Some(region) if region == home => {
            fields.push("drRegion", "same", "must differ from the cluster's own region");
        }
        Some(region) if provider.region(region).is_none() => {
            fields.push("drRegion", "unknown", unknown_region(word));
        }
        Some(region) => details.dr_region = region.to_owned(),
    }
    let (is_aws, is_gcp) = (word == CloudProvider::Aws, word == CloudProvider::Gcp);
    let mut region = Region::default();
    let mut range =
        |has: bool, field: &'static str, requested: Option<&str>, first: Option<&str>| match requested {
            Some(_) if !has => {
                fields.push(field, "excluded", format!("must be omitted: {word} clusters do not support it"));
                None
            }
            Some(text) if field == SECONDARY => Some(region.secondary(fields, field, text)),
            Some(text) => Some(region.range(fields, field, text)),
            None => region.inherit(fields, field, first.filter(|_| has)?),
        };
    let has = [true, is_gcp, is_gcp, is_gcp, is_aws];
    let first = [
        Some(details.vpc_subnet_range.as_str()),
        details.pod_subnet_range.as_deref(),
        details.service_subnet_range.as_deref(),
        details.service_peering_range.as_deref(),
        details.secondary_vpc_cidr.as_deref(),
    ];
    let ranges = std::array::from_fn(|at| range(has[at], FIELDS[at + 1], requested[at], first[at]));
    set_ranges(details, ranges);
    details.is_dr_enabled = true;
}

/// Lets no region stand by.
pub(super) fn switch_off(details: &mut ClusterDetails) {
    details.is_dr_enabled = false;
    details.dr_region = String::new();
    set_ranges(details, Default::default());
    details.enable_replication_time_control = false;
}

fn set_ranges(details: &mut ClusterDetails, ranges: [Option<String>; 5]) {
    [
        details.dr_vpc_subnet_range,
        details.dr_pod_subnet_range,
        details.dr_service_subnet_range,
        details.dr_service_peering_range,
        details.dr_secondary_vpc_cidr,
    ] = ranges;
}

pub(super) fn unknown_region(provider: CloudProvider) -> String {
    format!("must be one of the `regions` in the cluster options of {provider}")
}
