//! Metrics for the operator: requests by endpoint, in the Prometheus text format.
//!
//! It uses its own counters instead of a metrics library: a request costs three relaxed additions, and memory is
//! fixed.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use podium_api::{DeploymentId, Timestamp};
use podium_app::meters::Status;
use podium_dataplane::{ComponentMetrics, EnvironmentMetrics};

use crate::connections::Connections;

/// Upper bounds of the buckets of durations, in microseconds.
const BUCKETS: [u64; 12] =
    [100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 100_000, 500_000, 2_500_000, 10_000_000];
const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

#[derive(Debug, Default)]
pub(crate) struct Meter {
    by_class: [AtomicU64; 5],
    by_duration: [AtomicU64; BUCKETS.len() + 1],
    microseconds: AtomicU64,
}

impl Meter {
    pub(crate) fn count(&self, status: u16, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let class = usize::from(status / 100).clamp(1, 5) - 1;
        let bucket = BUCKETS.partition_point(|bound| *bound < micros);
        self.by_class[class].fetch_add(1, Ordering::Relaxed);
        self.by_duration[bucket].fetch_add(1, Ordering::Relaxed);
        self.microseconds.fetch_add(micros, Ordering::Relaxed);
    }
}

pub(crate) fn render<'a>(
    meters: impl Iterator<Item = (&'a str, &'a Meter)> + Clone,
    connections: &Connections,
) -> String {
    let mut out = of_connections(connections);
    // Writing to a string cannot fail.
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

/// Writes the metrics of connections, including those closed to make room.
fn of_connections(connections: &Connections) -> String {
    let (open, waiting, counts) = (connections.count(), connections.waiting(), &connections.counts);
    let closed = [
        ("shed", &counts.shed),
        ("address", &counts.refused),
        ("unread", &counts.unread),
        ("idle", &counts.idle),
    ];
    let mut out = String::new();
    let _ = writeln!(out, "# TYPE podium_open_connections gauge\npodium_open_connections {open}");
    let _ =
        writeln!(out, "# TYPE podium_answers_waiting_bytes gauge\npodium_answers_waiting_bytes {waiting}");
    let _ = writeln!(out, "# TYPE podium_connections_closed_total counter");
    for (reason, count) in closed {
        let count = count.load(Ordering::Relaxed);
        let _ = writeln!(out, "podium_connections_closed_total{{reason=\"{reason}\"}} {count}");
    }
    let refused = counts.too_much.load(Ordering::Relaxed);
    let _ =
        writeln!(out, "# TYPE podium_answers_refused_total counter\npodium_answers_refused_total {refused}");
    out
}

pub(crate) fn panics(count: u64) -> String {
    format!("# TYPE podium_panics_total counter\npodium_panics_total {count}\n")
}

/// Writes how many requests the front door refused for lack of capacity.
pub(crate) fn front_door(refused: u64) -> String {
    format!("# TYPE podium_front_door_refused_total counter\npodium_front_door_refused_total {refused}\n")
}

/// Writes the metrics of deployments: their status, and their components' resource usage if the data plane reports it.
pub(crate) fn deployments(shown: &[Status], vitals: &[EnvironmentMetrics], now: Timestamp) -> String {
    let mut out = String::new();
    if shown.is_empty() {
        return out;
    }
    let mut begin = |name: &str, about: &str, kind: &str, lines: Vec<String>| {
        if !lines.is_empty() {
            let _ = writeln!(out, "# HELP {name} {about}\n# TYPE {name} {kind}");
            lines.iter().for_each(|line| _ = writeln!(out, "{name}{line}"));
        }
    };
    let labels = |row: &Status| format!("deployment=\"{}\",namespace=\"{}\"", row.id, row.namespace);
    let status = |row: &Status| format!("{{{},status=\"{}\"}} 1", labels(row), row.status.as_str());
    let statuses = shown.iter().map(status).collect();
    begin("podium_deployment_status", "The status of a deployment, as a label.", "gauge", statuses);
    let rows: HashMap<DeploymentId, &Status> = shown.iter().map(|row| (row.id, row)).collect();
    let each = |number: &dyn Fn(&ComponentMetrics) -> Option<f64>| -> Vec<String> {
        let of = |vitals: &EnvironmentMetrics| {
            let row = rows.get(&vitals.id)?;
            let line = |vital: &ComponentMetrics| {
                Some(format!("{{{},component=\"{}\"}} {}", labels(row), vital.name, number(vital)?))
            };
            Some(vitals.components.iter().filter_map(line).collect::<Vec<_>>())
        };
        vitals.iter().filter_map(of).flatten().collect()
    };
    let disk =
        |vitals: &EnvironmentMetrics| Some(format!("{{{}}} {}", labels(rows.get(&vitals.id)?), vitals.disk?));
    let disks = vitals.iter().filter_map(disk).collect();
    let about = "Disk space that a deployment uses on its machine, as last measured.";
    begin("podium_deployment_disk_bytes", about, "gauge", disks);
    let up = each(&|vital| Some(f64::from(u8::from(vital.is_up))));
    begin("podium_component_up", "Whether a component works.", "gauge", up);
    let restarts = each(&|vital| vital.restarts.map(|count| count as f64));
    let about = "How often a component was restarted since this server has supervised it.";
    begin("podium_component_restarts_total", about, "counter", restarts);
    let memory = each(&|vital| vital.memory.map(|bytes| bytes as f64));
    begin("podium_component_memory_bytes", "Memory that a component and its children use.", "gauge", memory);
    let age = each(&|vital| vital.heartbeat_at.map(|at| (now.millis() - at.millis()).max(0) as f64 / 1000.0));
    let about = "How long ago a component last sent a heartbeat.";
    begin("podium_component_heartbeat_age_seconds", about, "gauge", age);
    out
}

fn seconds(micros: u64) -> f64 {
    Duration::from_micros(micros).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use podium_api::{Id, WorkspaceId};

    use super::*;

    #[test]
    fn deployments_that_are_shown_have_numbers_of_their_own_and_others_have_none() {
        let id = |number| DeploymentId::from_raw(Id::from_parts(0, number, 0));
        let shown = [Status {
            id: id(1),
            workspace_id: WorkspaceId::from_raw(id(9).id()),
            namespace: "calm-river-1234".into(),
            status: podium_api::enums::DeploymentStatus::Healthy,
        }];
        let vital = ComponentMetrics {
            name: "scheduler".into(),
            is_up: true,
            restarts: Some(2),
            memory: Some(1024),
            heartbeat_at: Some(Timestamp::from_millis(1_000)),
            ..ComponentMetrics::default()
        };
        let of =
            |number| EnvironmentMetrics { id: id(number), components: vec![vital.clone()], disk: Some(4096) };
        let text = deployments(&shown, &[of(1), of(2)], Timestamp::from_millis(3_500));
        let labels = format!("deployment=\"{}\",namespace=\"calm-river-1234\"", id(1));
        for line in [
            format!("podium_deployment_status{{{labels},status=\"HEALTHY\"}} 1"),
            format!("podium_component_up{{{labels},component=\"scheduler\"}} 1"),
            format!("podium_component_restarts_total{{{labels},component=\"scheduler\"}} 2"),
            format!("podium_component_memory_bytes{{{labels},component=\"scheduler\"}} 1024"),
            format!("podium_component_heartbeat_age_seconds{{{labels},component=\"scheduler\"}} 2.5"),
        ] {
            assert!(text.contains(&line), "{line} is missing in\n{text}");
        }
        assert!(!text.contains(id(2).as_str()), "{text}");
        assert_eq!(deployments(&[], &[of(1)], Timestamp::from_millis(0)), "");
    }

    #[test]
    fn requests_are_counted_by_status_and_duration() {
        let meter = Meter::default();
        meter.count(200, Duration::from_micros(100));
        meter.count(404, Duration::from_micros(101));
        meter.count(200, Duration::from_secs(60));
        let connections = std::sync::Arc::new(Connections::new(&crate::Settings::default()));
        let open = connections.admit([192, 0, 2, 1].into());
        open.as_ref().inspect(|open| open.open());
        let text = render([("GetTeam", &meter)].into_iter(), &connections);
        for line in [
            "podium_open_connections 1",
            "podium_connections_closed_total{reason=\"shed\"} 0",
            "podium_answers_waiting_bytes 0",
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
