//! Which process is meant, so that a number that was given to somebody else is never taken for it.

use std::fs;
use std::io;

use serde::{Deserialize, Serialize};

/// A process that was started once: its number, when it started, and since which start of the machine that counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    pub(super) pid: i32,
    started: u64,
    boot: String,
}

impl Identity {
    /// The process that has this number now, also when it has ended already and its parent has not noticed.
    pub(super) fn of(pid: i32) -> io::Result<Self> {
        Ok(Self { pid, started: look_at(pid)?.started, boot: boot_id()? })
    }

    /// Whether this very process is still there, and not only waiting for its parent to notice its end.
    pub(super) fn is_alive(&self) -> bool {
        look_at(self.pid).is_ok_and(|seen| seen.started == self.started && !seen.is_dead)
            && boot_id().is_ok_and(|boot| boot == self.boot)
    }

    /// Whether its number was given to another process meanwhile.
    pub(super) fn is_taken_by_another(&self) -> bool {
        look_at(self.pid).is_ok_and(|seen| seen.started != self.started)
            || boot_id().is_ok_and(|boot| boot != self.boot)
    }
}

/// Whether a process is stopped: there, and doing nothing until somebody lets it go on.
pub(super) fn is_stopped(pid: i32) -> bool {
    look_at(pid).is_ok_and(|seen| seen.is_stopped)
}

fn boot_id() -> io::Result<String> {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|text| text.trim().to_owned())
}

/// What the kernel says of a process.
struct Seen {
    /// When it started, in the kernel's ticks.
    started: u64,
    /// Whether only its remains are left.
    is_dead: bool,
    /// Whether it was stopped by a signal.
    is_stopped: bool,
}

fn look_at(pid: i32) -> io::Result<Seen> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name stands in parentheses and may contain anything.
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
    fn another_process_with_the_same_number_is_not_meant() {
        let own = Identity::of(std::process::id().cast_signed()).unwrap();
        assert!(own.is_alive());
        assert!(!own.is_taken_by_another());
        let earlier = Identity { started: own.started - 1, ..own.clone() };
        assert!(!earlier.is_alive() && earlier.is_taken_by_another());
        assert!(!Identity { boot: "another start of the machine".into(), ..own.clone() }.is_alive());
        assert!(!Identity { pid: i32::MAX, ..own }.is_alive());
    }

    #[test]
    fn a_process_that_only_waits_to_be_noticed_is_gone() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let identity = Identity { pid: child.id().cast_signed(), started: 0, boot: boot_id().unwrap() };
        child.wait().unwrap();
        assert!(!identity.is_alive());
    }
}
