//! Uncached reads during writes: another URL each time, and a hundred commits a second.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::client::Client;
use super::{Bench, CONNECTIONS, Measured, SECONDS, wrk};
use crate::outcome::{Outcome, While};
use crate::probe::get;

const ROWS: usize = 5_000;
const COMMIT_EVERY: Duration = Duration::from_millis(10);

impl Bench {
    /// The first table: the cost of a read, alone and during commits.
    pub(super) fn fresh_reads(&self) -> Outcome {
        self.fill(ROWS)?;
        println!("another URL each time, of {ROWS} rows each; µs are processor time of the server");
        println!(
            "{:<24}{:>10}{:>10}{:>8}{:>8}{:>14}{:>8}   latency with commits",
            "read", "podium/s", "bare/s", "ratio", "µs", "with commits", "µs"
        );
        for (name, path) in self.reads()? {
            let answer = get(self.port, &path, &self.token).doing(&path)?;
            let bare =
                self.bare(&answer, |port| wrk(port, &path, &self.token, CONNECTIONS, SECONDS, None))?;
            let (quiet, cost) = self.costing(|| self.fresh(&path))?;
            let (beside, cost_beside) = self.beside_commits(|| self.costing(|| self.fresh(&path)))?;
            println!(
                "{name:<24}{:>10.0}{:>10.0}{:>8.2}{cost:>8.1}{:>14.2}{cost_beside:>8.1}   {}",
                quiet.rate,
                bare.rate,
                quiet.rate / bare.rate,
                beside.rate / bare.rate,
                beside.latency
            );
        }
        Ok(())
    }

    /// Creates workspaces and as many deployments.
    pub(super) fn fill(&self, rows: usize) -> Outcome {
        let workspaces = format!("{}/workspaces", self.root());
        let deployments = format!("{}/deployments", self.root());
        self.each(rows, |client, number| {
            client.post(&workspaces, &json!({ "name": format!("read {number}") })).map(drop)
        })?;
        let workspace = self.first("workspaces")?;
        self.each(rows, |client, number| {
            let body = json!({ "name": format!("read {number}"), "workspaceId": workspace });
            client.post(&deployments, &body).map(drop)
        })?;
        self.settled()
    }

    pub(super) fn reads(&self) -> Outcome<[(&'static str, String); 5]> {
        let workspaces = format!("{}/workspaces", self.root());
        let deployments = format!("{}/deployments", self.root());
        let workspace = self.first("workspaces")?;
        let deployment = self.first("deployments")?;
        Ok([
            ("users/self", "/v1/users/self".to_owned()),
            ("one workspace", format!("{workspaces}/{workspace}")),
            ("one deployment", format!("{deployments}/{deployment}")),
            ("20 workspaces", format!("{workspaces}?limit=20")),
            ("20 deployments", format!("{deployments}?limit=20")),
        ])
    }

    /// Measures, and returns the microseconds of CPU time per request.
    fn costing(&self, measure: impl FnOnce() -> Outcome<Measured>) -> Outcome<(Measured, f64)> {
        let (started, before) = (Instant::now(), self.processor_time()?);
        let measured = measure()?;
        let requests = measured.rate * started.elapsed().as_secs_f64();
        let cost = (self.processor_time()? - before) as f64 * 1000.0 / requests;
        Ok((measured, cost))
    }

    /// Measures while workspaces are created at a steady rate.
    fn beside_commits<T>(&self, measure: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
        let is_over = AtomicBool::new(false);
        let path = format!("{}/workspaces", self.root());
        thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let mut client = Client::connect(self.port, &self.token)?;
                let first = self.total("workspaces")?;
                let started = Instant::now();
                for number in 0.. {
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                    client.post(&path, &json!({ "name": format!("beside {first} {number}") }))?;
                    thread::sleep((COMMIT_EVERY * (number + 1)).saturating_sub(started.elapsed()));
                }
                Outcome::Ok(())
            });
            let measured = measure();
            is_over.store(true, Ordering::Relaxed);
            writer.join().map_err(|_| "the writer panicked")??;
            measured
        })
    }
}
