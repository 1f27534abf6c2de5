//! Drains: lets running tasks finish before the processes that run them restart.
//!
//! While a request file exists the executor accepts no further tasks, and reports in two other files which tasks still
//! run, and when none does. The request outlives the control plane, so a drain continues across restarts. The reports
//! may have been written by untrusted code.

use podium_api::Timestamp;
use podium_domain::UserText;

/// The name of the report that no task is running any more, among the files of
/// [`Files::status`](crate::files::Files::status).
pub const DRAINED: &str = "drained";
/// The name of the report of the tasks that are still running.
pub const WAITING: &str = "waiting";
/// How much is read of that.
pub const LONGEST_WAITING: usize = 16 * 1024;
/// How many task instances are named that a drain waits for.
const MOST_WAITED_FOR: usize = 20;

/// A request to accept no further tasks, which the executor repeats in what it reports. It is told from others by the time at
/// which it was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrainRequest {
    pub made_at: Timestamp,
}

impl DrainRequest {
    pub fn parse(text: &str) -> Option<Self> {
        text.parse().ok().map(|millis| Self { made_at: Timestamp::from_millis(millis) })
    }

    pub fn text(self) -> String {
        self.made_at.millis().to_string()
    }

    /// Whether a report says that no task is running any more.
    pub fn is_done(self, said: Option<&[u8]>) -> bool {
        said == Some(self.text().as_bytes())
    }

    /// The task instances that the executor names for this request.
    pub fn waits_for(self, said: Option<&[u8]>) -> Vec<String> {
        let text = String::from_utf8_lossy(said.unwrap_or_default());
        let mut lines = text.lines();
        if lines.next() != Some(&self.text()) {
            return Vec::new();
        }
        let shown = |line: &str| line.chars().filter(|c| !c.is_control()).collect::<String>();
        lines.map(shown).filter(|line| !line.is_empty()).take(MOST_WAITED_FOR).collect()
    }
}

/// A text for users that says what is being waited for.
pub fn waiting(what: &'static str, until: Timestamp) -> UserText {
    UserText::filled(
        "waiting for running tasks to finish before {}, until {} at the latest",
        &[&what, &until],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tasks_of_this_drain_are_named() {
        let request = DrainRequest::parse("7").unwrap();
        assert_eq!(request.text(), "7");
        let waits_for = |said: Option<&[u8]>| request.waits_for(said);
        assert_eq!(waits_for(Some(b"7\ndag/run/one\n\ndag/run/\x07two")), ["dag/run/one", "dag/run/two"]);
        for other in [None, Some(&b"6\ndag/run/one"[..]), Some(b""), Some(b"7")] {
            assert_eq!(waits_for(other), [""; 0]);
        }
        let many = format!("7\n{}", "dag/run/task\n".repeat(50));
        assert_eq!(waits_for(Some(many.as_bytes())).len(), MOST_WAITED_FOR);
    }

    #[test]
    fn a_drain_is_over_when_its_own_request_is_repeated() {
        let request = DrainRequest { made_at: Timestamp::from_millis(1_800_000_000_000) };
        assert_eq!(DrainRequest::parse(&request.text()), Some(request));
        assert_eq!(DrainRequest::parse("soon"), None);
        assert!(request.is_done(Some(b"1800000000000")));
        for other in [None, Some(&b""[..]), Some(b"1800000000001"), Some(b"1800000000000\n")] {
            assert!(!request.is_done(other));
        }
    }
}
