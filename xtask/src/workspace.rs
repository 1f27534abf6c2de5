//! Where the workspace lies, and how cargo is called in it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::outcome::{Outcome, While};

pub(crate) fn root() -> PathBuf {
    let own = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    own.parent().map_or(own.clone(), Path::to_path_buf)
}

/// Cargo's target directory, wherever the environment or a configuration file put it.
pub(crate) fn target() -> Outcome<PathBuf> {
    let output = cargo(&["metadata", "--no-deps", "--format-version", "1"])
        .stderr(Stdio::inherit())
        .output()
        .doing("cargo metadata")?;
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).doing("cargo metadata")?;
    metadata["target_directory"]
        .as_str()
        .map(PathBuf::from)
        .ok_or("cargo metadata names no target directory".into())
}

/// Our own directory below the target directory: logs, and the Python environment.
pub(crate) fn scratch() -> Outcome<PathBuf> {
    let path = target()?.join("xtask");
    std::fs::create_dir_all(&path).doing(&format!("making {}", path.display()))?;
    Ok(path)
}

/// Cargo in the workspace, without what an outer cargo said about this program: build scripts would take it for a
/// change of their environment and build again.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root());
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_"].iter().any(|p| text.starts_with(p))
        {
            command.env_remove(name);
        }
    }
    command
}

/// Runs a command to its end; anything but success is a failure that shows the command.
pub(crate) fn must(command: &mut Command) -> Outcome {
    let shown = shown(command);
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{shown}` failed: {status}")),
        Err(error) => Err(format!("`{shown}` could not be started: {error}")),
    }
}

/// Whether a command exists and succeeds; its output is thrown away.
pub(crate) fn works(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// The command as a person would type it, without anything secret in it.
fn shown(command: &Command) -> String {
    let program =
        Path::new(command.get_program()).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut words = vec![program];
    for argument in command.get_args().map(|a| a.to_string_lossy()) {
        words.push(if argument.contains("Bearer") {
            "Authorization:…".into()
        } else {
            argument.into_owned()
        });
    }
    words.join(" ")
}
