//! Small pieces of pages: statuses, times, people, ids.

use std::fmt;

use askama::filters::HtmlSafe;
use podium_api::Timestamp;
use podium_api::enums::{DeployReportState, DeployStatus, DeploymentStatus, OperationState};
use podium_api::subjects::SubjectProfile;

/// HTML that is put into a page as it is. Made only here.
#[derive(Clone, Debug)]
pub(crate) struct Html(String);

impl fmt::Display for Html {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl HtmlSafe for Html {}

/// What is known of something: terms with their values, of which the empty ones are left out.
pub(crate) fn facts(of: impl IntoIterator<Item = (&'static str, String)>) -> Vec<(&'static str, String)> {
    of.into_iter().filter(|(_, value)| !value.is_empty()).collect()
}

fn escaped(text: &str) -> String {
    askama::filters::escape(text, askama::filters::Html).map(|safe| safe.to_string()).unwrap_or_default()
}

/// How something is doing. Each has a shape and a word of its own, so that no status depends on its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Good,
    Changing,
    Warning,
    Failed,
    Asleep,
    Unknown,
}

impl Tone {
    /// Its class, and its shape in a square of 12.
    const fn look(self) -> (&'static str, &'static str) {
        match self {
            Self::Good => ("good", "<circle cx='6' cy='6' r='5'/>"),
            Self::Changing => (
                "changing",
                "<circle cx='6' cy='6' r='4.25' fill='none' stroke='currentColor' stroke-width='1.5'/><path d='M6 1.75a4.25 4.25 0 0 1 0 8.5z'/>",
            ),
            Self::Warning => ("warning", "<path d='M6 .8 11.6 11H.4z'/>"),
            Self::Failed => ("failed", "<rect x='1.5' y='1.5' width='9' height='9' rx='1'/>"),
            Self::Asleep => ("asleep", "<path d='M10.8 7.6A5.2 5.2 0 1 1 5 .9a4.2 4.2 0 0 0 5.8 6.7z'/>"),
            Self::Unknown => (
                "unknown",
                "<circle cx='6' cy='6' r='4.25' fill='none' stroke='currentColor' stroke-width='1.5'/>",
            ),
        }
    }
}

/// A status: its shape, and its word.
pub(crate) fn status(tone: Tone, word: &str) -> Html {
    let ((class, shape), word) = (tone.look(), escaped(word));
    Html(format!(
        "<span class=\"status {class}\"><svg viewBox=\"0 0 12 12\" aria-hidden=\"true\">{shape}</svg>{word}</span>"
    ))
}

/// A shape alone; its label is shown on hover and read aloud.
pub(crate) fn shape(tone: Tone, label: &str) -> Html {
    let ((class, shape), label) = (tone.look(), escaped(label));
    Html(format!(
        "<span class=\"status {class}\" title=\"{label}\"><svg viewBox=\"0 0 12 12\" aria-hidden=\"true\">{shape}</svg><span class=\"visually-hidden\">{label}</span></span>"
    ))
}

pub(crate) fn deployment_status(of: DeploymentStatus) -> Html {
    let (tone, word) = match of {
        DeploymentStatus::Healthy => (Tone::Good, "Healthy"),
        DeploymentStatus::Creating => (Tone::Changing, "Creating"),
        DeploymentStatus::Deploying => (Tone::Changing, "Deploying"),
        DeploymentStatus::Unhealthy => (Tone::Warning, "Unhealthy"),
        DeploymentStatus::Hibernating => (Tone::Asleep, "Hibernating"),
        DeploymentStatus::Unknown => (Tone::Unknown, "Unknown"),
    };
    status(tone, word)
}

pub(crate) fn operation_state(of: OperationState) -> Html {
    let (tone, word) = match of {
        OperationState::Pending => (Tone::Unknown, "Pending"),
        OperationState::Running => (Tone::Changing, "Running"),
        OperationState::Succeeded => (Tone::Good, "Succeeded"),
        OperationState::Failed => (Tone::Failed, "Failed"),
        OperationState::Cancelled => (Tone::Unknown, "Cancelled"),
        OperationState::Superseded => (Tone::Unknown, "Superseded"),
    };
    status(tone, word)
}

pub(crate) fn deploy_status(of: DeployStatus) -> Html {
    let (tone, word) = match of {
        DeployStatus::Initialized => (Tone::Unknown, "Not finalized"),
        DeployStatus::Deployed => (Tone::Good, "Deployed"),
        DeployStatus::Failed => (Tone::Failed, "Failed"),
    };
    status(tone, word)
}

pub(crate) fn rollout_state(of: DeployReportState) -> Html {
    let (tone, word) = match of {
        DeployReportState::Waiting => (Tone::Unknown, "Waiting"),
        DeployReportState::RollingOut => (Tone::Changing, "Rolling out"),
        DeployReportState::Live => (Tone::Good, "Live"),
        DeployReportState::Failed => (Tone::Failed, "Failed"),
        DeployReportState::Superseded => (Tone::Unknown, "Superseded"),
    };
    status(tone, word)
}

/// A time: how long ago or ahead, with the exact time on hover.
pub(crate) fn time(at: Timestamp, now: Timestamp) -> Html {
    let exact = exact(at);
    Html(format!("<time datetime=\"{at}\" title=\"{exact}\">{}</time>", relative(at, now)))
}

/// A number with its digits in groups of three.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut shown = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["bytes", "KiB", "MiB", "GiB", "TiB"];
    let unit = (bytes.max(1).ilog2() / 10).min(4);
    let (whole, tenth) = (bytes >> (10 * unit), (bytes >> (10 * unit.saturating_sub(1))) % 1024 * 10 / 1024);
    let name = UNITS[unit as usize];
    if unit < 2 || whole >= 100 { format!("{whole} {name}") } else { format!("{whole}.{tenth} {name}") }
}

/// A time for people, in UTC.
pub(crate) fn exact(at: Timestamp) -> String {
    let text = at.to_string();
    let (date, time) = text.split_once('T').unwrap_or((&text, ""));
    format!("{date} {} UTC", time.get(..8).unwrap_or(time))
}

/// How long ago or ahead a time is.
pub(crate) fn relative(at: Timestamp, now: Timestamp) -> String {
    let millis = now.millis() - at.millis();
    let seconds = millis.unsigned_abs() / 1000;
    if seconds < 5 {
        return "now".to_owned();
    }
    let span = span(seconds);
    if millis > 0 { format!("{span} ago") } else { format!("in {span}") }
}

/// A duration in its largest unit.
pub(crate) fn span(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..86_400 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// How long something took, or has taken until now.
pub(crate) fn duration(from: Timestamp, to: Timestamp) -> String {
    let millis = (to.millis() - from.millis()).max(0).unsigned_abs();
    match millis {
        0..1000 => format!("{millis} ms"),
        1000..60_000 => format!("{}.{} s", millis / 1000, millis % 1000 / 100),
        60_000..3_600_000 => format!("{} min {} s", millis / 60_000, millis % 60_000 / 1000),
        _ => format!("{} h {} min", millis / 3_600_000, millis % 3_600_000 / 60_000),
    }
}

/// The name of a person or token.
pub(crate) fn subject(of: Option<&SubjectProfile>) -> String {
    let Some(of) = of else { return "Podium".to_owned() };
    let name = of.full_name.as_ref().filter(|name| !name.is_empty());
    let name = of.api_token_name.as_ref().or(name).or(of.username.as_ref());
    name.cloned().unwrap_or_else(|| of.id.to_string())
}

/// A long id without its middle.
pub(crate) fn short(id: &str) -> String {
    let count = id.chars().count();
    if count <= 16 {
        return id.to_owned();
    }
    let (head, tail): (String, String) = (id.chars().take(8).collect(), id.chars().skip(count - 4).collect());
    format!("{head}…{tail}")
}

/// An operation of the API for people: `FinalizeDeploy` is "Finalize deploy".
pub(crate) fn spaced(of: &str) -> String {
    let mut text = String::new();
    for (at, character) in of.chars().enumerate() {
        match character.is_ascii_uppercase() && at > 0 {
            true => text.extend([' ', character.to_ascii_lowercase()]),
            false => text.push(character),
        }
    }
    text
}

/// A word of the API for people: `RUNTIME_UPGRADE` is "Runtime upgrade".
pub(crate) fn words(of: &str) -> String {
    let lower = of.to_lowercase().replace('_', " ");
    let mut characters = lower.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_relative_and_exact() {
        let at = Timestamp::parse("2027-01-15T08:00:00Z").unwrap();
        let later = |seconds: i64| Timestamp::from_millis(at.millis() + seconds * 1000);
        let table = [
            (0, "now"),
            (59, "59 s ago"),
            (60, "1 min ago"),
            (7200, "2 h ago"),
            (90_000, "1 d ago"),
            (-600, "in 10 min"),
        ];
        for (seconds, expected) in table {
            assert_eq!(relative(at, later(seconds)), expected);
        }
        assert_eq!(
            time(at, later(60)).to_string(),
            "<time datetime=\"2027-01-15T08:00:00.000Z\" title=\"2027-01-15 08:00:00 UTC\">1 min ago</time>"
        );
        assert_eq!(duration(at, later(61)), "1 min 1 s");
    }

    #[test]
    fn sizes_have_a_unit() {
        let table = [
            (0, "0 bytes"),
            (1023, "1023 bytes"),
            (2048, "2 KiB"),
            (1_572_864, "1.5 MiB"),
            (300 << 20, "300 MiB"),
            (5 << 30, "5.0 GiB"),
            (u64::MAX, "16777215 TiB"),
        ];
        for (bytes, expected) in table {
            assert_eq!(size(bytes), expected);
        }
    }

    #[test]
    fn a_word_in_a_status_is_escaped() {
        assert!(status(Tone::Good, "<script>").to_string().ends_with("&#60;script&#62;</span>"));
        assert_eq!(words("RUNTIME_UPGRADE"), "Runtime upgrade");
        assert_eq!(spaced("FinalizeDeploy"), "Finalize deploy");
        assert_eq!(
            (short("3.3.2").as_str(), short("cmyyhtq80002y000000000abcd").as_str()),
            ("3.3.2", "cmyyhtq8…abcd")
        );
    }
}
