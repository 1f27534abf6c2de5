//! The identity of a process, so that another process with a reused pid is never mistaken for it.

use std::time::Duration;
use std::{fs, io};

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
        Ok(Self { pid, started: Stat::of(pid)?.started, boot: boot_id()? })
    }

    /// Whether this process is still running, and not a zombie.
    pub(super) fn is_alive(&self) -> bool {
        Stat::of(self.pid).is_ok_and(|seen| seen.started == self.started && !seen.is_dead)
            && boot_id().is_ok_and(|boot| boot == self.boot)
    }

    /// When it was started, for one of this boot that starts at `booted`.
    pub(super) fn started_at(&self, booted: Timestamp) -> Timestamp {
        booted + self.since_boot()
    }

    /// When it was started, as a time since the start of the machine.
    pub(super) fn since_boot(&self) -> Duration {
        time_of(self.started)
    }

    /// Whether its pid has been reused for another process.
    pub(super) fn is_taken_by_another(&self) -> bool {
        Stat::of(self.pid).is_ok_and(|seen| seen.started != self.started)
            || boot_id().is_ok_and(|boot| boot != self.boot)
    }
}

/// Whether a process is stopped by a signal.
pub(super) fn is_stopped(pid: i32) -> bool {
    Stat::of(pid).is_ok_and(|seen| seen.is_stopped)
}

pub(super) fn booted_at() -> Option<Timestamp> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let seconds = stat.lines().find_map(|line| line.strip_prefix("btime "))?;
    Some(Timestamp::from_millis(seconds.trim().parse::<i64>().ok()? * 1000))
}

fn boot_id() -> io::Result<String> {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|text| text.trim().to_owned())
}

/// What the kernel reports about a process.
pub(super) struct Stat {
    pub(super) is_dead: bool,
    is_stopped: bool,
    pub(super) group: i32,
    /// User and system time, of its own and of the children that it has waited for.
    pub(super) worked: Duration,
    /// Its start time, in clock ticks.
    started: u64,
}

impl Stat {
    pub(super) fn of(pid: i32) -> io::Result<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        Ok(Self::parse(&stat).ok_or(io::ErrorKind::InvalidData)?)
    }

    fn parse(stat: &str) -> Option<Self> {
        // The name is in parentheses and may contain anything.
        let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
        let state = *fields.first()?;
        Some(Self {
            is_dead: matches!(state, "Z" | "X" | "x"),
            is_stopped: state == "T",
            group: fields.get(2)?.parse().ok()?,
            worked: time_of(fields.get(11..15)?.iter().filter_map(|field| field.parse::<u64>().ok()).sum()),
            started: fields.get(19)?.parse().ok()?,
        })
    }
}

/// So many clock ticks as a time.
fn time_of(ticks: u64) -> Duration {
    let ticks_per_second = rustix::param::clock_ticks_per_second().max(1);
    Duration::from_millis(ticks.saturating_mul(1000) / ticks_per_second)
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
