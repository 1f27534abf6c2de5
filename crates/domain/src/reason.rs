//! Why something failed or has to wait, as two separate texts: one for users, one for operators.
//!
//! Users read a [`UserText`]: in `statusReason`, in deploy reports, in response bodies. It is composed of literals and
//! of [`Vetted`] values, so no program output, no SQL statement and no path of the machine gets into it; the one
//! exception is [`Quoted`]. Operators read all of a [`Reason`], in logs and in `podium work`.

use std::borrow::Cow;
use std::fmt;

use podium_api::enums::{EnvironmentObjectType, Executor};
use podium_api::{DeploymentId, Id, Timestamp};

use crate::deployments::Bundle;
use crate::deploys::bundles;
use crate::environment_objects::keys;
use crate::options::Version;
use crate::quoted::Quoted;

/// Text that users may read. Output of a program or of the system is not accepted:
///
/// ```compile_fail
/// let error = std::io::Error::other("/srv/data cannot be opened");
/// podium_domain::UserText::filled("it failed: {}", &[&error.to_string()]);
/// ```
///
/// ```compile_fail
/// let said = String::from("(SELECT 1) failed");
/// podium_domain::UserText::new(&said);
/// ```
///
/// ```compile_fail,E0423
/// let error = std::io::Error::other("/srv/data cannot be opened");
/// podium_domain::UserText::filled("it failed: {}", &[&podium_domain::Given(&error.to_string())]);
/// ```
///
/// An error's kind is accepted, and so is a literal:
///
/// ```
/// let error = std::io::Error::other("/srv/data cannot be opened");
/// let told = podium_domain::UserText::filled("it failed: {}", &[&error.kind()]);
/// assert_eq!(told, "it failed: other error");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct UserText(Cow<'static, str>);

impl UserText {
    pub const EMPTY: Self = Self::new("");

    pub const fn new(text: &'static str) -> Self {
        Self(Cow::Borrowed(text))
    }

    /// A text of the program's own with values in the place of each `{}`.
    pub fn filled(template: &'static str, values: &[&dyn Vetted]) -> Self {
        let mut parts = template.split("{}");
        let mut text = parts.next().unwrap_or_default().to_owned();
        let mut values = values.iter();
        for part in parts {
            if let Some(value) = values.next() {
                value.write_to(&mut text);
            }
            text.push_str(part);
        }
        debug_assert!(values.next().is_none(), "there is no place for every value in {template:?}");
        Self(Cow::Owned(text))
    }

    pub fn joined(texts: impl IntoIterator<Item = Self>, between: &'static str) -> Self {
        let texts: Vec<Cow<'static, str>> = texts.into_iter().map(|text| text.0).collect();
        Self(Cow::Owned(texts.join(between)))
    }

    /// A text that was a `UserText` when it was written to the database. For the store alone.
    pub fn from_stored(text: String) -> Self {
        Self(Cow::Owned(text))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text without full stops at its end, so that it can stand within another.
    fn unended(&self) -> &str {
        self.0.trim_end().trim_end_matches('.')
    }
}

impl fmt::Display for UserText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&'static str> for UserText {
    fn from(text: &'static str) -> Self {
        Self::new(text)
    }
}

impl PartialEq<str> for UserText {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl PartialEq<&str> for UserText {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

/// A value that may appear in a text for users. The trait is sealed.
pub trait Vetted: private::Sealed {
    fn write_to(&self, text: &mut String);
}

mod private {
    pub trait Sealed {}
}

macro_rules! vetted {
    ($($kind:ty),* $(,)?) => {$(
        impl private::Sealed for $kind {}

        impl Vetted for $kind {
            fn write_to(&self, text: &mut String) {
                // Writing to a `String` does not fail.
                let _ = fmt::Write::write_fmt(text, format_args!("{self}"));
            }
        }
    )*};
}

vetted!(
    u16,
    u32,
    u64,
    usize,
    i64,
    f32,
    &'static str,
    Id,
    DeploymentId,
    Timestamp,
    Version,
    Executor,
    UserText,
    Quoted,
    Given<'_>
);
// What kind of error it is has a fixed text, unlike the error.
vetted!(std::io::ErrorKind);

/// A value that users or operators chose and already see elsewhere: a name, a version, a mount path. Never the output
/// of a program, and never a path on the machine: a value that does not look like what it should be is not shown.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a>(&'a str);

/// The longest that is shown of a given value.
const LONGEST_GIVEN: usize = 200;
/// Shown in place of a value of the wrong shape.
const NOT_SHOWN: &str = "(not shown)";

impl<'a> Given<'a> {
    /// One word: a version, the name of a node or of a directory. Only letters, digits, `.`, `_`, `-` and `+` are allowed,
    /// so error messages, SQL and paths are not shown.
    pub fn word(text: &'a str) -> Self {
        let fits = |c: char| c.is_ascii_alphanumeric() || "._-+".contains(c);
        Self(if !text.is_empty() && text.chars().all(fits) { text } else { NOT_SHOWN })
    }

    pub fn object_key(object_type: EnvironmentObjectType, key: &'a str) -> Self {
        Self(if keys::key(object_type, key).is_ok() { key } else { NOT_SHOWN })
    }

    /// The mount path that a user chose for a bundle.
    pub fn mount_path(bundle: &'a Bundle) -> Self {
        Self(if bundles::wrong_mount_path(&bundle.mount_path).is_none() {
            &bundle.mount_path
        } else {
            NOT_SHOWN
        })
    }
}

impl fmt::Display for Given<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.0.chars().filter(|c| !c.is_control()).take(LONGEST_GIVEN);
        f.write_str(&shown.collect::<String>())
    }
}

/// Why something failed or has to wait. Its `Display` is for operators; users see only [`Reason::user_text`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reason {
    user_text: UserText,
    detail: String,
}

impl Reason {
    /// The text for users, and details for operators: an error, the last line of a program's output.
    pub fn new(user_text: impl Into<UserText>, detail: impl fmt::Display) -> Self {
        Self { user_text: user_text.into(), detail: detail.to_string() }
    }

    /// What failed because of a system error. Users see its kind, operators all of it.
    pub fn of_io(what: impl Into<UserText>, error: &std::io::Error) -> Self {
        Self::new(UserText::filled("{}: {}", &[&what.into(), &error.kind()]), error)
    }

    pub fn user_text(&self) -> &UserText {
        &self.user_text
    }

    /// The details for operators; empty if users see everything.
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// Whether there is no text for users.
    pub fn is_empty(&self) -> bool {
        self.user_text.is_empty()
    }

    /// The same as the cause of something: "what: why".
    #[must_use]
    pub fn within(self, what: impl Into<UserText>) -> Self {
        Self { user_text: UserText::joined([what.into(), self.user_text], ": "), detail: self.detail }
    }

    /// The same with a sentence before it.
    #[must_use]
    pub fn after(self, lead: UserText) -> Self {
        let user_text =
            if self.user_text.is_empty() { lead } else { UserText::joined([lead, self.user_text], " ") };
        Self { user_text, detail: self.detail }
    }

    /// The same with more behind it.
    #[must_use]
    pub fn followed_by(self, more: &UserText) -> Self {
        Self { user_text: UserText::filled("{}{}", &[&self.user_text, more]), detail: self.detail }
    }

    /// The same with exactly one full stop at its end.
    #[must_use]
    pub fn sentence(self) -> Self {
        Self {
            user_text: UserText(Cow::Owned(format!("{}.", self.user_text.unended()))),
            detail: self.detail,
        }
    }

    /// Several, each of something that has a name; a sentence.
    pub(crate) fn of_all<'a>(named: impl IntoIterator<Item = (&'a str, &'a Self)>) -> Option<Self> {
        let (mut user_text, mut details) = (Vec::new(), Vec::new());
        for (name, why) in named {
            user_text.push(match why.is_empty() {
                true => UserText::filled("{}", &[&Given(name)]),
                false => {
                    let why = UserText(Cow::Owned(why.user_text.unended().to_owned()));
                    UserText::filled("{} ({})", &[&Given(name), &why])
                }
            });
            if !why.detail.is_empty() {
                details.push(format!("{name}: {}", why.detail));
            }
        }
        let user_text = (!user_text.is_empty()).then(|| UserText::joined(user_text, ", "))?;
        Some(Self { user_text, detail: details.join("; ") }.sentence())
    }
}

/// For operators: both texts.
impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.user_text.is_empty(), self.detail.is_empty()) {
            (_, true) => f.write_str(self.user_text.as_str()),
            (true, false) => f.write_str(&self.detail),
            (false, false) => write!(f, "{} [{}]", self.user_text, self.detail),
        }
    }
}

impl std::error::Error for Reason {}

impl From<UserText> for Reason {
    fn from(user_text: UserText) -> Self {
        Self { user_text, detail: String::new() }
    }
}

impl From<&'static str> for Reason {
    fn from(user_text: &'static str) -> Self {
        UserText::new(user_text).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_filled_in_order_and_shows_given_values_on_one_line() {
        let long = "x".repeat(300);
        let text = UserText::filled("{} of {}: {}", &[&3_u32, &"seven", &Given("a\nb")]);
        assert_eq!(text, "3 of seven: ab");
        assert_eq!(UserText::filled("{}", &[&Given(&long)]).as_str().len(), LONGEST_GIVEN);
        assert_eq!(UserText::joined(["a".into(), "b".into()], ", "), "a, b");
    }

    #[test]
    fn a_value_of_another_shape_is_not_shown() {
        let shown = |given: Given<'_>| UserText::filled("{}", &[&given]).to_string();
        for word in ["3.1.0", "node-1.example", "2.11.0+local", "user_home"] {
            assert_eq!(shown(Given::word(word)), word);
        }
        for text in ["", "cannot open", "/srv/data", "no such table: t", "a\nb", "`a`"] {
            assert_eq!(shown(Given::word(text)), NOT_SHOWN);
        }
        let variable = EnvironmentObjectType::EnvironmentVariable;
        assert_eq!(shown(Given::object_key(variable, "API_KEY")), "API_KEY");
        assert_eq!(shown(Given::object_key(variable, "error: /srv/data")), NOT_SHOWN);
        let at = |mount_path: &str| Bundle {
            mount_path: mount_path.into(),
            bundle_type: "dbt".into(),
            version: "1".into(),
            deploy_id: podium_api::DeployId::from_raw(Id::from_parts(0, 1, 0)),
        };
        assert_eq!(shown(Given::mount_path(&at("dbt/models"))), "dbt/models");
        assert_eq!(shown(Given::mount_path(&at("/srv/data"))), NOT_SHOWN);
    }

    #[test]
    fn users_read_one_text_and_operators_both() {
        let why = Reason::new("the database cannot be made", "could not open \"/var/lib/x\"");
        assert_eq!(why.to_string(), "the database cannot be made [could not open \"/var/lib/x\"]");
        let wrapped = why.clone().within("waking up failed").after("On node a.".into()).sentence();
        assert_eq!(*wrapped.user_text(), "On node a. waking up failed: the database cannot be made.");
        assert_eq!(wrapped.detail(), why.detail());
        let plain = Reason::from("it is starting.");
        assert_eq!(plain.to_string(), "it is starting.");
        let all = Reason::of_all([("database", &why), ("scheduler", &plain), ("web", &Reason::default())]);
        let all = all.unwrap();
        assert_eq!(
            *all.user_text(),
            "database (the database cannot be made), scheduler (it is starting), web."
        );
        assert_eq!(all.detail(), "database: could not open \"/var/lib/x\"");
        assert_eq!(Reason::of_all([]), None);
    }
}
