//! Clusters, with disaster recovery.

pub(crate) mod create;

use podium_api::ClusterId;
use podium_api::clusters::{self, Cluster, ListClusters, UpdateClusterRequest};
use podium_api::enums::{ClusterStatus, ClusterType, PlaneKind};
use podium_api::path::OfCluster;
use podium_api::union::OneOf;

use super::{
    Answer, Cell, Html, ListPage, OrganizationVisit, Problem, Result, Row, Shell, Table, Template, Tone, view,
};
use crate::pages::plans::{self, planned};

#[derive(Template)]
#[template(path = "cluster.html")]
struct ClusterPage {
    shell: Shell,
    status: Html,
    facts: Vec<(&'static str, String)>,
    health: Vec<String>,
    pools: Vec<(String, String, u32)>,
    /// Where a failover is sent, what its button says, and where the cluster goes.
    failover: Option<(String, &'static str, String)>,
}

fn status(of: &Cluster) -> Html {
    let tone = match of.status {
        ClusterStatus::Created => Tone::Good,
        ClusterStatus::Creating | ClusterStatus::Updating | ClusterStatus::FailingOver => Tone::Changing,
        _ => Tone::Warning,
    };
    view::status(tone, &view::words(of.status.as_str()))
}

pub(crate) async fn list(visit: &OrganizationVisit<'_>) -> Result {
    let query = ListClusters { page: visit.page().sorted_by("name"), ..ListClusters::default() };
    let found = visit.calls().find::<clusters::List>(visit.here(), query).await?;
    let row = |of: &Cluster| {
        Row::of(vec![
            Cell::link(of.name.clone(), visit.link(&format!("/clusters/{}", of.id))),
            status(of).into(),
            format!("{} {}", of.cloud_provider.as_str(), of.region).into(),
            recovery(of).into(),
            view::time(of.updated_at, visit.visit.now).into(),
        ])
    };
    let may_create = visit.calls().may::<clusters::Create>(visit.here()).await;
    let columns = ["Name", "State", "Region", "Disaster recovery", "Changed"];
    let none =
        "Deployments run on shared infrastructure. Create a cluster for deployments that must not share it.";
    let table = Table::paged(visit, columns, found.clusters.iter().map(row), found.total_count);
    let lead = "Deployments that do not share infrastructure run on clusters.";
    ListPage::new(visit.shell("Clusters").await?.live(""), lead, table.or("No clusters", none))
        .offer(may_create, "Create cluster", visit.link("/clusters/new"))
        .answer()
}

fn runs_on(of: &Cluster) -> &'static str {
    match of.data_plane {
        Some(PlaneKind::Local) => "the machine of the server: this cluster is only a name",
        Some(PlaneKind::Simulated) => "nothing: the deployments are simulated",
        Some(PlaneKind::Kubernetes) => "Kubernetes",
        None => "",
    }
}

fn recovery(of: &Cluster) -> String {
    match (of.details.is_dr_enabled, of.failover_in_progress, of.is_failed_over) {
        (false, ..) => "off".to_owned(),
        (true, true, _) => "moving now".to_owned(),
        (true, false, true) => format!("runs in {}", of.details.dr_region),
        (true, false, false) => format!("ready in {}", of.details.dr_region),
    }
}

pub(crate) async fn show(visit: &OrganizationVisit<'_>, cluster_id: ClusterId) -> Result {
    let path: OfCluster = visit.at(cluster_id);
    let of = visit.calls().get::<clusters::Get>(path).await?;
    let may_update = visit.calls().may::<clusters::Update>(path).await;
    let can_move = may_update
        && of.details.is_dr_enabled
        && !of.failover_in_progress
        && of.r#type == ClusterType::Dedicated;
    let facts = [
        ("Type", view::words(of.r#type.as_str())),
        ("Cloud", of.cloud_provider.as_str().to_owned()),
        ("Region", of.region.clone()),
        ("Deployments run on", runs_on(&of).to_owned()),
        ("Disaster recovery", recovery(&of)),
        ("Database", of.details.db_instance_type.clone()),
        ("Network", of.details.vpc_subnet_range.clone()),
        ("Id", of.id.to_string()),
    ];
    let failover = can_move.then(|| {
        let (verb, to) = match of.is_failed_over {
            true => ("Move back", of.region.clone()),
            false => ("Fail over", of.details.dr_region.clone()),
        };
        (visit.link(&format!("/clusters/{cluster_id}/failover")), verb, to)
    });
    let page = ClusterPage {
        status: status(&of),
        facts: view::facts(facts),
        health: of.health_status.details.iter().map(|detail| detail.description.clone()).collect(),
        pools: of
            .details
            .node_pools
            .iter()
            .map(|pool| (pool.name.clone(), pool.node_instance_type.clone(), pool.max_node_count))
            .collect(),
        failover,
        shell: visit.shell(of.name).await?.below("Clusters", visit.link("/clusters")).live(""),
    };
    Answer::page(&page)
}

/// Plans to move a cluster to its other region, once its name was typed.
pub(crate) async fn fail_over(visit: &OrganizationVisit<'_>, cluster_id: ClusterId) -> Result {
    let path: OfCluster = visit.at(cluster_id);
    let (of, version) = visit.calls().get_versioned::<clusters::Get>(path).await?;
    if visit.form().get("name").trim() != of.name {
        return Err(Problem::new(400, format!("Nothing was moved: type {} to confirm.", of.name)));
    }
    let body = UpdateClusterRequest {
        cluster_type: Some(ClusterType::Dedicated),
        name: Some(of.name),
        k8s_tags: Some(of.details.tags),
        is_failed_over: Some(!of.is_failed_over),
        ..UpdateClusterRequest::default()
    };
    let call = planned::<clusters::Update>(&path, OneOf(body), Some(version))?;
    let back = visit.link(&format!("/clusters/{cluster_id}"));
    plans::show(visit, call, "Move the cluster", (&back, &format!("{back}?done=applied"))).await
}
