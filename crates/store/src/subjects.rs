//! Profiles of users and API tokens, for showing who did what.

use podium_api::enums::SubjectType;
use podium_api::subjects::SubjectProfile;
use podium_api::{SubjectId, TokenId};
use podium_db::{Conn, Result, Tx, params, statements};

use crate::stamp;
pub use crate::stamp::{token_profile, user_profile};
use crate::{Doorkeeper, Scope};

statements! {
    PUT = "INSERT INTO subjects (id, subject_type, username, full_name, avatar_url, api_token_name) \
        VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (id) DO UPDATE SET username = excluded.username, \
        full_name = excluded.full_name, avatar_url = excluded.avatar_url, api_token_name = excluded.api_token_name";
    NAME_TOKEN = "INSERT INTO subjects (id, subject_type, api_token_name) \
        SELECT t.id, $3, t.name FROM api_tokens t WHERE t.id = $1 AND t.organization_id = $2 \
        ON CONFLICT (id) DO UPDATE SET api_token_name = excluded.api_token_name \
        WHERE subjects.subject_type = excluded.subject_type";
    GET = "SELECT id, subject_type, username, full_name, avatar_url, api_token_name FROM subjects WHERE id = $1";
}

/// Writes a profile. It is shown in every organization, so the scope of a caller is not enough:
///
/// ```compile_fail,E0308
/// # use podium_store::{Scope, subjects};
/// fn rename(tx: &podium_db::Tx, scope: &Scope, profile: &podium_api::subjects::SubjectProfile) {
///     let _ = subjects::put(tx, scope, profile);
/// }
/// ```
pub fn put(tx: &Tx, _: &Doorkeeper, profile: &SubjectProfile) -> Result<()> {
    write(tx, profile)
}

/// Writes the profile of an API token of the organization: its name is the token's.
pub fn put_token(tx: &Tx, scope: &Scope, id: TokenId) -> Result<()> {
    let params = params![id.as_str(), scope.organization(), SubjectType::ServiceKey.as_str()];
    tx.run(&NAME_TOKEN, params)
}

pub(crate) fn write(tx: &Tx, profile: &SubjectProfile) -> Result<()> {
    // Pictures are drawn from names when a profile is read.
    let picture = profile.avatar_url.as_ref().map(|_| "");
    let values = params![
        profile.id.as_str(),
        profile.subject_type.map(SubjectType::as_str),
        &profile.username,
        &profile.full_name,
        picture,
        &profile.api_token_name,
    ];
    tx.run(&PUT, values)
}

pub fn get(conn: &Conn, _: &Doorkeeper, id: SubjectId) -> Result<Option<SubjectProfile>> {
    conn.query_opt(&GET, params![id.as_str()], |row| stamp::profile(row, 0))
}
