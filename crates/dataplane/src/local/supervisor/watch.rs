//! Watches a started environment: processes that exit are restarted, with growing pauses.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::select_all;
use podium_airflow::health::{HealthReport, TaskNeeds};
use podium_airflow::settings::base_path;
use podium_domain::deployments::plan::{Component, Health, Rollout};
use podium_domain::deployments::rollout::RolloutStep;
use podium_domain::{Reason, UserText};
use tokio::time::Instant;

use super::Supervisor;
use super::prepare::Prepared;
use crate::blocking::blocking;
use crate::local::components::{RETIRING, is_web, web_url};
use crate::local::process::last_error_line;
use crate::local::program::Program;

type Healths = Vec<(String, Result<(), Reason>)>;

struct HealthCheck {
    healths: Healths,
    /// Whether a web server responded.
    has_answered: bool,
    answering: TaskNeeds,
    /// Whether the scheduler has sent a heartbeat since its start.
    has_scheduled: bool,
}

impl Supervisor {
    /// Keeps the programs running until another order arrives, or something has to be prepared again.
    pub(super) async fn watch(&mut self, prepared: &Prepared) {
        let timing = self.timing();
        let base = self.base_url(&prepared.environment.namespace);
        let mut given_up = Instant::now() + timing.startup_timeout;
        let mut is_done = false;
        let mut orders = self.orders.clone();
        while !self.has_changed() {
            // Its socket was lost with it: prepare another one.
            if self.socket.is_none() && self.web_server().is_none() {
                return;
            }
            if self.has_lost_network() {
                return;
            }
            let outdated = self.replace_outdated(prepared).await;
            if !outdated.is_empty() {
                given_up = Instant::now() + timing.startup_timeout;
            }
            self.start_missing(&prepared.programs).await;
            // Responses may take long; exits are handled in the meantime.
            let looked = tokio::select! {
                check_health = self.check_health(&base, prepared) => Ok(check_health),
                name = self.any_exit() => Err(Some(name)),
                () = self.next_restart(&prepared.programs) => Err(None),
                _ = orders.changed() => return,
            };
            let check_health = match looked {
                Ok(check_health) => check_health,
                Err(Some(name)) => {
                    self.handle_exit(&name, &prepared.programs).await;
                    continue;
                }
                Err(None) => continue,
            };
            self.has_answered |= check_health.has_answered;
            self.answering = check_health.answering;
            self.publish_web_server();
            if let Some(scheduler) = self.processes.get_mut("scheduler") {
                scheduler.has_worked |= check_health.has_scheduled;
            }
            self.restart_hung(&check_health.healths).await;
            let healths: Healths = check_health
                .healths
                .into_iter()
                .map(|(name, health)| {
                    let retiring = (name == "apiserver").then(|| outdated.get(RETIRING)).flatten();
                    let waits = outdated.get(&name).or(retiring);
                    (name, waits.map_or(health, |why| Err(why.clone().into())))
                })
                .collect();
            let are_up = healths.iter().all(|(_, health)| health.is_ok()) && outdated.is_empty();
            let up = healths.iter().filter(|(_, health)| health.is_ok()).count() as u64;
            if !is_done && !are_up && !self.view.is_draining() {
                self.view.step(RolloutStep::Start, Some((up, healths.len() as u64)), None);
            }
            let is_over = !is_done && (are_up && self.is_parsed(prepared).await);
            if is_over || !is_done && Instant::now() > given_up {
                is_done = true;
                self.state.end_rollout();
                self.forget_other_layers();
                self.publish_report(prepared.environment.generation);
                self.save_state().await;
                let (running, note) = (self.state.running.clone(), prepared.note.clone());
                self.view.change(|status| (status.running, status.note) = (running, note));
            }
            self.show(if is_done { Rollout::Done } else { Rollout::Underway }, healths);
            if are_up && is_done {
                self.begin_clean_up(prepared).await;
            }
            let pause = if are_up && is_done { timing.steady_poll } else { timing.startup_poll };
            let ended = tokio::select! {
                name = self.any_exit() => Some(name),
                () = tokio::time::sleep(pause) => None,
                () = self.next_restart(&prepared.programs) => None,
                _ = orders.changed() => return,
            };
            if let Some(name) = ended {
                self.handle_exit(&name, &prepared.programs).await;
            }
        }
    }

    /// The URL of the web server on this machine.
    pub(super) fn base_url(&self, namespace: &str) -> String {
        format!("{}{}", web_url(self.state.web_port), base_path(namespace))
    }

    /// Keeps the last programs running for a while, or until another order arrives.
    pub(super) async fn keep_running(&mut self, length: Duration) {
        let until = Instant::now() + length;
        let programs = self.last_programs.clone();
        let mut orders = self.orders.clone();
        loop {
            self.start_missing(&programs).await;
            let ended = tokio::select! {
                name = self.any_exit() => Some(name),
                () = self.next_restart(&programs), if !programs.is_empty() => None,
                answering = self.until_answered(&programs) => {
                    self.answering = answering;
                    None
                }
                () = tokio::time::sleep_until(until) => return,
                _ = orders.changed() => return,
            };
            if let Some(name) = ended {
                self.handle_exit(&name, &programs).await;
            }
        }
    }

    /// Starts programs that are not running and whose pause is over.
    async fn start_missing(&mut self, programs: &[Program]) {
        self.forget_answers_of_ended();
        for program in programs {
            let failure = self.failures.get(&program.name);
            let must_wait =
                failure.and_then(|failure| failure.start_at).is_some_and(|at| at > Instant::now());
            if self.processes.contains_key(&program.name)
                || must_wait
                || self.must_not_start_yet(&program.name, programs)
            {
                continue;
            }
            let told = self.tell_of_workers(program, programs).await;
            let started = if told.is_ok() { self.start_program(program).await } else { told };
            if let Err(error) = started {
                let timing = self.timing();
                let failure = self.failures.entry(program.name.clone()).or_default();
                failure.fail(Reason::of_io("it cannot be started", &error), &timing);
            }
        }
    }

    /// Waits until an exited program may restart.
    async fn next_restart(&self, programs: &[Program]) {
        let may_start =
            |name: &str| !self.processes.contains_key(name) && !self.must_not_start_yet(name, programs);
        let missing = self.failures.iter().filter(|(name, _)| may_start(name));
        match missing.filter_map(|(_, failure)| failure.start_at).min() {
            Some(at) => tokio::time::sleep_until(at).await,
            None => std::future::pending().await,
        }
    }

    /// Waits until any process exits; returns its name.
    async fn any_exit(&self) -> String {
        if self.processes.is_empty() {
            return std::future::pending().await;
        }
        let ends = self.processes.iter().map(|(name, kept)| {
            let ended = kept.process.ended();
            async move {
                ended.await;
                name.clone()
            }
            .boxed()
        });
        select_all(ends).await.0
    }

    /// Kills what is left of an exited process's group, and records when it restarts.
    async fn handle_exit(&mut self, name: &str, programs: &[Program]) {
        let Some(kept) = self.processes.get(name) else { return };
        kept.process.kill().await;
        let (is_steady, is_expected, log_start) =
            (kept.since.elapsed() > self.timing().stable_after, kept.kill_at.is_some(), kept.log_start);
        self.remove_process(name).await;
        let Some(program) = programs.iter().find(|program| program.name == name) else { return };
        if is_expected {
            return;
        }
        let log = program.log.clone();
        let words = blocking(move || last_error_line(&log, log_start)).await;
        let why =
            words.map_or_else(|| "it exited".into(), |words| Reason::new("it exited, see its log", words));
        let why = self.record_failure(name, why, is_steady).await;
        self.view.change(|status| {
            let health = Health::Down(why);
            match status.components.iter_mut().find(|component| component.name == name) {
                Some(component) => component.health = health,
                None => status.components.push(Component { name: name.to_owned(), health }),
            }
        });
    }

    async fn check_health(&self, base: &str, prepared: &Prepared) -> HealthCheck {
        let heard = match self.why_not_serving(prepared.major).await {
            None => self.plane.web_client.health(base, prepared.major).await,
            Some(why) => Err(why.into()),
        };
        if let Ok(heard) = &heard {
            self.view.lock().heartbeats.extend(heard.heartbeats().map(|(name, at)| (name.to_owned(), at)));
        }
        let web = self.web_server();
        let is_warm = match &heard {
            Ok(_) if prepared.major >= 3 && !self.answering.task_api => {
                self.plane.web_client.warm_up(base).await
            }
            _ => Ok(()),
        };
        let progress_times = self.progress_times().await;
        let (plane, id) = (Arc::clone(&self.plane), self.id);
        let crowd = blocking(move || plane.cgroups.is_crowded(id)).await;
        let health = |program: &Program| {
            let name = program.name.as_str();
            let Some(kept) = self.processes.get(name) else {
                let failure = self.failures.get(name).map(|failure| failure.why.clone());
                let waits = self.waits_for(name, &prepared.programs).unwrap_or("it has not started yet");
                return (program.name.clone(), Err(failure.unwrap_or_else(|| waits.into())));
            };
            let alive =
                self.liveness(name, kept, heard.as_ref().ok(), &progress_times, prepared.is_sequential);
            let health = match &heard {
                Ok(_) if is_web(name) => alive.and_then(|()| is_warm.clone()),
                Err(why) if is_web(name) => alive.and_then(|()| Err(why.clone())),
                // Without a health report a component is not reported as unhealthy.
                _ => alive,
            };
            // A component that failed and is not healthy again keeps its failure reason.
            let failed = self.failures.get(name).filter(|_| !kept.was_healthy).map(|failure| &failure.why);
            (program.name.clone(), health.map_err(|why| failed.cloned().unwrap_or(why)))
        };
        let database = self.database_failure().map(|why| ("database".to_owned(), Err(why)));
        let crowd = crowd.map(|most| {
            let why = UserText::filled(
                "it has reached its limit of {} processes and threads and cannot start more",
                &[&most],
            );
            ("processes".to_owned(), Err(why.into()))
        });
        let scheduler = self.processes.get("scheduler");
        let has_beaten = |heard: &HealthReport| {
            scheduler.is_some_and(|kept| heard.of("scheduler", kept.started_at).is_ok())
        };
        HealthCheck {
            has_scheduled: heard.as_ref().is_ok_and(has_beaten),
            healths: prepared.programs.iter().map(health).chain(database).chain(crowd).collect(),
            has_answered: heard.is_ok() && web.is_some(),
            answering: TaskNeeds {
                task_api: prepared.major >= 3 && heard.is_ok() && is_warm.is_ok(),
                broker: self.answering.broker || self.does_broker_answer(&prepared.programs).await,
            },
        }
    }
}
