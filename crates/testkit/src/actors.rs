//! Actors that call the API. They are created directly in the store, so that a test of one endpoint needs no other.

use podium_api::enums::{OrganizationRole, Product, UserStatus};
use podium_api::{OrganizationId, RoleId, SubjectId, Timestamp, TokenId, UserId};
use podium_db::Tx;
use podium_domain::{Grant, Held, On, Permission, PermissionSet, names};
use podium_store::organizations::{self, OrganizationRow};
use podium_store::users::Account;
use podium_store::{Scope, Stamp, System, grants, roles, subjects, users};

use crate::app::TestApp;

#[derive(Clone, Debug)]
pub struct Actor {
    /// The user, or the API token.
    pub id: SubjectId,
    pub token: String,
}

impl Actor {
    pub fn user_id(&self) -> UserId {
        UserId::from_raw(self.id.id())
    }
}

impl TestApp {
    /// An active user of the organization with this role.
    pub async fn member_as(&self, name: &str, role: OrganizationRole) -> Actor {
        self.user_with(name, vec![Grant { on: On::Organization, held: Held::Organization(role) }]).await
    }

    /// An active user of the organization who is a plain member.
    pub async fn member(&self, name: &str) -> Actor {
        self.member_as(name, OrganizationRole::Member).await
    }

    /// An active user of the organization with these grants and no others.
    pub async fn user_with(&self, name: &str, held: Vec<Grant>) -> Actor {
        self.mint(name, self.organization_id, held, None).await
    }

    /// The owner of another organization.
    pub async fn stranger(&self) -> Actor {
        let owner = Grant { on: On::Organization, held: Held::Organization(OrganizationRole::Owner) };
        self.mint("stranger", self.world.id(), vec![owner], Some("Elsewhere")).await
    }

    /// An active user of the organization who holds exactly one permission on something.
    pub async fn holder_of(&self, name: &str, permission: Permission, on: On) -> Actor {
        self.holder_of_all(name, PermissionSet::EMPTY.with(permission), on).await
    }

    /// An active user of the organization who holds exactly these permissions on something.
    pub async fn holder_of_all(&self, name: &str, permissions: PermissionSet, on: On) -> Actor {
        self.holder_of_each(name, vec![(permissions, on)]).await
    }

    /// An active user of the organization who holds exactly these permissions on these things.
    pub async fn holder_of_each(&self, name: &str, held: Vec<(PermissionSet, On)>) -> Actor {
        let mut grants = Vec::new();
        for (permissions, on) in held {
            let id = self.world.id();
            let role_name = format!("what {name} locks, {}", grants.len());
            let (scope, now) = (self.scope(), self.world.now());
            let stored = role_name.clone();
            let done =
                self.db().write(None, move |tx| insert_role(tx, &scope, id, &stored, permissions, now));
            done.await.expect("a role can be stored");
            grants.push(Grant { on, held: Held::Custom { id, name: role_name, permissions } });
        }
        self.user_with(name, grants).await
    }

    /// The same user with another session, one that ends like those of people who sign in.
    pub async fn session_of(&self, actor: &Actor) -> Actor {
        self.session_until(actor, Some(self.world.now() + self.app.config.session)).await
    }

    /// The same user with another session, one that never expires.
    pub async fn lasting_session_of(&self, actor: &Actor) -> Actor {
        self.session_until(actor, None).await
    }

    async fn session_until(&self, actor: &Actor, end: Option<Timestamp>) -> Actor {
        let session = self.app.issue_session(actor.user_id(), end, self.world.now());
        let (token, system) = (session.value.clone(), self.system);
        self.db().write(None, move |tx| session.store(tx, &system)).await.expect("a session can be stored");
        Actor { id: actor.id, token }
    }

    /// Replaces the grants of a user, team or API token.
    pub async fn set_grants(&self, kind: grants::Subject, id: impl Into<SubjectId>, held: Vec<Grant>) {
        let (scope, now, id) = (self.scope(), self.world.now(), id.into());
        let locks = vec![podium_app::authority::rights_lock(self.organization_id.id(), true)];
        let made = self.db().write_locked(None, locks, move |tx| {
            podium_app::authority::rights_change(tx, &scope, now)?;
            Ok::<_, podium_app::Error>(grants::replace(tx, &scope, kind, id, &held)?)
        });
        made.await.expect("grants can be stored");
    }

    async fn mint(
        &self,
        name: &str,
        organization_id: OrganizationId,
        held: Vec<Grant>,
        organization: Option<&'static str>,
    ) -> Actor {
        let (id, now) = (self.world.id(), self.world.now());
        let token = self.app.issue_session(id, None, now);
        let value = token.value.clone();
        let username = format!("{}@podium.test", name.replace(' ', "-"));
        let (system, full_name) = (self.system, name.to_owned());
        let minted = self.db().write(None, move |tx| {
            let scope = system.scope(organization_id);
            let profile = subjects::user_profile(id, &username, &full_name);
            subjects::put(tx, &system, &profile)?;
            if let Some(name) = organization {
                insert_organization(tx, &system, organization_id, name, Stamp::new(profile, now))?;
            }
            let account = Account {
                id,
                username: username.clone(),
                full_name: full_name.clone(),
                avatar_url: String::new(),
                password_hash: None,
                version: 1,
                created_at: now,
                updated_at: now,
            };
            let keys = (names::fold(&username), names::fold(&full_name));
            users::insert(tx, &system.founder(), &account, &keys.0)?;
            users::join(tx, &scope, id, (&keys.0, &keys.1), UserStatus::Active, now)?;
            grants::replace(tx, &scope, grants::Subject::User, id.into(), &held)?;
            token.store(tx, &system)
        });
        minted.await.expect("an actor can be minted");
        Actor { id: id.into(), token: value }
    }
}

fn insert_role(
    tx: &Tx,
    scope: &Scope,
    id: RoleId,
    name: &str,
    permissions: PermissionSet,
    now: Timestamp,
) -> podium_app::Result<()> {
    let maker = subjects::token_profile(TokenId::from_raw(id.id()), "test kit");
    let stamp = Stamp::new(maker.clone(), now);
    let role = podium_api::roles::RoleWithPermission {
        id,
        name: name.to_owned(),
        description: None,
        scope_type: podium_api::enums::RoleScope::Deployment,
        permissions: permissions.names(),
        restricted_workspace_ids: Vec::new(),
        created_at: now,
        created_by: maker.clone(),
        updated_at: now,
        updated_by: maker,
    };
    Ok(roles::insert(tx, scope, &role, &names::fold(name), &stamp)?)
}

fn insert_organization(
    tx: &Tx,
    system: &System,
    id: OrganizationId,
    name: &str,
    stamp: Stamp,
) -> podium_app::Result<()> {
    let organization = OrganizationRow {
        id,
        name: name.to_owned(),
        billing_email: String::new(),
        product: Product::Hosted,
        has_allowed_ip_address_ranges: false,
        is_scim_enabled: false,
        should_enforce_dedicated_clusters: false,
        allow_enhanced_support_access: false,
        has_ai_features_disabled: false,
        stamp,
    };
    Ok(organizations::insert(tx, &system.founder(), &organization, &names::fold(name))?)
}
