//! Sets of declared resources: what a file of declarations owns, and may delete again.

use std::collections::BTreeMap;

use crate::enums::DeclaredKind;
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
        permission: "organization.declaredSets.create",
        without_event: "a record of what a file declares; each change to that makes its own event", also: [409],
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
        without_event: "a record of what a file declares; each change to that makes its own event",
    }
    /// Delete a set of declared resources; the resources stay
    Delete: DELETE "/organizations/{organizationId}/declared-sets/{declaredSetId}" as "DeleteDeclaredSet" {
        path: OfDeclaredSet,
        permission: "organization.declaredSets.delete", without_event: "what it lists stays as it is",
        also: [412],
    }
}

wire! {
    /// Which sets to list.
    sorted["name", "createdAt", "updatedAt"] pub struct ListDeclaredSets {
        /// Only sets with one of these names.
        #[serde(default)]
        pub names: Vec<String>,
    }

    /// A set of declared resources.
    #[derive(PartialEq, Eq)]
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
    #[derive(PartialEq, Eq, PartialOrd, Ord)]
    pub struct DeclaredMember {
        /// The kind of the resource.
        pub kind: DeclaredKind,
        /// Its id.
        pub id: Id,
        /// The environment variables that the files take values of it from, by the path of the field.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        pub variables: BTreeMap<String, String>,
    }

    /// A page of sets.
    page DeclaredSetsPaginated {
        /// The sets.
        declared_sets: Vec<DeclaredSet>
    }

    /// A new set.
    pub struct CreateDeclaredSetRequest {
        /// Its name, unique in the organization.
        #[schemars(length(min = 1, max = 128))]
        pub name: String,
        /// The resources that it owns.
        #[schemars(length(max = 5000))]
        pub members: Vec<DeclaredMember>,
    }

    /// The new members of a set.
    pub struct UpdateDeclaredSetRequest {
        /// What it owns, all of it.
        #[schemars(length(max = 5000))]
        pub members: Vec<DeclaredMember>,
    }
}
