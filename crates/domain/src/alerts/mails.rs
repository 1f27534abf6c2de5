//! What the mails of alerts say: what, since when, why, and which command to run next.
//!
//! Names of DAGs and runs come from environments, whose authors are not trusted. They are shown without characters that
//! could disguise them, and a command contains one only if a shell takes it literally.

use std::fmt::Write as _;

use podium_api::AlertId;
use podium_api::enums::AlertKind;
use podium_api::events::EventAlertFiring;

use super::{MOST_DESCRIBED, by_place};

/// How many firings of one place a mail describes where there are others: no place hides the others.
const MOST_OF_PLACE: usize = 5;

/// A mail to everybody that an alert tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mail {
    pub subject: String,
    pub body: String,
}

/// The mail that tells of what an alert has found, and of what is over.
pub fn compose((id, name): (AlertId, &str), kind: AlertKind, firings: &[EventAlertFiring]) -> Mail {
    let (over, open): (Vec<_>, Vec<_>) = firings.iter().cloned().partition(|firing| firing.until.is_some());
    let status = if open.is_empty() { "Resolved" } else { "Firing" };
    let mut body = format!("Alert: {name} ({kind})\n");
    section(&mut body, "Firing", kind, open);
    section(&mut body, "Resolved", kind, over);
    let _ = write!(body, "\nAll that this alert has found:\n  podium alert firings {id}\n");
    Mail { subject: format!("{status}: {name}"), body }
}

fn section(body: &mut String, title: &str, kind: AlertKind, firings: Vec<EventAlertFiring>) {
    if firings.is_empty() {
        return;
    }
    let _ = writeln!(body, "\n{title}:");
    let places = by_place(firings);
    let most = if places.len() == 1 { MOST_DESCRIBED } else { MOST_OF_PLACE };
    let left_out: usize = places.iter().skip(MOST_DESCRIBED).map(|(_, there)| there.len()).sum();
    for (_, there) in places.iter().take(MOST_DESCRIBED) {
        for firing in there.iter().take(most) {
            describe(body, kind, firing);
        }
        if there.len() > most {
            let name = plain(&there[0].subject.name);
            let _ = writeln!(body, "\n- and {} more of {name}", there.len() - most);
        }
    }
    if left_out > 0 {
        let _ = writeln!(body, "\n- and {left_out} more elsewhere");
    }
}

fn describe(body: &mut String, kind: AlertKind, firing: &EventAlertFiring) {
    let subject = &firing.subject;
    let name = plain(&subject.name);
    let dag = plain(subject.dag_id.as_deref().unwrap_or_default());
    let what = match kind {
        AlertKind::DeploymentUnhealthy => format!("The deployment {name} is unhealthy."),
        AlertKind::DeployFailed => format!("A deploy to {name} failed."),
        AlertKind::OperationFailed => format!("An operation on {name} failed."),
        AlertKind::DagRunFailed => format!("A run of the DAG {dag} in {name} failed."),
        AlertKind::DagRunTooSlow => format!("A run of the DAG {dag} in {name} takes too long."),
        AlertKind::TokenExpiring => format!("The API token {name} is about to expire."),
    };
    let _ = writeln!(body, "\n- {what}");
    match firing.until {
        Some(until) => {
            let _ = writeln!(body, "  From {} to {until}. {}", firing.since, ending(kind));
        }
        None => {
            let _ = writeln!(body, "  Since {}", firing.since);
        }
    }
    if firing.count > 1 {
        let _ = writeln!(body, "  {} times", firing.count);
    }
    if let Some(reason) = &firing.reason {
        let _ = writeln!(body, "  Why: {}", plain(reason));
    }
    if let Some(run) = &firing.run_id {
        let _ = writeln!(body, "  Run: {} (as the environment says)", plain(run));
    }
    if firing.until.is_none() {
        let _ = writeln!(body, "  Next: {}", next(kind, firing));
    }
}

const fn ending(kind: AlertKind) -> &'static str {
    match kind {
        AlertKind::DeploymentUnhealthy => "It is healthy or hibernates, or was deleted.",
        AlertKind::DeployFailed => "A later deploy succeeded, or the deployment was deleted.",
        AlertKind::OperationFailed => "A later operation succeeded, or the deployment was deleted.",
        AlertKind::DagRunFailed => "A later run succeeded, or the deployment was deleted.",
        AlertKind::DagRunTooSlow => "A later run succeeded in time, or the deployment was deleted.",
        AlertKind::TokenExpiring => "It was rotated or deleted, or has expired.",
    }
}

/// The command to run next.
fn next(kind: AlertKind, firing: &EventAlertFiring) -> String {
    let id = firing.subject.id;
    match kind {
        AlertKind::DeploymentUnhealthy => format!("podium deployment get {id}"),
        AlertKind::DeployFailed => format!("podium deploy report --deployment {id}"),
        AlertKind::OperationFailed => format!("podium operation list --deployment {id} --state failed"),
        AlertKind::DagRunFailed | AlertKind::DagRunTooSlow => match firing.subject.dag_id.as_deref() {
            Some(dag) if is_word(dag) => format!("podium run list {dag} --deployment {id}"),
            _ => format!("podium dag list --deployment {id}"),
        },
        AlertKind::TokenExpiring => format!("podium token rotate {id}"),
    }
}

/// Whether a shell and a command line take a text as it is.
fn is_word(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    !text.is_empty() && !text.starts_with('-') && text.bytes().all(fits)
}

/// A text on one line, without characters that cannot be seen.
fn plain(text: &str) -> String {
    let mut buffer = [0; 4];
    let mut shown = |c: char| match podium_api::text::hidden(c.encode_utf8(&mut buffer)) {
        Some(_) => '?',
        None => c,
    };
    text.chars().map(&mut shown).collect()
}

#[cfg(test)]
mod tests {
    use podium_api::{Id, Timestamp};
    use serde_json::json;

    use super::*;

    const HOSTILE: [&str; 7] = [
        "x\r\nBcc: everybody@example.com",
        "x\n\n--boundary\nContent-Type: text/html",
        "x\n.\nQUIT",
        "\u{1b}[2J\u{7}\u{0}",
        "gpj.\u{202e}exe",
        "a\u{2028}b\u{85}c\u{200b}d",
        "<script>alert(1)</script>; rm -rf $(HOME)",
    ];

    fn firing(text: &str) -> EventAlertFiring {
        let subject =
            json!({ "type": "DEPLOYMENT", "id": Id::from_parts(1, 2, 3), "name": text, "dagId": text });
        let firing = json!({
            "id": Id::from_parts(7, 8, 9), "subject": subject, "since": Timestamp::from_millis(1), "count": 1, "reason": text, "runId": text,
        });
        serde_json::from_value(firing).expect("a firing")
    }

    /// What environments and their authors say stays on its line, and no command contains it.
    #[test]
    fn texts_of_others_stay_in_their_place() {
        let id = AlertId::from_raw(Id::from_parts(4, 5, 6));
        let lines = |text: &str| compose((id, "Broken"), AlertKind::DagRunFailed, &[firing(text)]);
        let honest = lines("load");
        assert!(honest.body.contains("podium run list load --deployment"), "{}", honest.body);
        for text in HOSTILE {
            let mail = lines(text);
            assert_eq!(mail.subject, "Firing: Broken", "a subject holds nothing of it");
            assert_eq!(
                mail.body.lines().count(),
                honest.body.lines().count(),
                "{text:?} adds no line: {}",
                mail.body
            );
            let hidden = mail.body.split('\n').find_map(podium_api::text::hidden);
            assert_eq!(hidden, None, "{text:?}: {}", mail.body);
            let next = mail.body.lines().find(|line| line.starts_with("  Next: ")).expect("a command");
            assert!(next.starts_with("  Next: podium dag list --deployment "), "{text:?}: {next}");
        }
    }
}
