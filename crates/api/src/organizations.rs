//! Organizations: the tenants.

use crate::enums::{
    DomainStatus, OrganizationStatus, PaymentMethod, PlatformProduct, Product, ProductPlanFilter,
    ProductPlanName,
};
use crate::path::InOrganization;
use crate::reply::{Lines, Many, One};
use crate::subjects::SubjectProfile;
use crate::{Id, OrganizationId, Timestamp};

endpoints! {
    tag "Organization";

    /// List organizations
    List: GET "/organizations" as "ListOrganizations" {
        query: ListOrganizations, reply: Many<OrganizationsPaginated>,
        open_to: SignedIn,
    }
    /// Get an organization
    Get: GET "/organizations/{organizationId}" as "GetOrganization" {
        path: InOrganization, query: GetOrganization, reply: One<Organization>,
        permission: "organization.get",
    }
    /// Update an organization
    Update: POST "/organizations/{organizationId}" as "UpdateOrganization" {
        path: InOrganization, body: UpdateOrganizationRequest, reply: One<Organization>,
        permission: "organization.settings.update", event: OrganizationUpdated,
    }
    /// Export the audit log
    AuditLogs: GET "/organizations/{organizationId}/audit-logs" as "GetOrganizationAuditLogs" {
        path: InOrganization, query: GetAuditLogs, reply: Lines,
        permission: "organization.auditLogs.get",
    }
}

wire! {
    /// Which organizations to list.
    sorted["name", "createdAt", "updatedAt"] pub struct ListOrganizations {
        /// Only organizations with this plan.
        pub product_plan: Option<ProductPlanFilter>,
        /// Only organizations with a plan of this product.
        pub platform_product: Option<PlatformProduct>,
        /// Only organizations whose deployments run on this product.
        pub product: Option<Product>,
    }

    /// How to read an organization.
    #[derive(Default)]
    pub struct GetOrganization {
        /// Leave out what takes longer to find out.
        pub is_look_up_only: Option<bool>,
    }

    /// An organization.
    stamped(SubjectProfile) pub struct Organization {
        /// Its id.
        pub id: OrganizationId,
        /// Its name.
        pub name: String,
        /// Where bills go.
        pub billing_email: Option<String>,
        /// Its state.
        pub status: Option<OrganizationStatus>,
        /// Where its deployments run.
        pub product: Option<Product>,
        /// Its plans.
        pub product_plans: Vec<OrganizationProductPlan>,
        /// How it pays.
        pub payment_method: Option<PaymentMethod>,
        /// When its trial ends.
        pub trial_expires_at: Option<Timestamp>,
        /// Whether it has allowed address ranges: if so, requests from other addresses are refused.
        pub has_allowed_ip_address_ranges: bool,
        /// Whether an identity provider manages its teams.
        pub is_scim_enabled: bool,
        /// Whether deployments on shared infrastructure are refused.
        pub should_enforce_dedicated_clusters: bool,
        /// Whether the operator may access details when asked for help.
        pub allow_enhanced_support_access: bool,
        /// Whether AI features are switched off.
        pub has_ai_features_disabled: Option<bool>,
        /// Whether AI features cannot be switched on.
        pub is_blocked_enable_ai_features: bool,
        /// Its e-mail domains.
        pub managed_domains: Option<Vec<ManagedDomain>>,
    }

    /// A plan of an organization.
    pub struct OrganizationProductPlan {
        /// The organization.
        pub organization_id: OrganizationId,
        /// The product.
        pub platform_product: PlatformProduct,
        /// The plan.
        pub product_plan_id: String,
        /// The plan's name.
        pub product_plan_name: ProductPlanName,
    }

    /// An e-mail domain of an organization.
    pub struct ManagedDomain {
        /// Its id.
        pub id: Id,
        /// The domain.
        pub name: String,
        /// Its organization.
        pub organization_id: OrganizationId,
        /// Whether it is proven.
        pub status: DomainStatus,
        /// The ways of signing in that its users are held to.
        pub enforced_logins: Option<Vec<String>>,
        /// When it was created.
        pub created_at: Timestamp,
        /// When it was last changed.
        pub updated_at: Timestamp,
    }

    /// A page of organizations.
    page OrganizationsPaginated {
        /// The organizations.
        organizations: Vec<Organization>
    }

    /// New settings of an organization.
    pub struct UpdateOrganizationRequest {
        /// Its name.
        #[schemars(length(min = 1, max = 50))]
        pub name: String,
        /// Where bills go.
        #[schemars(length(max = 254))]
        pub billing_email: String,
        /// Whether an identity provider manages its teams.
        pub is_scim_enabled: bool,
        /// Whether deployments on shared infrastructure are refused.
        pub should_enforce_dedicated_clusters: Option<bool>,
        /// Whether the operator may access details when asked for help.
        pub allow_enhanced_support_access: Option<bool>,
        /// Whether AI features are switched off.
        pub has_ai_features_disabled: Option<bool>,
    }

    /// Which part of the audit log to export.
    #[derive(Default)]
    pub struct GetAuditLogs {
        /// From when; the default is a day before `endDate`.
        pub start_date: Option<Timestamp>,
        /// Until when; the default is now.
        pub end_date: Option<Timestamp>,
    }
}
