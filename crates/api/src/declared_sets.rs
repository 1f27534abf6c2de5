//! Sets of declared resources: what a file of declarations owns, and may delete again.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::enums::DeclaredKind;
use crate::page::{Page, SortKeys};
use crate::path::{InOrganization, OfDeclaredSet};
use crate::reply::{Many, One};
use crate::subjects::SubjectProfile;
use crate::{DeclaredSetId, Id, Timestamp};

endpoints! {
    tag "DeclaredSet";

    /// List sets of declared resources
    List: GET "/organizations/{organizationId}/declared-sets" as "ListDeclaredSets" {
        path: InOrganization, query: ListDeclaredSets, reply: Many<DeclaredSetsPaginated>,
        permission: "organization.declaredSets.get",
    }
    /// Create a set of declared resources
    Create: POST "/organizations/{organizationId}/declared-sets" as "CreateDeclaredSet" {
        path: InOrganization, body: CreateDeclaredSetRequest, reply: One<DeclaredSet>,
        permission: "organization.declaredSets.create", also: [409],
    }
    /// Get a set of declared resources
    Get: GET "/organizations/{organizationId}/declared-sets/{declaredSetId}" as "GetDeclaredSet" {
        path: OfDeclaredSet, reply: One<DeclaredSet>,
        permission: "organization.declaredSets.get",
    }
    /// Replace the members of a set of declared resources
    Update: POST "/organizations/{organizationId}/declared-sets/{declaredSetId}" as "UpdateDeclaredSet" {
        path: OfDeclaredSet, body: UpdateDeclaredSetRequest, reply: One<DeclaredSet>,
        permission: "organization.declaredSets.update",
    }
    /// Delete a set of declared resources; the resources stay
    Delete: DELETE "/organizations/{organizationId}/declared-sets/{declaredSetId}" as "DeleteDeclaredSet" {
        path: OfDeclaredSet,
        permission: "organization.declaredSets.delete", also: [412],
    }
}

/// How sets can be sorted.
#[derive(Debug)]
pub struct DeclaredSetSorts;

impl SortKeys for DeclaredSetSorts {
    const KEYS: &'static [&'static str] = &["name", "createdAt", "updatedAt"];
}

/// Which sets to list.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListDeclaredSets {
    /// Only those with one of these names.
    #[serde(default)]
    pub names: Vec<String>,
    /// The page.
    #[serde(flatten)]
    pub page: Page<DeclaredSetSorts>,
}

/// A set of declared resources.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeclaredSet {
    /// Its id.
    pub id: DeclaredSetId,
    /// Its name, unique in the organization.
    pub name: String,
    /// What it owns; a resource that was deleted meanwhile may still be listed.
    pub members: Vec<DeclaredMember>,
    /// When it was created.
    pub created_at: Timestamp,
    /// Who created it.
    pub created_by: SubjectProfile,
    /// When it was last applied.
    pub updated_at: Timestamp,
    /// Who last applied it.
    pub updated_by: SubjectProfile,
}

/// A resource that a set owns.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct DeclaredMember {
    /// What it is.
    pub kind: DeclaredKind,
    /// Its id.
    pub id: Id,
    /// The environment variables that the files take values of it from, by the path of the field.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub variables: BTreeMap<String, String>,
}

/// A page of sets.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeclaredSetsPaginated {
    /// The sets.
    pub declared_sets: Vec<DeclaredSet>,
    /// The effective limit.
    pub limit: u32,
    /// How many items were skipped.
    pub offset: u64,
    /// Total number of items.
    pub total_count: u64,
}

/// A new set.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreateDeclaredSetRequest {
    /// Its name, unique in the organization.
    #[schemars(length(min = 1, max = 128))]
    pub name: String,
    /// What it owns.
    #[schemars(length(max = 5000))]
    pub members: Vec<DeclaredMember>,
}

/// The new members of a set.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateDeclaredSetRequest {
    /// What it owns, all of it.
    #[schemars(length(max = 5000))]
    pub members: Vec<DeclaredMember>,
}
