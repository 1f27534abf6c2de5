//! Runs commands to completion, among them statements on a PostgreSQL server as its administrator, and programs of this
//! data plane that run once in the isolation of an environment, where the author's code runs too: within limits, and
//! what they say is the author's claim.
//!
//! Whoever owns a database decides what statements in it mean: with functions, triggers and settings. So these run only
//! in databases that no environment can connect to, and find nothing but what the server itself defines.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use podium_airflow::database_url;
use podium_airflow::settings::Variables;
use rustix::process::{Pid, Signal, kill_process_group};
use serde::de::DeserializeOwned;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::isolation::Isolation;

/// The longest output line that is kept.
const LONGEST: usize = 300;

/// Why a command failed. Its output may contain anything and is for operators only.
#[derive(Debug, thiserror::Error)]
pub(super) enum CommandError {
    /// It could not be run or waited for.
    #[error("it cannot be run: {0}")]
    NotRun(#[from] io::Error),
    /// It failed, with this last line of output.
    #[error("{said} ({status})")]
    Failed {
        /// The last line that it wrote.
        said: String,
        status: ExitStatus,
    },
}

/// Runs a command to completion; `tell` gets each line of its error output, and an error has the last one.
pub(super) async fn run(mut command: Command, tell: impl Fn(&str)) -> Result<(), CommandError> {
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let mut said = String::new();
    if let Some(output) = child.stderr.take() {
        let mut lines = BufReader::new(output).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            if !line.trim().is_empty() {
                said = line.trim().chars().take(LONGEST).collect();
                tell(&said);
            }
        }
    }
    let status = child.wait().await?;
    if status.success() { Ok(()) } else { Err(CommandError::Failed { said, status }) }
}

/// The directories that programs are searched for in.
pub(super) fn searched() -> impl Iterator<Item = PathBuf> {
    let search = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&search).collect::<Vec<_>>().into_iter()
}

/// Runs a command to its end in a process group of its own, which ends with it, and hands over what it says in one of its
/// outputs. What it has left behind may hold that open for so long. `until` is why it is ended early.
pub(super) async fn run_group<O: AsyncRead + Unpin, E: From<io::Error>>(
    mut command: std::process::Command,
    output: impl FnOnce(&mut Child) -> Option<O>,
    last_words: Duration,
    mut said: impl FnMut(&[u8]) -> Result<(), E>,
    until: impl Future<Output = E>,
) -> Result<ExitStatus, E> {
    command.stdin(Stdio::null()).process_group(0);
    let mut child = Command::from(command).kill_on_drop(true).spawn()?;
    let group = Group::of(&child);
    let mut output = output(&mut child).ok_or_else(|| io::Error::from(io::ErrorKind::BrokenPipe))?;
    let (mut buffer, mut is_open, mut until) = (vec![0; 16 * 1024], true, pin!(until));
    let status = loop {
        tokio::select! {
            read = output.read(&mut buffer), if is_open => match read? {
                0 => is_open = false,
                count => said(&buffer[..count])?,
            },
            status = child.wait() => break status?,
            error = &mut until => return Err(error),
        }
    };
    drop(group);
    let rest = async {
        while is_open {
            match output.read(&mut buffer).await? {
                0 => is_open = false,
                count => said(&buffer[..count])?,
            }
        }
        Ok::<(), E>(())
    };
    timeout(last_words, rest).await.unwrap_or(Ok(()))?;
    Ok(status)
}

/// The process group of a child that leads one; it is killed when this is dropped.
struct Group(Option<Pid>);

impl Group {
    fn of(leader: &Child) -> Self {
        Self(leader.id().and_then(|pid| Pid::from_raw(pid.cast_signed())))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

pub(super) const ADMINS: &str = "postgres";

/// A client program with nothing of this process's environment variables.
pub(super) fn client(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("PATH", "/usr/bin:/bin").env("LC_ALL", "C");
    command.stdin(Stdio::null()).kill_on_drop(true);
    command
}

/// Sets the connection of a client. The password is not on the command line.
pub(super) fn connect(command: &mut Command, url: &str) {
    let (url, password) = database_url::without_password(url);
    command.arg("--dbname").arg(url);
    if let Some(password) = password {
        command.env("PGPASSWORD", password.reveal());
    }
}

/// Runs statements, which do not appear on a command line.
pub(super) async fn run_sql(psql: &Path, url: &str, script: &str) -> Result<(), CommandError> {
    let mut psql = client(psql);
    psql.args(["--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1"]);
    connect(&mut psql, url);
    psql.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = psql.spawn()?;
    if let Some(mut input) = child.stdin.take() {
        // A client that cannot connect reads nothing, and says why.
        let _ = input.write_all(format!("SET search_path = pg_catalog;\n{script}").as_bytes()).await;
    }
    let output = child.wait_with_output().await?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let (said, status) = (said.trim().chars().take(LONGEST).collect(), output.status);
    Err(CommandError::Failed { said, status })
}

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
