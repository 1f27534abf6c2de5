//! Replaces outdated processes without interrupting the tasks and requests that they serve.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use podium_airflow::components::{is_worker, runs_tasks};
use podium_airflow::drain::waiting;
use podium_domain::UserText;
use tokio::time::Instant;

use super::Supervisor;
use super::prepare::Prepared;
use crate::blocking::blocking;
use crate::local::broker::BROKER;
use crate::local::components::RETIRING;
use crate::local::identity::is_stopped;
use crate::local::network::{HOLDER, is_network};
use crate::local::program::{Program, ReplaceStrategy};

/// How long a web server may take to finish its requests once its replacement serves.
const LAST_REQUESTS: Duration = Duration::from_secs(30);

/// What is still to be replaced, with the reason for waiting.
pub(super) type Outdated = BTreeMap<String, UserText>;

impl Supervisor {
    /// Takes the next step in replacing everything that is outdated; called repeatedly until nothing is.
    pub(super) async fn replace_outdated(&mut self, prepared: &Prepared) -> Outdated {
        let mut waits = Outdated::new();
        let mut outdated = self.outdated(&prepared.programs);
        let replaces_broker = outdated.iter().any(|name| name == BROKER);
        if replaces_broker {
            // Its workers stop before it does, even those that are up to date.
            outdated.extend(self.processes.keys().filter(|name| is_worker(name)).cloned());
            outdated.sort();
            outdated.dedup();
            let held = prepared.programs.iter().map(|program| &program.name);
            let held = held.filter(|name| runs_tasks(name) && !self.processes.contains_key(*name));
            waits.extend(held.map(|name| (name.clone(), "waiting for the broker to be replaced".into())));
        }
        let is_wanted = |name: &String| prepared.programs.iter().any(|program| program.name == *name);
        // Workers of an executor that is no longer used: nothing else may run their tasks before they have exited.
        let gives_up_workers = outdated.iter().any(|name| is_worker(name) && !is_wanted(name));
        let replaces_others = outdated.iter().any(|name| !is_network(name));
        for name in outdated {
            let Some(kept) = self.processes.get(&name) else { continue };
            let must_wait = match name.as_str() {
                // A new scheduler would send tasks to queues without workers.
                "scheduler" => gives_up_workers || replaces_broker,
                BROKER => self.processes.keys().any(|name| is_worker(name)),
                // Processes in the network need it until they exit.
                name if is_network(name) => replaces_others,
                _ => false,
            };
            if must_wait && kept.kill_at.is_none() {
                let first = if is_network(&name) {
                    "waiting for the processes that use it to exit"
                } else {
                    "waiting for workers to finish their tasks"
                };
                waits.insert(name, first.into());
                continue;
            }
            if let Some(by) = kept.kill_at {
                let is_forced = kept.strategy == ReplaceStrategy::Finish && self.is_forced();
                if is_forced || Instant::now() >= by {
                    kept.process.kill().await;
                }
                waits.insert(name, "the previous process is exiting".into());
                continue;
            }
            let wait = match kept.strategy {
                _ if name == RETIRING => self.retire_web_server().await,
                ReplaceStrategy::Overlap if prepared.programs.iter().any(|program| program.name == name) => {
                    self.retire_for_newer(&name).await
                }
                ReplaceStrategy::Drain if !self.may_run_tasks(&name).await => {
                    self.terminate_within(&name, self.stop_grace())
                }
                ReplaceStrategy::Drain => {
                    let until = self.begin_drain(self.drain_grace(&prepared.environment)).await;
                    if self.is_drained().await {
                        // After the grace period running tasks are no longer waited for.
                        self.terminate_within(&name, self.stop_grace())
                    } else {
                        waiting("restarting", until)
                    }
                }
                ReplaceStrategy::Finish => {
                    self.terminate_within(&name, self.drain_grace(&prepared.environment))
                }
                ReplaceStrategy::Restart | ReplaceStrategy::Overlap => {
                    self.terminate_within(&name, self.timing().grace)
                }
            };
            waits.insert(name, wait);
        }
        let drains = |name: &String| {
            self.processes.get(name).is_some_and(|kept| kept.strategy == ReplaceStrategy::Drain)
        };
        if !waits.keys().any(drains) {
            self.end_drain().await;
            self.report_finishing();
        }
        waits
    }

    /// Whether a program must not start yet: nothing that runs tasks starts before what tasks need answers, nor until an
    /// outdated broker is replaced. Otherwise the broker would always have a worker to wait for.
    pub(super) fn must_not_start_yet(&self, name: &str, programs: &[Program]) -> bool {
        // A new network is only created while preparing.
        name == HOLDER
            || self.waits_for(name, programs).is_some()
            || runs_tasks(name)
                && self.processes.contains_key(BROKER)
                && self.outdated(programs).iter().any(|outdated| outdated == BROKER)
    }

    fn outdated(&self, programs: &[Program]) -> Vec<String> {
        let wanted: BTreeMap<&str, String> =
            programs.iter().map(|program| (program.name.as_str(), self.fingerprint(program))).collect();
        let kept = self.processes.iter();
        kept.filter(|(name, kept)| wanted.get(name.as_str()) != Some(&kept.fingerprint))
            .map(|(name, _)| name.clone())
            .collect()
    }

    fn terminate_within(&mut self, name: &str, grace: Duration) -> UserText {
        if let Some(kept) = self.processes.get_mut(name) {
            kept.process.terminate();
            kept.kill_at = Some(Instant::now() + grace);
        }
        "the previous process is exiting".into()
    }

    /// Renames a web server to make room for its replacement; it keeps serving until the replacement does.
    async fn retire_for_newer(&mut self, name: &str) -> UserText {
        // At most two at a time, and without a shared socket only one.
        if self.processes.contains_key(RETIRING) || self.socket.is_none() {
            return self.terminate_within(name, self.timing().grace);
        }
        if let Some(kept) = self.processes.remove(name) {
            self.processes.insert(RETIRING.into(), kept);
        }
        if let Some(started) = self.state.processes.remove(name) {
            self.state.processes.insert(RETIRING.into(), started);
        }
        self.save_state().await;
        "its replacement is starting".into()
    }

    /// Why the web server's socket would not respond, if that is known: a request would only wait.
    pub(super) async fn why_not_serving(&self, major: u32) -> Option<&'static str> {
        let well = |name: &str| self.processes.get(name).is_some_and(|kept| kept.was_healthy);
        if self.web_server().is_some_and(is_stopped) {
            return Some("its process is stopped");
        }
        let serves = major < 3
            || well("apiserver")
            || self.processes.contains_key(RETIRING)
            || self.is_newest_ready().await;
        (!serves).then_some("it is not serving requests yet")
    }

    /// Whether the web server that was started last reports that it serves.
    async fn is_newest_ready(&self) -> bool {
        let newest = self.processes.get("apiserver").map(|kept| kept.process.identity.pid);
        let Some(pid) = newest else { return false };
        let said = self.place.status().join(format!("{pid}.ready"));
        blocking(move || fs::symlink_metadata(said)).await.is_ok()
    }

    /// Stops a web server once its replacement serves.
    async fn retire_web_server(&mut self) -> UserText {
        if self.is_newest_ready().await {
            return self.terminate_within(RETIRING, LAST_REQUESTS);
        }
        "its replacement is starting".into()
    }
}
