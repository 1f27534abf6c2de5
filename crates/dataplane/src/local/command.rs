//! Runs a command to completion.

use std::io;
use std::process::{ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

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
        /// How it ended.
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

/// The process group of a child that leads one; it is killed when this is dropped.
pub(super) struct Group(Option<Pid>);

impl Group {
    pub(super) fn of(leader: &Child) -> Self {
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
