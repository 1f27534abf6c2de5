//! Users and teams as holders of roles: how their roles are shown, and how they change.

use std::collections::BTreeMap;

use podium_api::Id;
use podium_api::enums::OrganizationRole;
use podium_api::teams::Team;
use podium_api::users::User;
use podium_db::{Conn, Tx};
use podium_domain::role_updates::{self, Change, SubjectKind};
use podium_domain::{Grant, Held, Scope, last_owner, subject_roles};
use podium_store::grants;

use crate::cx::Cx;
use crate::error::Result;
use crate::facts;

/// What is shown together with the roles that it holds.
pub(crate) trait Holder {
    /// Its id.
    fn id(&self) -> Id;
    /// Fills in its roles.
    fn show(&mut self, held: &[Grant]);
}

impl Holder for User {
    fn id(&self) -> Id {
        self.id
    }

    /// The role that an invite promises stands in for the one that is not held yet.
    fn show(&mut self, held: &[Grant]) {
        let roles = subject_roles::all(held);
        self.organization_role = organization_role(held).or(self.organization_role);
        self.workspace_roles = roles.workspace_roles;
        self.deployment_roles = roles.deployment_roles;
        self.dag_roles = roles.dag_roles;
    }
}

impl Holder for Team {
    fn id(&self) -> Id {
        self.id
    }

    fn show(&mut self, held: &[Grant]) {
        let roles = subject_roles::all(held);
        self.organization_role = organization_role(held).unwrap_or(OrganizationRole::Member);
        self.workspace_roles = roles.workspace_roles;
        self.deployment_roles = roles.deployment_roles;
        self.dag_roles = roles.dag_roles;
        self.roles_count = Some(u32::try_from(held.len()).unwrap_or(u32::MAX));
    }
}

/// Fills in the roles of all of them, with one statement.
pub(crate) fn show_roles<H: Holder>(conn: &Conn, scope: &Scope, holders: &mut [H]) -> Result<()> {
    if holders.is_empty() {
        return Ok(());
    }
    let ids: Vec<Id> = holders.iter().map(Holder::id).collect();
    let mut held = BTreeMap::<Id, Vec<Grant>>::new();
    for (id, grant) in grants::of_each(conn, scope, &ids)? {
        held.entry(id).or_default().push(grant);
    }
    for holder in holders {
        holder.show(held.get(&holder.id()).map_or(&[], Vec::as_slice));
    }
    Ok(())
}

/// The role in the organization, among others.
pub(crate) fn organization_role(held: &[Grant]) -> Option<OrganizationRole> {
    held.iter().find_map(|grant| if let Held::Organization(role) = grant.held { Some(role) } else { None })
}

/// What a holder of `current` holds after a change that the caller may make.
pub(crate) fn changed(
    cx: &Cx<Scope>,
    conn: &Conn,
    kind: SubjectKind,
    current: &[Grant],
    change: &Change,
) -> Result<Vec<Grant>> {
    let facts = facts::load(conn, cx.scope(), &change.mentions())?;
    Ok(role_updates::update(kind, current, change, cx.grants(), &facts)?)
}

/// Whether the caller could still give everything that a change gives.
pub(crate) fn may_give(
    kind: SubjectKind,
    change: Change,
) -> impl FnMut(&Cx<Scope>, &Tx) -> Result<()> + Send + 'static {
    move |cx, tx| changed(cx, tx, kind, &[], &change).map(drop)
}

/// Whether a change leaves everything as it was: such a change is no write, and everybody may ask for it.
pub(crate) fn are_same(before: &[Grant], after: &[Grant]) -> bool {
    before.len() == after.len() && before.iter().all(|grant| after.contains(grant))
}

/// Refuses what the transaction has done so far if it leaves nobody to own the organization.
pub(crate) fn keeps_an_owner(cx: &Cx<Scope>, tx: &Tx) -> Result<()> {
    Ok(last_owner::keeps_an_owner(grants::active_owners(tx, cx.scope())?)?)
}
