//! Enumerations on the wire.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A text that is not a value of an enumeration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownValue {
    kind: &'static str,
    text: String,
}

impl fmt::Display for UnknownValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown {}: {}", self.kind, self.text)
    }
}

impl std::error::Error for UnknownValue {}

macro_rules! wire_enum {
    ($($(#[$doc:meta])* $name:ident { $($variant:ident = $wire:literal),+ $(,)? })+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[allow(missing_docs)]
        pub enum $name { $(#[serde(rename = $wire)] $variant),+ }

        impl $name {
            /// Every value.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// As on the wire and in the database.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $wire),+ }
            }
        }

        impl FromStr for $name {
            type Err = UnknownValue;

            fn from_str(text: &str) -> Result<Self, UnknownValue> {
                match text {
                    $($wire => Ok(Self::$variant),)+
                    _ => Err(UnknownValue { kind: stringify!($name), text: text.to_owned() }),
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    )+};
}

wire_enum! {
    /// Roles in an organization, the weakest first.
    OrganizationRole {
        Member = "ORGANIZATION_MEMBER",
        ObserveMember = "ORGANIZATION_OBSERVE_MEMBER",
        ObserveAdmin = "ORGANIZATION_OBSERVE_ADMIN",
        BillingAdmin = "ORGANIZATION_BILLING_ADMIN",
        Owner = "ORGANIZATION_OWNER",
    }
    /// Roles in a workspace, the weakest first.
    WorkspaceRoleName {
        Accessor = "WORKSPACE_ACCESSOR",
        Member = "WORKSPACE_MEMBER",
        Author = "WORKSPACE_AUTHOR",
        Operator = "WORKSPACE_OPERATOR",
        Owner = "WORKSPACE_OWNER",
    }
    /// What a role is held on.
    RoleScope {
        Organization = "ORGANIZATION",
        Workspace = "WORKSPACE",
        Deployment = "DEPLOYMENT",
        Dag = "DAG",
    }
    /// What a built-in role is held on.
    DefaultRoleScope {
        Organization = "ORGANIZATION",
        Workspace = "WORKSPACE",
        Deployment = "DEPLOYMENT",
        System = "SYSTEM",
        Dag = "DAG",
    }
    /// What a custom role can be held on.
    CustomRoleScope { Deployment = "DEPLOYMENT", Dag = "DAG" }
    /// What an API token belongs to.
    TokenScope { Organization = "ORGANIZATION", Workspace = "WORKSPACE", Deployment = "DEPLOYMENT" }
    /// What an entry of a token's roles is held on.
    TokenEntity {
        Organization = "ORGANIZATION",
        Workspace = "WORKSPACE",
        Deployment = "DEPLOYMENT",
        Dag = "DAG",
        DagTag = "DAG_TAG",
    }
    /// How an API token is meant to be used.
    TokenKind { Standard = "STANDARD", DirectAccess = "DIRECT_ACCESS" }
    /// The state of a user.
    UserStatus { Active = "ACTIVE", Inactive = "INACTIVE", Pending = "PENDING", Banned = "BANNED" }
    /// What acted: a person, or an API token.
    SubjectType { User = "USER", ServiceKey = "SERVICEKEY" }
    /// Cloud providers.
    CloudProvider { Aws = "AWS", Azure = "AZURE", Gcp = "GCP" }
    /// Who runs a cluster, and for whom.
    ClusterType { Dedicated = "DEDICATED", Hybrid = "HYBRID" }
    /// The state of a cluster; nothing here produces `ACCESS_DENIED` or `UPGRADE_PENDING`.
    ClusterStatus {
        Creating = "CREATING",
        Created = "CREATED",
        CreateFailed = "CREATE_FAILED",
        UpdateFailed = "UPDATE_FAILED",
        Updating = "UPDATING",
        AccessDenied = "ACCESS_DENIED",
        UpgradePending = "UPGRADE_PENDING",
        FailingOver = "FAILING_OVER",
        FailoverFailed = "FAILOVER_FAILED",
    }
    /// Whether something is healthy.
    HealthValue { Healthy = "HEALTHY", Unhealthy = "UNHEALTHY", Unknown = "UNKNOWN" }
    /// The state of an organization.
    OrganizationStatus { Active = "ACTIVE", Inactive = "INACTIVE", Suspended = "SUSPENDED" }
    /// Where an organization's deployments run.
    Product { Hosted = "HOSTED", Hybrid = "HYBRID" }
    /// The product of a plan.
    PlatformProduct { Platform = "PLATFORM" }
    /// How an organization pays.
    PaymentMethod {
        CreditCard = "CREDIT_CARD",
        Invoice = "INVOICE",
        AwsMarketplace = "AWS_MARKETPLACE",
        AzureMarketplace = "AZURE_MARKETPLACE",
        GcpMarketplace = "GCP_MARKETPLACE",
        PartnerMarketplace = "PARTNER_MARKETPLACE",
    }
    /// Plans that organizations can be filtered by.
    ProductPlanFilter {
        Trial = "TRIAL",
        Basic = "BASIC",
        Standard = "STANDARD",
        Premium = "PREMIUM",
        BusinessCritical = "BUSINESS_CRITICAL",
    }
    /// Plans of an organization.
    ProductPlanName {
        Inactive = "INACTIVE",
        Internal = "INTERNAL",
        Pov = "POV",
        Trial = "TRIAL",
        Basic = "BASIC",
        BasicPaygo = "BASIC_PAYGO",
        TeamPaygo = "TEAM_PAYGO",
        Standard = "STANDARD",
        Premium = "PREMIUM",
        BusinessCritical = "BUSINESS_CRITICAL",
        Business = "BUSINESS",
        Team = "TEAM",
        Enterprise = "ENTERPRISE",
        Developer = "DEVELOPER",
        DeveloperPaygo = "DEVELOPER_PAYGO",
        TeamV2 = "TEAM_V2",
        BusinessV2 = "BUSINESS_V2",
        EnterpriseV2 = "ENTERPRISE_V2",
        TrialV2 = "TRIAL_V2",
        EnterpriseBusinessCritical = "ENTERPRISE_BUSINESS_CRITICAL",
        PartnerEnterprise = "PARTNER_ENTERPRISE",
    }
    /// Components of a deployment that write logs.
    LogSource {
        Scheduler = "scheduler",
        Webserver = "webserver",
        Triggerer = "triggerer",
        Worker = "worker",
        DagProcessor = "dag-processor",
        ApiServer = "apiserver",
    }
    /// What an environment object is.
    EnvironmentObjectType {
        Connection = "CONNECTION",
        EnvironmentVariable = "ENVIRONMENT_VARIABLE",
        AirflowVariable = "AIRFLOW_VARIABLE",
        MetricsExport = "METRICS_EXPORT",
    }
    /// What an environment object belongs to.
    EnvironmentObjectScope { Workspace = "WORKSPACE", Deployment = "DEPLOYMENT" }
    /// What an environment object can be linked to.
    LinkScope { Deployment = "DEPLOYMENT" }
    /// How metrics are sent.
    ExporterType { Prometheus = "PROMETHEUS" }
    /// How the sender of metrics authenticates.
    MetricsAuthType { Basic = "BASIC", AuthToken = "AUTH_TOKEN", SigV4 = "SIGV4" }
    /// Where a deployment runs: shared infrastructure, a dedicated cluster, or one of the customer's own.
    DeploymentType { Dedicated = "DEDICATED", Hybrid = "HYBRID", Standard = "STANDARD" }
    /// The status of a deployment.
    DeploymentStatus {
        Creating = "CREATING",
        Deploying = "DEPLOYING",
        Healthy = "HEALTHY",
        Unhealthy = "UNHEALTHY",
        Unknown = "UNKNOWN",
        Hibernating = "HIBERNATING",
    }
    /// The executor of a deployment.
    Executor { Celery = "CELERY", Kubernetes = "KUBERNETES", Platform = "PLATFORM" }
    /// Sizes of schedulers.
    SchedulerSize { Small = "SMALL", Medium = "MEDIUM", Large = "LARGE", ExtraLarge = "EXTRA_LARGE" }
    /// Sizes of workers.
    WorkerMachineName {
        A5 = "A5",
        A10 = "A10",
        A20 = "A20",
        A40 = "A40",
        A60 = "A60",
        A120 = "A120",
        A160 = "A160",
    }
    /// What a hibernation schedule does next.
    HibernationEvent { Hibernate = "HIBERNATE", Wake = "WAKE" }
    /// What a deploy carries.
    DeployType {
        ImageAndDag = "IMAGE_AND_DAG",
        ImageOnly = "IMAGE_ONLY",
        DagOnly = "DAG_ONLY",
        Bundle = "BUNDLE",
    }
    /// The status of a deploy.
    DeployStatus { Initialized = "INITIALIZED", Deployed = "DEPLOYED", Failed = "FAILED" }
    /// How far the rollout of a deploy has come.
    DeployReportState {
        Waiting = "WAITING",
        RollingOut = "ROLLING_OUT",
        Live = "LIVE",
        Failed = "FAILED",
        Superseded = "SUPERSEDED",
    }
    /// A step of the rollout of a deploy.
    DeployStep {
        Runtime = "RUNTIME",
        Database = "DATABASE",
        Unpack = "UNPACK",
        Packages = "PACKAGES",
        Drain = "DRAIN",
        Start = "START",
        Parse = "PARSE",
    }
    /// What an upload is.
    UploadKind { Dags = "dags", Bundle = "bundle" }
    /// Where the code of a deploy is hosted.
    GitProvider { Hosted = "HOSTED", Generic = "GENERIC" }
    /// Whether a domain is proven to be the organization's.
    DomainStatus { Pending = "PENDING", Verified = "VERIFIED" }
}
