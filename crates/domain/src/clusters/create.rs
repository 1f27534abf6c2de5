//! Validation of new clusters.

use podium_api::clusters::{ClusterDetails, CreateClusterRequest};
use podium_api::enums::{CloudProvider, ClusterType};

use super::networks::Region;
use super::recovery::{self, unknown_region};
use super::{Definition, Facts, given, node_pools, settings};
use crate::names;
use crate::options::{Provider, provider};
use crate::refusal::{Fields, Result};

pub(super) const MAX_NAME: usize = 128;

pub fn create(body: &CreateClusterRequest, facts: &Facts<'_>) -> Result<Definition> {
    let mut fields = Fields::new();
    let provider = provider(body.cloud_provider);
    let name = fields.take(names::name("name", &body.name, MAX_NAME));
    let region = body.region.trim();
    if provider.region(region).is_none() {
        fields.push("region", "unknown", unknown_region(provider.provider));
    }
    let mut details = networks(&mut fields, body);
    details.tags = settings::tags(&mut fields, body.k8s_tags.as_deref().unwrap_or_default());
    let requested: Vec<_> = body.node_pools.iter().flatten().map(Into::into).collect();
    details.node_pools = node_pools::node_pools(&mut fields, provider, &requested, &[], facts);
    details.is_private_network_egress_enabled = (body.cloud_provider == CloudProvider::Aws)
        .then(|| body.is_private_network_egress_enabled.unwrap_or_default());
    details.provider_account = given(body.provider_account.as_ref()).map(str::to_owned);
    details.tenant_id = given(body.tenant_id.as_ref()).map(str::to_owned);
    let database = given(body.db_instance_type.as_ref()).unwrap_or(&provider.default_database_instance);
    details.db_instance_type = settings::database(&mut fields, provider, database);
    match body.r#type {
        ClusterType::Hybrid => hybrid(&mut fields, body),
        ClusterType::Dedicated => dedicated(&mut fields, provider, region, body, &mut details),
    }
    let requested = body.workspace_ids.as_deref().unwrap_or_default();
    let workspace_ids = settings::workspaces(&mut fields, requested, facts);
    let regions = [region, &details.dr_region].map(str::to_owned);
    let made = name.map(|name| Definition { name, details, workspace_ids });
    let made = fields.finish(made)?;
    settings::takes_clusters(provider, &regions.each_ref().map(String::as_str))?;
    Ok(made)
}

fn networks(fields: &mut Fields, body: &CreateClusterRequest) -> ClusterDetails {
    let mut region = Region::default();
    let vpc_subnet_range = region.range(fields, "vpcSubnetRange", &body.vpc_subnet_range);
    let mut range = |field: &'static str, text: &Option<String>| {
        given(text.as_ref()).map(|text| region.range(fields, field, text))
    };
    let pod_subnet_range = range("podSubnetRange", &body.pod_subnet_range);
    let service_subnet_range = range("serviceSubnetRange", &body.service_subnet_range);
    let service_peering_range = range("servicePeeringRange", &body.service_peering_range);
    if body.cloud_provider == CloudProvider::Gcp {
        let missing = [
            ("podSubnetRange", pod_subnet_range.is_none()),
            ("serviceSubnetRange", service_subnet_range.is_none()),
            ("servicePeeringRange", service_peering_range.is_none()),
        ];
        fields.push_each(missing, "required", "must not be blank");
    }
    let secondary = given(body.secondary_vpc_cidr.as_ref());
    let secondary_vpc_cidr = secondary.map(|text| region.secondary(fields, "secondaryVpcCidr", text));
    ClusterDetails {
        vpc_subnet_range,
        pod_subnet_range,
        service_subnet_range,
        service_peering_range,
        secondary_vpc_cidr,
        ..ClusterDetails::default()
    }
}

/// A cluster in the customer's own account: more fields are required, and there is no standby region.
fn hybrid(fields: &mut Fields, body: &CreateClusterRequest) {
    let needs_tenant = body.cloud_provider == CloudProvider::Azure;
    let no_pools = body.node_pools.as_ref().is_none_or(Vec::is_empty);
    let missing = [
        ("providerAccount", given(body.provider_account.as_ref()).is_none()),
        ("tenantId", needs_tenant && given(body.tenant_id.as_ref()).is_none()),
        ("dbInstanceType", given(body.db_instance_type.as_ref()).is_none()),
        ("nodePools", no_pools),
    ];
    fields.push_each(missing, "required", "is required for a HYBRID cluster");
    let control = ("enableReplicationTimeControl", body.enable_replication_time_control == Some(true));
    let given = recovery::given(requested(body)).chain([control]);
    fields.push_each(given, "excluded", "must be omitted: HYBRID clusters have no disaster recovery");
}

fn dedicated(
    fields: &mut Fields,
    provider: &Provider,
    region: &str,
    body: &CreateClusterRequest,
    details: &mut ClusterDetails,
) {
    let requested = requested(body);
    let is_asked = requested.iter().any(Option::is_some);
    let replicates = body.enable_replication_time_control.unwrap_or_default();
    if is_asked || replicates {
        recovery::switch_on(fields, provider, region, requested, details);
        details.enable_replication_time_control = replicates;
    }
}

fn requested(body: &CreateClusterRequest) -> recovery::Texts<'_> {
    [
        &body.dr_region,
        &body.dr_vpc_subnet_range,
        &body.dr_pod_subnet_range,
        &body.dr_service_subnet_range,
        &body.dr_service_peering_range,
        &body.dr_secondary_vpc_cidr,
    ]
    .map(|text| given(text.as_ref()))
}
