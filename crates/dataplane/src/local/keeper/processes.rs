//! The processes of an environment: taken over, started, ended.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use podium_api::Timestamp;
use tokio::time::Instant;

use super::{Keeper, Kept};
use crate::local::process::Process;
use crate::local::program::Program;
use crate::local::state::Started;

impl Keeper {
    /// Takes over the processes that were started before.
    pub(super) fn adopt(&mut self) {
        let started = std::mem::take(&mut self.state.processes);
        for (name, Started { identity, fingerprint }) in started {
            let Ok(process) = Process::adopt(identity.clone()) else {
                self.leaderless.push(identity.pid);
                continue;
            };
            self.state.processes.insert(name.clone(), Started { identity, fingerprint: fingerprint.clone() });
            let (started_at, since) = (Timestamp::from_millis(0), Instant::now());
            self.kept.insert(name, Kept { process, fingerprint, started_at, since });
        }
        self.answered = self.web_server();
        self.warmed = self.answered;
        self.show_door();
    }

    /// Ends what is left of processes that ended meanwhile, and one that was started and not remembered.
    pub(super) async fn end_forgotten(&mut self) {
        self.strays().end_groups(std::mem::take(&mut self.leaderless)).await;
        if let Some(component) = self.state.starting.take() {
            let known = self.kept.values().map(|kept| kept.process.identity.pid).collect();
            self.strays().end_component(&component, known).await;
        }
    }

    /// The process of the web server.
    pub(super) fn web_server(&self) -> Option<i32> {
        let web = ["apiserver", "webserver"].iter().find_map(|name| self.kept.get(*name));
        web.map(|kept| kept.process.identity.pid)
    }

    /// Shows where the web server listens, if it does.
    pub(super) fn show_door(&self) {
        let listens = self.answered.is_some() && self.answered == self.web_server();
        let port = listens.then_some(self.state.web_port);
        self.view.change(|shown| shown.web_port = port);
    }

    /// Ends the processes that are not as they should be any more.
    pub(super) async fn converge(&mut self, programs: &[Program]) {
        let key = self.plane.key(self.id, "fingerprint");
        let wanted: BTreeMap<&str, String> =
            programs.iter().map(|program| (program.name.as_str(), program.fingerprint(&key))).collect();
        let is_right = |name: &str, kept: &Kept| wanted.get(name) == Some(&kept.fingerprint);
        let names: Vec<String> = self
            .kept
            .iter()
            .filter(|(name, kept)| !is_right(name, kept))
            .map(|(name, _)| name.clone())
            .collect();
        self.stop(names, self.pace().grace).await;
    }

    /// Starts a program, and remembers it before anything else happens.
    pub(super) fn begin(&mut self, program: &Program) -> io::Result<()> {
        let started_at = (self.plane.services.clock)();
        self.state.starting = Some(program.name.clone());
        self.remember();
        let process = Process::start(program, &self.isolation);
        self.state.starting = None;
        let process = process?;
        if let Err(error) = self.plane.cgroups.join(self.id, process.identity.pid) {
            tracing::warn!(id = %self.id, component = program.name, %error, "a process is not within its bounds");
        }
        let fingerprint = program.fingerprint(&self.plane.key(self.id, "fingerprint"));
        let started = Started { identity: process.identity.clone(), fingerprint: fingerprint.clone() };
        self.state.processes.insert(program.name.clone(), started);
        self.kept
            .insert(program.name.clone(), Kept { process, fingerprint, started_at, since: Instant::now() });
        self.remember();
        Ok(())
    }

    /// Ends everything that runs, also what has run away.
    pub(super) async fn stop_all(&mut self, grace: Duration) {
        let names = self.kept.keys().cloned().collect();
        self.stop(names, grace).await;
        self.strays().end().await;
    }

    /// Ends processes side by side: those that feed others last.
    async fn stop(&mut self, names: Vec<String>, grace: Duration) {
        let (last, first): (Vec<_>, Vec<_>) = names.into_iter().partition(|name| name == "broker");
        for group in [first, last] {
            if group.iter().any(|name| matches!(name.as_str(), "apiserver" | "webserver")) {
                self.answered = None;
                self.show_door();
            }
            let ending = group.iter().filter_map(|name| self.kept.get(name));
            futures_util::future::join_all(ending.map(|kept| kept.process.stop(grace))).await;
            // Only now: whoever is cut off before still knows what runs.
            for name in &group {
                self.kept.remove(name);
                self.state.processes.remove(name);
            }
        }
        self.remember();
    }
}
