//! Waits until a deployment has settled, and says why when it is not healthy.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use clap::Args;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use podium_api::deployments;
use podium_api::path::OfDeployment;
use serde_json::Value;

use super::ending::{Exit, Failed, Outcome, printable};
use super::session::{Session, text};
use crate::terminal;

/// How often the server is asked at first, and at most.
const PACES: [Duration; 4] =
    [Duration::from_millis(100), Duration::from_millis(300), Duration::from_secs(1), Duration::from_secs(2)];

/// Whether to wait.
#[derive(Args, Clone)]
#[group(id = "waiting")]
pub(crate) struct Wait {
    /// Wait until the deployment has settled; this is the default on a terminal.
    #[arg(long, overrides_with = "no_wait")]
    wait: bool,
    /// Do not wait.
    #[arg(long)]
    no_wait: bool,
    /// Longest time to wait, such as 90s, 30m or 2h.
    #[arg(long, default_value = "30m", value_parser = duration, value_name = "TIME")]
    timeout: Duration,
}

impl Wait {
    /// Whether to wait: as told, or else if somebody is watching.
    pub(crate) fn is_wanted(&self) -> bool {
        self.wait || (!self.no_wait && terminal::is_interactive())
    }

    /// Whether to wait unless told not to.
    pub(crate) fn is_default(&self) -> bool {
        !self.no_wait
    }

    /// Waits for a deployment, if that is wanted.
    pub(crate) async fn settle(&self, session: &Session, path: &OfDeployment) -> Outcome {
        if self.is_wanted() { session.settle(path, self).await.map(drop) } else { Ok(()) }
    }

    /// When to stop waiting.
    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + self.timeout
    }
}

/// A text that is no time.
#[derive(Debug)]
pub(crate) struct NoTime;

impl std::fmt::Display for NoTime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("write 90s, 30m, 2h or 7d")
    }
}

impl std::error::Error for NoTime {}

/// A number with a unit: seconds, minutes, hours or days.
pub(crate) fn duration(text: &str) -> Result<Duration, NoTime> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..split].parse().map_err(|_| NoTime)?;
    let seconds = match &text[split..] {
        "s" | "" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return Err(NoTime),
    };
    number.checked_mul(seconds).map(Duration::from_secs).ok_or(NoTime)
}

/// Everything that moves on the terminal.
static MOVING: LazyLock<MultiProgress> = LazyLock::new(MultiProgress::new);

/// Writes lines while something may be moving on the terminal: it makes room, and goes on below them.
pub(crate) fn beside<T>(write: impl FnOnce() -> T) -> T {
    MOVING.suspend(write)
}

/// Shows a bar or a spinner on the terminal, if somebody watches.
pub(crate) fn moving(bar: ProgressBar, template: &str) -> ProgressBar {
    if !terminal::is_interactive() {
        return ProgressBar::hidden();
    }
    bar.set_style(ProgressStyle::with_template(template).expect("a template"));
    MOVING.add(bar)
}

/// Shows how far something has come: one line that changes on a terminal, lines otherwise.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    last: String,
}

impl Progress {
    pub(crate) fn new() -> Self {
        let bar = terminal::is_interactive().then(|| {
            let bar = moving(ProgressBar::new_spinner(), "{spinner} {msg} ({elapsed})");
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        Self { bar, last: String::new() }
    }

    /// Says where it is now.
    pub(crate) fn say(&mut self, now: &str) {
        let now = printable(now).replace('\n', " ");
        match &self.bar {
            Some(bar) => bar.set_message(now.clone()),
            None if now != self.last => eprintln!("{now}"),
            None => {}
        }
        self.last = now;
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
            MOVING.remove(bar);
        }
    }
}

/// Waits a little longer each time.
pub(crate) async fn pause(round: usize) {
    tokio::time::sleep(PACES[round.min(PACES.len() - 1)]).await;
}

impl Session {
    /// Waits until a deployment has settled; it is an error if it did not become healthy.
    pub(crate) async fn settle(&self, path: &OfDeployment, wait: &Wait) -> Outcome<Value> {
        let deadline = wait.deadline();
        let mut progress = Progress::new();
        let mut round = 0;
        loop {
            let now = self.get::<deployments::Get>(path).await?;
            let (name, status, reason) =
                (text(&now["name"]), text(&now["status"]), text(&now["statusReason"]));
            if is_settled(&now) {
                drop(progress);
                return match status {
                    "HEALTHY" | "HIBERNATING" => {
                        eprintln!("{} is {status}.", printable(name));
                        Ok(now)
                    }
                    _ => {
                        Err(Failed::new(Exit::OperationFailed, format!("{name} is {status}: {reason}")).hint(
                            format!("Its logs: podium logs --deployment {:?} --since 1h", printable(name)),
                        ))
                    }
                };
            }
            let why = if reason.is_empty() { String::new() } else { format!(": {reason}") };
            progress.say(&format!("{name} is {status}{why}"));
            if Instant::now() > deadline {
                let message = format!("{name} is still {status}{why}");
                return Err(Failed::new(Exit::OperationFailed, message).hint(format!(
                    "It goes on. To wait longer: podium deployment wait {name:?} --timeout 2h"
                )));
            }
            tokio::select! {
                () = pause(round) => {}
                _ = tokio::signal::ctrl_c() => {
                    return Err(Failed::new(Exit::OperationFailed, format!("{name} is still {status}; it goes on"))
                        .hint(format!("To wait for it again: podium deployment wait {name:?}")));
                }
            }
            round += 1;
        }
    }
}

/// Whether the data plane has done what it was told. A status that only a newer server knows is waited for.
fn is_settled(deployment: &Value) -> bool {
    let is_known = matches!(text(&deployment["status"]), "HEALTHY" | "UNHEALTHY" | "HIBERNATING" | "UNKNOWN");
    let (wanted, live) = (&deployment["desiredDagTarballVersion"], &deployment["dagTarballVersion"]);
    let is_hibernating = text(&deployment["status"]) == "HIBERNATING";
    let is_failed = text(&deployment["status"]) == "UNHEALTHY";
    is_known && (is_hibernating || is_failed || text(wanted) == text(live))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn times_are_read() {
        for (text, seconds) in [("90s", 90), ("30m", 1_800), ("2h", 7_200), ("7d", 604_800), ("5", 5)] {
            assert_eq!(duration(text).unwrap().as_secs(), seconds);
        }
        for wrong in ["", "m", "2w", "-1h", "99999999999999999999d", "18446744073709551615d"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_deployment_has_settled_when_it_runs_what_it_was_told() {
        let table = [
            ("CREATING", "", "", false),
            ("DEPLOYING", "2", "2", false),
            ("OF_A_NEWER_SERVER", "2", "2", false),
            ("HEALTHY", "2", "1", false),
            ("HEALTHY", "2", "2", true),
            ("HEALTHY", "", "", true),
            ("UNHEALTHY", "2", "1", true),
            ("HIBERNATING", "2", "1", true),
        ];
        for (status, wanted, live, expected) in table {
            let deployment =
                json!({ "status": status, "desiredDagTarballVersion": wanted, "dagTarballVersion": live });
            assert_eq!(is_settled(&deployment), expected, "{deployment}");
        }
    }
}
