//! The person's browser.

use std::process::{Command, Stdio};

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

/// Opens a page; says whether a browser was started.
pub(crate) fn open(url: &str) -> bool {
    let mut command = Command::new(program());
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
