//! URLs that callers provide and others click on: `http` and `https` only, since other schemes (`javascript:`,
//! `data:`, `file:`) run or open something for the person who follows the link. Nothing here is ever fetched.

pub fn is_web(text: &str) -> bool {
    let is = |scheme: &str| text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    let rest =
        ["https://", "http://"].into_iter().find(|scheme| is(scheme)).map(|scheme| &text[scheme.len()..]);
    let host = rest.and_then(|rest| authority(rest).rsplit('@').next()).unwrap_or_default();
    !host.is_empty() && is_plain(text)
}

/// What is wrong with a URL of the web that has placeholders. Blanks may stand inside double braces, where templates
/// have them (`{{ dag_id }}`), and nowhere else.
pub fn pattern_fault(pattern: &str) -> Option<String> {
    let mut without_blanks = String::with_capacity(pattern.len());
    let mut rest = pattern;
    while !rest.is_empty() {
        let (text, placeholder) = rest.split_at(rest.find("{{").unwrap_or(rest.len()));
        let length = placeholder.find("}}").map_or(0, |end| end + 2);
        let text = if length == 0 { rest } else { text };
        if let Some(at) = text.find(' ') {
            let before = &pattern[..pattern.len() - rest.len() + at];
            return Some(format!(
                "must not have a blank outside `{{{{ }}}}`: there is one after `{before}`. Write it as `%20`"
            ));
        }
        without_blanks.push_str(text);
        without_blanks.extend(placeholder[..length].chars().filter(|c| *c != ' '));
        rest = &rest[text.len() + length..];
    }
    (!is_web(&without_blanks)).then(|| {
        "must be an http or https URL, such as https://logs.example.com/{{ dag_id }}/{{ run_id }}".into()
    })
}

/// Whether a text is where a repository is fetched from, in any form that Git takes: a URL of the web, of SSH, of Git's
/// own protocol or of a file, `host:path` with or without a user, or a path. What a browser would run is none.
pub fn is_remote(text: &str) -> bool {
    let is_one_line = !text.contains(char::is_control) && podium_api::text::hidden(text).is_none();
    if !is_one_line || text.is_empty() || text.starts_with('-') || text != text.trim() {
        return false;
    }
    if let Some((scheme, rest)) = text.split_once("://") {
        let scheme = scheme.to_ascii_lowercase();
        return match scheme.as_str() {
            "http" | "https" => is_web(text),
            "file" => !rest.is_empty(),
            "ssh" | "git" | "git+ssh" | "ssh+git" => {
                is_plain(text) && authority(rest).rsplit('@').next().is_some_and(|host| !host.is_empty())
            }
            _ => false,
        };
    }
    // As for Git, a colon before any slash ends a host.
    match text.split_once(':') {
        Some((host, path)) if !host.contains('/') => {
            const RUN: [&str; 8] =
                ["javascript", "data", "vbscript", "http", "https", "file", "blob", "about"];
            let is_host =
                |host: &str| !host.is_empty() && !RUN.iter().any(|it| host.eq_ignore_ascii_case(it));
            let parts: Vec<&str> = host.split('@').collect();
            is_plain(text) && !path.is_empty() && parts.into_iter().all(is_host)
        }
        _ => true,
    }
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
    fn only_safe_schemes_are_accepted_as_urls() {
        let web = "https://example.com http://example.com/a?b=c#d HTTPS://Example.com/x https://ada@example.com/x \
            https://logs.example.com/{dag_id}/{run_id}";
        for text in web.split(' ') {
            assert!(is_web(text) && is_remote(text), "{text:?}");
        }
        let remote = "ssh://git@example.com/a/b.git git@example.com:a/b.git example.com/a //example.com \
            file:///srv/git/a.git example.com:a/b.git ../a.git ./a:b git://example.com/a.git \
            git+ssh://git@example.com/a.git";
        for text in remote.split(' ').chain(["/srv/git/a b.git"]) {
            assert!(!is_web(text) && is_remote(text), "{text:?}");
        }
        let neither = "https:// https:///path https://@/path https:example.com javascript:alert(1) \
            JaVaScRiPt:alert(1) javascript://example.com/%0aalert(1) javascript:alert@example.com:1 \
            data:text/html,x ftp://example.com https://example.com/\"onclick= https:\\\\example.com git@:a @host:a \
            git:///a.git --upload-pack=x VBScript:x /srv/git\u{202e}/a";
        let spaced =
            ["", " javascript:alert(1)", "https://example.com/a b", "git@example.com:a b", "ext::sh -c x"];
        for text in neither.split(' ').chain(spaced).chain(["https://example.com/\nx", "/srv/git\n/a"]) {
            assert!(!is_web(text) && !is_remote(text), "{text:?}");
        }
    }

    #[test]
    fn blanks_stand_inside_the_placeholders_of_a_pattern() {
        for fine in [
            "https://logs.test/{{ dag_id }}/{{run_id}}/{{  task_id}}",
            "https://{{ host }}.logs.test/?dag={{ dag_id }}&run={{ run_id | urlencode }}",
            "https://logs.test/{dag_id}/{run_id}",
            "https://logs.test/{{dag_id",
        ] {
            assert_eq!(pattern_fault(fine), None, "{fine}");
        }
        for (wrong, before) in [
            ("https://logs.test/a b", "https://logs.test/a"),
            ("https://logs.test/{{ dag_id }}/a {{ b }}", "https://logs.test/{{ dag_id }}/a"),
            ("https://logs.test/{{ dag_id }} ", "https://logs.test/{{ dag_id }}"),
            ("https://logs.test/{ dag_id }", "https://logs.test/{"),
            ("https://logs.test/{{ dag_id", "https://logs.test/{{"),
            ("https://logs.test/}} {{ dag_id }}", "https://logs.test/}}"),
        ] {
            let said = format!("there is one after `{before}`.");
            assert!(pattern_fault(wrong).is_some_and(|message| message.contains(&said)), "{wrong}");
        }
        for wrong in [
            "javascript:alert({{ x }})",
            "//logs.test/{{ dag_id }}",
            "https:///{{ dag_id }}",
            "https://logs.test/{{ \"onclick= }}",
            "https://logs.test/{{ a\nb }}",
            "https://logs.test/{{ a\u{a0}b }}",
            "{{ base }}/x",
            "",
        ] {
            assert!(
                pattern_fault(wrong).is_some_and(|message| message.starts_with("must be an http")),
                "{wrong}"
            );
        }
    }
}
