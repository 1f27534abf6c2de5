//! Supervises one environment: starts it, watches it, restarts what exits, hibernates it, removes it.

pub(super) mod drain;
mod liveness;
mod network;
mod one_shots;
mod parse;
mod prepare;
mod processes;
mod release;
mod replace;
mod stopping;
mod watch;

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use podium_airflow::clean_up::CleanUps;
use podium_airflow::health::TaskNeeds;
use podium_api::deploy_reports::ReportedImportError;
use podium_api::{DeploymentId, Timestamp};
use podium_domain::deployments::plan::{Component, Health, Observed, Rollout};
use podium_domain::{Reason, UserText};
use tokio::sync::watch::{Receiver, Sender};
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::Instant;

use self::drain::Drain;
use self::liveness::{Failure, GotOn};
use self::parse::NewVersion;
use self::prepare::Prepared;
use super::isolation::Isolation;
use super::layout::Place;
use super::orphans::OrphanProcesses;
use super::plane::Plane;
use super::prepare_error::PrepareError;
use super::process::Process;
use super::program::{Program, ReplaceStrategy};
use super::sockets::Socket;
use super::spool;
use super::state::{State, StateFile, Stop};
use super::tail::Tail;
use super::timing::Timing;
use super::view::{StepTimes, View, not_applied};
use crate::Environment;
use crate::Services;
use crate::blocking::blocking;

#[derive(Clone)]
pub(super) enum Order {
    /// Leave running processes alone until the desired state is known.
    Hold,
    Run(Arc<Environment>),
    /// Remove the environment, if necessary after its running tasks have finished, or at this time.
    Remove(Option<Timestamp>),
}

pub(super) struct Controls {
    pub(super) state_file: Arc<StateFile>,
    /// Whether the order that is carried out waits for running tasks no longer.
    pub(super) force: Sender<bool>,
    /// The clean-up that was asked for.
    pub(super) clean_ups: CleanUps,
    /// Why the environment must not run, if it must not.
    stop_reason: Mutex<Option<UserText>>,
    operator_stop: Mutex<Option<Stop>>,
    /// Whether its removal no longer waits for tasks.
    is_ending: AtomicBool,
}

impl Controls {
    /// Why the environment must not run, if it must not.
    pub(super) fn stop_reason(&self) -> Option<UserText> {
        locked(&self.stop_reason).clone()
    }
}

/// The handle of a supervisor. Dropping it ends the supervisor; the environment's processes keep running.
pub(super) struct Handle {
    pub(super) orders: Sender<Order>,
    pub(super) view: Arc<View>,
    pub(super) controls: Arc<Controls>,
    /// The generation in the saved state when it started.
    pub(super) generation: i64,
    task: AbortHandle,
}

impl Handle {
    pub(super) fn is_removing(&self) -> bool {
        matches!(*self.orders.borrow(), Order::Remove(_))
    }

    /// Whether it is being removed and waits for no task: nothing of it has to keep running.
    pub(super) fn is_ending(&self) -> bool {
        matches!(*self.orders.borrow(), Order::Remove(None))
            || self.controls.is_ending.load(Ordering::Relaxed)
    }

    /// Whether its operator has stopped it, and it shows that already.
    pub(super) fn is_stopped_by_operator(&self) -> bool {
        let is_shown = || self.view.observed().components.contains(&stopping::by_operator());
        locked(&self.controls.operator_stop).is_some() && is_shown()
    }

    /// Stops its environment for a reason, or lets it run again.
    pub(super) fn set_stop_reason(&self, why: Option<UserText>) {
        *locked(&self.controls.stop_reason) = why;
        // Wakes the supervisor with the same order.
        self.orders.send_modify(|_| {});
    }

    /// Stops its environment for the operator, or lets it run again.
    pub(super) fn set_operator_stop(&self, stop: Option<Stop>) {
        let before = std::mem::replace(&mut *locked(&self.controls.operator_stop), stop);
        if before == stop || self.is_removing() {
            return;
        }
        if stop == Some(Stop::Now) {
            self.controls.force.send_replace(true);
        }
        if before.is_some() != stop.is_some() {
            self.orders.send_modify(|_| {});
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.task.abort();
        // A write or start in progress is finished, but nothing new begins.
        self.controls.state_file.end();
    }
}

struct SupervisedProcess {
    process: Process,
    fingerprint: String,
    /// When it was started; the epoch if an earlier control plane started it.
    started_at: Timestamp,
    since: Instant,
    strategy: ReplaceStrategy,
    /// The length of its log when it was started.
    log_start: u64,
    /// Whether it has been healthy since its start.
    was_healthy: bool,
    /// Whether it may have started tasks: it has done its work since its start.
    has_worked: bool,
    unhealthy_since: Option<Instant>,
    /// When it last got on since then.
    got_on: Option<GotOn>,
    kill_at: Option<Instant>,
}

pub(super) struct Supervisor {
    plane: Arc<Plane>,
    id: DeploymentId,
    place: Place,
    /// Known once the host has been examined.
    isolation: Isolation,
    tail: Option<JoinHandle<()>>,
    /// Reads what the environment says about its DAG runs.
    spool: Option<JoinHandle<()>>,
    state: State,
    processes: BTreeMap<String, SupervisedProcess>,
    /// Process groups whose leaders are gone.
    leaderless: Vec<i32>,
    /// Failures of components since the last order.
    failures: HashMap<String, Failure>,
    /// The listening socket of its web servers.
    socket: Option<Socket>,
    /// The programs that ran last; they are restarted if they exit while the newly desired state cannot be prepared.
    last_programs: Vec<Program>,
    controls: Arc<Controls>,
    drain: Option<Drain>,
    /// The task that carries out the clean-up that was asked for.
    clean_up: Option<AbortHandle>,
    has_ended_earlier_clean_up: bool,
    /// What was found in the DAGs of a strict release, until the next order.
    import_errors: Vec<ReportedImportError>,
    /// The version of the DAGs that is going live, until its rollout has ended.
    new_version: Option<NewVersion>,
    /// Whether a web server has responded.
    has_answered: bool,
    answering: TaskNeeds,
    orders: Receiver<Order>,
    view: Arc<View>,
}

impl Supervisor {
    /// Starts to supervise an environment, from its saved state.
    pub(super) fn start(plane: &Arc<Plane>, id: DeploymentId, state: State, order: Order) -> Handle {
        let place = plane.layout.environment(id);
        let stop = Stop::read(&place);
        // It has not changed only because this process starts.
        let is_stopped = stop.is_some() && state.is_at_rest();
        let components = if is_stopped { vec![stopping::by_operator()] } else { Vec::new() };
        let observed = Observed {
            is_hibernating: state.is_hibernating,
            rollout: if is_stopped { state.rollout_of_stopped() } else { Rollout::Underway },
            running: state.running.clone(),
            ..not_applied(components)
        };
        let view = Arc::new(View::new(id, plane.notifier.clone(), observed));
        let (orders, received) = tokio::sync::watch::channel(order);
        let controls = Arc::new(Controls {
            state_file: Arc::new(StateFile::new(place.state(), &state)),
            force: Sender::new(false),
            clean_ups: CleanUps::default(),
            stop_reason: Mutex::default(),
            operator_stop: Mutex::new(stop),
            is_ending: AtomicBool::default(),
        });
        let generation = state.generation;
        let mut supervisor = Self {
            plane: Arc::clone(plane),
            id,
            place,
            isolation: Isolation::NONE,
            tail: None,
            spool: None,
            state,
            processes: BTreeMap::new(),
            leaderless: Vec::new(),
            failures: HashMap::new(),
            socket: None,
            last_programs: Vec::new(),
            controls: Arc::clone(&controls),
            drain: None,
            clean_up: None,
            has_ended_earlier_clean_up: false,
            import_errors: Vec::new(),
            new_version: None,
            has_answered: false,
            answering: TaskNeeds::default(),
            orders: received,
            view: Arc::clone(&view),
        };
        supervisor.adopt();
        let task = tokio::spawn(supervisor.supervise()).abort_handle();
        Handle { orders, view, controls, generation, task }
    }

    fn timing(&self) -> Timing {
        self.plane.timing
    }

    fn orphans(&self) -> OrphanProcesses {
        let orphans = OrphanProcesses::of(self.id, self.isolation.user, &self.plane.cgroups);
        // If environments have their own users, the user alone identifies their processes.
        if !self.isolation.shares_user() {
            return orphans;
        }
        let components = self.processes.values().map(|kept| kept.process.identity.pid);
        orphans.using(self.place.root.clone()).beside(components)
    }

    async fn supervise(mut self) {
        loop {
            self.interrupt_clean_up();
            let order = self.orders.borrow_and_update().clone();
            match order {
                Order::Hold => {
                    self.follow_logs().await;
                    self.stop_if_ordered(None).await;
                }
                Order::Run(environment) => self.run(&environment).await,
                Order::Remove(drains_until) => {
                    if self.remove(drains_until).await {
                        return;
                    }
                }
            }
            // An order that has arrived is read at once; without a handle there are no further ones.
            match self.orders.has_changed() {
                Ok(true) => {}
                Ok(false) if self.orders.changed().await.is_ok() => {}
                Ok(false) | Err(_) => return,
            }
        }
    }

    fn has_changed(&self) -> bool {
        self.orders.has_changed().unwrap_or(true)
    }

    /// Starts to copy the environment's logs to the log store, and what it says about its DAG runs to the events.
    async fn follow_logs(&mut self) {
        let logs = self.place.logs();
        if self.tail.is_some() || !blocking(move || logs.is_dir()).await {
            return;
        }
        let Services { logs, claims, clock, .. } = &self.plane.services;
        let following = Tail::follow(self.id, self.place.clone(), Arc::clone(logs), Arc::clone(clock));
        self.tail = Some(tokio::spawn(following));
        let reading = spool::follow(self.id, self.place.spool(), Arc::clone(claims), Arc::clone(clock));
        self.spool = Some(tokio::spawn(reading));
    }

    /// Brings an environment to the desired state and keeps it there until another order arrives.
    async fn run(&mut self, environment: &Arc<Environment>) {
        self.state.generation = environment.generation;
        self.state.is_hibernating = environment.is_hibernating;
        self.state.namespace.clone_from(&environment.namespace);
        self.failures.clear();
        self.import_errors.clear();
        self.controls.force.send_replace(false);
        self.view.lock().steps = StepTimes::default();
        self.view.change(|status| {
            status.generation = environment.generation;
            status.is_hibernating = environment.is_hibernating;
            status.rollout = Rollout::Underway;
        });
        self.kill_orphans().await;
        self.end_earlier_clean_up().await;
        if environment.is_hibernating {
            self.refresh_isolation_to_stop().await;
            if !self.drain_before("hibernating", environment).await {
                return;
            }
            if !self.finish_workers(self.drain_grace(environment)).await {
                return;
            }
            if !self.stop_all_unless_ordered().await {
                return;
            }
            self.view.change(|status| status.note = None);
            return self.show_stopped(Rollout::Done, Vec::new()).await;
        }
        if let Some(why) = self.controls.stop_reason() {
            return self.stop_and_report(why).await;
        }
        if self.stop_if_ordered(Some(environment)).await {
            return;
        }
        let mut orders = self.orders.clone();
        let mut failed_attempts = 0;
        while !self.has_changed() {
            self.save_state().await;
            let prepared = tokio::select! {
                prepared = self.prepare(environment) => prepared,
                _ = orders.changed() => return,
            };
            let prepared = match prepared {
                Ok(prepared) => self.put_into_effect(prepared).await,
                Err(error) => Some(Err(error)),
            };
            match prepared {
                None => return,
                Some(Ok(prepared)) => {
                    failed_attempts = 0;
                    self.follow_logs().await;
                    self.last_programs.clone_from(&prepared.programs);
                    self.watch(&prepared).await;
                }
                Some(Err(error)) => {
                    self.report_unprepared(environment, error).await;
                    let pause = self.timing().retry_pause(failed_attempts);
                    failed_attempts += 1;
                    // After a failed migration there are none: nothing may use the database.
                    self.keep_running(pause).await;
                }
            }
        }
    }

    /// Migrates the database and makes the release live, each after running tasks have finished; `None` if another order
    /// has arrived. Neither is interrupted by new orders.
    async fn put_into_effect(&mut self, mut prepared: Prepared) -> Option<Result<Prepared, PrepareError>> {
        let may_go_on = self.drain_for_migration(&prepared).await && self.drain_for_packages(&prepared).await;
        if !may_go_on {
            return None;
        }
        if let Err(error) = self.migrate(&mut prepared).await {
            return Some(Err(error));
        }
        self.note_changes(&prepared).await;
        Some(self.go_live(&prepared).await.map(|()| prepared))
    }

    async fn report_unprepared(&mut self, environment: &Environment, error: PrepareError) {
        match error {
            PrepareError::Wait(what, why) => {
                tracing::warn!(id = %self.id, what, %why, "an environment cannot be started yet");
                // The running processes accept tasks again until they can be replaced.
                self.end_drain().await;
                self.view.wait_for(what, why);
            }
            PrepareError::Refused(why) => {
                tracing::info!(id = %self.id, %why, "a release cannot go live");
                self.end_drain().await;
                self.forget_other_version(environment);
                self.publish_report(environment.generation);
                let live = self.state.live().clone();
                self.view.change(|status| (status.rollout, status.running) = (Rollout::Refused(why), live));
            }
        }
    }

    /// Saves and shows that everything has stopped. A release that has not gone live yet does so when it starts again.
    async fn show_stopped(&mut self, rollout: Rollout, components: Vec<Component>) {
        self.state.running = self.state.live().clone();
        self.save_state().await;
        let running = self.state.running.clone();
        self.view.show_web_server(None);
        self.view.change(|status| {
            (status.rollout, status.components, status.running) = (rollout, components, running);
        });
    }

    async fn save_state(&self) {
        if let Err(error) = self.controls.state_file.write(&self.state).await {
            tracing::error!(id = %self.id, %error, "the state of an environment cannot be saved");
        }
    }

    fn end_following(&mut self) {
        for follower in [self.tail.take(), self.spool.take()].into_iter().flatten() {
            follower.abort();
        }
    }

    fn show(&self, rollout: Rollout, components: Vec<(String, Result<(), Reason>)>) {
        let component = |(name, health): (String, Result<(), Reason>)| Component {
            name,
            health: health.map_or_else(Health::Down, |()| Health::Up),
        };
        let components = components.into_iter().map(component).collect();
        self.view.change(|status| {
            status.rollout = rollout;
            status.components = components;
        });
    }
}

fn locked<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.end_following();
        self.interrupt_clean_up();
    }
}
