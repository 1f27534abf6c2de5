//! Profiles of users and API tokens, for showing who did what.

use podium_api::SubjectId;
use podium_api::enums::SubjectType;
use podium_api::subjects::SubjectProfile;
use podium_db::{Conn, Result, Tx, params, statements};

use crate::stamp;
pub use crate::stamp::{token_profile, user_profile};
use crate::{Scope, System};

statements! {
    PUT = "INSERT INTO subjects (id, subject_type, username, full_name, avatar_url, api_token_name) \
        VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (id) DO UPDATE SET username = excluded.username, \
        full_name = excluded.full_name, avatar_url = excluded.avatar_url, api_token_name = excluded.api_token_name";
    GET = "SELECT id, subject_type, username, full_name, avatar_url, api_token_name FROM subjects WHERE id = $1";
}

/// Writes a profile.
pub fn put(tx: &Tx, _: &Scope, profile: &SubjectProfile) -> Result<()> {
    tx.execute(
        &PUT,
        params![
            profile.id.as_str(),
            profile.subject_type.map(SubjectType::as_str),
            &profile.username,
            &profile.full_name,
            &profile.avatar_url,
            &profile.api_token_name,
        ],
    )?;
    Ok(())
}

/// Reads a profile.
pub fn get(conn: &Conn, _: &System, id: SubjectId) -> Result<Option<SubjectProfile>> {
    conn.query_opt(&GET, params![id.as_str()], |row| stamp::profile(row, 0))
}
