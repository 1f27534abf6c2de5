//! E-mail addresses: a modest check that catches typos and keeps headers safe.
//!
//! Only a message can tell whether a mailbox exists, so nothing more is attempted. `owner@localhost` is an address.

use podium_api::FieldError;

const MAX: usize = 254;
const SPECIAL: &str = "<>()[]\\,;:\"";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Email {
    /// As it is shown and written to.
    pub address: String,
    /// As it is compared.
    pub key: String,
}

/// Checks an e-mail address.
pub fn email(field: &str, text: &str) -> Result<Email, FieldError> {
    let address = text.trim();
    let parts = address.split_once('@').filter(|_| address.chars().count() <= MAX);
    match parts {
        Some((local, domain)) if is_local_part(local) && is_domain(domain) => {
            Ok(Email { address: address.to_owned(), key: crate::names::fold(address) })
        }
        _ => Err(FieldError::new(
            field,
            "format",
            format!("must be an e-mail address such as ada@example.com, of at most {MAX} characters"),
        )),
    }
}

fn is_local_part(text: &str) -> bool {
    let allowed = |c: char| !c.is_whitespace() && !c.is_control() && !SPECIAL.contains(c);
    !text.is_empty() && text.chars().all(allowed) && podium_api::text::hidden(text).is_none()
}

fn is_domain(text: &str) -> bool {
    text.split('.').all(|label| {
        let allowed = label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        allowed && !label.is_empty() && !label.starts_with('-') && !label.ends_with('-')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_caught() {
        for text in [
            "ada@example.com",
            "owner@localhost",
            " Ada.Lovelace+test@Sub.Example.COM ",
            "münchen@example.com",
        ] {
            assert!(email("inviteeEmail", text).is_ok(), "{text:?}");
        }
        let wrong = "ada @example.com ada@ a@b@example.com ada@example..com ada@-example.com <ada@example.com> \
            ada@example.com,eve@example.com ada\u{0}@example.com";
        let spaced = ["", "ada lovelace@example.com", "ada@exam ple.com", "ada@example.com\r\nBcc: x@y.z"];
        let long = format!("{}@example.com", "a".repeat(250));
        for text in wrong.split(' ').chain(spaced).chain([long.as_str()]) {
            assert!(email("inviteeEmail", text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn addresses_are_compared_without_regard_to_case() {
        let one = email("username", "Ada@Example.com").unwrap();
        assert_eq!(one.address, "Ada@Example.com");
        assert_eq!(one.key, email("username", " ada@example.COM").unwrap().key);
    }
}
