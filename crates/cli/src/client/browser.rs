//! The person's browser.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The program that opens pages: the one in `BROWSER`, or the system's.
fn program() -> String {
    let default = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    named().unwrap_or_else(|| default.into())
}

fn named() -> Option<String> {
    std::env::var("BROWSER").ok().filter(|name| !name.is_empty())
}

/// Whether there is a browser to open: one that is named, or a desktop.
pub(crate) fn is_there() -> bool {
    let has = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    named().is_some() || cfg!(target_os = "macos") || has("DISPLAY") || has("WAYLAND_DISPLAY")
}

/// A browser that cannot be started says so within this time.
const FAILS_WITHIN: Duration = Duration::from_secs(1);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Opens a web page; says whether a browser was started. It is not waited for: some stay in the foreground.
pub(crate) fn open(url: &str) -> bool {
    // Other schemes would open files, or be options.
    if !is_web_page(url) {
        return false;
    }
    let mut command = Command::new(program());
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(mut browser) = command.spawn() else { return false };
    let given_up = Instant::now() + FAILS_WITHIN;
    while Instant::now() < given_up {
        match browser.try_wait() {
            Ok(None) => std::thread::sleep(LOOK_AGAIN),
            ended => return ended.is_ok_and(|status| status.is_some_and(|status| status.success())),
        }
    }
    std::thread::spawn(move || browser.wait());
    true
}

fn is_web_page(url: &str) -> bool {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    rest.is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '['))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_web_pages_are_opened() {
        assert!(is_web_page("https://podium.example.com/sign-in/device?code=BCDF-GHJK"));
        for url in [
            "file:///etc/passwd",
            "--help",
            "javascript:alert(1)",
            "smb://host/share",
            "podium.example.com",
            "",
        ] {
            assert!(!is_web_page(url), "{url}");
            assert!(!open(url), "{url}");
        }
    }
}
