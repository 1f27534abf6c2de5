//! The front door of a deployment's environment: how a browser gets in.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::operation::{Nothing, Operation, Permitted};
use crate::path::OfDeployment;
use crate::reply::Many;

/// Makes a link that opens the environment in a browser, once and soon.
pub const OPEN: Operation<Permitted, OfDeployment, Nothing, Nothing, Many<OpenedDeployment>> =
    Operation::post(
        "OpenDeployment",
        "/organizations/{organizationId}/deployments/{deploymentId}/open",
        "deployment.airflow.website.get",
    )
    .about("Deployment", "Make a link that opens the Airflow environment in a browser")
    .also(&[409])
    .live();

/// A link into an environment.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenedDeployment {
    /// Where the browser goes. It works once, for whoever has it: treat it like a password.
    pub url: String,
    /// Until when it works.
    pub expires_at: Timestamp,
}
