//! The processes of an environment: taken over, started, ended.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use podium_api::{DeploymentId, Timestamp};
use tokio::time::Instant;

use super::{Keeper, Kept};
use crate::local::components::{RETIRING, is_web};
use crate::local::isolation::Isolation;
use crate::local::network::is_network;
use crate::local::plane::Plane;
use crate::local::process::{Process, counted, length_of};
use crate::local::program::{Manner, Program};
use crate::local::socket::Socket;
use crate::local::state::{Started, State, Writing};

impl Kept {
    fn new(process: Process, fingerprint: String, manner: Manner, log_start: u64) -> Self {
        Self {
            process,
            fingerprint,
            started_at: Timestamp::from_millis(0),
            since: Instant::now(),
            manner,
            log_start,
            was_well: false,
            unwell_since: None,
            ends_by: None,
        }
    }
}

/// A program that is about to be started.
struct Start {
    plane: Arc<Plane>,
    id: DeploymentId,
    isolation: Isolation,
    state: State,
    program: Program,
    fingerprint: String,
    socket: Option<OwnedFd>,
}

/// A program that was started.
struct Begun {
    process: Process,
    started: Started,
    log_start: u64,
}

impl Start {
    fn run(mut self, writing: &Writing<'_>) -> io::Result<Begun> {
        let (id, name) = (self.id, self.program.name.clone());
        self.state.starting = Some(name.clone());
        // Nothing starts that could not be found again.
        writing.write(&self.state)?;
        let log_start = length_of(&self.program.log);
        let groups = self.plane.cgroups.groups(id).into_iter().filter(|group| group.exists());
        let isolation = self.isolation.clone().in_groups(groups.collect());
        let process = Process::start(&self.counted(), &isolation, self.socket)?;
        if let Err(error) = self.plane.cgroups.join(id, process.identity.pid) {
            tracing::warn!(%id, component = name, %error, "a process is not within its bounds");
        }
        let started = Started {
            identity: process.identity.clone(),
            fingerprint: self.fingerprint,
            manner: self.program.manner,
        };
        self.state.starting = None;
        self.state.processes.insert(name, started.clone());
        if let Err(error) = writing.write(&self.state) {
            tracing::error!(%id, %error, "the state of an environment cannot be remembered");
        }
        Ok(Begun { process, started, log_start })
    }

    /// The program as it is started: where no control group does, the environment's user bounds how many processes it has.
    fn counted(&self) -> Program {
        let mut program = self.program.clone();
        let most = self.plane.options.environment_processes.filter(|_| self.isolation.user().is_some());
        if let Some(most) = most.filter(|_| !self.plane.cgroups.counts_processes(self.id)) {
            program.arguments = counted(&program.arguments, most);
        }
        program
    }
}

impl Keeper {
    /// Takes over the processes that were started before.
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
                        tracing::warn!(id = %self.id, %error, "a web server is started again, because its socket cannot be taken back");
                    }
                }
            }
            let log_start = length_of(&self.place.component_log(&name));
            let (fingerprint, manner) = (started.fingerprint.clone(), started.manner);
            self.state.processes.insert(name.clone(), started);
            let kept = Kept {
                started_at: Timestamp::from_millis(0),
                was_well: true,
                ..Kept::new(process, fingerprint, manner, log_start)
            };
            self.kept.insert(name, kept);
        }
        self.answered = self.web_server().is_some() && self.socket.is_some();
        self.warmed = self.web_server();
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
        let web = ["apiserver", "webserver", RETIRING].iter().find_map(|name| self.kept.get(*name));
        web.map(|kept| kept.process.identity.pid)
    }

    /// Shows where the web server listens, if somebody serves there.
    pub(super) fn show_door(&mut self) {
        // Only a socket that is held here is certainly nobody else's.
        self.answered &= self.web_server().is_some() && self.socket.is_some();
        let port = self.answered.then_some(self.state.web_port);
        self.view.change(|shown| shown.web_port = port);
    }

    /// Starts a program, and remembers it before anything else happens. Once it was begun nobody can cut it off.
    pub(super) async fn begin(&mut self, program: &Program) -> io::Result<()> {
        let started_at = (self.plane.services.clock)();
        let socket = match &self.socket {
            Some(socket) if is_web(&program.name) => Some(socket.lend()?),
            _ => None,
        };
        // What makes networks has to leave its bounds to itself.
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
        // Whoever cuts this off finds it again by its name: it is begun all the same.
        self.state.starting = Some(program.name.clone());
        let begun = self.memory.in_turn(move |writing| start.run(writing)).await;
        self.state.starting = None;
        let begun = begun?;
        self.state.processes.insert(program.name.clone(), begun.started);
        let kept = Kept::new(begun.process, fingerprint, program.manner, begun.log_start);
        self.kept.insert(program.name.clone(), Kept { started_at, ..kept });
        Ok(())
    }

    /// Takes a process that has ended off the list.
    pub(super) async fn forget_process(&mut self, name: &str) {
        self.kept.remove(name);
        self.state.processes.remove(name);
        self.remember().await;
        self.show_door();
    }

    /// Ends everything that runs, also what has run away.
    pub(super) async fn stop_all(&mut self, grace: Duration) {
        let names = self.kept.keys().cloned().collect();
        self.held_up.clear();
        // Before those end whom others are known by.
        let strays = self.strays();
        self.stop(names, grace).await;
        strays.end().await;
    }

    /// Ends whoever serves.
    pub(super) async fn stop_web_servers(&mut self) {
        self.stop_components(self.kept.keys().filter(|name| is_web(name)).cloned().collect()).await;
    }

    /// Ends those of these components that run.
    pub(super) async fn stop_components(&mut self, mut names: Vec<String>) {
        names.retain(|name| self.kept.contains_key(name));
        if !names.is_empty() {
            self.stop(names, self.pace().short_grace).await;
        }
    }

    /// Ends processes side by side: first those that run tasks, then those that tasks need, and those that feed others
    /// or make their network last.
    async fn stop(&mut self, names: Vec<String>, grace: Duration) {
        let (last, rest): (Vec<_>, Vec<_>) =
            names.into_iter().partition(|name| name == "broker" || is_network(name));
        let runs_tasks = |name: &String| {
            matches!(self.kept[name].manner, Manner::Drain | Manner::Finish) || name == "scheduler"
        };
        let (first, then): (Vec<_>, Vec<_>) = rest.into_iter().partition(runs_tasks);
        for group in [first, then, last] {
            if group.iter().any(|name| is_web(name)) {
                self.answered = false;
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
        self.remember().await;
    }
}
