//! What proves the right to touch rows: every function of this crate takes one of these, and none can be made up.
//!
//! [`System`] is handed to whoever opens the database, and to nobody else. A [`Membership`] is read from the database
//! with it. A [`Scope`] is minted where the policy says yes to a membership, or by the system for itself. The policy is
//! `podium_domain::require`; nothing is decided here.
//!
//! An [`InScope`] is what a statement gives that has looked something up with a scope. It stands for the right to what
//! belongs to the row and lies outside the database.
//!
//! None of them can be made from outside:
//!
//! ```compile_fail,E0423
//! fn forge(id: podium_api::DeploymentId) -> podium_store::InScope<podium_api::DeploymentId> {
//!     podium_store::InScope(id)
//! }
//! ```
//!
//! ```compile_fail,E0624
//! fn forge(id: podium_api::DeploymentId) -> podium_store::InScope<podium_api::DeploymentId> {
//!     podium_store::InScope::found(id)
//! }
//! ```
//!
//! ```compile_fail,E0423
//! let system = podium_store::System(());
//! ```
//!
//! ```compile_fail,E0423
//! let doorkeeper = podium_store::Doorkeeper(());
//! ```
//!
//! Each purpose of the system has its own: the doorkeeper cannot do the work of loops, loops do not clean up, and
//! maintenance makes no settings. The system can do all of it:
//!
//! ```
//! # use podium_api::Timestamp;
//! # use podium_store::{System, plans, sessions, settings, work};
//! fn act(tx: &podium_db::Tx, system: &System, now: Timestamp) {
//!     let _ = sessions::by_hash(tx, system, "the hash of a session");
//!     let _ = work::backlog(tx, system, now);
//!     let _ = plans::prune(tx, &system.housekeeper(), now, 500);
//!     let _ = settings::get(tx, &system.founder(), "key");
//! }
//! ```
//!
//! ```compile_fail,E0308
//! # use podium_api::Timestamp;
//! # use podium_store::{Doorkeeper, work};
//! fn act(conn: &podium_db::Conn, doorkeeper: &Doorkeeper, now: Timestamp) {
//!     let _ = work::backlog(conn, doorkeeper, now);
//! }
//! ```
//!
//! ```compile_fail,E0308
//! # use podium_api::Timestamp;
//! # use podium_store::{Steward, plans};
//! fn act(tx: &podium_db::Tx, steward: &Steward, now: Timestamp) {
//!     let _ = plans::prune(tx, steward, now, 500);
//! }
//! ```
//!
//! ```compile_fail,E0308
//! # use podium_store::{Housekeeper, settings};
//! fn act(conn: &podium_db::Conn, housekeeper: &Housekeeper) {
//!     let _ = settings::get(conn, housekeeper, "key");
//! }
//! ```
//!
//! ```compile_fail,E0308
//! # use podium_api::Timestamp;
//! # use podium_store::{Founder, work};
//! fn act(conn: &podium_db::Conn, founder: &Founder, now: Timestamp) {
//!     let _ = work::backlog(conn, founder, now);
//! }
//! ```
//!
//! ```compile_fail,E0599
//! let system = podium_store::System::default();
//! ```
//!
//! ```compile_fail,E0451
//! fn forge(organization_id: podium_api::OrganizationId) -> podium_store::Scope {
//!     podium_store::Scope {
//!         organization_id,
//!         permission: None,
//!         target: podium_domain::Target::Organization,
//!     }
//! }
//! ```
//!
//! ```compile_fail,E0624
//! fn forge(organization_id: podium_api::OrganizationId) -> podium_store::Scope {
//!     podium_store::Scope::new(organization_id, None, podium_domain::Target::Organization)
//! }
//! ```
//!
//! ```compile_fail,E0624
//! fn forge(organization_id: podium_api::OrganizationId) -> podium_store::Membership {
//!     podium_store::Membership::new(organization_id, podium_domain::Grants::new([]))
//! }
//! ```
//!
//! ```compile_fail,E0451
//! fn forge(organization_id: podium_api::OrganizationId) -> podium_store::Membership {
//!     podium_store::Membership { organization_id, grants: podium_domain::Grants::new([]) }
//! }
//! ```
//!
//! Statements, which need no proof, are private to the crate:
//!
//! ```compile_fail,E0603
//! let all = podium_store::grants::STATEMENTS;
//! ```
//!
//! ```compile_fail,E0061
//! let all = podium_store::statements();
//! ```
//!
//! Nor can a guard, which tells whether a token is alive, be made for any token:
//!
//! ```compile_fail,E0061
//! let guard = podium_store::credentials::guard_alive("the hash of somebody's token");
//! ```
//!
//! With a membership that was read, the same compiles:
//!
//! ```
//! fn ask(membership: &podium_store::Membership) -> podium_store::Scope {
//!     membership.scope()
//! }
//! ```

use std::ops::Deref;

use podium_api::{DeploymentId, OrganizationId, WorkspaceId};
use podium_db::{Db, Options, Result, Target as Database};
use podium_domain::{Grants, Permission, Refusal, Target, require};

use crate::MIGRATIONS;

/// Proof that the server acts for itself. The opener of the database has it, and with it all that the others may do.
/// Whoever has one purpose gets the proof for that and no more.
#[derive(Clone, Copy, Debug)]
pub struct System(Steward);

/// Proof that the server finds out who calls, and lets people in and out.
#[derive(Clone, Copy, Debug)]
pub struct Doorkeeper(());

/// Proof that a loop acts, which brings about what was asked for and tells of what happened.
#[derive(Clone, Copy, Debug)]
pub struct Steward(Doorkeeper);

/// Proof that the server removes what has expired, and writes down what was used.
#[derive(Clone, Copy, Debug)]
pub struct Housekeeper(Doorkeeper);

/// Proof that the server starts, and makes what there has to be before anybody can call.
#[derive(Clone, Copy, Debug)]
pub struct Founder(Doorkeeper);

/// Defines that whoever has one proof may do what another one is for.
macro_rules! includes {
    ($($whole:ty => $part:ty;)+) => {
        $(
            impl Deref for $whole {
                type Target = $part;

                fn deref(&self) -> &$part {
                    &self.0
                }
            }
        )+
    };
}

includes! {
    System => Steward;
    Steward => Doorkeeper;
    Housekeeper => Doorkeeper;
    Founder => Doorkeeper;
}

/// Opens a database, and brings its schema up to date.
pub async fn open(options: Options) -> Result<(Db, System)> {
    let db = Db::open(options).await?;
    db.migrate(MIGRATIONS).await?;
    Ok((db, System(Steward(Doorkeeper(())))))
}

/// Opens the database of an installation read-only, also while its server runs.
pub async fn view(database: Database) -> Result<(Db, System)> {
    Ok((Db::view(database).await?, System(Steward(Doorkeeper(())))))
}

impl System {
    /// The part of it that a doorkeeper has.
    pub const fn doorkeeper(self) -> Doorkeeper {
        self.0.0
    }

    /// The part of it that loops have.
    pub const fn steward(self) -> Steward {
        self.0
    }

    /// The part of it that maintenance has.
    pub const fn housekeeper(self) -> Housekeeper {
        Housekeeper(self.0.0)
    }

    /// The part of it that the start has.
    pub const fn founder(self) -> Founder {
        Founder(self.0.0)
    }
}

impl Doorkeeper {
    /// A scope of the system itself, without a caller.
    pub const fn scope(&self, organization_id: OrganizationId) -> Scope {
        Scope::new(organization_id, None, Target::Organization)
    }
}

/// Proof that a subject belongs to an organization, and what it may do there: read by [`crate::grants::membership`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    organization_id: OrganizationId,
    grants: Grants,
}

impl Membership {
    pub(crate) const fn new(organization_id: OrganizationId, grants: Grants) -> Self {
        Self { organization_id, grants }
    }

    pub const fn organization_id(&self) -> OrganizationId {
        self.organization_id
    }

    /// What the member may do there.
    pub const fn grants(&self) -> &Grants {
        &self.grants
    }

    /// The scope of a member who needs no permission: for endpoints that every member may call.
    pub const fn scope(&self) -> Scope {
        Scope::new(self.organization_id, None, Target::Organization)
    }

    /// The scope of a member who holds the permission on the target, if the policy allows it.
    pub fn authorize(&self, permission: Permission, target: Target) -> Result<Scope, Refusal> {
        require(&self.grants, permission, target)?;
        Ok(Scope::new(self.organization_id, Some(permission), target))
    }
}

/// Proof that a permission was checked in an organization; every statement with it is confined to that organization.
#[derive(Clone, Copy, Debug)]
pub struct Scope {
    organization_id: OrganizationId,
    permission: Option<Permission>,
    target: Target,
}

impl Scope {
    const fn new(organization_id: OrganizationId, permission: Option<Permission>, target: Target) -> Self {
        Self { organization_id, permission, target }
    }

    pub const fn organization_id(&self) -> OrganizationId {
        self.organization_id
    }

    /// The same, as text.
    pub fn organization(&self) -> &str {
        self.organization_id.as_str()
    }

    pub const fn target(&self) -> Target {
        self.target
    }

    /// The permission that was proven; `None` if the server acts for itself or membership was enough.
    pub const fn permission(&self) -> Option<Permission> {
        self.permission
    }

    /// Whether a deployment of the organization is inside the target.
    pub(crate) fn covers(&self, deployment_id: DeploymentId, in_workspace: WorkspaceId) -> bool {
        match self.target {
            Target::Organization => true,
            Target::Workspace(id) => id == in_workspace,
            Target::Deployment { id, .. } => id == deployment_id,
        }
    }
}

/// Proof that a scope has looked this up, in its organization and inside its target.
#[derive(Clone, Copy, Debug)]
pub struct InScope<T>(T);

impl<T> InScope<T> {
    pub(crate) const fn found(value: T) -> Self {
        Self(value)
    }

    pub const fn get(&self) -> &T {
        &self.0
    }
}
