//! Other processes of this machine: whether they live, and how to end one.

use std::fs;
use std::process::Command;

use crate::workspace::works;

/// The command line of a process, or nothing if there is none.
pub(crate) fn command_line(pid: u32) -> Option<String> {
    if fs::exists("/proc/self/cmdline").unwrap_or(false) {
        let bytes = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        return Some(String::from_utf8_lossy(&bytes).replace('\0', " "));
    }
    let output = Command::new("ps").args(["-o", "command=", "-p", &pid.to_string()]).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Sends a signal, by name.
pub(crate) fn signal(pid: u32, name: &str) -> bool {
    works(Command::new("sh").args(["-c", &format!("kill -s {name} {pid}")]))
}
