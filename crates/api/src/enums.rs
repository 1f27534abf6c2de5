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
    /// Methods of calls that can be planned.
    PlannedMethod { Post = "POST", Delete = "DELETE" }
    /// What a planned call causes beyond the fields that it changes.
    PlannedEffectType {
        Restart = "RESTART",
        Stop = "STOP",
        Delete = "DELETE",
        Access = "ACCESS",
        Drain = "DRAIN",
    }
    /// Kinds of resources that a file can declare.
    DeclaredKind {
        Workspace = "WORKSPACE",
        Cluster = "CLUSTER",
        Role = "ROLE",
        Team = "TEAM",
        Deployment = "DEPLOYMENT",
        Token = "TOKEN",
        EnvironmentObject = "ENVIRONMENT_OBJECT",
    }
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
    /// Built-in roles on a deployment, the weakest first.
    DeploymentRoleName { Accessor = "DEPLOYMENT_ACCESSOR", Admin = "DEPLOYMENT_ADMIN" }
    /// Built-in roles on a DAG or tag, the weakest first.
    DagRoleName { Viewer = "DAG_VIEWER", Author = "DAG_AUTHOR" }
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
    /// What deployments run on: the machine of the server, nothing (simulated), or clusters of Kubernetes.
    PlaneKind { Local = "LOCAL", Simulated = "SIMULATED", Kubernetes = "KUBERNETES" }
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
        Check = "CHECK",
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
    /// What an operation does.
    OperationKind {
        Create = "CREATE",
        Update = "UPDATE",
        Deploy = "DEPLOY",
        Rollback = "ROLLBACK",
        RuntimeUpgrade = "RUNTIME_UPGRADE",
        Hibernate = "HIBERNATE",
        Wake = "WAKE",
        Transfer = "TRANSFER",
        Failover = "FAILOVER",
        Failback = "FAILBACK",
        Delete = "DELETE",
        CleanUp = "CLEAN_UP",
    }
    /// Why an operation was started.
    OperationCause {
        Call = "CALL",
        Schedule = "SCHEDULE",
        EnvironmentObject = "ENVIRONMENT_OBJECT",
        Loop = "LOOP",
    }
    /// What a person decides about the sign-in of a terminal.
    DeviceSignInDecision { Approve = "APPROVE", Deny = "DENY" }
    /// How far the sign-in of a terminal has come.
    DeviceSignInStatus { Pending = "PENDING", Approved = "APPROVED", Denied = "DENIED" }
    /// What a session of a user is: of a browser, of a terminal or program that signed in, of the operator's socket, or a token
    /// that never expires, such as the one of the first start.
    SessionKind { Browser = "BROWSER", Terminal = "TERMINAL", Operator = "OPERATOR", Token = "TOKEN" }
    /// How far an operation has come.
    OperationState {
        Pending = "PENDING",
        Running = "RUNNING",
        Succeeded = "SUCCEEDED",
        Failed = "FAILED",
        Cancelled = "CANCELLED",
        Superseded = "SUPERSEDED",
    }
    /// A step of an operation.
    OperationStepName {
        Apply = "APPLY",
        Runtime = "RUNTIME",
        Database = "DATABASE",
        Unpack = "UNPACK",
        Packages = "PACKAGES",
        Check = "CHECK",
        Drain = "DRAIN",
        Start = "START",
        Parse = "PARSE",
        Remove = "REMOVE",
        CleanUp = "CLEAN_UP",
    }
    /// What an operation changes.
    OperationTargetType { Deployment = "DEPLOYMENT", Cluster = "CLUSTER" }
    /// What an event says: the kind of resource, and what happened to it.
    EventType {
        DeploymentCreated = "podium.deployment.created",
        DeploymentUpdated = "podium.deployment.updated",
        DeploymentDeleted = "podium.deployment.deleted",
        DeploymentHibernationOverrideSet = "podium.deployment.hibernation_override_set",
        DeploymentHibernationOverrideRemoved = "podium.deployment.hibernation_override_removed",
        DeploymentCreating = "podium.deployment.creating",
        DeploymentDeploying = "podium.deployment.deploying",
        DeploymentHealthy = "podium.deployment.healthy",
        DeploymentUnhealthy = "podium.deployment.unhealthy",
        DeploymentUnknown = "podium.deployment.unknown",
        DeploymentHibernating = "podium.deployment.hibernating",
        DeploymentEventsDropped = "podium.deployment.events_dropped",
        DagRunStarted = "podium.dag_run.started",
        DagRunSucceeded = "podium.dag_run.succeeded",
        DagRunFailed = "podium.dag_run.failed",
        TaskFailed = "podium.task.failed",
        TaskInterrupted = "podium.task.interrupted",
        DeployCreated = "podium.deploy.created",
        DeployUpdated = "podium.deploy.updated",
        DeployFinalized = "podium.deploy.finalized",
        DeployRolledBack = "podium.deploy.rolled_back",
        DeploySucceeded = "podium.deploy.succeeded",
        DeployFailed = "podium.deploy.failed",
        ClusterCreated = "podium.cluster.created",
        ClusterUpdated = "podium.cluster.updated",
        ClusterDeleted = "podium.cluster.deleted",
        ClusterCreating = "podium.cluster.creating",
        ClusterUpdating = "podium.cluster.updating",
        ClusterReady = "podium.cluster.ready",
        ClusterCreateFailed = "podium.cluster.create_failed",
        ClusterUpdateFailed = "podium.cluster.update_failed",
        ClusterFailingOver = "podium.cluster.failing_over",
        ClusterFailedOver = "podium.cluster.failed_over",
        ClusterFailedBack = "podium.cluster.failed_back",
        ClusterFailoverFailed = "podium.cluster.failover_failed",
        ClusterAccessDenied = "podium.cluster.access_denied",
        ClusterUpgradePending = "podium.cluster.upgrade_pending",
        WorkspaceCreated = "podium.workspace.created",
        WorkspaceUpdated = "podium.workspace.updated",
        WorkspaceDeleted = "podium.workspace.deleted",
        OrganizationUpdated = "podium.organization.updated",
        TeamCreated = "podium.team.created",
        TeamUpdated = "podium.team.updated",
        TeamDeleted = "podium.team.deleted",
        TeamMembersAdded = "podium.team.members_added",
        TeamMemberRemoved = "podium.team.member_removed",
        TeamRolesUpdated = "podium.team.roles_updated",
        UserInvited = "podium.user.invited",
        UserInviteLinkCreated = "podium.user.invite_link_created",
        UserInviteWithdrawn = "podium.user.invite_withdrawn",
        UserJoined = "podium.user.joined",
        UserRolesUpdated = "podium.user.roles_updated",
        UserRemoved = "podium.user.removed",
        TokenCreated = "podium.token.created",
        TokenUpdated = "podium.token.updated",
        TokenRotated = "podium.token.rotated",
        TokenRolesUpdated = "podium.token.roles_updated",
        TokenDeleted = "podium.token.deleted",
        AgentTokenCreated = "podium.agent_token.created",
        AgentTokenDeleted = "podium.agent_token.deleted",
        OperationSucceeded = "podium.operation.succeeded",
        OperationFailed = "podium.operation.failed",
        OperationCancelled = "podium.operation.cancelled",
        OperationForced = "podium.operation.forced",
        RoleCreated = "podium.role.created",
        RoleUpdated = "podium.role.updated",
        RoleDeleted = "podium.role.deleted",
        EnvironmentObjectCreated = "podium.environment_object.created",
        EnvironmentObjectUpdated = "podium.environment_object.updated",
        EnvironmentObjectDeleted = "podium.environment_object.deleted",
        IpRangeCreated = "podium.ip_range.created",
        IpRangeDeleted = "podium.ip_range.deleted",
        WebhookCreated = "podium.webhook.created",
        WebhookUpdated = "podium.webhook.updated",
        WebhookDeleted = "podium.webhook.deleted",
        WebhookSecretRotated = "podium.webhook.secret_rotated",
        WebhookTested = "podium.webhook.tested",
        WebhookDisabled = "podium.webhook.disabled",
        AlertCreated = "podium.alert.created",
        AlertUpdated = "podium.alert.updated",
        AlertDeleted = "podium.alert.deleted",
        AlertFiring = "podium.alert.firing",
        AlertResolved = "podium.alert.resolved",
    }
    /// What an alert watches for.
    AlertKind {
        DeploymentUnhealthy = "DEPLOYMENT_UNHEALTHY",
        DeployFailed = "DEPLOY_FAILED",
        OperationFailed = "OPERATION_FAILED",
        DagRunFailed = "DAG_RUN_FAILED",
        DagRunTooSlow = "DAG_RUN_TOO_SLOW",
        TokenExpiring = "TOKEN_EXPIRING",
    }
    /// Whether the problem of a firing goes on.
    AlertFiringState { Firing = "FIRING", Resolved = "RESOLVED" }
    /// What an alert has found something about.
    AlertSubjectType { Deployment = "DEPLOYMENT", Dag = "DAG", Token = "TOKEN" }
    /// Why a request was refused or failed, for programs. Each goes with one status; a status may have several.
    ErrorCode {
        Invalid = "invalid",
        Hibernating = "hibernating",
        Unauthenticated = "unauthenticated",
        Forbidden = "forbidden",
        NotFound = "not_found",
        NotAllowed = "not_allowed",
        Conflict = "conflict",
        InProgress = "in_progress",
        Gone = "gone",
        PreconditionFailed = "precondition_failed",
        TooLarge = "too_large",
        DependsOnRefused = "depends_on_refused",
        TooManyRequests = "too_many_requests",
        Internal = "internal",
        Unavailable = "unavailable",
    }
    /// What has become of an event that is sent to a webhook.
    WebhookDeliveryState { Pending = "PENDING", Succeeded = "SUCCEEDED", Failed = "FAILED" }
}
