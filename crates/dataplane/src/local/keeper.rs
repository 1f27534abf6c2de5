//! Keeps one environment as it is wanted: brings it up, watches it, restarts what ends, puts it to sleep, clears it away.

mod drain;
mod history;
mod liveness;
mod network;
mod prepare;
mod processes;
mod removal;
mod replace;
mod stopping;
mod watch;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use podium_api::{DeploymentId, Timestamp};
use podium_domain::deployments::plan::{Component, Health, Rollout};
use podium_domain::{Reason, UserText};
use tokio::sync::watch::{Receiver, Sender};
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::Instant;

use self::drain::Drain;
use self::history::Trouble;
use super::isolation::Isolation;
use super::layout::Place;
use super::pace::Pace;
use super::plane::Plane;
use super::process::Process;
use super::program::{Manner, Program};
use super::services::Services;
use super::socket::Socket;
use super::state::{Memory, State};
use super::strays::Strays;
use super::tail::Tail;
use super::view::{Shown, View};
use crate::Environment;
use crate::blocking::blocking;

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

/// The handle of a keeper. Without it there is no keeper; what it kept runs on.
pub(super) struct Handle {
    pub(super) orders: Sender<Order>,
    pub(super) view: Arc<View>,
    pub(super) memory: Arc<Memory>,
    /// The generation that was known when it began.
    pub(super) generation: i64,
    /// Why it must not run, where that is so.
    stopped_for: Arc<Mutex<Option<UserText>>>,
    task: AbortHandle,
}

impl Handle {
    /// Whether its environment is to vanish.
    pub(super) fn is_removing(&self) -> bool {
        matches!(*self.orders.borrow(), Order::Remove)
    }

    /// Why its environment must not run, where that is so.
    pub(super) fn stopped_for(&self) -> Option<UserText> {
        self.stopped_for.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Has its environment stop for a reason, or run again.
    pub(super) fn stop_for(&self, why: Option<UserText>) {
        *self.stopped_for.lock().unwrap_or_else(PoisonError::into_inner) = why;
        // The same order, looked at again.
        self.orders.send_modify(|_| {});
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.task.abort();
        // What is being written or started is finished, and nothing else is.
        self.memory.end();
    }
}

/// A process that is kept.
struct Kept {
    process: Process,
    fingerprint: String,
    /// When it was started; long ago where that was somebody else.
    started_at: Timestamp,
    since: Instant,
    manner: Manner,
    /// How much its log held when it was started.
    log_start: u64,
    /// Whether it has been well since its start.
    was_well: bool,
    /// Since when it has not been well.
    unwell_since: Option<Instant>,
    /// When it is killed, once it was asked to end.
    ends_by: Option<Instant>,
}

/// Keeps an environment.
pub(super) struct Keeper {
    plane: Arc<Plane>,
    id: DeploymentId,
    place: Place,
    /// Known once the machine was looked at.
    isolation: Isolation,
    tail: Option<JoinHandle<()>>,
    state: State,
    memory: Arc<Memory>,
    kept: BTreeMap<String, Kept>,
    /// Process groups that were left behind by leaders that are gone.
    leaderless: Vec<i32>,
    /// What ended, since somebody last said what is wanted.
    troubles: HashMap<String, Trouble>,
    /// Where its web server listens, whichever process that is.
    socket: Option<Socket>,
    /// What ran last, and is started again when it ends although something else is wanted that cannot be made yet.
    held_up: Vec<Program>,
    /// Why it must not run, where that is so.
    stopped_for: Arc<Mutex<Option<UserText>>>,
    /// The drain that is under way.
    drain: Option<Drain>,
    /// Whether a web server has answered.
    answered: bool,
    /// The web server whose interface for tasks is built.
    warmed: Option<i32>,
    orders: Receiver<Order>,
    view: Arc<View>,
}

impl Keeper {
    /// Starts to keep an environment, with what is remembered of it.
    pub(super) fn start(plane: &Arc<Plane>, id: DeploymentId, state: State, order: Order) -> Handle {
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
        let memory = Arc::new(Memory::new(place.state(), state.is_removed));
        let generation = state.generation;
        let stopped_for = Arc::default();
        let mut keeper = Self {
            plane: Arc::clone(plane),
            id,
            place,
            isolation: Isolation::NONE,
            tail: None,
            state,
            memory: Arc::clone(&memory),
            kept: BTreeMap::new(),
            leaderless: Vec::new(),
            troubles: HashMap::new(),
            socket: None,
            held_up: Vec::new(),
            stopped_for: Arc::clone(&stopped_for),
            drain: None,
            answered: false,
            warmed: None,
            orders: received,
            view: Arc::clone(&view),
        };
        keeper.adopt();
        let task = tokio::spawn(keeper.keep()).abort_handle();
        Handle { orders, view, memory, generation, stopped_for, task }
    }

    fn pace(&self) -> Pace {
        self.plane.pace
    }

    fn strays(&self) -> Strays {
        let strays = Strays::of(self.id, self.isolation.user(), &self.plane.cgroups);
        // Where environments have users of their own these tell them from everybody else.
        if !self.isolation.shares_user() {
            return strays;
        }
        let components = self.kept.values().map(|kept| kept.process.identity.pid);
        strays.using(self.place.root.clone()).beside(components)
    }

    async fn keep(mut self) {
        loop {
            let order = self.orders.borrow_and_update().clone();
            match order {
                Order::Hold => self.follow_logs().await,
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
    async fn follow_logs(&mut self) {
        let logs = self.place.logs();
        if self.tail.is_some() || !blocking(move || logs.is_dir()).await {
            return;
        }
        let Services { logs, clock, .. } = &self.plane.services;
        let following = Tail::follow(self.id, self.place.clone(), Arc::clone(logs), Arc::clone(clock));
        self.tail = Some(tokio::spawn(following));
    }

    /// Brings an environment to what is wanted, and keeps it there until something else is.
    async fn run(&mut self, environment: &Environment) {
        self.state.generation = environment.generation;
        self.state.is_hibernating = environment.is_hibernating;
        self.state.namespace.clone_from(&environment.namespace);
        self.troubles.clear();
        self.view.change(|shown| {
            shown.generation = Some(environment.generation);
            shown.is_hibernating = environment.is_hibernating;
            shown.rollout = Rollout::Underway;
        });
        self.end_forgotten().await;
        if environment.is_hibernating {
            let _ = self.stand_on_ground().await;
            if !self.drain_before("it goes to sleep", environment).await {
                return;
            }
            // Workers finish their tasks by themselves; a scheduler has been waited for already.
            let has_workers = self.kept.values().any(|kept| kept.manner == Manner::Finish);
            let grace = if has_workers { self.drain_grace(environment) } else { self.pace().grace };
            let mut orders = self.orders.clone();
            tokio::select! {
                () = self.stop_all(grace) => {}
                _ = orders.changed() => return,
            }
            self.state.running = environment.running();
            self.remember().await;
            let running = self.state.running.clone();
            return self.view.change(|shown| {
                shown.rollout = Rollout::Done;
                shown.components = Vec::new();
                shown.running = running;
                shown.note = None;
            });
        }
        if let Some(why) = self.must_not_run() {
            return self.stay_stopped(environment, why).await;
        }
        let mut orders = self.orders.clone();
        while !self.has_changed() {
            self.remember().await;
            let prepared = tokio::select! {
                prepared = self.prepare(environment) => prepared,
                _ = orders.changed() => return,
            };
            // A database is not left halfway, whatever is wanted meanwhile.
            let prepared = match prepared {
                Ok(mut prepared) => match self.make_way(environment, &prepared).await {
                    true => self.migrate(environment, &mut prepared).await.map(|()| prepared),
                    false => return,
                },
                Err((what, why)) => {
                    self.cannot_come_up(what, why).await;
                    self.hold_up(self.pace().again).await;
                    continue;
                }
            };
            match prepared {
                Ok(prepared) => {
                    self.follow_logs().await;
                    self.held_up.clone_from(&prepared.programs);
                    self.watch(environment, &prepared).await;
                }
                Err((what, why)) => {
                    self.cannot_come_up(what, why).await;
                    let _ = tokio::time::timeout(self.pace().again, orders.changed()).await;
                }
            }
        }
    }

    async fn cannot_come_up(&mut self, what: &str, why: Reason) {
        tracing::warn!(id = %self.id, what, %why, "an environment cannot be brought up yet");
        // What runs goes on taking tasks until there is something to replace it with.
        self.end_drain().await;
        self.view.wait_for(what, why);
    }

    async fn remember(&self) {
        if let Err(error) = self.memory.write(&self.state).await {
            tracing::error!(id = %self.id, %error, "the state of an environment cannot be remembered");
        }
    }

    fn show(&self, rollout: Rollout, components: Vec<(String, Result<(), Reason>)>) {
        let component = |(name, health): (String, Result<(), Reason>)| Component {
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

impl Drop for Keeper {
    fn drop(&mut self) {
        if let Some(tail) = self.tail.take() {
            tail.abort();
        }
    }
}
