//! Waiting for what a command has started: for how long, and how to leave it.

mod interrupt;

use std::cell::RefCell;
use std::time::Duration;

use clap::Args;
use podium_terminal as terminal;

use super::ending::{Exit, Failed, Outcome, one_line};
use super::progress::{Progress, beside, pause};

/// Whether to wait.
#[derive(Args, Clone, Debug, Default)]
#[group(id = "waiting")]
pub(crate) struct Wait {
    /// Follow a change until it is done: the default on a terminal, and for podium deploy.
    #[arg(long, global = true, overrides_with = "no_wait")]
    wait: bool,
    /// Do not follow the change.
    #[arg(long, global = true)]
    no_wait: bool,
    /// Longest time to follow a change, such as 90s, 30m or 2h. After that the change continues, unwatched.
    #[arg(long, global = true, default_value = "30m", value_parser = duration, value_name = "TIME")]
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

    /// Waits for an end; when it takes too long, or at Ctrl-C, the watch says how to come back.
    pub(crate) async fn until<T>(&self, watch: &Watch, end: impl Future<Output = Outcome<T>>) -> Outcome<T> {
        let mut interrupt = interrupt::listen()?;
        tokio::select! {
            done = end => done,
            () = tokio::time::sleep(self.timeout) => Err(watch.leave()),
            () = interrupt.pressed() => Err(watch.leave()),
        }
    }
}

/// What somebody sees who waits.
pub(crate) struct Watch {
    progress: RefCell<Progress>,
    /// How it stands, and what to type to come back.
    last: RefCell<(String, String)>,
    /// How long a server may not answer before that is an error.
    patience: Duration,
}

/// How long a server that does not answer is asked again.
const PATIENCE: Duration = Duration::from_mins(1);

impl Watch {
    /// Asks a server, and again while it does not answer: it may be restarting. One that is gone is given up, and whoever
    /// waits is told how to come back.
    pub(crate) async fn ask<T>(&self, mut asked: impl AsyncFnMut() -> Outcome<T>) -> Outcome<T> {
        let trouble = RefCell::new(None);
        let answer = async {
            let mut tries = 0;
            loop {
                match asked().await {
                    Err(failed) if failed.is_passing() => {
                        self.say(&format!("{}; trying again", failed.reason()));
                        trouble.replace(Some(failed));
                        pause(&mut tries).await;
                    }
                    done => return done,
                }
            }
        };
        match tokio::time::timeout(self.patience, answer).await {
            Ok(done) => done,
            Err(_) => Err(self.give_up(trouble.take())),
        }
    }

    pub(crate) fn new() -> Self {
        let (progress, last) = (RefCell::new(Progress::new()), RefCell::default());
        Self { progress, last, patience: PATIENCE }
    }

    /// The server is gone, and what was started is not.
    fn give_up(&self, trouble: Option<Failed>) -> Failed {
        let failed =
            trouble.unwrap_or_else(|| Failed::new(Exit::Unreachable, "the server does not answer any more"));
        let again = &self.last.borrow().1;
        match again.is_empty() {
            true => failed,
            false => failed.hint(format!("The work continues on the server. {again}")),
        }
    }

    pub(crate) fn say(&self, line: &str) {
        self.progress.borrow_mut().say(line);
    }

    /// Says something that stays on the terminal.
    pub(crate) fn keep(&self, line: &str) {
        if terminal::is_interactive() {
            beside(|| eprintln!("{}", one_line(line)));
        }
    }

    /// Notes how it stands, and what to type to come back: whoever leaves is told.
    pub(crate) fn note(&self, stands: String, again: String) {
        self.last.replace((stands, again));
    }

    fn leave(&self) -> Failed {
        let (stands, again) = self.last.take();
        match stands.is_empty() {
            true => Failed::new(Exit::OperationFailed, "the work goes on"),
            false => {
                Failed::new(Exit::OperationFailed, format!("{}; it goes on", one_line(&stands))).hint(again)
            }
        }
    }
}

const NO_TIME: &str = "write 90s, 30m, 2h or 7d";

/// A number with a unit: seconds, minutes, hours or days.
pub(crate) fn duration(text: &str) -> Result<Duration, &'static str> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..split].parse().map_err(|_| NO_TIME)?;
    let seconds = match &text[split..] {
        "s" | "" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return Err(NO_TIME),
    };
    number.checked_mul(seconds).map(Duration::from_secs).ok_or(NO_TIME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_server_that_is_gone_is_given_up_with_the_way_back() {
        let gone = async || Err::<(), _>(Failed::new(Exit::Unreachable, "nobody listens"));
        let watch = Watch { patience: Duration::ZERO, ..Watch::new() };
        watch.note(
            "UPDATE of nightly is still RUNNING".into(),
            "To follow it again: podium operation follow c1".into(),
        );
        let told = "podium: nobody listens\n\
                    The work continues on the server. To follow it again: podium operation follow c1\n";
        assert_eq!(watch.ask(gone).await.unwrap_err().text(), told);
        let silent = async || std::future::pending::<Outcome>().await;
        let failed = Watch { patience: Duration::ZERO, ..Watch::new() }.ask(silent).await.unwrap_err();
        assert_eq!(
            (failed.exit, failed.reason().as_str()),
            (Exit::Unreachable, "the server does not answer any more")
        );
        assert_eq!(watch.ask(async || Ok(5)).await.unwrap(), 5);
    }

    #[test]
    fn times_are_read() {
        for (text, seconds) in [("90s", 90), ("30m", 1_800), ("2h", 7_200), ("7d", 604_800), ("5", 5)] {
            assert_eq!(duration(text).unwrap().as_secs(), seconds);
        }
        for wrong in ["", "m", "2w", "-1h", "99999999999999999999d", "18446744073709551615d"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
