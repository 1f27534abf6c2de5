//! Keeps one environment as it is wanted: brings it up, watches it, restarts what ends, puts it to sleep, clears it away.

mod prepare;
mod watch;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use podium_api::{Id, Timestamp};
use podium_domain::deployments::plan::{Component, Health, Rollout};
use tokio::sync::watch::{Receiver, Sender};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use self::prepare::running;
use super::isolation::Isolation;
use super::layout::Place;
use super::plane::Plane;
use super::process::{Process, end_strays};
use super::program::Program;
use super::services::Services;
use super::settings;
use super::state::{Started, State};
use super::tail::Tail;
use super::view::{Shown, View};
use crate::Environment;

/// How long processes may take to end by themselves: running tasks finish within it.
const GRACE: Duration = Duration::from_secs(60);
/// The same where nothing of the environment is wanted any more.
const SHORT_GRACE: Duration = Duration::from_secs(5);
/// When to try again what did not work.
const AGAIN: Duration = Duration::from_secs(10);

/// What is wanted of a keeper.
#[derive(Clone)]
pub(super) enum Order {
    /// To hold what runs, until somebody says what is wanted.
    Hold,
    /// To make it so.
    Run(Arc<Environment>),
    /// To clear it away.
    Remove,
}

/// The handle of a keeper.
pub(super) struct Handle {
    pub(super) orders: Sender<Order>,
    pub(super) view: Arc<View>,
}

/// A process that is kept.
struct Kept {
    process: Process,
    fingerprint: String,
    /// When it was started; long ago where that was somebody else.
    started_at: Timestamp,
    since: Instant,
}

/// Keeps an environment.
pub(super) struct Keeper {
    plane: Arc<Plane>,
    id: Id,
    place: Place,
    /// Known once the machine was looked at.
    isolation: Isolation,
    tail: Option<JoinHandle<()>>,
    state: State,
    kept: BTreeMap<String, Kept>,
    /// The web server whose interface for tasks is built.
    warmed: Option<i32>,
    orders: Receiver<Order>,
    view: Arc<View>,
}

impl Keeper {
    /// Starts to keep an environment, with what is remembered of it.
    pub(super) fn start(plane: &Arc<Plane>, id: Id, state: State, order: Order) -> Handle {
        let shown = Shown {
            generation: None,
            is_hibernating: state.is_hibernating,
            rollout: Rollout::Underway,
            components: Vec::new(),
            running: state.running.clone(),
            note: None,
            web_port: None,
        };
        let view = Arc::new(View::new(id, plane.news.clone(), shown));
        let (orders, received) = tokio::sync::watch::channel(order);
        let place = plane.layout.environment(id);
        let mut keeper = Self {
            plane: Arc::clone(plane),
            id,
            place,
            isolation: Isolation::None,
            tail: None,
            state,
            kept: BTreeMap::new(),
            warmed: None,
            orders: received,
            view: Arc::clone(&view),
        };
        keeper.adopt();
        tokio::spawn(keeper.keep());
        Handle { orders, view }
    }

    /// Takes over the processes that were started before.
    fn adopt(&mut self) {
        let started = std::mem::take(&mut self.state.processes);
        for (name, Started { identity, fingerprint }) in started {
            let Ok(process) = Process::adopt(identity.clone()) else { continue };
            self.state.processes.insert(name.clone(), Started { identity, fingerprint: fingerprint.clone() });
            let (started_at, since) = (Timestamp::from_millis(0), Instant::now());
            self.kept.insert(name, Kept { process, fingerprint, started_at, since });
        }
        if let Some(web) = ["apiserver", "webserver"].iter().find_map(|name| self.kept.get(*name)) {
            self.warmed = Some(web.process.identity.pid);
            let port = self.state.web_port;
            self.view.change(|shown| shown.web_port = Some(port));
        }
    }

    async fn keep(mut self) {
        loop {
            let order = self.orders.borrow_and_update().clone();
            match order {
                Order::Hold => self.follow_logs(),
                Order::Run(environment) => self.run(&environment).await,
                Order::Remove => {
                    if self.remove().await {
                        return;
                    }
                }
            }
            if !self.has_changed() && self.orders.changed().await.is_err() {
                return;
            }
        }
    }

    fn has_changed(&self) -> bool {
        self.orders.has_changed().unwrap_or(true)
    }

    /// Takes what the environment writes to the log store from now on.
    fn follow_logs(&mut self) {
        if self.tail.is_some() || !self.place.logs().is_dir() {
            return;
        }
        let Services { logs, clock, .. } = &self.plane.services;
        match Tail::new(self.id, &self.place, Arc::clone(logs), Arc::clone(clock)) {
            Ok(tail) => self.tail = Some(tokio::spawn(tail.run())),
            Err(error) => {
                tracing::error!(id = %self.id, %error, "the logs of an environment are not followed")
            }
        }
    }

    /// Brings an environment to what is wanted, and keeps it there until something else is.
    async fn run(&mut self, environment: &Environment) {
        self.state.generation = environment.generation;
        self.state.is_hibernating = environment.is_hibernating;
        self.state.namespace.clone_from(&environment.namespace);
        self.view.change(|shown| {
            shown.generation = Some(environment.generation);
            shown.is_hibernating = environment.is_hibernating;
            shown.rollout = Rollout::Underway;
        });
        if environment.is_hibernating {
            self.stop_all(GRACE).await;
            self.state.running = running(environment);
            self.remember();
            let running = self.state.running.clone();
            return self.view.change(|shown| {
                shown.rollout = Rollout::Done;
                shown.components = Vec::new();
                shown.running = running;
                shown.note = None;
            });
        }
        let mut orders = self.orders.clone();
        while !self.has_changed() {
            self.remember();
            let prepared = tokio::select! {
                prepared = self.prepare(environment) => prepared,
                _ = orders.changed() => return,
            };
            match prepared {
                Ok(prepared) => {
                    self.follow_logs();
                    self.converge(&prepared.programs).await;
                    return self.watch(environment, &prepared).await;
                }
                Err((what, why)) => {
                    tracing::warn!(id = %self.id, what, why, "an environment cannot be brought up yet");
                    self.view.wait_for(what, why);
                    let _ = tokio::time::timeout(AGAIN, orders.changed()).await;
                }
            }
        }
    }

    /// Ends the processes that are not as they should be any more.
    async fn converge(&mut self, programs: &[Program]) {
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
        self.stop(names, GRACE).await;
    }

    /// Starts a program, and remembers it before anything else happens.
    fn begin(&mut self, program: &Program) -> io::Result<()> {
        let started_at = (self.plane.services.clock)();
        let process = Process::start(program, &self.isolation)?;
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

    async fn stop_all(&mut self, grace: Duration) {
        self.view.change(|shown| shown.web_port = None);
        let names = self.kept.keys().cloned().collect();
        self.stop(names, grace).await;
    }

    /// Ends processes side by side: those that feed others last.
    async fn stop(&mut self, names: Vec<String>, grace: Duration) {
        let (last, first): (Vec<_>, Vec<_>) = names.into_iter().partition(|name| name == "broker");
        for group in [first, last] {
            let ending = group.iter().filter_map(|name| self.kept.remove(name));
            futures_util::future::join_all(ending.map(|kept| kept.process.stop(grace))).await;
            group.iter().for_each(|name| drop(self.state.processes.remove(name)));
        }
        self.remember();
    }

    /// Clears everything away; tells whether nothing is left.
    async fn remove(&mut self) -> bool {
        self.view.wait_for("removal", "it is being cleared away".into());
        if let Some(tail) = self.tail.take() {
            tail.abort();
        }
        let _ = self.stand_on_ground().await;
        self.stop_all(SHORT_GRACE).await;
        let (name, value) = settings::mark(self.id);
        let (mark, user) = (format!("{name}={value}"), self.isolation.user());
        let members = self.plane.cgroups.members(self.id);
        let _ = tokio::task::spawn_blocking(move || end_strays(&mark, user, &members)).await;
        if let Err(why) = self.drop_database().await {
            return self.still_there(why).await;
        }
        self.plane.cgroups.forget(self.id);
        let root = self.place.root.clone();
        let removed = tokio::task::spawn_blocking(move || match fs::remove_dir_all(root) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.to_string()),
            _ => Ok(()),
        });
        match removed.await {
            Ok(Ok(())) => {
                self.plane.forget(self.id);
                true
            }
            Ok(Err(why)) => self.still_there(why).await,
            Err(error) => self.still_there(error.to_string()).await,
        }
    }

    async fn still_there(&mut self, why: String) -> bool {
        tracing::warn!(id = %self.id, why, "an environment cannot be cleared away yet");
        self.view.wait_for("removal", why);
        tokio::time::sleep(AGAIN).await;
        // Again, by the same order.
        self.orders.mark_changed();
        false
    }

    fn remember(&self) {
        if let Err(error) = self.state.write(&self.place.state()) {
            tracing::error!(id = %self.id, %error, "the state of an environment cannot be remembered");
        }
    }

    fn show(&self, rollout: Rollout, components: Vec<(String, Result<(), String>)>) {
        let component = |(name, health): (String, Result<(), String>)| Component {
            name,
            health: health.map_or_else(Health::Down, |()| Health::Up),
        };
        let components = components.into_iter().map(component).collect();
        self.view.change(|shown| {
            shown.rollout = rollout;
            shown.components = components;
        });
    }
}
