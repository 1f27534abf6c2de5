//! Styles and scripts, compiled into the binary and served under names that change with their content.

use std::sync::LazyLock;

use xxhash_rust::xxh3::xxh3_64;

use crate::ROOT;

/// A file that pages load.
#[derive(Debug)]
pub struct Asset {
    /// Its path, which contains a hash of its content: it can be cached for ever.
    pub path: String,
    pub media_type: &'static str,
    pub content: &'static str,
}

static STYLE: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new("console", "css", "text/css; charset=utf-8", include_str!("../assets/console.css"))
});
static SCRIPT: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new("console", "js", "text/javascript; charset=utf-8", include_str!("../assets/console.js"))
});
static ACCEPT_INVITE: LazyLock<Asset> = LazyLock::new(|| {
    let content = include_str!("../assets/accept-invite.js");
    Asset::new("accept-invite", "js", "text/javascript; charset=utf-8", content)
});
static ICON: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("icon", "svg", "image/svg+xml", include_str!("../assets/icon.svg")));

impl Asset {
    fn new(name: &str, extension: &str, media_type: &'static str, content: &'static str) -> Self {
        let path = format!("{ROOT}/assets/{name}-{:016x}.{extension}", xxh3_64(content.as_bytes()));
        Self { path, media_type, content }
    }
}

pub fn find(path: &str) -> Option<&'static Asset> {
    [&*STYLE, &*SCRIPT, &*ICON, &*ACCEPT_INVITE].into_iter().find(|asset| asset.path == path)
}

pub(crate) fn style() -> &'static str {
    &STYLE.path
}

pub(crate) fn script() -> &'static str {
    &SCRIPT.path
}

/// The path of the script that accepts an invite.
pub(crate) fn accept_invite_script() -> &'static str {
    &ACCEPT_INVITE.path
}

pub(crate) fn icon() -> &'static str {
    &ICON.path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_asset_is_found_at_its_path_only() {
        assert_eq!(find(style()).unwrap().media_type, "text/css; charset=utf-8");
        assert!(find("/console/assets/console.css").is_none());
    }

    #[test]
    fn styles_and_scripts_fetch_nothing_from_elsewhere() {
        for asset in [&*STYLE, &*SCRIPT, &*ICON, &*ACCEPT_INVITE] {
            let text = asset.content.replace("http://www.w3.org/2000/svg", "");
            assert!(
                !text.contains("http://") && !text.contains("https://") && !text.contains("@import"),
                "{}",
                asset.path
            );
        }
        assert!(STYLE.content.len() + SCRIPT.content.len() < 60_000);
    }
}
