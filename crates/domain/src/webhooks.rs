//! Webhooks: where events may be sent, which are, and when a failed attempt is repeated.

mod addresses;
mod attempts;
mod urls;

use podium_api::FieldError;
use podium_api::enums::EventType;

pub use addresses::{Destinations, Scheme};
pub use attempts::{
    FAILING_FOR, GONE, NO_SUCCESS, Outcome, RETRIES, SECRET_OVERLAP, TOO_LATE, outcome, retry_after,
    retry_at, shown_response,
};
pub use urls::{Host, HostAndScheme, url};

pub const MOST: usize = 100;
pub const MAX_NAME: usize = 128;

/// Checks which types of events a webhook asks for: known ones, or beginnings of known ones with a `*` after them.
pub fn event_types(field: &str, patterns: &[String]) -> Result<Vec<String>, Vec<FieldError>> {
    let mut wrong = Vec::new();
    let mut kept: Vec<String> = Vec::new();
    for (index, pattern) in patterns.iter().enumerate() {
        let error = |code, message| FieldError::new(format!("{field}[{index}]"), code, message);
        if !EventType::ALL.iter().any(|event| is_asked_for(pattern, *event)) {
            let message = "must be a type of event such as podium.deploy.failed, or the beginning of types with a * \
                           after it such as podium.deployment.*";
            wrong.push(error("format", message));
        } else if kept.contains(pattern) {
            wrong.push(error("duplicate", "is listed twice"));
        } else {
            kept.push(pattern.clone());
        }
    }
    if wrong.is_empty() { Ok(kept) } else { Err(wrong) }
}

pub fn asked_for(patterns: &[String]) -> Vec<EventType> {
    let is_asked = |event: &&EventType| {
        patterns.is_empty() || patterns.iter().any(|pattern| is_asked_for(pattern, **event))
    };
    EventType::ALL.iter().filter(is_asked).copied().collect()
}

fn is_asked_for(pattern: &str, event: EventType) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => event.as_str().starts_with(beginning),
        None => event.as_str() == pattern,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_known_ones_or_beginnings_of_known_ones() {
        let checked = |patterns: &[&str]| {
            let patterns: Vec<String> = patterns.iter().map(ToString::to_string).collect();
            let wrong = event_types("eventTypes", &patterns).err().unwrap_or_default();
            wrong.into_iter().map(|error| format!("{} {}", error.field, error.code)).collect::<Vec<_>>()
        };
        assert!(checked(&[]).is_empty());
        assert!(checked(&["*", "podium.deploy.failed", "podium.deployment.*", "podium.deploy*"]).is_empty());
        let wrong = ["", "podium.*.failed", "podium.nothing.*", "podium.deploy", "*.failed"];
        let all: Vec<String> = (0..wrong.len()).map(|index| format!("eventTypes[{index}] format")).collect();
        assert_eq!(checked(&wrong), all);
        assert_eq!(checked(&["*", "*"]), ["eventTypes[1] duplicate"]);
    }

    #[test]
    fn a_star_stands_for_any_ending() {
        let asked = |patterns: &[&str]| {
            let patterns: Vec<String> = patterns.iter().map(ToString::to_string).collect();
            asked_for(&patterns)
        };
        assert_eq!(asked(&[]), EventType::ALL);
        assert_eq!(asked(&["*"]), EventType::ALL);
        assert_eq!(asked(&["podium.ip_range.*"]), [EventType::IpRangeCreated, EventType::IpRangeDeleted]);
        assert_eq!(asked(&["podium.deploy.failed"]), [EventType::DeployFailed]);
    }
}
