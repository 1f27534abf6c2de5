//! Deploys: code on its way to a deployment.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::enums::GitProvider;

/// Where the code of a deploy came from.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeployGit {
    /// Where the code is kept.
    pub provider: GitProvider,
    /// The commit.
    pub commit_sha: String,
    /// The account that owns the repository.
    pub account: Option<String>,
    /// The repository.
    pub repo: Option<String>,
    /// The branch.
    pub branch: Option<String>,
    /// The folder in the repository.
    pub path: Option<String>,
    /// The URL of the repository.
    pub remote_url: Option<String>,
    /// The URL of the commit.
    pub commit_url: Option<String>,
    /// The commit before it.
    pub before_commit_sha: Option<String>,
    /// Who wrote it.
    pub author_name: Option<String>,
    /// The account of who wrote it.
    pub author_username: Option<String>,
    /// The URL of who wrote it.
    pub author_url: Option<String>,
}
