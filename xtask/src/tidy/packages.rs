//! Packages that must not come in, by whatever way. `deny.toml` says the same to cargo-deny; this holds without it.

use super::Report;
use super::tree::Tree;

/// A package, and why not.
const BANNED: &[(&str, &str)] = &[
    ("ring", "cryptography comes from aws-lc-rs"),
    ("openssl", "TLS comes from rustls with aws-lc-rs"),
    ("openssl-sys", "TLS comes from rustls with aws-lc-rs"),
    ("native-tls", "TLS comes from rustls with aws-lc-rs"),
    ("rsa", "its timing leaks private keys; cryptography comes from aws-lc-rs"),
];

/// Reports banned packages in the lock file.
pub(super) fn no_banned_packages(tree: &Tree, report: &mut Report) {
    for file in tree.files.iter().filter(|file| file.path == "Cargo.lock") {
        for (index, line) in file.text.lines().enumerate() {
            let Some(name) = line.strip_prefix("name = \"").and_then(|rest| rest.strip_suffix('"')) else {
                continue;
            };
            if let Some((_, reason)) = BANNED.iter().find(|(banned, _)| *banned == name) {
                let advice =
                    format!("`{name}` is banned: {reason}; `cargo tree -i {name}` shows who wants it");
                report.violation(&file.path, index + 1, advice);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::violations;
    use super::*;

    #[test]
    fn refuses_banned_packages() {
        let lock = "[[package]]\nname = \"ring\"\nversion = \"1\"\n\n[[package]]\nname = \"string\"\n";
        let found = violations(no_banned_packages, &[("Cargo.lock", lock)]);
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("Cargo.lock:2: `ring` is banned"), "{found:?}");
    }

    #[test]
    fn agrees_with_the_configuration_of_cargo_deny() {
        let deny = include_str!("../../../deny.toml");
        for (name, _) in BANNED {
            assert!(deny.contains(&format!("crate = \"{name}\"")), "deny.toml does not ban {name}");
        }
    }
}
