//! One type for each kind of id, so that an id of one kind cannot be passed where another is wanted.
//!
//! On the wire and in the database they are all the text of an [`Id`]. Inside, an id of a kind comes from parsing, from
//! a row, or from an explicit `from_raw`; nothing turns one kind into another silently:
//!
//! ```
//! # use podium_api::{DeploymentId, Id};
//! fn remove(_: DeploymentId) {}
//! remove(DeploymentId::from_raw(Id::from_parts(0, 0, 0)));
//! ```
//!
//! ```compile_fail,E0308
//! # use podium_api::{DeploymentId, Id, WorkspaceId};
//! fn remove(_: DeploymentId) {}
//! remove(WorkspaceId::from_raw(Id::from_parts(0, 0, 0)));
//! ```
//!
//! ```compile_fail,E0308
//! # use podium_api::{DeploymentId, Id};
//! fn remove(_: DeploymentId) {}
//! remove(Id::from_parts(0, 0, 0));
//! ```
//!
//! ```compile_fail,E0277
//! # use podium_api::{DeploymentId, Id};
//! let _: DeploymentId = Id::from_parts(0, 0, 0).into();
//! ```
//!
//! A team is a subject, but a deployment is not:
//!
//! ```
//! # use podium_api::{Id, SubjectId, TeamId};
//! let _: SubjectId = TeamId::from_raw(Id::from_parts(0, 0, 0)).into();
//! ```
//!
//! ```compile_fail,E0277
//! # use podium_api::{DeploymentId, Id, SubjectId};
//! let _: SubjectId = DeploymentId::from_raw(Id::from_parts(0, 0, 0)).into();
//! ```

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use crate::{Id, NotAnId};

/// An id of some kind, for code that makes or reads ids of every kind.
pub trait TypedId: Copy + Ord + fmt::Display + FromStr<Err = NotAnId> + Send + 'static {
    /// Declares an id to be of this kind.
    fn from_raw(id: Id) -> Self;
    /// The id, of whatever kind.
    fn raw(self) -> Id;
}

impl TypedId for Id {
    fn from_raw(id: Id) -> Self {
        id
    }

    fn raw(self) -> Id {
        self
    }
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident $(from $($part:ident)|+)?;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Id);

        impl $name {
            /// Declares an id to be of this kind.
            pub const fn from_raw(id: Id) -> Self {
                Self(id)
            }

            /// The id, of whatever kind it is.
            pub const fn id(self) -> Id {
                self.0
            }

            /// The id as text.
            pub fn as_str(&self) -> &str {
                self.0.as_str()
            }
        }

        impl TypedId for $name {
            fn from_raw(id: Id) -> Self {
                Self(id)
            }

            fn raw(self) -> Id {
                self.0
            }
        }

        impl FromStr for $name {
            type Err = NotAnId;

            fn from_str(text: &str) -> Result<Self, NotAnId> {
                text.parse().map(Self)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                Id::schema_name()
            }

            fn inline_schema() -> bool {
                Id::inline_schema()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                Id::json_schema(generator)
            }
        }

        $($(
            impl From<$part> for $name {
                fn from(id: $part) -> Self {
                    Self(id.0)
                }
            }
        )+)?
    )+};
}

ids! {
    /// An organization.
    OrganizationId;
    /// A workspace.
    WorkspaceId;
    /// A deployment.
    DeploymentId;
    /// A queue of workers of a deployment.
    WorkerQueueId;
    /// A deploy to a deployment.
    DeployId;
    /// An archive that was uploaded for a deploy.
    UploadId;
    /// A cluster.
    ClusterId;
    /// A node pool of a cluster.
    NodePoolId;
    /// An environment object.
    EnvironmentObjectId;
    /// A team.
    TeamId;
    /// A user.
    UserId;
    /// An invite to an organization.
    InviteId;
    /// A plan of changes.
    PlanId;
    /// A webhook of an organization.
    WebhookId;
    /// An event on its way to a webhook.
    WebhookDeliveryId;
    /// An alert of an organization.
    AlertId;
    /// Something that an alert has found.
    AlertFiringId;
    /// A mail of an alert.
    AlertMailId;
    /// A set of declared resources.
    DeclaredSetId;
    /// An API token.
    TokenId;
    /// An agent token of a deployment.
    AgentTokenId;
    /// A session of a user.
    SessionId;
    /// A credential: what a caller authenticates with.
    CredentialId from SessionId | TokenId | AgentTokenId;
    /// A subject: a caller, or a holder of roles.
    SubjectId from UserId | TeamId | TokenId | AgentTokenId;
    /// What a token or an environment object belongs to.
    EntityId from OrganizationId | WorkspaceId | DeploymentId;
    /// A custom role.
    RoleId;
    /// An allowed address range.
    AllowedIpAddressRangeId;
    /// An entry of the audit log.
    AuditLogId;
    /// A saved log search.
    SearchId;
    /// A node: a machine that runs environments.
    NodeId;
    /// An operation: a change that takes time.
    OperationId;
}

impl EntityId {
    /// Declares it to be a workspace.
    pub const fn as_workspace(self) -> WorkspaceId {
        WorkspaceId(self.0)
    }

    /// Declares it to be a deployment.
    pub const fn as_deployment(self) -> DeploymentId {
        DeploymentId(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typed_id_is_the_text_of_its_id_everywhere() {
        let id = Id::from_parts(1_800_000_000_000, 7, 9);
        let team = TeamId::from_raw(id);
        assert_eq!(team.id(), id);
        assert_eq!(
            (team.as_str(), team.to_string(), format!("{team:?}")),
            (id.as_str(), id.to_string(), format!("{id:?}"))
        );
        assert_eq!(id.as_str().parse(), Ok(team));
        assert_eq!("x".parse::<TeamId>(), Err(NotAnId));
        assert_eq!(serde_json::to_value(team).unwrap(), serde_json::to_value(id).unwrap());
        assert_eq!(serde_json::from_value::<TeamId>(serde_json::to_value(id).unwrap()).unwrap(), team);
        assert_eq!(schemars::schema_for!(TeamId), schemars::schema_for!(Id));
    }
}
