//! Workspaces.

use podium_api::declarations::Workspace;
use podium_api::{ClusterId, Patch, workspaces as api};
use serde::Deserialize;

use super::{Difference, Entry, Kind, Outcome, Planner, Resource};

/// What is read of a workspace to change it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Now {
    description: Option<String>,
    cicd_enforced_default: bool,
}

impl Resource for Workspace {
    type List = api::List;
    type Get = api::Get;

    fn create(self, planner: &mut Planner<'_>, entry: &Entry) -> Outcome {
        let body = api::CreateWorkspaceRequest {
            name: self.name.clone(),
            description: self.description.clone(),
            cicd_enforced_default: self.cicd_enforced_default,
            default_cluster_id: None,
            default_cloud_provider: self.default_cloud_provider,
            default_region: self.default_region,
        };
        planner.create::<api::Create>(entry, &body)?;
        // A cluster may be restricted to this workspace, so it comes later.
        if let Patch::Set(id) = default_cluster(planner, entry, self.default_cluster.as_deref())? {
            let body = api::UpdateWorkspaceRequest {
                name: self.name,
                description: self.description.unwrap_or_default(),
                cicd_enforced_default: self.cicd_enforced_default.unwrap_or_default(),
                default_cluster_id: Patch::Set(id),
                default_cloud_provider: Patch::Keep,
                default_region: Patch::Keep,
            };
            planner.change_made::<api::Update>(entry, &body)?.after = Some(Kind::Cluster);
        }
        Ok(())
    }

    fn change(planner: &mut Planner<'_>, entry: &Entry, found: Difference<Self>) -> Outcome {
        let now: Now = found.now()?;
        let wanted = &found.changed;
        let body = api::UpdateWorkspaceRequest {
            name: wanted.name.clone(),
            description: wanted.description.clone().or(now.description).unwrap_or_default(),
            cicd_enforced_default: wanted.cicd_enforced_default.unwrap_or(now.cicd_enforced_default),
            default_cluster_id: default_cluster(planner, entry, wanted.default_cluster.as_deref())?,
            default_cloud_provider: wanted.default_cloud_provider.map_or(Patch::Keep, Patch::Set),
            default_region: wanted.default_region.clone().map_or(Patch::Keep, Patch::Set),
        };
        planner.change::<api::Update, _>(entry, &found, &body)?.after = Some(Kind::Cluster);
        Ok(())
    }
}

/// The cluster of new deployments; an empty name means none.
fn default_cluster(
    planner: &mut Planner<'_>,
    entry: &Entry,
    name: Option<&str>,
) -> Outcome<Patch<ClusterId>> {
    Ok(match name {
        None => Patch::Keep,
        Some("") => Patch::Clear,
        Some(name) => {
            if planner.is_new(Kind::Cluster, name) {
                planner.on_new_clusters.insert(entry.key.clone());
            }
            Patch::Set(planner.id(Kind::Cluster, name, &entry.at)?)
        }
    })
}
