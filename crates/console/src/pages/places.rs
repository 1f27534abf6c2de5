//! What the palette can go to, as JSON.

use podium_api::deployments::{self, Deployment, ListDeployments};
use podium_api::page::Page;
use serde_json::json;

use super::{Answer, OrganizationVisit, Result, readable};

/// Deployments by name.
pub(crate) async fn list(visit: &OrganizationVisit<'_>) -> Result {
    let query = ListDeployments { page: Page::first(500).sorted_by("name"), ..ListDeployments::default() };
    let found = visit.calls().find::<deployments::List>(visit.here(), query).await?;
    let place = |of: Deployment| {
        let kind = of.workspace_name.unwrap_or_else(|| "Deployment".to_owned());
        json!({ "name": of.name, "href": visit.link(&format!("/deployments/{}", of.id)), "kind": kind })
    };
    Ok(Answer::Json(
        serde_json::Value::Array(readable(found.deployments).into_iter().map(place).collect()).to_string(),
    ))
}
