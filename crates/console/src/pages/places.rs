//! What the palette can go to, as JSON.

use podium_api::deployments::{self, Deployment};
use serde_json::json;

use crate::answer::{Answer, Result};
use crate::visit::OrganizationVisit;

/// Deployments by name.
pub(crate) async fn list(visit: &OrganizationVisit<'_>) -> Result {
    let query = [("limit", "500"), ("sorts", "name:asc")];
    let found = visit.calls().get::<deployments::List>(visit.here(), &query).await?;
    let read = found.deployments.into_iter().filter_map(|shown| shown.into_value().ok());
    let place = |of: Deployment| {
        let kind = of.workspace_name.unwrap_or_else(|| "Deployment".to_owned());
        json!({ "name": of.name, "href": visit.link(&format!("/deployments/{}", of.id)), "kind": kind })
    };
    Ok(Answer::Json(serde_json::Value::Array(read.map(place).collect()).to_string()))
}
