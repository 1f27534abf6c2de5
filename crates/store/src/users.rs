//! Users, and their membership of organizations.

use podium_api::enums::{OrganizationRole, UserStatus};
use podium_api::subjects::SubjectProfile;
use podium_api::{DeploymentId, Named, OrganizationId, Timestamp, UserId, WorkspaceId};
use podium_db::{Conn, Error, Result, Tx, params, statements};

use crate::columns::Columns as _;
use crate::listing::{Filter, Listed, Paging, Table, Total};
use crate::record::record;
use crate::{Doorkeeper, Founder, Scope, counters, subjects};

/// The kind of their counter and their changes.
pub const KIND: &str = "users";

record! {
    /// A user of an organization, without the roles that it holds.
    #[derive(Clone, Debug)]
    pub struct UserRow as columns! {
        pub id: UserId = id "u.id",
        /// The name for signing in.
        pub username: String = get "u.username",
        pub full_name: String = get "u.full_name",
        pub avatar_url: String = picture "u.avatar_url",
        /// The state in the organization.
        pub status: UserStatus = word "t.status",
        /// The role in the organization that an open invite promises.
        pub promised_role: Option<OrganizationRole> = word_opt "i.role",
        /// Advanced by every change of the membership.
        pub version: i64 = get "t.version",
        /// When the user came to the organization.
        pub created_at: Timestamp = time "t.created_at",
        /// When the membership was last changed.
        pub updated_at: Timestamp = time "t.updated_at",
    }
}

record! {
    /// An account: a user as itself, outside of any organization.
    #[derive(Clone)]
    pub struct Account as account_columns! {
        pub id: UserId = id "id",
        /// The name for signing in.
        pub username: String = get "username",
        pub full_name: String = get "full_name",
        pub avatar_url: String = picture "avatar_url",
        pub password_hash: Option<String> = get "password_hash",
        /// Advanced by every change of the account.
        pub version: i64 = get "version",
        pub created_at: Timestamp = time "created_at",
        pub updated_at: Timestamp = time "updated_at",
    }
}

macro_rules! joins {
    () => {
        " JOIN users u ON u.id = t.user_id \
          LEFT JOIN invites i ON i.organization_id = t.organization_id AND i.user_id = t.user_id"
    };
}

const ORGANIZATION: &str = "t.organization_id = {}";

/// Rows of users who hold a role on a resource, directly or through a team.
macro_rules! holders {
    ($condition:literal) => {
        concat!(
            "t.user_id IN (SELECT g.subject_id FROM grants g WHERE g.organization_id = t.organization_id AND ",
            $condition,
            " UNION SELECT m.user_id FROM grants g JOIN team_members m ON m.team_id = g.subject_id \
             WHERE g.organization_id = t.organization_id AND ",
            $condition,
            ")"
        )
    };
}

const IN_WORKSPACE: &str = holders!("g.workspace_id = {}");
const ON_DEPLOYMENT: &str = holders!("g.deployment_id = {}");
const ON_DAGS: &str = holders!("g.scope_type = 'DAG' AND g.deployment_id || ' ' || g.entity_id IN ({}[])");
const ON_DAG_TAGS: &str =
    holders!("g.scope_type = 'DAG_TAG' AND g.deployment_id || ' ' || g.entity_id IN ({}[])");

pub(crate) const TABLE: Table = Table {
    name: "memberships",
    key: "user_id",
    on: "t.user_id = page.key AND t.organization_id = $1",
    columns: columns!(),
    joins: joins!(),
    sorts: &[
        ("createdAt", "created_at"),
        ("updatedAt", "updated_at"),
        ("username", "username_key"),
        ("fullName", "full_name_key"),
        ("id", "user_id"),
    ],
    filters: &[ORGANIZATION, IN_WORKSPACE, ON_DEPLOYMENT, ON_DAGS, ON_DAG_TAGS],
};

statements! {
    GET = concat!("SELECT ", columns!(), " FROM memberships t", joins!(), " WHERE t.organization_id = $1 AND t.user_id = $2");
    ACCOUNT = concat!("SELECT ", account_columns!(), " FROM users WHERE id = $1");
    BY_USERNAME = concat!("SELECT ", account_columns!(), " FROM users WHERE username_key = $1");
    INVITEE = "SELECT id, username, full_name FROM users WHERE username_key = $1";
    INSERT = "INSERT INTO users (id, username, username_key, full_name, avatar_url, password_hash, version, created_at, updated_at) \
        VALUES ($1, $2, $3, $4, '', $5, 1, $6, $6) ON CONFLICT (username_key) DO NOTHING";
    SET_PASSWORD = "UPDATE users SET password_hash = $3, version = version + 1, updated_at = $4 \
        WHERE id = $1 AND COALESCE(password_hash, '') = $2";
    LOCK = "UPDATE users SET version = version WHERE id = $1";
    RENAME = "UPDATE users SET full_name = $2, version = version + 1, updated_at = $3 WHERE id = $1";
    RENAME_MEMBERSHIPS = "UPDATE memberships SET full_name_key = $2, updated_at = $3 WHERE user_id = $1";
    JOIN = "INSERT INTO memberships (organization_id, user_id, status, username_key, full_name_key, version, created_at, updated_at) \
        VALUES ($1, $2, $3, $4, $5, 1, $6, $6)";
    SET_STATUS = "UPDATE memberships SET status = $3, version = version + 1, updated_at = $4 \
        WHERE organization_id = $1 AND user_id = $2";
    TOUCH = "UPDATE memberships SET version = version + 1, updated_at = $4 \
        WHERE organization_id = $1 AND user_id = $2 AND version = $3";
    LEAVE = "DELETE FROM memberships WHERE organization_id = $1 AND user_id = $2";
    MEMBERSHIPS = "SELECT organization_id, status FROM memberships WHERE user_id = $1 ORDER BY created_at, organization_id";
    MEMBERS = "SELECT user_id FROM memberships WHERE organization_id = $1 AND user_id IN ($2[])";
}

#[derive(Default)]
pub struct ListFilter<'a> {
    /// Only those with a role in this workspace.
    pub workspace_id: Option<&'a Named<WorkspaceId>>,
    /// Only those with a role on this deployment.
    pub deployment_id: Option<&'a Named<DeploymentId>>,
    /// Only those with a role on one of these DAGs: the deployment's id, a space and the DAG's id.
    pub dags: Option<&'a [String]>,
    /// Only those with a role on one of these tags, written likewise.
    pub dag_tags: Option<&'a [String]>,
}

/// An account as the inviting caller may see it, without the password hash:
///
/// ```compile_fail,E0609
/// fn steal(invitee: podium_store::users::Invitee) -> Option<String> {
///     invitee.password_hash
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Invitee {
    pub id: UserId,
    pub username: String,
    pub full_name: String,
}

impl Invitee {
    pub fn profile(&self) -> SubjectProfile {
        subjects::user_profile(self.id, &self.username, &self.full_name)
    }
}

/// Reads a page of users, and how many there are.
pub fn list(conn: &Conn, scope: &Scope, listed: &ListFilter<'_>, paging: &Paging) -> Result<Listed<UserRow>> {
    let mut filter = Filter::new(ORGANIZATION, scope.organization());
    filter.and(IN_WORKSPACE, listed.workspace_id.map(Named::as_str));
    filter.and(ON_DEPLOYMENT, listed.deployment_id.map(Named::as_str));
    filter.and(ON_DAGS, listed.dags);
    filter.and(ON_DAG_TAGS, listed.dag_tags);
    TABLE.page(conn, filter, paging, Total::Counter(scope.organization(), KIND), UserRow::read)
}

pub fn get(conn: &Conn, scope: &Scope, id: UserId) -> Result<Option<UserRow>> {
    conn.query_opt(&GET, params![scope.organization(), id.as_str()], UserRow::read)
}

/// Which of these users belong to the organization.
pub fn members(conn: &Conn, scope: &Scope, ids: &[UserId]) -> Result<Vec<UserId>> {
    let ids: Vec<&str> = ids.iter().map(UserId::as_str).collect();
    conn.query(&MEMBERS, params![scope.organization(), &ids], |row| row.id(0))
}

pub fn account(conn: &Conn, _: &Doorkeeper, id: UserId) -> Result<Option<Account>> {
    conn.query_opt(&ACCOUNT, params![id.as_str()], Account::read)
}

pub fn account_by_username(conn: &Conn, _: &Doorkeeper, username_key: &str) -> Result<Option<Account>> {
    conn.query_opt(&BY_USERNAME, params![username_key], Account::read)
}

/// The account of a user to invite, by the e-mail address and the folded address. If there is none, one without name and
/// password is created with `new_id`. Accounts belong to no organization, so this looks at all of them; an existing
/// account is not changed.
pub fn find_or_make_invitee(
    tx: &Tx,
    _: &Scope,
    (address, username_key): (&str, &str),
    new_id: UserId,
    now: Timestamp,
) -> Result<Invitee> {
    let params = params![new_id.as_str(), address, username_key, "", None::<&str>, now.millis()];
    if tx.execute(&INSERT, params)? == 1 {
        let made = Invitee { id: new_id, username: address.to_owned(), full_name: String::new() };
        subjects::write(tx, &made.profile())?;
        return Ok(made);
    }
    let found = tx.query_opt(&INVITEE, params![username_key], |row| {
        Ok(Invitee { id: row.id(0)?, username: row.get(1)?, full_name: row.get(2)? })
    })?;
    found.ok_or(Error::Lost)
}

/// Adds an account unless the username is taken; returns whether it was added. Accounts belong to no organization, so
/// the scope of a caller is not enough:
///
/// ```compile_fail,E0308
/// # use podium_store::{Scope, users};
/// fn add(tx: &podium_db::Tx, scope: &Scope, account: &users::Account) {
///     let _ = users::insert(tx, scope, account, "ada@example.com");
/// }
/// ```
pub fn insert(tx: &Tx, _: &Founder, account: &Account, username_key: &str) -> Result<bool> {
    let params = params![
        account.id.as_str(),
        &account.username,
        username_key,
        &account.full_name,
        &account.password_hash,
        account.created_at.millis()
    ];
    Ok(tx.execute(&INSERT, params)? == 1)
}

/// Sets the password of an account whose hash is still `before`; returns whether it was.
pub fn set_password(
    tx: &Tx,
    _: &Doorkeeper,
    id: UserId,
    before: Option<&str>,
    hash: &str,
    at: Timestamp,
) -> Result<bool> {
    let params = params![id.as_str(), before.unwrap_or_default(), hash, at.millis()];
    Ok(tx.execute(&SET_PASSWORD, params)? == 1)
}

/// Makes transactions that change an account or its sessions wait for each other.
pub fn lock(tx: &Tx, _: &Doorkeeper, id: UserId) -> Result<()> {
    tx.run(&LOCK, params![id.as_str()])
}

/// Sets the full name of an account.
pub fn rename(
    tx: &Tx,
    _: &Doorkeeper,
    id: UserId,
    full_name: &str,
    full_name_key: &str,
    at: Timestamp,
) -> Result<()> {
    tx.execute(&RENAME, params![id.as_str(), full_name, at.millis()])?;
    tx.run(&RENAME_MEMBERSHIPS, params![id.as_str(), full_name_key, at.millis()])
}

/// Makes a user a member of an organization.
pub fn join(
    tx: &Tx,
    scope: &Scope,
    id: UserId,
    keys: (&str, &str),
    status: UserStatus,
    at: Timestamp,
) -> Result<()> {
    tx.execute(
        &JOIN,
        params![scope.organization(), id.as_str(), status.as_str(), keys.0, keys.1, at.millis()],
    )?;
    counters::add(tx, scope.organization_id(), KIND, id.id(), 1, 0)
}

/// Sets the state of a member.
pub fn set_status(tx: &Tx, scope: &Scope, id: UserId, status: UserStatus, at: Timestamp) -> Result<()> {
    tx.run(&SET_STATUS, params![scope.organization(), id.as_str(), status.as_str(), at.millis()])
}

/// Advances the version of a member, which is still `version`.
pub fn touch(tx: &Tx, scope: &Scope, id: UserId, version: i64, at: Timestamp) -> Result<()> {
    let params = params![scope.organization(), id.as_str(), version, at.millis()];
    tx.run_on_one(&TOUCH, params)
}

pub fn leave(tx: &Tx, scope: &Scope, id: UserId) -> Result<()> {
    if tx.execute(&LEAVE, params![scope.organization(), id.as_str()])? == 1 {
        counters::add(tx, scope.organization_id(), KIND, id.id(), -1, 1)?;
    }
    Ok(())
}

/// The organizations of a user, the oldest membership first.
pub fn memberships(conn: &Conn, _: &Doorkeeper, id: UserId) -> Result<Vec<(OrganizationId, UserStatus)>> {
    conn.query(&MEMBERSHIPS, params![id.as_str()], |row| Ok((row.id(0)?, row.word(1)?)))
}
