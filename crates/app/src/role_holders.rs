//! Users and teams as holders of roles: how their roles are shown, and how they change.

use std::collections::BTreeMap;

use podium_api::enums::OrganizationRole;
use podium_api::subjects::SubjectRoles;
use podium_api::teams::Team;
use podium_api::users::User;
use podium_api::{DeploymentId, Named, SubjectId, WorkspaceId};
use podium_db::{Conn, Tx};
use podium_domain::role_updates::{self, Change, SubjectKind};
use podium_domain::{Grant, Held, On, Refusal, last_owner, no_escalation, subject_roles};
use podium_store::teams::TeamRow;
use podium_store::users::UserRow;
use podium_store::{Scope, deployments, grants};

use crate::cx::Cx;
use crate::error::Result;
use crate::facts;

/// A row that is shown together with the roles that it holds.
pub(crate) trait Holder {
    const KIND: SubjectKind;
    /// What it is on the wire.
    type Shown;
    fn id(&self) -> SubjectId;
    /// Shows it; `roles` is what the caller may see of those it holds.
    fn show(self, held: &[Grant], roles: SubjectRoles) -> Self::Shown;
}

impl Holder for UserRow {
    const KIND: SubjectKind = SubjectKind::User;
    type Shown = User;

    fn id(&self) -> SubjectId {
        self.id.into()
    }

    /// Before an invite is accepted, its role is shown as the role.
    fn show(self, held: &[Grant], roles: SubjectRoles) -> User {
        User {
            id: self.id,
            username: self.username,
            full_name: self.full_name,
            avatar_url: self.avatar_url,
            status: self.status,
            organization_role: organization_role(held).or(self.promised_role),
            workspace_roles: roles.workspace_roles,
            deployment_roles: roles.deployment_roles,
            dag_roles: roles.dag_roles,
            created_at: self.created_at,
            updated_at: self.updated_at,
        }
    }
}

impl Holder for TeamRow {
    const KIND: SubjectKind = SubjectKind::Team;
    type Shown = Team;

    fn id(&self) -> SubjectId {
        self.id.into()
    }

    fn show(self, held: &[Grant], roles: SubjectRoles) -> Team {
        Team {
            id: self.id,
            name: self.name,
            description: Some(self.description),
            organization_id: self.organization_id,
            is_idp_managed: self.is_idp_managed,
            organization_role: organization_role(held).unwrap_or(OrganizationRole::Member),
            workspace_roles: roles.workspace_roles,
            deployment_roles: roles.deployment_roles,
            dag_roles: roles.dag_roles,
            roles_count: Some(u32::try_from(held.len()).unwrap_or(u32::MAX)),
            created_at: self.stamp.created_at,
            created_by: Some(self.stamp.created_by),
            updated_at: self.stamp.updated_at,
            updated_by: Some(self.stamp.updated_by),
        }
    }
}

/// Shows all of them with their roles, which one statement reads.
pub(crate) fn show_all<H: Holder>(cx: &Cx<Scope>, conn: &Conn, holders: Vec<H>) -> Result<Vec<H::Shown>> {
    if holders.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<SubjectId> = holders.iter().map(Holder::id).collect();
    let mut held = BTreeMap::<SubjectId, Vec<Grant>>::new();
    for (id, grant) in grants::of_each(conn, cx.scope(), &ids)? {
        held.entry(id).or_default().push(grant);
    }
    let shown = |holder: H| {
        let held = held.remove(&holder.id()).unwrap_or_default();
        show_holding(cx, holder, &held)
    };
    Ok(holders.into_iter().map(shown).collect())
}

pub(crate) fn show<H: Holder>(cx: &Cx<Scope>, conn: &Conn, holder: H) -> Result<H::Shown> {
    let held = grants::of(conn, cx.scope(), holder.id())?;
    Ok(show_holding(cx, holder, &held))
}

/// The part of a subject's roles that the caller may see; all of the caller's own.
pub(crate) fn show_holding<H: Holder>(cx: &Cx<Scope>, holder: H, held: &[Grant]) -> H::Shown {
    let roles = if holder.id() == cx.subject_id() {
        subject_roles::all(held)
    } else {
        subject_roles::visible_to(cx.grants(), H::KIND, held)
    };
    holder.show(held, roles)
}

/// The filter of a list of holders, limited to what the caller can see; `None` if nothing matches.
pub(crate) struct Narrowed<'a> {
    pub(crate) workspace_id: Option<&'a Named<WorkspaceId>>,
    pub(crate) deployment_id: Option<&'a Named<DeploymentId>>,
    pub(crate) dags: Option<Vec<String>>,
    pub(crate) dag_tags: Option<Vec<String>>,
}

/// Holders of a role on a resource are shown to callers who can see the resource: for everybody else it does not exist.
pub(crate) fn narrowed<'a>(
    cx: &Cx<Scope>,
    conn: &Conn,
    (workspace_id, deployment_id): (Option<&'a Named<WorkspaceId>>, Option<&'a Named<DeploymentId>>),
    (dag_id, dag_tags): (Option<&str>, &[String]),
) -> Result<Option<Narrowed<'a>>> {
    let sees = |on: &On| {
        subject_roles::is_seen_by(cx.grants(), on) || SubjectKind::User.is_managed_by(cx.grants(), on)
    };
    let workspace_id = workspace_id.filter(|named| named.is_given());
    let deployment_id = deployment_id.filter(|named| named.is_given());
    let dag_id = dag_id.filter(|text| !text.is_empty()).map(str::to_owned);
    if let Some(named) = workspace_id
        && !named.id().is_some_and(|id| sees(&On::Workspace(id)))
    {
        return Ok(None);
    }
    if let Some(named) = deployment_id {
        let Some(id) = named.id() else { return Ok(None) };
        let found = deployments::workspace_of(conn, cx.scope(), id)?;
        if !found.is_some_and(|workspace_id| sees(&On::Deployment { id, workspace_id })) {
            return Ok(None);
        }
    }
    let names: Vec<&str> = dag_id.iter().chain(dag_tags).map(String::as_str).collect();
    let mut seen = if names.is_empty() { Vec::new() } else { grants::on_dags(conn, cx.scope(), &names)? };
    seen.retain(sees);
    let key = |on: &On| match on {
        On::Dag { deployment_id, dag_id: name, .. } if Some(name) == dag_id.as_ref() => {
            Some((true, format!("{deployment_id} {name}")))
        }
        On::DagTag { deployment_id, tag: name, .. } if dag_tags.contains(name) => {
            Some((false, format!("{deployment_id} {name}")))
        }
        _ => None,
    };
    let of = |is_dag: bool| {
        seen.iter().filter_map(key).filter(move |(dag, _)| *dag == is_dag).map(|(_, key)| key).collect()
    };
    let (dags, tags) = (dag_id.is_some().then(|| of(true)), (!dag_tags.is_empty()).then(|| of(false)));
    Ok(Some(Narrowed { workspace_id, deployment_id, dags, dag_tags: tags }))
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

/// Whether the caller may see the stored response of a role change: it is its own, or the caller still manages
/// everything in it. The request itself was authorized when it was made.
pub(crate) fn may_see_reply(
    kind: SubjectKind,
    id: SubjectId,
    change: &Change,
) -> impl FnMut(&Cx<Scope>, &Tx, SubjectRoles) -> Result<()> + Send + 'static {
    let leaves = *change == Change::Leave;
    move |cx, tx, told| {
        if leaves {
            return Ok(no_escalation::only_owners(cx.grants(), "remove somebody from the organization")?);
        }
        if id == cx.subject_id() {
            return Ok(());
        }
        let told = Change::Set(told);
        let facts = facts::load(tx, cx.scope(), &told.mentions())?;
        if told.places(&facts).iter().all(|on| kind.is_managed_by(cx.grants(), on)) {
            return Ok(());
        }
        let message =
            "You no longer manage all of the roles that this request changed: ask an owner for the rights.";
        Err(Refusal::Forbidden(message.into()).into())
    }
}

/// Whether a change has no effect: such a change is not a write, and everybody may request it.
pub(crate) fn are_same(before: &[Grant], after: &[Grant]) -> bool {
    before.len() == after.len() && before.iter().all(|grant| after.contains(grant))
}

/// Refuses the transaction if it leaves the organization without an owner.
pub(crate) fn keeps_an_owner(cx: &Cx<Scope>, tx: &Tx) -> Result<()> {
    Ok(last_owner::keeps_an_owner(grants::active_owners(tx, cx.scope())?)?)
}
