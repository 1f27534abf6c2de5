//! Who created a row and when, who last changed it and when, and its version.

use podium_api::enums::SubjectType;
use podium_api::subjects::SubjectProfile;
use podium_api::{Timestamp, TokenId, UserId};
use podium_db::{Result, Row, Value};

use crate::columns::Columns;
use crate::pictures;

/// The stamp of a row, with the profiles of those who made it.
#[derive(Clone, Debug)]
pub struct Stamp {
    /// Advanced by every write of a caller.
    pub version: i64,
    pub created_at: Timestamp,
    pub created_by: SubjectProfile,
    pub updated_at: Timestamp,
    pub updated_by: SubjectProfile,
}

/// The columns of the stamp of table alias `t`; goes with [`stamp_joins`].
macro_rules! stamp_columns {
    () => {
        "t.version, t.created_at, t.created_by, c.subject_type, c.username, c.full_name, c.avatar_url, c.api_token_name, \
         t.updated_at, t.updated_by, u.subject_type, u.username, u.full_name, u.avatar_url, u.api_token_name"
    };
}

/// The joins that the stamp's columns need.
macro_rules! stamp_joins {
    () => {
        " LEFT JOIN subjects c ON c.id = t.created_by LEFT JOIN subjects u ON u.id = t.updated_by"
    };
}

pub(crate) use {stamp_columns, stamp_joins};

impl Stamp {
    /// The stamp of a row that is created now.
    pub fn new(by: SubjectProfile, at: Timestamp) -> Self {
        Self { version: 1, created_at: at, created_by: by.clone(), updated_at: at, updated_by: by }
    }

    pub fn changed(self, by: SubjectProfile, at: Timestamp) -> Self {
        Self { version: self.version + 1, updated_at: at.max(self.updated_at), updated_by: by, ..self }
    }

    /// The values of a new row's columns: `version`, `created_at`, `created_by`, `updated_at` and `updated_by`.
    pub(crate) fn values(&self) -> [Value<'_>; 5] {
        [
            self.version.into(),
            self.created_at.millis().into(),
            self.created_by.id.as_str().into(),
            self.updated_at.millis().into(),
            self.updated_by.id.as_str().into(),
        ]
    }

    /// Reads the stamp whose columns begin at `first`.
    pub(crate) fn read(row: &Row<'_>, first: usize) -> Result<Self> {
        Ok(Self {
            version: row.get(first)?,
            created_at: row.time(first + 1)?,
            created_by: profile(row, first + 2)?,
            updated_at: row.time(first + 8)?,
            updated_by: profile(row, first + 9)?,
        })
    }
}

/// Reads a profile: id, type, username, full name, an unused column, token name.
pub(crate) fn profile(row: &Row<'_>, first: usize) -> Result<SubjectProfile> {
    let (username, full_name): (Option<String>, Option<String>) = (row.get(first + 2)?, row.get(first + 3)?);
    let avatar_url =
        full_name.as_deref().map(|name| pictures::url(name, username.as_deref().unwrap_or_default()));
    Ok(SubjectProfile {
        id: row.id(first)?,
        subject_type: row.word_opt(first + 1)?,
        username,
        full_name,
        avatar_url,
        api_token_name: row.get(first + 5)?,
    })
}

pub fn user_profile(id: UserId, username: &str, full_name: &str) -> SubjectProfile {
    SubjectProfile {
        id: id.into(),
        subject_type: Some(SubjectType::User),
        username: Some(username.to_owned()),
        full_name: Some(full_name.to_owned()),
        avatar_url: Some(pictures::url(full_name, username)),
        api_token_name: None,
    }
}

pub fn token_profile(id: TokenId, name: &str) -> SubjectProfile {
    SubjectProfile {
        id: id.into(),
        subject_type: Some(SubjectType::ServiceKey),
        username: None,
        full_name: None,
        avatar_url: None,
        api_token_name: Some(name.to_owned()),
    }
}
