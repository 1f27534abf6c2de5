//! The identity of a process, so that another process with a reused pid is never mistaken for it.

use std::fs;
use std::io;
use std::time::Duration;

use podium_api::Timestamp;
use serde::{Deserialize, Serialize};

/// A process: its pid, its start time, and the boot that the start time refers to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    pub(super) pid: i32,
    started: u64,
    boot: String,
}

impl Identity {
    /// The process that has this pid now, including one that has exited and has not been reaped.
    pub(super) fn of(pid: i32) -> io::Result<Self> {
        Ok(Self { pid, started: look_at(pid)?.started, boot: boot_id()? })
    }

    /// Whether this process is still running, and not a zombie.
    pub(super) fn is_alive(&self) -> bool {
        look_at(self.pid).is_ok_and(|seen| seen.started == self.started && !seen.is_dead)
            && boot_id().is_ok_and(|boot| boot == self.boot)
    }

    /// When it was started, for one of this boot that starts at `booted`.
    pub(super) fn started_at(&self, booted: Timestamp) -> Timestamp {
        booted + self.since_boot()
    }

    /// When it was started, as a time since the start of the machine.
    pub(super) fn since_boot(&self) -> Duration {
        let ticks = rustix::param::clock_ticks_per_second().max(1);
        Duration::from_millis(self.started.saturating_mul(1000) / ticks)
    }

    /// Whether its pid has been reused for another process.
    pub(super) fn is_taken_by_another(&self) -> bool {
        look_at(self.pid).is_ok_and(|seen| seen.started != self.started)
            || boot_id().is_ok_and(|boot| boot != self.boot)
    }
}

/// Whether a process is stopped by a signal.
pub(super) fn is_stopped(pid: i32) -> bool {
    look_at(pid).is_ok_and(|seen| seen.is_stopped)
}

/// When this machine was started.
pub(super) fn booted_at() -> Option<Timestamp> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let seconds = stat.lines().find_map(|line| line.strip_prefix("btime "))?;
    Some(Timestamp::from_millis(seconds.trim().parse::<i64>().ok()? * 1000))
}

fn boot_id() -> io::Result<String> {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|text| text.trim().to_owned())
}

/// What the kernel reports about a process.
struct Seen {
    /// Its start time, in clock ticks.
    started: u64,
    /// Whether it is a zombie.
    is_dead: bool,
    /// Whether it was stopped by a signal.
    is_stopped: bool,
}

fn look_at(pid: i32) -> io::Result<Seen> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name is in parentheses and may contain anything.
    let fields = stat.rsplit_once(") ").map(|(_, fields)| fields).unwrap_or_default();
    let mut fields = fields.split(' ');
    let state = fields.next();
    let (is_dead, is_stopped) = (matches!(state, Some("Z" | "X" | "x")), state == Some("T"));
    let started = fields.nth(18).and_then(|field| field.parse().ok()).ok_or(io::ErrorKind::InvalidData)?;
    Ok(Seen { started, is_dead, is_stopped })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_process_with_the_same_pid_is_not_mistaken_for_it() {
        let own = Identity::of(std::process::id().cast_signed()).unwrap();
        assert!(own.is_alive());
        assert!(!own.is_taken_by_another());
        let earlier = Identity { started: own.started - 1, ..own.clone() };
        assert!(!earlier.is_alive() && earlier.is_taken_by_another());
        assert!(!Identity { boot: "another start of the machine".into(), ..own.clone() }.is_alive());
        assert!(!Identity { pid: i32::MAX, ..own }.is_alive());
    }

    #[test]
    fn a_process_was_started_after_the_machine_and_not_in_the_future() {
        let booted = booted_at().unwrap();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let started = Identity::of(child.id().cast_signed()).unwrap().started_at(booted);
        child.kill().unwrap();
        child.wait().unwrap();
        let now = std::fs::metadata("/proc/self").unwrap().modified().unwrap();
        let now = now.duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
        let apart = (i128::from(started.millis()) - i128::try_from(now).unwrap()).abs();
        assert!(started > booted && apart < 60_000, "{apart}");
    }

    #[test]
    fn a_zombie_is_not_alive() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let identity = Identity { pid: child.id().cast_signed(), started: 0, boot: boot_id().unwrap() };
        child.wait().unwrap();
        assert!(!identity.is_alive());
    }
}
