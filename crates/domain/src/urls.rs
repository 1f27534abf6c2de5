//! URLs that callers give and others click on: `http` and `https` only, since whatever else there is (`javascript:`,
//! `data:`, `file:`) runs or opens something for whoever follows the link. Nothing here is ever fetched.

/// Whether a text is a URL of the web.
pub fn is_web(text: &str) -> bool {
    let is = |scheme: &str| text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    let rest =
        ["https://", "http://"].into_iter().find(|scheme| is(scheme)).map(|scheme| &text[scheme.len()..]);
    let host = rest.and_then(|rest| authority(rest).rsplit('@').next()).unwrap_or_default();
    !host.is_empty() && is_plain(text)
}

/// Whether a text is where a repository is fetched from: a URL of the web or of SSH, or `user@host:path`.
pub fn is_remote(text: &str) -> bool {
    let over_ssh = text.strip_prefix("ssh://").map(authority);
    let by_user = text.split_once(':').and_then(|(host, path)| {
        let (user, host) = host.split_once('@')?;
        let is_word = |word: &str| !word.is_empty() && !word.contains('/');
        (is_word(user) && is_word(host) && !path.is_empty() && !path.starts_with("//")).then_some(host)
    });
    is_web(text) || is_plain(text) && over_ssh.or(by_user).is_some_and(|host| !host.is_empty())
}

/// Whether a URL has a user, with or without a password, in front of its host.
pub fn has_user(text: &str) -> bool {
    text.split_once("://").is_some_and(|(_, rest)| authority(rest).contains('@'))
}

fn authority(rest: &str) -> &str {
    rest.split(['/', '?', '#', '\\']).next().unwrap_or_default()
}

fn is_plain(text: &str) -> bool {
    !text.contains(|c: char| c.is_whitespace() || c.is_control() || matches!(c, '<' | '>' | '"' | '\\'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_safe_to_follow_is_a_url() {
        let table = [
            ("https://example.com", true, true),
            ("http://example.com/a?b=c#d", true, true),
            ("HTTPS://Example.com/x", true, true),
            ("https://ada@example.com/x", true, true),
            ("https://logs.example.com/{dag_id}/{run_id}", true, true),
            ("ssh://git@example.com/a/b.git", false, true),
            ("git@example.com:a/b.git", false, true),
            ("", false, false),
            ("example.com/a", false, false),
            ("https://", false, false),
            ("https:///path", false, false),
            ("https://@/path", false, false),
            ("https:example.com", false, false),
            ("//example.com", false, false),
            ("javascript:alert(1)", false, false),
            ("JaVaScRiPt:alert(1)", false, false),
            ("javascript://example.com/%0aalert(1)", false, false),
            ("javascript:alert@example.com:1", false, false),
            (" javascript:alert(1)", false, false),
            ("data:text/html,x", false, false),
            ("file:///etc/passwd", false, false),
            ("ftp://example.com", false, false),
            ("https://example.com/a b", false, false),
            ("https://example.com/\nx", false, false),
            ("https://example.com/\"onclick=", false, false),
            ("https:\\\\example.com", false, false),
            ("git@example.com:a b", false, false),
            ("git@:a", false, false),
            ("@host:a", false, false),
        ];
        for (text, web, remote) in table {
            assert_eq!((is_web(text), is_remote(text)), (web, remote), "{text:?}");
        }
    }
}
