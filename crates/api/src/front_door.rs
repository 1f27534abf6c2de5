//! The front door of a deployment's environment: how a browser gets in.

use crate::Timestamp;
use crate::path::OfDeployment;
use crate::reply::Many;

endpoints! {
    tag "Deployment";

    /// Create a link that opens the Airflow environment in a browser
    Open: POST "/organizations/{organizationId}/deployments/{deploymentId}/open" as "OpenDeployment" {
        path: OfDeployment, reply: Many<OpenedDeployment>,
        permission: "deployment.airflow.website.get", without_event: "makes a one-time code for its caller",
        also: [409], marks: [live],
    }
}

wire! {
    /// A link into an environment.
    pub struct OpenedDeployment {
        /// The URL to open in a browser. It works once, for anyone who has it: treat it like a password.
        pub url: String,
        /// When it expires.
        pub expires_at: Timestamp,
    }
}
