//! A program to run with its environment, and its fingerprint, which shows whether a running process is up to date.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use aws_lc_rs::hmac;
pub(super) use podium_airflow::components::ReplaceStrategy;
use podium_airflow::settings::Variables;

use crate::Secret;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Program {
    /// The component, named like its log.
    pub(super) name: String,
    /// The command line. Never a secret: every user of the machine can read it.
    pub(super) arguments: Vec<OsString>,
    pub(super) variables: Variables,
    pub(super) directory: PathBuf,
    /// The file that it appends to.
    pub(super) log: PathBuf,
    /// How it is replaced by a new version.
    pub(super) strategy: ReplaceStrategy,
}

impl Program {
    /// A keyed hash of a program and its isolation, which reveals nothing about them and cannot be guessed without the
    /// key.
    pub(super) fn fingerprint(&self, key: &Secret, bounds: &[OsString]) -> String {
        let key = hmac::Key::new(hmac::HMAC_SHA256, key.reveal().as_bytes());
        let mut all = hmac::Context::with_key(&key);
        let mut add = |part: &[u8]| {
            all.update(&part.len().to_le_bytes());
            all.update(part);
        };
        self.arguments.iter().chain(bounds).for_each(|argument| add(argument.as_bytes()));
        for (name, value) in &self.variables {
            add(name.as_bytes());
            add(value.reveal().as_bytes());
        }
        podium_api::hex(all.sign().as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_changes_with_everything_that_a_process_is_started_with() {
        let key = Secret::new("key".into());
        let program = |arguments: &[&str], variables: &[(&str, &str)]| Program {
            name: "scheduler".into(),
            arguments: arguments.iter().map(OsString::from).collect(),
            variables: variables
                .iter()
                .map(|(name, value)| ((*name).to_owned(), Secret::new((*value).into())))
                .collect(),
            directory: "/".into(),
            log: "/log".into(),
            strategy: ReplaceStrategy::Restart,
        };
        let first = program(&["a", "bc"], &[("K", "v")]).fingerprint(&key, &[]);
        assert_eq!(first, program(&["a", "bc"], &[("K", "v")]).fingerprint(&key, &[]));
        assert_ne!(first, program(&["ab", "c"], &[("K", "v")]).fingerprint(&key, &[]));
        assert_ne!(first, program(&["a", "bc"], &[("K", "v")]).fingerprint(&key, &["--user".into()]));
        assert_ne!(first, program(&["a", "bc"], &[("K", "w")]).fingerprint(&key, &[]));
        assert_ne!(
            first,
            program(&["a", "bc"], &[("K", "v")]).fingerprint(&Secret::new("other".into()), &[])
        );
    }
}
