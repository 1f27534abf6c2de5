//! Packages that must not be used, even indirectly: those that `deny.toml` bans for cargo-deny, also where that is not
//! installed.

use super::Report;
use crate::outcome::{Outcome, While};
use crate::workspace::cargo;

/// The packages that are banned, and why.
fn banned() -> impl Iterator<Item = (&'static str, &'static str)> {
    include_str!("../../../deny.toml").lines().filter_map(|line| {
        let (name, reason) = line.trim().strip_prefix("{ crate = \"")?.split_once("\", reason = \"")?;
        Some((name, reason.trim_end_matches("\" },")))
    })
}

/// Reports banned packages among those that are built. Cargo.lock is not asked: it also lists packages that only
/// switched-off features would need.
pub(super) fn no_banned_packages(built: &str, report: &mut Report) {
    for (name, reason) in banned() {
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
        let expected = "Cargo.toml: `ring` is banned: cryptography comes from aws-lc-rs; ";
        assert!(report.violations[0].starts_with(expected), "{:?}", report.violations);
        assert_eq!(banned().count(), 5);
    }
}
