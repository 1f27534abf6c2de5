//! How a command ends: its exit code, and what is said to the person who typed it.

use std::fmt::Write as _;
use std::process::ExitCode;

use podium_api::ErrorBody;
use podium_api::enums::ErrorCode;
use podium_client::Error;

/// The exit codes, which scripts rely on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Nobody reads any more: not an error.
    Fine = 0,
    Failed = 1,
    /// It was typed wrongly.
    Usage = 2,
    /// There is no such thing, or the caller may not see it.
    NotFound = 3,
    /// Not signed in, or not allowed.
    Refused = 4,
    /// A name is taken, or something changed meanwhile.
    Conflict = 5,
    /// The server cannot be reached.
    Unreachable = 6,
    /// The server did what it was told, and it did not work out.
    OperationFailed = 7,
    /// Something differs, and somebody asked to be told so.
    Differs = 8,
}

impl Exit {
    /// The exit code of a command that was answered with this.
    pub(crate) fn of(error: &ErrorBody) -> Self {
        match error.code() {
            ErrorCode::Unauthenticated | ErrorCode::Forbidden => Self::Refused,
            ErrorCode::NotFound => Self::NotFound,
            ErrorCode::Conflict | ErrorCode::InProgress | ErrorCode::PreconditionFailed => Self::Conflict,
            ErrorCode::TooManyRequests | ErrorCode::Unavailable => Self::Unreachable,
            _ => Self::Failed,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) exit: Exit,
    /// What happened, and why.
    message: String,
    /// More about it, a line each.
    details: Vec<String>,
    hint: Option<String>,
    /// Why the server refused, if it was the server.
    code: Option<ErrorCode>,
    /// What there is none of, if that is why.
    missing: Option<&'static str>,
}

pub(crate) type Outcome<T = ()> = Result<T, Failed>;

impl Failed {
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), details: Vec::new(), hint: None, code: None, missing: None }
    }

    /// It was typed wrongly.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    pub(crate) fn because(message: impl Into<String>) -> Self {
        Self::new(Exit::Failed, message)
    }

    /// Whether the same may work in a moment: the server could not be reached, or was busy.
    pub(crate) fn is_passing(&self) -> bool {
        self.exit == Exit::Unreachable
    }

    /// There is none of a kind of things with this name.
    pub(crate) fn missing(noun: &'static str, name: &str) -> Self {
        let message = format!("there is no {noun} called {name:?}");
        Self { missing: Some(noun), ..Self::new(Exit::NotFound, message) }
    }

    /// Whether there is no such thing of a kind.
    pub(crate) fn is_missing(&self, noun: &str) -> bool {
        self.missing == Some(noun)
    }

    /// Why the server refused, if it was the server.
    pub(crate) fn code(&self) -> Option<ErrorCode> {
        self.code
    }

    /// What happened, on one line.
    pub(crate) fn reason(&self) -> String {
        one_line(&self.message)
    }

    /// Adds what to do next.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds what else to do.
    pub(crate) fn or_hint(mut self, hint: &str) -> Self {
        let before = self.hint.map_or_else(String::new, |before| format!("{before}\n"));
        self.hint = Some(format!("{before}{hint}"));
        self
    }

    /// Adds lines that say more.
    pub(crate) fn details(mut self, details: impl IntoIterator<Item = String>) -> Self {
        self.details.extend(details);
        self
    }

    /// Says why on standard error, and gives the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        eprint!("{}", self.text());
        ExitCode::from(self.exit as u8)
    }

    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        if !self.message.is_empty() {
            let _ = writeln!(text, "podium: {}", printable(&self.message));
        }
        for detail in &self.details {
            let _ = writeln!(text, "  {}", printable(detail));
        }
        if let Some(hint) = &self.hint {
            let _ = writeln!(text, "{}", printable(hint));
        }
        text
    }
}

impl From<std::io::Error> for Failed {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Self::new(Exit::Fine, ""),
            _ => Self::because(format!("reading or writing failed: {error}")),
        }
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        match error {
            Error::Refused(body) => Self::from(body),
            Error::Unreachable { .. } => Self::new(Exit::Unreachable, error.to_string())
                .hint("Check the URL, and that the server is running: podium context list"),
            Error::Invalid(message) => Self::usage(message),
            other => Self::because(other.to_string()),
        }
    }
}

impl From<ErrorBody> for Failed {
    fn from(body: ErrorBody) -> Self {
        let (exit, code) = (Exit::of(&body), body.code());
        let fields = body.field_errors.unwrap_or_default();
        let said = fields.iter().map(|field| format!("{} {}", field.field, field.message));
        // The message may be all of them, one after the other: then each has its own line only.
        let is_said = body.message == said.collect::<Vec<_>>().join("; ");
        let details: Vec<String> =
            fields.iter().map(|field| format!("{}: {}", field.field, field.message)).collect();
        let mut failed = match (is_said, details.len()) {
            (true, 1) => Self::new(exit, body.message),
            (true, count @ 2..) => Self::new(exit, format!("{count} fields are invalid")).details(details),
            _ => Self::new(exit, body.message).details(details),
        };
        failed.code = Some(code);
        if !body.request_id.is_empty() {
            failed.details.push(format!("status {}, request {}", body.status_code, body.request_id));
        }
        match code {
            ErrorCode::Unauthenticated if has_own_token() => {
                failed.hint("The token comes from PODIUM_TOKEN: set it to a token of this server.")
            }
            ErrorCode::Unauthenticated => failed.hint("Sign in again: podium login"),
            ErrorCode::TooManyRequests => failed.hint("Too many requests: try again in a moment."),
            _ => failed,
        }
    }
}

fn has_own_token() -> bool {
    std::env::var_os("PODIUM_TOKEN").is_some_and(|token| !token.is_empty())
}

/// A text that does not steer a terminal, whatever a server says.
pub(crate) fn printable(text: &str) -> String {
    podium_api::text::printable(text).replace('\t', " ")
}

/// The same on one line.
pub(crate) fn one_line(text: &str) -> String {
    printable(text).replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use podium_api::FieldError;

    use super::*;

    fn refused(status_code: u16) -> Failed {
        let field = FieldError::new("name", "required", "is required\u{1b}[2J");
        let body = ErrorBody {
            message: "No.".into(),
            request_id: "r1".into(),
            status_code,
            code: None,
            field_errors: Some(vec![field]),
        };
        Error::Refused(body).into()
    }

    #[test]
    fn a_status_has_an_exit_code() {
        let table = [
            (400, Exit::Failed),
            (401, Exit::Refused),
            (403, Exit::Refused),
            (404, Exit::NotFound),
            (409, Exit::Conflict),
            (412, Exit::Conflict),
            (429, Exit::Unreachable),
            (500, Exit::Failed),
            (503, Exit::Unreachable),
        ];
        for (status, exit) in table {
            assert_eq!(refused(status).exit, exit, "{status}");
        }
    }

    #[test]
    fn a_refusal_names_fields_and_the_request() {
        let expected = "podium: No.\n  name: is required\u{fffd}[2J\n  status 400, request r1\n";
        assert_eq!(refused(400).text(), expected);
        assert!(refused(401).text().ends_with("Sign in again: podium login\n"));
    }

    #[test]
    fn nothing_is_said_twice() {
        let field = FieldError::new("name", "required", "must not be empty");
        let body = ErrorBody {
            message: "name must not be empty".into(),
            request_id: String::new(),
            status_code: 400,
            code: None,
            field_errors: Some(vec![field]),
        };
        assert_eq!(Failed::from(body).text(), "podium: name must not be empty\n");
        let field = |name: &str| FieldError::new(name, "required", "is required");
        let body = ErrorBody {
            message: "region is required; name is required".into(),
            request_id: String::new(),
            status_code: 400,
            code: None,
            field_errors: Some(vec![field("region"), field("name")]),
        };
        let said = "podium: 2 fields are invalid\n  region: is required\n  name: is required\n";
        assert_eq!(Failed::from(body).text(), said);
    }

    #[test]
    fn a_reader_that_stops_early_is_no_error() {
        let failed = Failed::from(std::io::Error::from(std::io::ErrorKind::BrokenPipe));
        assert_eq!((failed.exit, failed.text()), (Exit::Fine, String::new()));
    }
}
