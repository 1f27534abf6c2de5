//! The processes of an environment: adopted, started, stopped.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use podium_api::{DeploymentId, Timestamp};
use tokio::time::Instant;

use super::{SupervisedProcess, Supervisor};
use crate::local::components::{RETIRING, is_web};
use crate::local::isolation::Isolation;
use crate::local::network::is_network;
use crate::local::plane::Plane;
use crate::local::process::{Process, log_length};
use crate::local::program::{Program, ReplaceStrategy};
use crate::local::sockets::Socket;
use crate::local::state::{Started, State, StateWriter};

impl SupervisedProcess {
    fn new(process: Process, fingerprint: String, strategy: ReplaceStrategy, log_start: u64) -> Self {
        Self {
            process,
            fingerprint,
            started_at: Timestamp::from_millis(0),
            since: Instant::now(),
            strategy,
            log_start,
            was_healthy: false,
            has_worked: false,
            unhealthy_since: None,
            got_on: None,
            kill_at: None,
        }
    }
}

struct Start {
    plane: Arc<Plane>,
    id: DeploymentId,
    isolation: Isolation,
    state: State,
    program: Program,
    fingerprint: String,
    socket: Option<OwnedFd>,
}

struct StartedProgram {
    process: Process,
    started: Started,
    log_start: u64,
}

impl Start {
    fn run(mut self, writing: &StateWriter<'_>) -> io::Result<StartedProgram> {
        let (id, name) = (self.id, self.program.name.clone());
        self.state.starting = Some(name.clone());
        // Nothing is started that could not be found again.
        writing.write(&self.state)?;
        let log_start = log_length(&self.program.log);
        let (isolation, arguments) = self.plane.bounded(id, self.isolation, self.program.arguments);
        let program = Program { arguments, ..self.program };
        let process = Process::start(&program, &isolation, self.socket)?;
        if let Err(error) = self.plane.cgroups.join(id, process.identity.pid) {
            tracing::warn!(%id, component = name, %error, "a process could not be moved into its control group");
        }
        let started = Started {
            identity: process.identity.clone(),
            fingerprint: self.fingerprint,
            strategy: program.strategy,
        };
        self.state.starting = None;
        self.state.processes.insert(name, started.clone());
        if let Err(error) = writing.write(&self.state) {
            tracing::error!(%id, %error, "the state of an environment cannot be saved");
        }
        Ok(StartedProgram { process, started, log_start })
    }
}

impl Supervisor {
    /// Adopts the processes that an earlier control plane started.
    pub(super) fn adopt(&mut self) {
        let started = std::mem::take(&mut self.state.processes);
        for (name, started) in started {
            let Ok(process) = Process::adopt(started.identity.clone()) else {
                self.leaderless.push(started.identity.pid);
                continue;
            };
            if is_web(&name) && self.socket.is_none() {
                match Socket::of(&process, self.state.web_port) {
                    Ok(socket) => self.socket = Some(socket),
                    Err(error) => {
                        tracing::warn!(id = %self.id, %error, "a web server will be restarted, because its socket cannot be recovered");
                    }
                }
            }
            let log_start = log_length(&self.place.component_log(&name));
            let (fingerprint, strategy) = (started.fingerprint.clone(), started.strategy);
            self.state.processes.insert(name.clone(), started);
            let kept = SupervisedProcess {
                started_at: Timestamp::from_millis(0),
                was_healthy: true,
                has_worked: true,
                ..SupervisedProcess::new(process, fingerprint, strategy, log_start)
            };
            self.processes.insert(name, kept);
        }
        self.has_answered = self.web_server().is_some() && self.socket.is_some();
        self.publish_web_server();
    }

    /// Kills what is left of processes that exited in the meantime, and a process whose start was not saved.
    pub(super) async fn kill_orphans(&mut self) {
        self.orphans().kill_groups(std::mem::take(&mut self.leaderless)).await;
        if let Some(component) = self.state.starting.take() {
            let known = self.processes.values().map(|kept| kept.process.identity.pid).collect();
            self.orphans().kill_component(&component, known).await;
        }
    }

    pub(super) fn web_server(&self) -> Option<i32> {
        let web = ["apiserver", "webserver", RETIRING].iter().find_map(|name| self.processes.get(*name));
        web.map(|kept| kept.process.identity.pid)
    }

    /// Publishes the port of the web server while it serves.
    pub(super) fn publish_web_server(&mut self) {
        // Only a socket that is held here is certain to belong to the environment.
        self.has_answered &= self.web_server().is_some() && self.socket.is_some();
        let port = self.has_answered.then_some(self.state.web_port);
        self.view.show_web_server(port);
    }

    /// Starts a program and saves it in the state. Once begun, this cannot be cancelled.
    pub(super) async fn start_program(&mut self, program: &Program) -> io::Result<()> {
        let started_at = (self.plane.services.clock)();
        let socket = match &self.socket {
            Some(socket) if is_web(&program.name) => Some(socket.lend()?),
            _ => None,
        };
        // Network helpers isolate themselves.
        let isolation =
            if is_network(&program.name) { Isolation::NONE.clone() } else { self.isolation.clone() };
        let start = Start {
            plane: Arc::clone(&self.plane),
            id: self.id,
            isolation,
            state: self.state.clone(),
            fingerprint: self.fingerprint(program),
            program: program.clone(),
            socket,
        };
        let fingerprint = start.fingerprint.clone();
        // If this future is dropped, the start continues, and the process is found again by its name.
        self.state.starting = Some(program.name.clone());
        let begun = self.controls.state_file.exclusively(move |writing| start.run(writing)).await;
        self.state.starting = None;
        let begun = begun?;
        self.state.processes.insert(program.name.clone(), begun.started);
        let kept = SupervisedProcess::new(begun.process, fingerprint, program.strategy, begun.log_start);
        self.processes.insert(program.name.clone(), SupervisedProcess { started_at, ..kept });
        Ok(())
    }

    pub(super) async fn remove_process(&mut self, name: &str) {
        self.processes.remove(name);
        self.state.processes.remove(name);
        self.forget_answers_of(name);
        self.save_state().await;
        self.publish_web_server();
    }

    pub(super) async fn stop_all(&mut self, grace: Duration) {
        let names = self.processes.keys().cloned().collect();
        self.last_programs.clear();
        // Collected while the components that identify the orphans still run.
        let orphans = self.orphans();
        self.stop(names, grace).await;
        orphans.end().await;
    }

    pub(super) async fn stop_web_servers(&mut self) {
        self.stop_components(self.processes.keys().filter(|name| is_web(name)).cloned().collect()).await;
    }

    pub(super) async fn stop_components(&mut self, mut names: Vec<String>) {
        names.retain(|name| self.processes.contains_key(name));
        if !names.is_empty() {
            self.stop(names, self.timing().short_grace).await;
        }
    }

    /// Stops processes in parallel: first those that run tasks, then those that tasks need, and the broker and network
    /// helpers last.
    pub(super) async fn stop(&mut self, names: Vec<String>, grace: Duration) {
        let (last, rest): (Vec<_>, Vec<_>) =
            names.into_iter().partition(|name| name == "broker" || is_network(name));
        let runs_tasks = |name: &String| {
            matches!(self.processes[name].strategy, ReplaceStrategy::Drain | ReplaceStrategy::Finish)
                || name == "scheduler"
        };
        let (first, then): (Vec<_>, Vec<_>) = rest.into_iter().partition(runs_tasks);
        for group in [first, then, last] {
            if group.iter().any(|name| is_web(name)) {
                self.has_answered = false;
                self.publish_web_server();
            }
            let ending = group.iter().filter_map(|name| self.processes.get(name));
            futures_util::future::join_all(ending.map(|kept| kept.process.stop(grace))).await;
            // Only now: if this is cancelled earlier, the state still lists what runs.
            for name in &group {
                self.processes.remove(name);
                self.state.processes.remove(name);
                self.forget_answers_of(name);
            }
        }
        self.save_state().await;
    }
}
