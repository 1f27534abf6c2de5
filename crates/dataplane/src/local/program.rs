//! What is to run: a program, its environment, and a fingerprint that tells whether what runs is still that.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use aws_lc_rs::hmac;
use serde::{Deserialize, Serialize};

use crate::Secret;

/// A program as it is to run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Program {
    /// The component that it is, named as its logs are.
    pub(super) name: String,
    /// What is called, and with what. Never a secret: every user of the machine can read it.
    pub(super) arguments: Vec<OsString>,
    /// Its whole environment.
    pub(super) variables: BTreeMap<String, Secret>,
    /// Where it runs.
    pub(super) directory: PathBuf,
    /// The file that it appends to.
    pub(super) log: PathBuf,
    /// How it is replaced by a newer one.
    pub(super) strategy: ReplaceStrategy,
}

/// How a program that runs is replaced by a newer one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum ReplaceStrategy {
    /// It is ended, and then the newer one starts.
    #[default]
    Restart,
    /// The newer one starts beside it on the same socket, and it is ended once that one serves.
    Overlap,
    /// It is ended once no task runs in it any more: it takes no further ones meanwhile.
    Drain,
    /// Being asked to end, it finishes its tasks and takes no further ones.
    Finish,
}

impl Program {
    /// Tells programs, and the bounds that they run in, apart without giving away what is in them. Nobody without the key
    /// can guess at it.
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
        all.sign().as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
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
