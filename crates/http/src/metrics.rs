//! Numbers for the operator: requests by operation, in the Prometheus text format.
//!
//! Counters of its own instead of a metrics library: a request costs three relaxed additions, and memory is fixed.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of the buckets of durations, in microseconds.
const BUCKETS: [u64; 12] =
    [100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 100_000, 500_000, 2_500_000, 10_000_000];
const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// The numbers of one operation.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    by_class: [AtomicU64; 5],
    by_duration: [AtomicU64; BUCKETS.len() + 1],
    microseconds: AtomicU64,
}

impl Meter {
    /// Counts a request.
    pub(crate) fn count(&self, status: u16, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let class = usize::from(status / 100).clamp(1, 5) - 1;
        let bucket = BUCKETS.partition_point(|bound| *bound < micros);
        self.by_class[class].fetch_add(1, Ordering::Relaxed);
        self.by_duration[bucket].fetch_add(1, Ordering::Relaxed);
        self.microseconds.fetch_add(micros, Ordering::Relaxed);
    }
}

/// Writes the numbers of all operations.
pub(crate) fn render<'a>(
    meters: impl Iterator<Item = (&'a str, &'a Meter)> + Clone,
    open_connections: usize,
) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(out, "# TYPE podium_open_connections gauge\npodium_open_connections {open_connections}");
    let _ = writeln!(out, "# TYPE podium_requests_total counter");
    for (operation, meter) in meters.clone() {
        for (class, count) in CLASSES.iter().zip(&meter.by_class) {
            let count = count.load(Ordering::Relaxed);
            if count > 0 {
                let _ = writeln!(
                    out,
                    "podium_requests_total{{operation=\"{operation}\",status=\"{class}\"}} {count}"
                );
            }
        }
    }
    let _ = writeln!(out, "# TYPE podium_request_duration_seconds histogram");
    for (operation, meter) in meters {
        let counts: Vec<u64> = meter.by_duration.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        let total: u64 = counts.iter().sum();
        if total == 0 {
            continue;
        }
        let name = "podium_request_duration_seconds";
        let mut below = 0;
        for (bound, count) in BUCKETS.iter().zip(&counts) {
            below += count;
            let le = seconds(*bound);
            let _ = writeln!(out, "{name}_bucket{{operation=\"{operation}\",le=\"{le}\"}} {below}");
        }
        let sum = seconds(meter.microseconds.load(Ordering::Relaxed));
        let _ = writeln!(out, "{name}_bucket{{operation=\"{operation}\",le=\"+Inf\"}} {total}");
        let _ = writeln!(out, "{name}_sum{{operation=\"{operation}\"}} {sum}");
        let _ = writeln!(out, "{name}_count{{operation=\"{operation}\"}} {total}");
    }
    out
}

fn seconds(micros: u64) -> f64 {
    Duration::from_micros(micros).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_status_and_duration() {
        let meter = Meter::default();
        meter.count(200, Duration::from_micros(100));
        meter.count(404, Duration::from_micros(101));
        meter.count(200, Duration::from_secs(60));
        let text = render([("GetTeam", &meter)].into_iter(), 3);
        for line in [
            "podium_open_connections 3",
            "podium_requests_total{operation=\"GetTeam\",status=\"2xx\"} 2",
            "podium_requests_total{operation=\"GetTeam\",status=\"4xx\"} 1",
            "podium_request_duration_seconds_bucket{operation=\"GetTeam\",le=\"0.0001\"} 1",
            "podium_request_duration_seconds_bucket{operation=\"GetTeam\",le=\"10\"} 2",
            "podium_request_duration_seconds_bucket{operation=\"GetTeam\",le=\"+Inf\"} 3",
        ] {
            assert!(text.contains(line), "{line} is missing in\n{text}");
        }
    }
}
