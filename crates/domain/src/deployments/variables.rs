//! Environment variables: replaced as a list; a secret without a new value keeps its stored one.

mod reserved;

use podium_api::Timestamp;
use podium_api::deployments::DeploymentEnvironmentVariableRequest;

use super::spec::{EnvironmentVariable, Secret};
use crate::refusal::Fields;

pub use reserved::refused;

/// How many bytes the keys and values of a deployment's variables may have together. Processes receive all of them when
/// they start, and systems limit that; and every reply that shows a deployment contains them.
const MAX_BYTES: usize = 256 * 1024;

/// Whether this can be the name of an environment variable.
pub fn is_key(key: &str) -> bool {
    let mut bytes = key.bytes();
    bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
}

/// Encrypts the values of variables.
pub trait Seals {
    /// The value of a variable, encrypted.
    fn seal(&self, key: &str, value: &str) -> Secret;
    /// Whether this is the value that is encrypted; takes as long whether it is or not.
    fn holds(&self, key: &str, sealed: &Secret, value: &str) -> bool;
}

/// The variables after a request; unchanged ones keep their time of change.
pub(super) fn check(
    requested: &[DeploymentEnvironmentVariableRequest],
    stored: &[EnvironmentVariable],
    now: Timestamp,
    seals: &dyn Seals,
    fields: &mut Fields,
) -> Vec<EnvironmentVariable> {
    let mut variables = Vec::with_capacity(requested.len());
    for (index, variable) in requested.iter().enumerate() {
        let path = format!("environmentVariables[{index}]");
        let key = &variable.key;
        if !is_key(key) {
            let message =
                "must begin with a letter or `_` and continue with letters, digits, `_`, `.` or `-`";
            fields.push(format!("{path}.key"), "format", message);
        } else if let Some(reason) = refused(key) {
            fields.push(format!("{path}.key"), "reserved", reason);
        } else if requested[..index].iter().any(|other| other.key == *key) {
            fields.push(format!("{path}.key"), "duplicate", "is the key of another variable in this request");
        }
        let known = stored.iter().find(|known| known.key == *key);
        let value = variable.value.as_deref().filter(|value| !value.is_empty());
        let made = |value: Option<String>, secret: Option<Secret>| EnvironmentVariable {
            key: key.clone(),
            value,
            secret,
            updated_at: now,
        };
        let next = match (variable.is_secret, value, known) {
            (true, Some(value), known) => {
                let holds = |known: &&EnvironmentVariable| {
                    known.secret.as_ref().is_some_and(|sealed| seals.holds(key, sealed, value))
                };
                let same = known.filter(holds).cloned();
                Some(same.unwrap_or_else(|| made(None, Some(seals.seal(key, value)))))
            }
            (true, None, Some(known)) if known.secret.is_some() => Some(known.clone()),
            (true, None, _) => {
                fields.push(format!("{path}.value"), "required", "is required for a new secret");
                None
            }
            (false, None, Some(known)) if known.secret.is_some() => {
                let message = "is required: a secret can become plain only with a new value";
                fields.push(format!("{path}.value"), "required", message);
                None
            }
            (false, value, known) => {
                let value = value.unwrap_or_default();
                let same = known.filter(|known| known.value.as_deref() == Some(value));
                Some(same.cloned().unwrap_or_else(|| made(Some(value.to_owned()), None)))
            }
        };
        variables.extend(next);
    }
    let bytes = |variable: &EnvironmentVariable| {
        let secret = variable.secret.as_ref().map_or(0, |secret| secret.0.len() / 4 * 3);
        variable.key.len() + variable.value.as_ref().map_or(0, String::len) + secret
    };
    if variables.iter().map(bytes).sum::<usize>() > MAX_BYTES {
        let message = format!("must have at most {MAX_BYTES} bytes of keys and values together");
        fields.push("environmentVariables", "maxLength", message);
    }
    variables.sort_by(|a, b| a.key.cmp(&b.key));
    variables
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deployments::fixtures::{Spelled, wrong};

    fn plain(key: &str, value: &str) -> DeploymentEnvironmentVariableRequest {
        let (key, value) = (key.to_owned(), Some(value.to_owned()));
        DeploymentEnvironmentVariableRequest { key, value, is_secret: false }
    }

    #[test]
    fn keys() {
        for key in ["A", "_a", "a.b-c_9"] {
            assert!(is_key(key), "{key}");
        }
        for key in ["", "9a", "a b", "a=b", "ä", "-a"] {
            assert!(!is_key(key), "{key}");
        }
    }

    #[test]
    fn variables_are_bounded_together() {
        let requested = |count: usize| -> Vec<_> {
            (0..count).map(|number| plain(&format!("KEY_{number:03}"), &"v".repeat(4089))).collect()
        };
        let check = |count| {
            let mut fields = Fields::new();
            check(&requested(count), &[], Timestamp::from_millis(1), &Spelled, &mut fields);
            fields.into_result()
        };
        assert!(check(64).is_ok());
        let Err(crate::Refusal::Invalid { fields, .. }) = check(65) else { panic!("it is too much") };
        assert_eq!(fields[0].field, "environmentVariables");
        assert_eq!(fields[0].message, "must have at most 262144 bytes of keys and values together");
    }

    #[test]
    fn every_wrong_variable_is_reported_with_its_index() {
        let keys = ["ok", "9", "AIRFLOW__CORE__FERNET_KEY", "ok", "OK", "a b"].map(|key| plain(key, "v"));
        let mut fields = Fields::new();
        check(&keys, &[], Timestamp::from_millis(1), &Spelled, &mut fields);
        assert_eq!(
            wrong(fields.into_result()),
            [
                "environmentVariables[1].key: format",
                "environmentVariables[2].key: reserved",
                "environmentVariables[3].key: duplicate",
                "environmentVariables[5].key: format",
            ]
        );
    }

    #[test]
    fn unlisted_variables_are_removed_and_the_rest_keeps_its_order() {
        let list = |keys: &[&str], stored: &[EnvironmentVariable]| {
            let keys: Vec<_> = keys.iter().map(|key| plain(key, "v")).collect();
            check(&keys, stored, Timestamp::from_millis(1), &Spelled, &mut Fields::new())
        };
        let stored = list(&["b", "a"], &[]);
        let keys = |variables: &[EnvironmentVariable]| -> Vec<String> {
            variables.iter().map(|variable| variable.key.clone()).collect()
        };
        assert_eq!(keys(&stored), ["a", "b"]);
        assert_eq!(keys(&list(&["c", "b"], &stored)), ["b", "c"]);
        assert_eq!(keys(&list(&[], &stored)), Vec::<String>::new());
    }

    /// Every case of the rule: what is stored × what is asked for.
    #[test]
    fn secrets_are_kept_replaced_and_never_shown() {
        let then = Timestamp::from_millis(1);
        let now = Timestamp::from_millis(2);
        let plain = EnvironmentVariable {
            key: "K".into(),
            value: Some("old".into()),
            secret: None,
            updated_at: then,
        };
        let secret =
            EnvironmentVariable { value: None, secret: Some(Secret("sealed K old".into())), ..plain.clone() };
        let table: &[(Option<&EnvironmentVariable>, bool, Option<&str>, &str)] = &[
            (None, false, Some("new"), "plain new at 2"),
            (None, false, None, "plain  at 2"),
            (None, true, Some("new"), "secret sealed K new at 2"),
            (None, true, None, "refused"),
            (None, true, Some(""), "refused"),
            (Some(&plain), false, Some("old"), "plain old at 1"),
            (Some(&plain), false, Some("new"), "plain new at 2"),
            (Some(&plain), true, Some("new"), "secret sealed K new at 2"),
            (Some(&plain), true, None, "refused"),
            (Some(&secret), true, None, "secret sealed K old at 1"),
            (Some(&secret), true, Some(""), "secret sealed K old at 1"),
            (Some(&secret), true, Some("old"), "secret sealed K old at 1"),
            (Some(&secret), true, Some("new"), "secret sealed K new at 2"),
            (Some(&plain), true, Some("old"), "secret sealed K old at 2"),
            (Some(&secret), false, Some("old"), "plain old at 2"),
            (Some(&secret), false, None, "refused"),
            (Some(&secret), false, Some(""), "refused"),
            (Some(&secret), false, Some("new"), "plain new at 2"),
        ];
        for (stored, is_secret, value, expected) in table {
            let requested = DeploymentEnvironmentVariableRequest {
                key: "K".into(),
                value: value.map(str::to_owned),
                is_secret: *is_secret,
            };
            let stored: Vec<_> = stored.iter().map(|v| (*v).clone()).collect();
            let mut fields = Fields::new();
            let got = check(&[requested], &stored, now, &Spelled, &mut fields);
            let got = match (
                fields.into_result(),
                got.first().map(|it| (&it.value, &it.secret, it.updated_at.millis())),
            ) {
                (Ok(()), Some((Some(value), None, at))) => format!("plain {value} at {at}"),
                (Ok(()), Some((None, Some(Secret(sealed)), at))) => format!("secret {sealed} at {at}"),
                (Err(_), None) => "refused".into(),
                other => panic!("{other:?}"),
            };
            assert_eq!(&got, expected, "stored {stored:?}, secret {is_secret}, value {value:?}");
        }
    }
}
