//! The rules for passwords: long, and different from the owner's name.
//!
//! There are no rules on kinds of characters: they make passwords worse. Hashing is not done here.

use podium_api::FieldError;

const MIN: usize = 12;

/// Checks a new password of the user who signs in as `username`.
pub fn password(field: &str, text: &str, username: &str) -> Result<(), FieldError> {
    let wrong = |code, message: String| Err(FieldError::new(field, code, message));
    if text.trim().is_empty() {
        return wrong("required", "must not be blank".into());
    }
    let length = text.chars().count();
    if length < MIN {
        return wrong("minLength", format!("must have at least {MIN} characters, has {length}"));
    }
    if text.trim().to_lowercase() == username.trim().to_lowercase() {
        return wrong(
            "sameAsUsername",
            "must not be your username; choose something that others cannot guess".into(),
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_long_and_not_the_username() {
        let table = [
            ("correct horse", Ok(())),
            ("пароль-пароль", Ok(())),
            ("twelve chars", Ok(())),
            ("eleven char", Err("minLength")),
            ("", Err("required")),
            ("              ", Err("required")),
            ("Ada@Example.com", Err("sameAsUsername")),
        ];
        for (text, expected) in table {
            let got = password("password", text, "ada@example.com").map_err(|error| error.code);
            assert_eq!(got, expected.map_err(String::from), "{text:?}");
        }
    }
}
