//! Disaster recovery: a standby region of the same provider, with networks of its own.

use podium_api::clusters::ClusterDetails;
use podium_api::enums::CloudProvider;

use super::networks::Region;
use crate::options::Provider;
use crate::refusal::Fields;

const SECONDARY: &str = "drSecondaryVpcCidr";

/// The standby region in a request.
#[derive(Clone, Copy, Default)]
pub(super) struct Requested<'a> {
    pub(super) region: Option<&'a str>,
    pub(super) vpc: Option<&'a str>,
    pub(super) pod: Option<&'a str>,
    pub(super) service: Option<&'a str>,
    pub(super) peering: Option<&'a str>,
    pub(super) secondary: Option<&'a str>,
}

impl<'a> Requested<'a> {
    /// Which fields are given, by their names on the wire.
    pub(super) fn given(&self) -> [(&'static str, bool); 6] {
        self.fields().map(|(field, text)| (field, text.is_some()))
    }

    /// The fields by their names on the wire.
    pub(super) fn fields(&self) -> [(&'static str, Option<&'a str>); 6] {
        [
            ("drRegion", self.region),
            ("drVpcSubnetRange", self.vpc),
            ("drPodSubnetRange", self.pod),
            ("drServiceSubnetRange", self.service),
            ("drServicePeeringRange", self.peering),
            (SECONDARY, self.secondary),
        ]
    }
}

/// The stored values of the standby region, in the order of [`Requested::fields`].
pub(super) fn stored(details: &ClusterDetails) -> [Option<&str>; 6] {
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
    requested: &Requested<'_>,
    details: &mut ClusterDetails,
) {
    let word = provider.provider;
    match requested.region {
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
    let first = &*details;
    let vpc = range(true, "drVpcSubnetRange", requested.vpc, Some(&first.vpc_subnet_range));
    let pod = range(is_gcp, "drPodSubnetRange", requested.pod, first.pod_subnet_range.as_deref());
    let service =
        range(is_gcp, "drServiceSubnetRange", requested.service, first.service_subnet_range.as_deref());
    let peering =
        range(is_gcp, "drServicePeeringRange", requested.peering, first.service_peering_range.as_deref());
    let secondary = range(is_aws, SECONDARY, requested.secondary, first.secondary_vpc_cidr.as_deref());
    details.is_dr_enabled = true;
    details.dr_vpc_subnet_range = vpc;
    details.dr_pod_subnet_range = pod;
    details.dr_service_subnet_range = service;
    details.dr_service_peering_range = peering;
    details.dr_secondary_vpc_cidr = secondary;
}

/// Lets no region stand by.
pub(super) fn switch_off(details: &mut ClusterDetails) {
    details.is_dr_enabled = false;
    details.dr_region = String::new();
    details.dr_vpc_subnet_range = None;
    details.dr_pod_subnet_range = None;
    details.dr_service_subnet_range = None;
    details.dr_service_peering_range = None;
    details.dr_secondary_vpc_cidr = None;
    details.enable_replication_time_control = false;
}

/// The error message for an unknown region.
pub(super) fn unknown_region(provider: CloudProvider) -> String {
    format!("must be one of the `regions` in the cluster options of {provider}")
}
