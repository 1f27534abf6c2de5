//! Tells a scheduler that is about to start since when there have been workers and a broker: what an earlier scheduler gave
//! to others is lost, and no worker that is there now has it.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use podium_airflow::components::queue_of;
use rustix::system::sysinfo;
use serde::Serialize;

use super::Supervisor;
use crate::blocking::blocking_exclusive;
use crate::local::broker::BROKER;
use crate::local::layout::write_whole;
use crate::local::program::Program;

/// In seconds since the machine was started.
#[derive(Serialize)]
struct Since<'a> {
    /// By queue.
    workers: BTreeMap<&'a str, f64>,
    /// The environment's own broker, which keeps messages in memory only.
    broker: Option<f64>,
}

impl Supervisor {
    /// Writes that down if this program is the scheduler of workers.
    pub(super) async fn tell_of_workers(&self, starting: &Program, programs: &[Program]) -> io::Result<()> {
        // It is rounded up, and what is too early takes too few tasks for lost.
        let now = Duration::from_secs(u64::try_from(sysinfo().uptime).unwrap_or_default().saturating_sub(1));
        let since = |name: &str| {
            let running = self.processes.get(name).map(|kept| kept.process.identity.since_boot());
            running.unwrap_or(now).as_secs_f64()
        };
        let names = programs.iter().map(|program| program.name.as_str());
        let workers: BTreeMap<&str, f64> =
            names.clone().filter_map(|name| Some((queue_of(name)?, since(name)))).collect();
        if starting.name != "scheduler" || workers.is_empty() {
            return Ok(());
        }
        let broker = names.into_iter().find(|name| *name == BROKER).map(since);
        let text = serde_json::to_vec(&Since { workers, broker })?;
        let path = self.place.workers();
        blocking_exclusive(&self.place.control(), move || write_whole(&path, &text, 0o644)).await
    }
}
