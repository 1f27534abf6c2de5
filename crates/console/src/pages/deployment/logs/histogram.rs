//! How many lines were written when, and how serious they look. Counted after the page itself is there.

use podium_api::deployment_logs::{self, CountDeploymentLogs, DeploymentLogCount, DeploymentLogCounts};
use podium_api::{DeploymentId, Timestamp};

use super::Wanted;
use crate::pages::{Answer, OrganizationVisit, Result, Template, view};

/// How many bars there are, and how high the highest is.
const BARS: u64 = 60;
const HEIGHT: u64 = 48;

/// What comes in after the page.
#[derive(Template)]
#[template(path = "deployment/logs-histogram-part.html")]
struct Part {
    histogram: Histogram,
}

/// What was counted, or why nothing was.
#[derive(Default)]
pub(super) struct Histogram {
    pub(super) problem: Option<String>,
    pub(super) bars: Vec<Bar>,
    /// The first and the last moment of the bars.
    pub(super) shown: (i64, i64),
    /// How many lines there are in all, of each level.
    pub(super) sum: String,
    /// From when on everything is counted, if there was too much.
    pub(super) complete_from: Option<String>,
}

/// A bar: its place, and what it is made of from the bottom up.
pub(super) struct Bar {
    pub(super) x: usize,
    pub(super) parts: Vec<BarPart>,
    pub(super) href: String,
    pub(super) label: String,
}

pub(super) struct BarPart {
    pub(super) class: &'static str,
    pub(super) y: u64,
    pub(super) height: u64,
}

/// What comes in after the page.
pub(crate) async fn part(visit: &OrganizationVisit<'_>, id: DeploymentId) -> Result {
    let histogram = count(visit, id, &Wanted::read(visit)).await;
    Answer::page(&Part { histogram })
}

/// Counts what the page is about, lines that it does not show included.
pub(super) async fn count(visit: &OrganizationVisit<'_>, id: DeploymentId, wanted: &Wanted) -> Histogram {
    let query = CountDeploymentLogs {
        sources: wanted.sources.clone(),
        buckets: BARS,
        range: wanted.range,
        search_text: wanted.search_text(),
        start_date: Some(wanted.start.into()),
        end_date: Some(wanted.end.into()),
    };
    match visit.calls().find::<deployment_logs::Count>(visit.deployment(id), query).await {
        Ok(counts) => drawn(visit, &counts),
        Err(problem) => Histogram {
            problem: Some(format!("The lines could not be counted. {}", problem.message)),
            ..Histogram::default()
        },
    }
}

fn levels(of: &DeploymentLogCount) -> [u64; 3] {
    [of.error_count, of.warning_count, of.other_count]
}

fn drawn(visit: &OrganizationVisit<'_>, counts: &DeploymentLogCounts) -> Histogram {
    let sums = counts
        .buckets
        .iter()
        .map(levels)
        .fold([0; 3], |all: [u64; 3], own| [all[0] + own[0], all[1] + own[1], all[2] + own[2]]);
    let complete_from = counts.complete_from.map(view::exact);
    if sums.iter().sum::<u64>() == 0 && complete_from.is_none() {
        return Histogram::default();
    }
    let most = counts.buckets.iter().map(|of| levels(of).iter().sum()).max().unwrap_or(1).max(1);
    let ends = counts.buckets.iter().skip(1).map(|of| of.start_date).chain([counts.end_date.at()]);
    let bar = |(x, (of, to)): (usize, (&DeploymentLogCount, Timestamp))| Bar {
        x,
        parts: parts(levels(of), most),
        href: super::window(visit, of.start_date, to),
        label: format!("{} from {}", counted(levels(of)), view::exact(of.start_date)),
    };
    Histogram {
        problem: None,
        bars: counts.buckets.iter().zip(ends).enumerate().map(bar).collect(),
        shown: (counts.start_date.at().millis(), counts.end_date.at().millis()),
        sum: counted(sums),
        complete_from,
    }
}

/// How many lines there are; how many of them are serious is said only if some are.
fn counted([errors, warnings, others]: [u64; 3]) -> String {
    let of = |count: u64, one: &str| {
        format!("{} {one}{}", view::grouped(count), if count == 1 { "" } else { "s" })
    };
    let serious = [(errors, "error"), (warnings, "warning")];
    let serious = serious.into_iter().filter(|(count, _)| *count > 0).map(|(count, one)| of(count, one));
    let serious: Vec<String> = serious.collect();
    let all = of(errors + warnings + others, "line");
    if serious.is_empty() { all } else { format!("{all}, {}", serious.join(", ")) }
}

/// Errors at the bottom, where they are seen first; what is there at all is at least a pixel high.
fn parts(of: [u64; 3], most: u64) -> Vec<BarPart> {
    let mut y = HEIGHT;
    let part = |(class, count): (&'static str, u64)| {
        let height = (count * HEIGHT).div_ceil(most).min(y);
        y -= height;
        (height > 0).then_some(BarPart { class, y, height })
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

    #[test]
    fn serious_lines_are_counted_apart() {
        assert_eq!(counted([0, 0, 1]), "1 line");
        assert_eq!(counted([1, 0, 1_204_331]), "1,204,332 lines, 1 error");
        assert_eq!(counted([0, 2, 0]), "2 lines, 2 warnings");
    }
}
