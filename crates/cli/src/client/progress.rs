//! How far something has come, for whoever watches.

use std::sync::LazyLock;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use podium_terminal as terminal;

use super::ending::printable;

/// How long is waited before the next look: a little longer each time.
const PACES: [Duration; 4] =
    [Duration::from_millis(100), Duration::from_millis(300), Duration::from_secs(1), Duration::from_secs(2)];

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
            bar.set_message("Waiting");
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        Self { bar, last: String::new() }
    }

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
pub(crate) async fn pause(round: &mut usize) {
    tokio::time::sleep(PACES[(*round).min(PACES.len() - 1)]).await;
    *round += 1;
}
