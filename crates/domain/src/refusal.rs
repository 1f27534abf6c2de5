//! Why a request is refused: the one error type of the rules.
//!
//! The caller can always fix the cause of a refusal, and the message says how. Internal errors of the service are not
//! represented here.

use podium_api::FieldError;
use podium_api::enums::ErrorCode;

/// How many wrong fields the message of a refusal names.
const MOST_TOLD: usize = 3;

pub type Result<T> = std::result::Result<T, Refusal>;

/// Why a request is refused, in words for its caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The request breaks a rule (400).
    Invalid {
        /// What is wrong with the request as a whole.
        message: String,
        fields: Vec<FieldError>,
    },
    /// The deployment sleeps, so that it cannot do this (400).
    Hibernating(String),
    /// The caller lacks the permission on a resource that it may see (403).
    Forbidden(String),
    /// There is no such resource, or the caller may not see it (404): its kind, such as `workspace`.
    NotFound(String),
    /// The resource does not support the operation (405).
    NotAllowed(String),
    /// The request conflicts with the current state (409).
    Conflict(String),
    /// What was asked for is no longer kept (410).
    Gone(String),
    /// The resource is not in a state that allows it (412).
    Precondition(String),
}

impl Refusal {
    /// A broken rule that no single field is to blame for.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::Invalid { message: message.into(), fields: Vec::new() }
    }

    pub fn field(field: impl Into<String>, code: &str, message: impl Into<String>) -> Self {
        FieldError::new(field, code, message).into()
    }

    /// A resource that is missing, or that the caller may not see: the message is the same.
    pub fn not_found(thing: &str) -> Self {
        Self::NotFound(thing.into())
    }

    pub fn message(&self) -> String {
        match self {
            Self::Invalid { message, .. }
            | Self::Hibernating(message)
            | Self::Forbidden(message)
            | Self::NotAllowed(message)
            | Self::Conflict(message)
            | Self::Gone(message)
            | Self::Precondition(message) => message.clone(),
            Self::NotFound(thing) => format!("There is no such {thing}, or you may not see it."),
        }
    }

    pub const fn status(&self) -> u16 {
        match self {
            Self::Invalid { .. } | Self::Hibernating(_) => 400,
            Self::Forbidden(_) => 403,
            Self::NotFound(_) => 404,
            Self::NotAllowed(_) => 405,
            Self::Conflict(_) => 409,
            Self::Gone(_) => 410,
            Self::Precondition(_) => 412,
        }
    }

    /// Why, for programs.
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Hibernating(_) => ErrorCode::Hibernating,
            other => ErrorCode::of_status(other.status()),
        }
    }
}

impl From<FieldError> for Refusal {
    fn from(error: FieldError) -> Self {
        Self::from(vec![error])
    }
}

impl From<Vec<FieldError>> for Refusal {
    fn from(fields: Vec<FieldError>) -> Self {
        Self::Invalid { message: told(&fields), fields }
    }
}

/// The first wrong fields in one sentence, and how many more there are: most clients show nothing else.
fn told(fields: &[FieldError]) -> String {
    let one = |error: &FieldError| match error.field.as_str() {
        "" => format!("The body {}", error.message),
        field => format!("{field} {}", error.message),
    };
    let mut told: Vec<String> = fields.iter().take(MOST_TOLD).map(one).collect();
    match fields.len().saturating_sub(MOST_TOLD) {
        0 => {}
        1 => told.push("1 more field is wrong".into()),
        more => told.push(format!("{more} more fields are wrong")),
    }
    told.join("; ")
}

/// Collects wrong fields, so that a caller learns of all of them at once.
#[derive(Debug, Default)]
pub struct Fields(Vec<FieldError>);

impl Fields {
    /// An empty collection.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    pub fn push(&mut self, field: impl Into<String>, code: &str, message: impl Into<String>) {
        self.0.push(FieldError::new(field, code, message));
    }

    /// Notes those of these fields that are wrong, all in the same way.
    pub fn push_each<'f>(
        &mut self,
        fields: impl IntoIterator<Item = (&'f str, bool)>,
        code: &str,
        message: impl AsRef<str>,
    ) {
        for (field, _) in fields.into_iter().filter(|(_, is_wrong)| *is_wrong) {
            self.push(field, code, message.as_ref());
        }
    }

    /// The value, or `None` after recording the error.
    pub fn take<T>(&mut self, checked: std::result::Result<T, FieldError>) -> Option<T> {
        checked.map_err(|error| self.0.push(error)).ok()
    }

    /// The result, unless a field was wrong.
    pub fn finish<T>(self, made: Option<T>) -> Result<T> {
        made.filter(|_| self.0.is_empty()).ok_or_else(|| self.0.into())
    }

    /// Refuses the request if any field was wrong.
    pub fn into_result(self) -> Result<()> {
        if self.0.is_empty() { Ok(()) } else { Err(self.0.into()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_wrong_fields_are_reported_at_once() {
        assert_eq!(Fields::new().into_result(), Ok(()));

        let mut fields = Fields::new();
        fields.push("name", "required", "must not be blank");
        assert_eq!(fields.take(Ok(7)), Some(7));
        assert_eq!(fields.take::<()>(Err(FieldError::new("role", "unknown", "is not a role"))), None);
        let refusal = fields.into_result().unwrap_err();
        assert_eq!(refusal.message(), "name must not be blank; role is not a role");
        let Refusal::Invalid { fields, .. } = refusal else { panic!("wrong fields are 400") };
        assert_eq!(fields.iter().map(|f| f.field.as_str()).collect::<Vec<_>>(), ["name", "role"]);
    }

    #[test]
    fn one_wrong_field_speaks_for_the_request() {
        let refusal = Refusal::field("name", "required", "must not be blank");
        assert_eq!(refusal.message(), "name must not be blank");
        assert_eq!(refusal.status(), 400);
        let refusal = Refusal::field("", "type", "must be an object, is null");
        assert_eq!(refusal.message(), "The body must be an object, is null");
    }

    #[test]
    fn three_wrong_fields_are_named_and_the_others_counted() {
        let wrong = |count: usize| {
            let fields: Vec<_> =
                (1..=count).map(|n| FieldError::new(format!("f{n}"), "required", "is required")).collect();
            Refusal::from(fields).message()
        };
        assert_eq!(wrong(3), "f1 is required; f2 is required; f3 is required");
        assert_eq!(wrong(4), "f1 is required; f2 is required; f3 is required; 1 more field is wrong");
        assert_eq!(wrong(9), "f1 is required; f2 is required; f3 is required; 6 more fields are wrong");
    }
}
