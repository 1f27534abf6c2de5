//! Packages that must not be used, even indirectly. `deny.toml` has the same list for cargo-deny; this check works
//! without it.

use super::Report;
use crate::outcome::{Outcome, While};
use crate::workspace::cargo;

/// A package, and why not.
const BANNED: &[(&str, &str)] = &[
    ("ring", "cryptography comes from aws-lc-rs"),
    ("openssl", "TLS comes from rustls with aws-lc-rs"),
    ("openssl-sys", "TLS comes from rustls with aws-lc-rs"),
    ("native-tls", "TLS comes from rustls with aws-lc-rs"),
    ("rsa", "its timing leaks private keys; cryptography comes from aws-lc-rs"),
];

/// Reports banned packages among those that are built. Cargo.lock is not asked: it also lists packages that only
/// switched-off features would need.
pub(super) fn no_banned_packages(built: &str, report: &mut Report) {
    for (name, reason) in BANNED {
        if built.lines().any(|line| line.split(' ').next() == Some(name)) {
            let advice = format!(
                "`{name}` is banned: {reason}; `cargo tree --workspace -i {name}` shows who wants it"
            );
            report.violation("Cargo.toml", 0, advice);
        }
    }
}

/// The packages that are built on this machine, one a line.
pub(super) fn built() -> Outcome<String> {
    let arguments = ["tree", "--workspace", "--edges", "all", "--prefix", "none", "--format", "{p}"];
    let output = cargo(&arguments).output().doing("cargo tree")?;
    if !output.status.success() {
        return Err(format!("cargo tree: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_banned_packages() {
        let mut report = Report::default();
        no_banned_packages("string v1.0.0\nring v0.17.14\nring-buffer v2.0.0\n", &mut report);
        assert_eq!(report.violations.len(), 1);
        assert!(report.violations[0].starts_with("Cargo.toml: `ring` is banned"), "{:?}", report.violations);
    }

    #[test]
    fn agrees_with_the_configuration_of_cargo_deny() {
        let deny = include_str!("../../../deny.toml");
        for (name, _) in BANNED {
            assert!(deny.contains(&format!("crate = \"{name}\"")), "deny.toml does not ban {name}");
        }
    }
}
