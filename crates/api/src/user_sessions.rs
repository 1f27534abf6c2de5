//! The caller's own sessions: what is signed in as the person, and how to end it.

use crate::enums::SessionKind;
use crate::path::OfSession;
use crate::reply::Many;
use crate::{SessionId, Timestamp};

endpoints! {
    tag "Auth";

    /// List your sessions
    List: GET "/auth/sessions" as "ListSessions" {
        query: ListSessions, reply: Many<SessionsPaginated>,
        open_to: SignedIn, also: [403], marks: [live],
    }
    /// End one of your sessions
    End: DELETE "/auth/sessions/{sessionId}" as "EndSession" {
        path: OfSession,
        open_to: SignedIn, without_event: "a session belongs to no organization", also: [403, 404],
    }
    /// End all your sessions except the one that asks
    EndOthers: POST "/auth/sessions/end-others" as "EndOtherSessions" {
        open_to: SignedIn, without_event: "a session belongs to no organization", also: [403],
    }
}

wire! {
    /// Which sessions to list.
    sorted["createdAt", "lastUsedAt"] pub struct ListSessions {}

    /// A session of the caller.
    pub struct UserSession {
        /// Its id.
        pub id: SessionId,
        /// What has signed in.
        pub kind: SessionKind,
        /// Whether this request was made with the session.
        pub is_current: bool,
        /// Whether the session that this request was made with ends with it: it is the session itself, or the token that the
        /// browser signed in with.
        pub ends_current: bool,
        /// What the machine of a terminal calls itself, where it was signed in with a browser.
        pub client_name: Option<String>,
        /// The address that it was begun at, where that is known.
        pub address: Option<String>,
        /// The user agent that it was begun with, where that is known. Whoever signed in chose this text.
        pub user_agent: Option<String>,
        /// When it began.
        pub created_at: Timestamp,
        /// When it was last used, to the minute; written once a minute.
        pub last_used_at: Timestamp,
        /// When it expires.
        pub expires_at: Option<Timestamp>,
    }

    /// A page of sessions.
    page SessionsPaginated {
        /// The sessions.
        sessions: Vec<UserSession>
    }
}

/// What user agents of browsers contain, and what the browser is called. Most name others, too, so the order matters.
const BROWSERS: &[(&str, &str)] = &[
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser/", "Samsung Internet"),
    ("Firefox/", "Firefox"),
    ("FxiOS/", "Firefox"),
    ("CriOS/", "Chrome"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
];
/// The same for systems.
const SYSTEMS: &[(&str, &str)] = &[
    ("Windows", "Windows"),
    ("Android", "Android"),
    ("iPhone", "iOS"),
    ("iPad", "iPadOS"),
    ("Mac OS X", "macOS"),
    ("CrOS", "ChromeOS"),
    ("Linux", "Linux"),
];
/// How much of a user agent is shown that is in no list.
const SHOWN: usize = 60;

impl UserSession {
    /// What has signed in, in a few words. They are a guess: whoever signed in chose the text that they come from.
    pub fn device(&self) -> String {
        let agent = self.user_agent.as_deref().unwrap_or_default();
        match self.kind {
            SessionKind::Operator => "Operator of the server".to_owned(),
            SessionKind::Token => "Token that never expires".to_owned(),
            SessionKind::Browser => known(agent).unwrap_or_else(|| shortened(agent, "Browser")),
            SessionKind::Terminal => match &self.client_name {
                Some(name) => shortened(name, "Terminal"),
                None => known(agent).unwrap_or_else(|| shortened(agent, "Terminal")),
            },
        }
    }
}

/// The browser and the system that a user agent names.
fn known(agent: &str) -> Option<String> {
    let found = |all: &[(&str, &'static str)]| {
        all.iter().find(|(part, _)| agent.contains(part)).map(|(_, name)| *name)
    };
    let browser = found(BROWSERS)?;
    Some(found(SYSTEMS).map_or_else(|| browser.to_owned(), |system| format!("{browser} on {system}")))
}

fn shortened(text: &str, nothing: &str) -> String {
    if text.is_empty() {
        return nothing.to_owned();
    }
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Id;

    fn device(kind: SessionKind, client_name: Option<&str>, user_agent: &str) -> String {
        let at = Timestamp::from_millis(0);
        let session = UserSession {
            id: SessionId::from_raw(Id::from_parts(0, 0, 0)),
            kind,
            is_current: false,
            ends_current: false,
            client_name: client_name.map(str::to_owned),
            address: None,
            user_agent: (!user_agent.is_empty()).then(|| user_agent.to_owned()),
            created_at: at,
            last_used_at: at,
            expires_at: None,
        };
        session.device()
    }

    #[test]
    fn a_device_is_named_in_a_few_words() {
        let agents = [
            ("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox on Linux"),
            (
                "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/138.0.0.0 \
                 Safari/537.36 Edg/138.0.0.0",
                "Edge on Windows",
            ),
            (
                "Mozilla/5.0 (Linux; Android 16) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/138.0.0.0 Mobile \
                 Safari/537.36",
                "Chrome on Android",
            ),
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) \
                 Version/18.5 Mobile/15E148 Safari/604.1",
                "Safari on iOS",
            ),
            ("curl/8.14.1", "curl/8.14.1"),
            ("", "Browser"),
        ];
        for (agent, words) in agents {
            assert_eq!(device(SessionKind::Browser, None, agent), words);
        }
        assert_eq!(device(SessionKind::Terminal, Some("ada@desk"), "podium/1.0"), "ada@desk");
        assert_eq!(device(SessionKind::Terminal, None, "podium/1.0"), "podium/1.0");
        assert_eq!(device(SessionKind::Operator, None, ""), "Operator of the server");
        let long = "ä".repeat(300);
        assert_eq!(device(SessionKind::Browser, None, &long), format!("{}…", "ä".repeat(SHOWN)));
    }
}
