//! Other processes of this machine: whether they live, and how to end one.

use std::fs;
use std::process::Command;

use crate::outcome::{Outcome, While};
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

pub(crate) fn signal(pid: u32, name: &str) -> bool {
    works(Command::new("sh").args(["-c", &format!("kill -s {name} {pid}")]))
}

/// The processor time that a process has taken, in milliseconds.
pub(crate) fn processor_time(pid: u32) -> Outcome<u64> {
    let fields = stat(pid).doing("reading /proc")?;
    let ticks = |index: usize| fields.get(index).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
    Ok((ticks(11) + ticks(12)) * 10)
}

pub(crate) fn children(pid: u32) -> Vec<u32> {
    let parent = pid.to_string();
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    all.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|child| stat(*child).is_ok_and(|fields| fields.get(1) == Some(&parent)))
        .collect()
}

/// What the kernel says of a process, from its state on.
fn stat(pid: u32) -> std::io::Result<Vec<String>> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    Ok(stat.rsplit(')').next().unwrap_or_default().split_whitespace().map(str::to_owned).collect())
}
