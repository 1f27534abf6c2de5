//! How many lines were written when, and how serious they look.

use podium_api::Timestamp;
use podium_api::deployment_logs::DeploymentLogEntry;

use super::lines::level;
use crate::view;
use crate::visit::OrganizationVisit;

/// How many bars there are, and how high the highest is.
const BARS: usize = 60;
const HEIGHT: u64 = 48;

/// A bar: its place, and what it is made of from the bottom up.
pub(super) struct Bar {
    pub(super) x: usize,
    pub(super) parts: Vec<Part>,
    pub(super) href: String,
    pub(super) label: String,
}

/// A part of a bar.
pub(super) struct Part {
    pub(super) class: &'static str,
    pub(super) y: u64,
    pub(super) height: u64,
}

/// The bars of what is shown, from its first moment to its last.
pub(super) fn bars(
    visit: &OrganizationVisit<'_>,
    entries: &[DeploymentLogEntry],
    (start, end): (Timestamp, Timestamp),
) -> Vec<Bar> {
    if entries.is_empty() {
        return Vec::new();
    }
    let span = (end.millis() - start.millis()).max(1);
    let bars = i64::try_from(BARS).unwrap_or(1);
    let mut counts = [[0_u64; 3]; BARS];
    for entry in entries {
        let at = (entry.timestamp - start.millis()).clamp(0, span - 1) * bars / span;
        let kind = match level(&entry.raw) {
            "error" => 0,
            "warning" => 1,
            _ => 2,
        };
        counts[usize::try_from(at).unwrap_or_default()][kind] += 1;
    }
    let most = counts.iter().map(|of| of.iter().sum()).max().unwrap_or(1).max(1);
    let at = |bar: usize| {
        Timestamp::from_millis(start.millis() + span * i64::try_from(bar).unwrap_or_default() / bars)
    };
    let bar = |(x, of): (usize, [u64; 3])| {
        let (from, to) = (at(x), at(x + 1));
        let count: u64 = of.iter().sum();
        Bar {
            x,
            parts: parts(of, most),
            href: super::window(visit, from, to),
            label: format!("{} from {}", podium_api::counted(count, "line"), view::exact(from)),
        }
    };
    counts.into_iter().enumerate().map(bar).collect()
}

/// Errors at the bottom, where they are seen first; what is there at all is at least a pixel high.
fn parts(of: [u64; 3], most: u64) -> Vec<Part> {
    let mut y = HEIGHT;
    let part = |(class, count): (&'static str, u64)| {
        let height = (count * HEIGHT).div_ceil(most).min(y);
        y -= height;
        (height > 0).then_some(Part { class, y, height })
    };
    ["error", "warning", "other"].into_iter().zip(of).filter_map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_high_as_there_are_lines() {
        let shown: Vec<(&str, u64, u64)> =
            parts([1, 0, 99], 100).into_iter().map(|part| (part.class, part.y, part.height)).collect();
        assert_eq!(shown, [("error", 47, 1), ("other", 0, 47)]);
        assert!(parts([0, 0, 0], 10).is_empty());
    }
}
