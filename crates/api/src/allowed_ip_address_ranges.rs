//! Allowed address ranges: with any, an organization is reached from them only.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::page::{Page, SortKeys};
use crate::path::{InOrganization, OfAllowedIpAddressRange};
use crate::reply::{Many, One};
use crate::subjects::SubjectProfile;
use crate::{AllowedIpAddressRangeId, OrganizationId, Timestamp};

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
        permission: "organization.allowedIpAddressRanges.create", also: [409],
    }
    /// Remove an allowed address range
    Delete: DELETE "/organizations/{organizationId}/allowed-ip-address-ranges/{allowedIpAddressRangeId}"
        as "DeleteAllowedIpAddressRange" {
        path: OfAllowedIpAddressRange,
        permission: "organization.allowedIpAddressRanges.delete", also: [412],
    }
    /// Allow many address ranges at once
    BulkCreate: POST "/organizations/{organizationId}/allowed-ip-address-ranges/bulk-create"
        as "BulkCreateAllowedIpAddressRanges" {
        path: InOrganization, body: BulkCreateAllowedIpAddressRangesRequest,
        reply: Many<AllowedIpAddressRangesList>,
        permission: "organization.allowedIpAddressRanges.create", also: [409],
    }
    /// Remove many allowed address ranges at once
    BulkDelete: POST "/organizations/{organizationId}/allowed-ip-address-ranges/bulk-delete"
        as "BulkDeleteAllowedIpAddressRanges" {
        path: InOrganization, body: BulkDeleteAllowedIpAddressRangesRequest,
        permission: "organization.allowedIpAddressRanges.delete",
    }
}

/// How ranges can be sorted.
#[derive(Debug)]
pub struct AllowedIpAddressRangeSorts;

impl SortKeys for AllowedIpAddressRangeSorts {
    const KEYS: &'static [&'static str] = &["ipAddress", "createdAt", "updatedAt"];
    const LIMIT_IS_BOUNDED: bool = false;
}

/// Which ranges to list.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ListAllowedIpAddressRanges {
    /// The page.
    #[serde(flatten)]
    pub page: Page<AllowedIpAddressRangeSorts>,
}

/// An allowed range.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AllowedIpAddressRange {
    /// Its id.
    pub id: AllowedIpAddressRangeId,
    /// The range, in CIDR notation.
    pub ip_address_range: String,
    /// Its organization.
    pub organization_id: OrganizationId,
    /// When it was created.
    pub created_at: Timestamp,
    /// Who created it.
    pub created_by: Option<SubjectProfile>,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// Who last changed it.
    pub updated_by: Option<SubjectProfile>,
}

/// A page of ranges.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AllowedIpAddressRangesPaginated {
    /// The ranges.
    pub allowed_ip_address_ranges: Vec<AllowedIpAddressRange>,
    /// The effective limit.
    pub limit: u32,
    /// How many items were skipped.
    pub offset: u64,
    /// Total number of items.
    pub total_count: u64,
}

/// Ranges that were added together.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AllowedIpAddressRangesList {
    /// The ranges.
    pub allowed_ip_address_ranges: Vec<AllowedIpAddressRange>,
}

/// A new range.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreateAllowedIpAddressRangeRequest {
    /// The range in canonical CIDR notation, such as `203.0.113.0/24`.
    #[schemars(length(max = 64))]
    pub ip_address_range: String,
}

/// New ranges.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BulkCreateAllowedIpAddressRangesRequest {
    /// The ranges in canonical CIDR notation.
    #[schemars(length(min = 1, max = 1000), inner(length(max = 64)))]
    pub allowed_ip_address_ranges: Vec<String>,
}

/// Ranges to remove.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BulkDeleteAllowedIpAddressRangesRequest {
    /// The ids of the ranges.
    #[schemars(length(min = 1, max = 1000))]
    pub allowed_ip_address_range_ids: Vec<AllowedIpAddressRangeId>,
}
