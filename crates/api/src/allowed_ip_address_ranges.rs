//! Allowed address ranges: with any, an organization is reached from them only.

use crate::path::{InOrganization, OfAllowedIpAddressRange};
use crate::reply::{Many, One};
use crate::subjects::SubjectProfile;
use crate::{AllowedIpAddressRangeId, OrganizationId};

endpoints! {
    tag "AllowedIpAddressRange";

    /// List allowed address ranges
    List: GET "/organizations/{organizationId}/allowed-ip-address-ranges" as "ListAllowedIpAddressRanges" {
        path: InOrganization, query: ListAllowedIpAddressRanges, reply: Many<AllowedIpAddressRangesPaginated>,
        permission: "organization.allowedIpAddressRanges.get",
    }
    /// Allow an address range
    Create: POST "/organizations/{organizationId}/allowed-ip-address-ranges"
        as "CreateAllowedIpAddressRange" {
        path: InOrganization, body: CreateAllowedIpAddressRangeRequest, reply: One<AllowedIpAddressRange>,
        permission: "organization.allowedIpAddressRanges.create", event: IpRangeCreated, also: [409],
    }
    /// Remove an allowed address range
    Delete: DELETE "/organizations/{organizationId}/allowed-ip-address-ranges/{allowedIpAddressRangeId}"
        as "DeleteAllowedIpAddressRange" {
        path: OfAllowedIpAddressRange,
        permission: "organization.allowedIpAddressRanges.delete", event: IpRangeDeleted, also: [412],
    }
    /// Allow many address ranges at once
    BulkCreate: POST "/organizations/{organizationId}/allowed-ip-address-ranges/bulk-create"
        as "BulkCreateAllowedIpAddressRanges" {
        path: InOrganization, body: BulkCreateAllowedIpAddressRangesRequest,
        reply: Many<AllowedIpAddressRangesList>,
        permission: "organization.allowedIpAddressRanges.create", event: IpRangeCreated, also: [409],
    }
    /// Remove many allowed address ranges at once
    BulkDelete: POST "/organizations/{organizationId}/allowed-ip-address-ranges/bulk-delete"
        as "BulkDeleteAllowedIpAddressRanges" {
        path: InOrganization, body: BulkDeleteAllowedIpAddressRangesRequest,
        permission: "organization.allowedIpAddressRanges.delete", event: IpRangeDeleted,
    }
}

wire! {
    /// Which ranges to list.
    clamped sorted["ipAddress", "createdAt", "updatedAt"] pub struct ListAllowedIpAddressRanges {}

    /// An allowed range.
    stamped(Option<SubjectProfile>) pub struct AllowedIpAddressRange {
        /// Its id.
        pub id: AllowedIpAddressRangeId,
        /// The range, in CIDR notation.
        pub ip_address_range: String,
        /// Its organization.
        pub organization_id: OrganizationId,
    }

    /// A page of ranges.
    page AllowedIpAddressRangesPaginated {
        /// The ranges.
        allowed_ip_address_ranges: Vec<AllowedIpAddressRange>
    }

    /// Ranges that were added together.
    pub struct AllowedIpAddressRangesList {
        /// The ranges.
        pub allowed_ip_address_ranges: Vec<AllowedIpAddressRange>,
    }

    /// A new range.
    pub struct CreateAllowedIpAddressRangeRequest {
        /// The range in canonical CIDR notation, such as `203.0.113.0/24`.
        #[schemars(length(max = 64))]
        pub ip_address_range: String,
    }

    /// New ranges.
    pub struct BulkCreateAllowedIpAddressRangesRequest {
        /// The ranges in canonical CIDR notation.
        #[schemars(length(min = 1, max = 1000), inner(length(max = 64)))]
        pub allowed_ip_address_ranges: Vec<String>,
    }

    /// Ranges to remove.
    pub struct BulkDeleteAllowedIpAddressRangesRequest {
        /// The ids of the ranges.
        #[schemars(length(min = 1, max = 1000))]
        pub allowed_ip_address_range_ids: Vec<AllowedIpAddressRangeId>,
    }
}
