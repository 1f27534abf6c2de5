//! Where the pictures of people are.

use std::sync::OnceLock;

use podium_domain::pictures;

use crate::Founder;

/// The address of the server. A process is one server, and profiles are read in too many places to hand it to each.
static SERVED_AT: OnceLock<String> = OnceLock::new();

/// Says where pictures are served from. The first time counts.
pub fn serve_at(_: &Founder, public_url: &str) {
    let _ = SERVED_AT.set(public_url.trim_end_matches('/').to_owned());
}

/// The URL of the picture of a person; empty for one without a letter in its names.
pub(crate) fn url(full_name: &str, username: &str) -> String {
    let base = SERVED_AT.get().map_or("", String::as_str);
    pictures::path(full_name, username).map(|path| format!("{base}{path}")).unwrap_or_default()
}
