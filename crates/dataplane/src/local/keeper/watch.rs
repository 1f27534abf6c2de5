//! Watches an environment that was brought up: what ends is started again, later each time.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::select_all;
use podium_domain::deployments::plan::{Component, Health, Rollout};
use podium_domain::{Reason, UserText};
use tokio::time::Instant;

use super::Keeper;
use super::prepare::Prepared;
use crate::Environment;
use crate::blocking::blocking;
use crate::local::components::{RETIRING, is_web};
use crate::local::process::last_words;
use crate::local::program::Program;
use crate::local::settings;

/// How the components do, by name.
type Healths = Vec<(String, Result<(), Reason>)>;

/// What a look at an environment found.
struct Look {
    healths: Healths,
    /// Whether a web server answered.
    answered: bool,
    /// The web server whose interface for tasks is built.
    warmed: Option<i32>,
}

impl Keeper {
    /// Keeps the programs running until something else is wanted, or has to be prepared anew.
    pub(super) async fn watch(&mut self, environment: &Environment, prepared: &Prepared) {
        let pace = self.pace();
        let base = format!(
            "http://127.0.0.1:{}{}",
            self.state.web_port,
            settings::base_path(&environment.namespace)
        );
        let mut given_up = Instant::now() + pace.patience;
        let mut is_done = false;
        let mut orders = self.orders.clone();
        while !self.has_changed() {
            // Its socket was its own, and went with it: another one has to be found.
            if self.socket.is_none() && self.web_server().is_none() {
                return;
            }
            if self.lost_network() {
                return;
            }
            let outdated = self.replace_outdated(environment, prepared).await;
            if !outdated.is_empty() {
                given_up = Instant::now() + pace.patience;
            }
            self.start_missing(&prepared.programs).await;
            // Answers may take their time; what ends meanwhile does not wait for them.
            let looked = tokio::select! {
                look = self.look(&base, prepared) => Ok(look),
                name = self.any_end() => Err(Some(name)),
                () = self.next_start(&prepared.programs) => Err(None),
                _ = orders.changed() => return,
            };
            let look = match looked {
                Ok(look) => look,
                Err(Some(name)) => {
                    self.note_end(&name, &prepared.programs).await;
                    continue;
                }
                Err(None) => continue,
            };
            (self.answered, self.warmed) = (look.answered || self.answered, look.warmed.or(self.warmed));
            self.show_door();
            self.end_hung(&look.healths).await;
            let healths: Healths = look
                .healths
                .into_iter()
                .map(|(name, health)| {
                    let retiring = (name == "apiserver").then(|| outdated.get(RETIRING)).flatten();
                    let waits = outdated.get(&name).or(retiring);
                    (name, waits.map_or(health, |why| Err(why.clone().into())))
                })
                .collect();
            let are_up = healths.iter().all(|(_, health)| health.is_ok()) && outdated.is_empty();
            if !is_done && (are_up || Instant::now() > given_up) {
                is_done = true;
                self.state.running = environment.running();
                self.remember().await;
                let (running, note) = (self.state.running.clone(), prepared.note.clone());
                self.view.change(|shown| (shown.running, shown.note) = (running, note));
            }
            self.show(if is_done { Rollout::Done } else { Rollout::Underway }, healths);
            let pause = if are_up { pace.calm } else { pace.impatient };
            let ended = tokio::select! {
                name = self.any_end() => Some(name),
                () = tokio::time::sleep(pause) => None,
                () = self.next_start(&prepared.programs) => None,
                _ = orders.changed() => return,
            };
            if let Some(name) = ended {
                self.note_end(&name, &prepared.programs).await;
            }
        }
    }

    /// Keeps what ran last running for a while, or until something else is wanted.
    pub(super) async fn hold_up(&mut self, length: Duration) {
        let until = Instant::now() + length;
        let programs = self.held_up.clone();
        let mut orders = self.orders.clone();
        loop {
            self.start_missing(&programs).await;
            let ended = tokio::select! {
                name = self.any_end() => Some(name),
                () = self.next_start(&programs), if !programs.is_empty() => None,
                () = tokio::time::sleep_until(until) => return,
                _ = orders.changed() => return,
            };
            if let Some(name) = ended {
                self.note_end(&name, &programs).await;
            }
        }
    }

    /// Starts what does not run and need not wait any longer.
    async fn start_missing(&mut self, programs: &[Program]) {
        for program in programs {
            let trouble = self.troubles.get(&program.name);
            let must_wait =
                trouble.and_then(|trouble| trouble.start_at).is_some_and(|at| at > Instant::now());
            if self.kept.contains_key(&program.name) || must_wait || self.is_held(&program.name, programs) {
                continue;
            }
            if let Err(error) = self.begin(program).await {
                let pace = self.pace();
                let trouble = self.troubles.entry(program.name.clone()).or_default();
                trouble.fail(Reason::of_io("it cannot be started", &error), &pace);
            }
        }
    }

    /// Waits until something that ended may start again.
    async fn next_start(&self, programs: &[Program]) {
        let may_start = |name: &str| !self.kept.contains_key(name) && !self.is_held(name, programs);
        let missing = self.troubles.iter().filter(|(name, _)| may_start(name));
        match missing.filter_map(|(_, trouble)| trouble.start_at).min() {
            Some(at) => tokio::time::sleep_until(at).await,
            None => std::future::pending().await,
        }
    }

    /// Waits for the end of any process, and names it.
    async fn any_end(&self) -> String {
        if self.kept.is_empty() {
            return std::future::pending().await;
        }
        let ends = self.kept.iter().map(|(name, kept)| {
            let ended = kept.process.ended();
            async move {
                ended.await;
                name.clone()
            }
            .boxed()
        });
        select_all(ends).await.0
    }

    /// Clears away what is left of a process that ended, and notes when it starts again.
    async fn note_end(&mut self, name: &str, programs: &[Program]) {
        let Some(kept) = self.kept.get(name) else { return };
        kept.process.kill().await;
        let (is_steady, is_expected, log_start) =
            (kept.since.elapsed() > self.pace().steady, kept.ends_by.is_some(), kept.log_start);
        self.forget_process(name).await;
        let Some(program) = programs.iter().find(|program| program.name == name) else { return };
        if is_expected {
            return;
        }
        let log = program.log.clone();
        let words = blocking(move || last_words(&log, log_start)).await;
        let why = words
            .map_or_else(|| "it ended".into(), |words| Reason::new("it ended, and its log says why", words));
        let why = self.note_failure(name, why, is_steady).await;
        self.view.change(|shown| {
            let health = Health::Down(why);
            match shown.components.iter_mut().find(|component| component.name == name) {
                Some(component) => component.health = health,
                None => shown.components.push(Component { name: name.to_owned(), health }),
            }
        });
    }

    /// Asks how each component does.
    async fn look(&self, base: &str, prepared: &Prepared) -> Look {
        let heard = match self.why_silent(prepared.major).await {
            None => self.plane.probes.ask(base, prepared.major).await,
            Some(why) => Err(why.into()),
        };
        if let Ok(heard) = &heard {
            self.view.pulse.note_heartbeats(heard);
        }
        let web = self.web_server();
        let is_warm = match &heard {
            Ok(_) if prepared.major >= 3 && self.warmed != web => self.plane.probes.warm_up(base).await,
            _ => Ok(()),
        };
        let signs = self.signs().await;
        let (plane, id) = (Arc::clone(&self.plane), self.id);
        let crowd = blocking(move || plane.cgroups.is_crowded(id)).await;
        let health = |program: &Program| {
            let name = program.name.as_str();
            let Some(kept) = self.kept.get(name) else {
                let trouble = self.troubles.get(name).map(|trouble| trouble.why.clone());
                return (
                    program.name.clone(),
                    Err(trouble.unwrap_or_else(|| "it is not started yet".into())),
                );
            };
            let alive = self.liveness(name, kept, heard.as_ref().ok(), &signs, prepared.is_sequential);
            let health = match &heard {
                Ok(_) if is_web(name) => alive.and_then(|()| is_warm.clone()),
                Err(why) if is_web(name) => alive.and_then(|()| Err(why.clone())),
                // Where nobody can tell, what cannot be asked is not said to be broken.
                _ => alive,
            };
            // What failed before and is not well again says why it failed.
            let failed = self.troubles.get(name).filter(|_| !kept.was_well).map(|trouble| &trouble.why);
            (program.name.clone(), health.map_err(|why| failed.cloned().unwrap_or(why)))
        };
        let database = self.database_trouble().map(|why| ("database".to_owned(), Err(why)));
        let crowd = crowd.map(|most| {
            let why = UserText::filled(
                "it has all the {} processes and threads that it may have, and can start no others",
                &[&most],
            );
            ("processes".to_owned(), Err(why.into()))
        });
        Look {
            healths: prepared.programs.iter().map(health).chain(database).chain(crowd).collect(),
            answered: heard.is_ok() && web.is_some(),
            warmed: (heard.is_ok() && is_warm.is_ok()).then_some(web).flatten(),
        }
    }
}
