//! The rules as a table, and the same rules said another way as a property.

use proptest::prelude::*;

use super::*;

#[test]
fn words_prefixes_and_phrases() {
    let line = "2027-01-15 ERROR task_1 failed: Connection refused (db-eu.example.com)";
    let table = [
        ("", true),
        ("   ", true),
        ("---", true),
        ("*", true),
        ("error", true),
        ("ERROR failed", true),
        ("failed error", true),
        ("error absent", false),
        ("fail", false),
        ("fail*", true),
        ("FAIL*", true),
        ("failed*", true),
        ("failedx*", false),
        ("*ailed", false),
        ("task_1", true),
        ("task", false),
        ("task*", true),
        ("1", false),
        ("db-eu", true),
        ("eu-db", true),
        ("db-e*", true),
        ("d-e*", false),
        ("conn*refused", false),
        ("connection*refused", true),
        ("\"connection refused\"", true),
        ("\"CONNECTION refused (DB\"", true),
        ("\"refused connection\"", false),
        ("\"ask_1 fail\"", true),
        ("\"ask_1 fail\" error", true),
        ("\"ask_1 fail\" missing", false),
        ("\"connection ref", true),
        ("\"\"", true),
        ("fail*\"refused\"", true),
    ];
    for (text, expected) in table {
        assert_eq!(Query::parse(text).matches(line), expected, "{text}");
    }
}

#[test]
fn non_ascii_letters_fold_in_phrases_and_separate_words() {
    let line = "Über größe naïve";
    for (text, expected) in [
        ("\"ÜBER\"", true),
        ("\"gröSSe\"", false),
        ("\"GRÖß\"", true),
        ("ber", true),
        ("na ve", true),
        ("naive", false),
    ] {
        assert_eq!(Query::parse(text).matches(line), expected, "{text}");
    }
}

#[test]
fn a_star_makes_a_prefix_only_at_the_end_of_a_word() {
    assert!(Query::parse("err* x").matches("x errors"));
    assert!(!Query::parse("err*,x").matches("x errors"));
    assert!(!Query::parse("err-* x").matches("x errors"));
}

/// The rules, written to be read rather than to be fast.
fn naive(text: &str, line: &str) -> bool {
    let tokens = |text: &str| -> Vec<String> {
        let mut tokens = vec![String::new()];
        for c in text.chars() {
            match c {
                'A'..='Z' | 'a'..='z' | '0'..='9' | '_' => {
                    tokens.last_mut().unwrap().push(c.to_ascii_lowercase());
                }
                _ => tokens.push(String::new()),
            }
        }
        tokens.retain(|token| !token.is_empty());
        tokens
    };
    let in_line = tokens(line);
    let pieces: Vec<&str> = text.split('"').collect();
    let quoted = pieces.iter().skip(1).step_by(2);
    let plain = pieces.iter().step_by(2);
    quoted.clone().all(|piece| line.to_lowercase().contains(&piece.to_lowercase()))
        && plain.flat_map(|piece| piece.split_whitespace()).all(|typed| {
            let mut wanted = tokens(typed);
            let is_prefix =
                typed.len() > 1 && typed.ends_with('*') && !tokens(&typed[typed.len() - 2..]).is_empty();
            let beginning = if is_prefix { wanted.pop() } else { None };
            wanted.iter().all(|token| in_line.contains(token))
                && beginning.is_none_or(|start| in_line.iter().any(|token| token.starts_with(&start)))
        })
}

proptest! {
    #[test]
    fn the_matcher_agrees_with_the_rules(
        text in "([abAB_1]{0,3}[ *\"*,-]?){0,6}",
        line in "([abAB_1]{0,4}[ *,\"-]?){0,12}",
    ) {
        prop_assert_eq!(Query::parse(&text).matches(&line), naive(&text, &line));
    }

    #[test]
    fn any_text_is_a_query(text in "[a*\" é𝄞\\PC]{0,20}", line in "\\PC{0,20}") {
        let _ = Query::parse(&text).matches(&line);
    }

    #[test]
    fn a_line_is_found_by_each_of_its_own_words_and_parts(line in "[a-zA-Z0-9_ .:-]{1,40}", at in 0usize..40) {
        for word in line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')) {
            prop_assert!(Query::parse(&word.to_uppercase()).matches(&line));
            let beginning = [&word[..word.len() / 2], "*"].concat();
            prop_assert!(Query::parse(&beginning).matches(&line));
        }
        let part = ["\"", &line[at.min(line.len())..].to_uppercase(), "\""].concat();
        prop_assert!(Query::parse(&part).matches(&line));
    }
}
