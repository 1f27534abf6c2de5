//! Runs a program of this data plane once in the isolation of an environment, where the author's code runs too: to its end,
//! within limits, and what it says is the author's claim.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use podium_airflow::settings::Variables;
use serde::de::DeserializeOwned;

use super::command::run_group;
use super::isolation::Isolation;

/// How long what it has left behind may hold its output open.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// A program that is run once, and answers.
pub(super) struct OneShot {
    pub(super) isolation: Isolation,
    pub(super) arguments: Vec<OsString>,
    pub(super) variables: Variables,
    pub(super) directory: PathBuf,
}

/// Why it has not answered.
#[derive(Debug, thiserror::Error)]
pub(super) enum OneShotError {
    #[error("it cannot be run: {0}")]
    NotRun(#[from] io::Error),
    #[error("it took more than {} minutes", .0.as_secs() / 60)]
    TooLong(Duration),
    #[error("it ended with {0}")]
    Failed(ExitStatus),
    #[error("its answer cannot be read: {0}")]
    Garbled(String),
}

impl OneShot {
    /// Runs it to its end, and reads the JSON document that it prints. Dropping the future ends it.
    pub(super) async fn answer<T: DeserializeOwned>(
        self,
        longest: Duration,
        most_bytes: usize,
    ) -> Result<T, OneShotError> {
        let mut command = self.isolation.command(&self.arguments, &self.variables);
        command.current_dir(&self.directory).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut said = Vec::new();
        let add = |bytes: &[u8]| {
            if said.len() + bytes.len() > most_bytes {
                return Err(OneShotError::Garbled("it is too long".into()));
            }
            said.extend_from_slice(bytes);
            Ok(())
        };
        let too_long = async {
            tokio::time::sleep(longest).await;
            OneShotError::TooLong(longest)
        };
        let status = run_group(command, |child| child.stdout.take(), LAST_WORDS, add, too_long).await?;
        if !status.success() {
            return Err(OneShotError::Failed(status));
        }
        serde_json::from_slice(&said).map_err(|error| OneShotError::Garbled(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use podium_airflow::check::{self, ParserAnswer};

    use super::*;

    async fn run(script: &str) -> Result<ParserAnswer, OneShotError> {
        let directory = tempfile::tempdir().unwrap();
        let program = OneShot {
            isolation: Isolation::NONE,
            arguments: vec!["/bin/sh".into(), "-c".into(), script.into()],
            variables: [("PATH".to_owned(), crate::Secret::new("/usr/bin:/bin".into()))].into(),
            directory: directory.path().to_owned(),
        };
        program.answer(check::LONGEST, check::MOST_BYTES).await
    }

    #[tokio::test]
    async fn a_parser_answers_in_json_and_what_it_starts_ends_with_it() {
        let answer = r#"sleep 100000 & printf '%s' '{"dags": [], "import_errors": []}'"#;
        run(answer).await.unwrap();
        assert!(matches!(run("exit 3").await, Err(OneShotError::Failed(_))));
        assert!(matches!(run("echo hello").await, Err(OneShotError::Garbled(_))));
        assert!(matches!(run("head -c 20000000 /dev/zero").await, Err(OneShotError::Garbled(_))));
    }
}
