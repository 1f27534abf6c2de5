//! Runs a command to its end.

use std::io;
use std::process::{ExitStatus, Stdio};

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

/// The longest line that is kept of what a command says.
const LONGEST: usize = 300;

/// Why a command did not do what it was run for. What it said may hold anything, and is for operators.
#[derive(Debug, thiserror::Error)]
pub(super) enum CommandError {
    /// It could not be run, or nobody knows what became of it.
    #[error("it cannot be run: {0}")]
    NotRun(#[from] io::Error),
    /// It failed, with these last words.
    #[error("{said} ({status})")]
    Failed {
        /// The last line that it wrote.
        said: String,
        /// How it ended.
        status: ExitStatus,
    },
}

/// Runs a command to its end; what it says on the way is told, and its last words where it fails.
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
