//! The server on PostgreSQL, with the database on the same cores: rates, and what a request costs both of them.

use std::time::Instant;

use super::{Bench, CONNECTIONS, Measured, SECONDS, WRITERS, build, wrk};
use crate::outcome::Outcome;
use crate::postgres::Postgres;
use crate::processes::{children, processor_time};
use crate::workspace::scratch;

const ROWS: usize = 5_000;

/// A server on PostgreSQL has to be given one.
pub(super) const SECRET_KEY: &str =
    "PODIUM_SECRET_KEY=0000000000000000000000000000000000000000000000000000000000000000";

pub(crate) fn run() -> Outcome {
    build(true)?;
    let postgres = Postgres::start_durable(&scratch()?)?;
    let bench = Bench::start_on(Some(&postgres.url))?;
    bench.fill(ROWS)?;
    println!("of {ROWS} rows each; µs are processor time for each request");
    println!("{:<20}{:>12}{:>14}{:>16}   latency", "call", "podium/s", "podium, µs", "PostgreSQL, µs");
    for (name, path) in bench.reads()? {
        bench.print(&postgres, name, || wrk(bench.port, &path, &bench.token, CONNECTIONS, SECONDS, None))?;
    }
    let (script, workspaces) = (bench.create_script(0, "")?, format!("{}/workspaces", bench.root()));
    bench.print(&postgres, "create a workspace", || {
        wrk(bench.port, &workspaces, &bench.token, WRITERS, SECONDS, Some(&script))
    })
}

impl Bench {
    fn print(&self, postgres: &Postgres, name: &str, measure: impl FnOnce() -> Outcome<Measured>) -> Outcome {
        let (started, before) = (Instant::now(), self.costs(postgres)?);
        let Measured { rate, latency } = measure()?;
        let requests = rate * started.elapsed().as_secs_f64();
        let after = self.costs(postgres)?;
        let cost = |after: u64, before: u64| after.saturating_sub(before) as f64 * 1000.0 / requests;
        let (own, theirs) = (cost(after.0, before.0), cost(after.1, before.1));
        println!("{name:<20}{rate:>12.0}{own:>14.1}{theirs:>16.1}   {latency}");
        Ok(())
    }

    /// The processor time of the server, and of PostgreSQL with all its connections, in milliseconds.
    fn costs(&self, postgres: &Postgres) -> Outcome<(u64, u64)> {
        let server = postgres.process()?;
        let connections = children(server).into_iter().filter_map(|pid| processor_time(pid).ok());
        Ok((self.processor_time()?, processor_time(server)? + connections.sum::<u64>()))
    }
}
