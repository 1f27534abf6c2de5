//! The command line that was typed, for hints that can be pasted: they repeat what was typed, and where.

/// The command line with something added.
pub fn again_with(added: &str) -> String {
    shown(typed().chain([added.to_owned()]))
}

/// The command line with another verb, and without these flags.
pub fn with_verb(verb: &str, without: &[&str]) -> String {
    let rest = typed().skip(1).filter(|word| !without.contains(&word.as_str()));
    shown([verb.to_owned()].into_iter().chain(rest))
}

/// A word as a shell takes it.
pub fn quoted(word: &str) -> String {
    let is_plain =
        |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | '@' | '+' | ',' | '%');
    word.chars().flat_map(|c| (!is_plain(c)).then_some('\\').into_iter().chain([c])).collect()
}

fn typed() -> impl Iterator<Item = String> {
    std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned())
}

fn shown(words: impl Iterator<Item = String>) -> String {
    // Shells take these as they are; only their completion does not.
    let word = |word: String| quoted(&word).replace("\\:", ":").replace("\\=", "=");
    words.fold("podium".to_owned(), |line, next| line + " " + &word(next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_can_be_pasted() {
        let words = ["stop", "My reports", "--data-dir=./a'b", "$(reboot)"].map(str::to_owned);
        assert_eq!(shown(words.into_iter()), "podium stop My\\ reports --data-dir=./a\\'b \\$\\(reboot\\)");
    }
}
