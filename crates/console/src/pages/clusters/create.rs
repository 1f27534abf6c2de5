//! Creating a cluster: a name and a region are enough.

use podium_api::clusters::{self, CreateClusterRequest};
use podium_api::enums::ClusterType;
use podium_api::options::{self, ClusterOptions, GetClusterOptions};
use podium_api::union::OneOf;
use serde_json::json;

use crate::pages::{Field, Form, OrganizationVisit, Params, Problem, Result, least};

async fn providers(visit: &OrganizationVisit<'_>) -> Result<Vec<ClusterOptions>> {
    let query = GetClusterOptions { provider: None, r#type: ClusterType::Dedicated };
    visit.calls().find::<options::ForClusters>(visit.here(), query).await
}

/// Every region: `PROVIDER/region`, and what it is called.
fn places(of: &[ClusterOptions]) -> impl Iterator<Item = (String, String)> {
    of.iter().flat_map(|of| {
        let provider = of.provider.as_str();
        let place = move |name: &str, location: &str| {
            (format!("{provider}/{name}"), format!("{provider} {name} ({location})"))
        };
        of.regions.iter().map(move |region| place(&region.name, &region.location))
    })
}

pub(crate) async fn new(visit: &OrganizationVisit<'_>) -> Result {
    let providers = providers(visit).await?;
    let suggested =
        providers.first().map(|of| format!("{}/{}", of.provider.as_str(), of.default_region.name));
    let suggested = suggested.unwrap_or_default();
    let recovery = Field::choice("drRegion", "Region for disaster recovery", places(&providers));
    let fields = vec![
        Field::text("name", "Name").required(),
        Field::choice("region", "Region", places(&providers)).value(suggested),
        recovery.or_open("None").hint(
            "Another region of the same cloud, which the cluster can be moved to. It can be added later.",
        ),
    ];
    let more = vec![
        Field::text("vpcSubnetRange", "Network")
            .hint("The addresses of the cluster, such as 172.20.0.0/20. The default range if empty."),
        Field::text("dbInstanceType", "Database")
            .hint("The machine type of the cluster's database. The default type if empty."),
    ];
    let form = Form { more, ..Form::new(visit.link("/clusters"), "Create cluster", fields) };
    let lead = "A cluster is separate infrastructure for deployments that must not share any.";
    visit.ask("Create a cluster", ("Clusters", "/clusters"), lead, form).await
}

/// What the form says. What it leaves open is what the provider suggests.
fn new_cluster(sent: &Params, providers: &[ClusterOptions]) -> Result<OneOf<CreateClusterRequest>> {
    let (provider, region) = sent.get("region").split_once('/').unwrap_or_default();
    let of = providers.iter().find(|of| of.provider.as_str() == provider);
    let unknown = || Problem::in_field("region", "value", "is not one of the offered regions");
    let of = of.ok_or_else(unknown)?;
    let dr_region = sent.filled("drRegion");
    let dr_region = dr_region.map(|place| place.split_once('/').map_or(place, |(_, region)| region));
    let range = sent.filled("vpcSubnetRange").unwrap_or(&of.default_vpc_subnet_range);
    let mut body: CreateClusterRequest = least(json!({
        "cloudProvider": of.provider,
        "name": sent.text("name"),
        "region": region,
        "type": ClusterType::Dedicated,
        "vpcSubnetRange": range,
    }))?;
    body.db_instance_type = sent.filled("dbInstanceType").map(str::to_owned);
    body.dr_region = dr_region.map(str::to_owned);
    body.pod_subnet_range.clone_from(&of.default_pod_subnet_range);
    body.service_subnet_range.clone_from(&of.default_service_subnet_range);
    body.service_peering_range.clone_from(&of.default_service_peering_range);
    Ok(OneOf(body))
}

pub(crate) async fn create(visit: &OrganizationVisit<'_>) -> Result {
    let body = new_cluster(visit.form(), &providers(visit).await?)?;
    let made = visit.change::<clusters::Create>(visit.here(), body).await?;
    visit.go(format!("/clusters/{}?done=created", made.id))
}
