//! Creating a cluster: a name and a region are enough.

use podium_api::clusters;
use podium_api::options::{self, ClusterOptions};
use serde_json::{Map, Value, json};

use crate::answer::{Answer, Result};
use crate::calls::Problem;
use crate::form::{Field, Form, FormPage};
use crate::visit::OrganizationVisit;

async fn providers(visit: &OrganizationVisit<'_>) -> Result<Vec<ClusterOptions>> {
    visit.calls().get::<options::ForClusters>(visit.here(), &[("type", "DEDICATED")]).await
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

/// The form.
pub(crate) async fn new(visit: &OrganizationVisit<'_>, problem: Option<Problem>) -> Result {
    let providers = providers(visit).await?;
    let suggested =
        providers.first().map(|of| format!("{}/{}", of.provider.as_str(), of.default_region.name));
    let suggested = suggested.unwrap_or_default();
    let none = (String::new(), "None".to_owned());
    let form = Form {
        action: visit.link("/clusters"),
        fields: vec![
            Field::text("name", "Name").required(),
            Field::choice("region", "Region", places(&providers)).value(suggested),
            Field::choice(
                "drRegion",
                "Region for disaster recovery",
                std::iter::once(none).chain(places(&providers)),
            )
            .hint(
                "Another region of the same cloud, which the cluster can be moved to. It can be added later.",
            ),
        ],
        more: vec![
            Field::text("vpcSubnetRange", "Network")
                .hint("The addresses of the cluster, such as 172.20.0.0/20. The default range if empty."),
            Field::text("dbInstanceType", "Database")
                .hint("The machine type of the cluster's database. The default type if empty."),
        ],
        submit: "Create cluster".to_owned(),
        cancel: visit.link("/clusters"),
        ..Form::default()
    };
    let form = form.after(visit.form(), problem);
    let lead = "A cluster is separate infrastructure for deployments that must not share any.".to_owned();
    let shell = visit.shell("Create a cluster").await?.below("Clusters", visit.link("/clusters"));
    FormPage { shell, lead, form }.answer()
}

/// Creates one. What the form leaves open is what the provider suggests.
pub(crate) async fn create(visit: &OrganizationVisit<'_>) -> Result {
    let sent = visit.form();
    let (provider, region) = sent.get("region").split_once('/').unwrap_or_default();
    let providers = providers(visit).await?;
    let Some(of) = providers.iter().find(|of| of.provider.as_str() == provider) else {
        let field = podium_api::FieldError::new("region", "value", "is not one of the offered regions");
        let message = "The cluster was not created.".to_owned();
        return new(visit, Some(Problem { status: 400, message, fields: vec![field] })).await;
    };
    let mut body: Map<String, Value> = Map::new();
    let mut put =
        |name: &str, value: Option<&str>| body.extend(value.map(|value| (name.to_owned(), json!(value))));
    put("type", Some("DEDICATED"));
    put("name", Some(sent.get("name").trim()));
    put("cloudProvider", Some(provider));
    put("region", Some(region));
    put(
        "drRegion",
        sent.filled("drRegion").map(|place| place.split_once('/').map_or(place, |(_, region)| region)),
    );
    put("vpcSubnetRange", sent.filled("vpcSubnetRange").or(Some(&of.default_vpc_subnet_range)));
    put("podSubnetRange", of.default_pod_subnet_range.as_deref());
    put("serviceSubnetRange", of.default_service_subnet_range.as_deref());
    put("servicePeeringRange", of.default_service_peering_range.as_deref());
    put("dbInstanceType", sent.filled("dbInstanceType"));
    match visit.calls().change::<clusters::Create>(visit.here(), body, None).await {
        Ok(made) => Answer::redirect(visit.link(&format!("/clusters/{}?done=created", made.value.id))),
        Err(problem) => new(visit, Some(problem)).await,
    }
}
