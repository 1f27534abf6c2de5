//! Watches an environment that was brought up: what ends is started again, later each time.

use futures_util::FutureExt as _;
use futures_util::future::select_all;
use podium_domain::deployments::plan::{Health, Rollout};
use tokio::time::Instant;

use super::Keeper;
use super::prepare::Prepared;
use crate::Environment;
use crate::local::pace::Pace;
use crate::local::process::last_words;
use crate::local::program::Program;
use crate::local::settings;

/// A component that ended.
#[derive(Default)]
pub(super) struct Trouble {
    times: u32,
    start_at: Option<Instant>,
    why: String,
}

/// How the components do, by name.
type Healths = Vec<(String, Result<(), String>)>;

/// What a look at an environment found.
struct Look {
    healths: Healths,
    /// The web server that answered.
    answered: Option<i32>,
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
        let given_up = Instant::now() + pace.patience;
        let mut is_done = false;
        let mut orders = self.orders.clone();
        while !self.has_changed() {
            if self.is_port_taken() {
                return;
            }
            self.start_missing(&prepared.programs);
            // Answers may take their time; what ends meanwhile does not wait for them.
            let looked = tokio::select! {
                look = self.look(&base, prepared) => Ok(look),
                name = self.any_end() => Err(Some(name)),
                () = self.next_start() => Err(None),
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
            (self.answered, self.warmed) = (look.answered.or(self.answered), look.warmed.or(self.warmed));
            self.show_door();
            let are_up = look.healths.iter().all(|(_, health)| health.is_ok());
            if !is_done && (are_up || Instant::now() > given_up) {
                is_done = true;
                self.state.running = environment.running();
                self.remember();
                let (running, note) = (self.state.running.clone(), prepared.note.clone());
                self.view.change(|shown| (shown.running, shown.note) = (running, note));
            }
            self.show(if is_done { Rollout::Done } else { Rollout::Underway }, look.healths);
            let pause = if are_up { pace.calm } else { pace.impatient };
            let ended = tokio::select! {
                name = self.any_end() => Some(name),
                () = tokio::time::sleep(pause) => None,
                () = self.next_start() => None,
                _ = orders.changed() => return,
            };
            if let Some(name) = ended {
                self.note_end(&name, &prepared.programs).await;
            }
        }
    }

    /// Starts what does not run and need not wait any longer.
    fn start_missing(&mut self, programs: &[Program]) {
        for program in programs {
            let trouble = self.troubles.get(&program.name);
            let must_wait =
                trouble.and_then(|trouble| trouble.start_at).is_some_and(|at| at > Instant::now());
            if self.kept.contains_key(&program.name) || must_wait {
                continue;
            }
            if let Err(error) = self.begin(program) {
                let pace = self.pace();
                let trouble = self.troubles.entry(program.name.clone()).or_default();
                trouble.fail(&format!("it cannot be started: {error}"), &pace);
            }
        }
    }

    /// Waits until something that ended may start again.
    async fn next_start(&self) {
        let missing = self.troubles.iter().filter(|(name, _)| !self.kept.contains_key(*name));
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
        let is_steady = kept.since.elapsed() > self.pace().steady;
        self.kept.remove(name);
        self.state.processes.remove(name);
        self.remember();
        self.show_door();
        let words =
            programs.iter().find(|program| program.name == name).and_then(|program| last_words(&program.log));
        tracing::warn!(id = %self.id, component = name, "a component ended and is started again");
        let pace = self.pace();
        let trouble = self.troubles.entry(name.to_owned()).or_default();
        if is_steady {
            trouble.times = 0;
        }
        let why = words.map_or_else(|| "it ended".into(), |words| format!("it ended: {words}"));
        trouble.fail(&why, &pace);
        let why = trouble.why.clone();
        self.view.change(|shown| {
            for component in shown.components.iter_mut().filter(|component| component.name == name) {
                component.health = Health::Down(why.clone());
            }
        });
    }

    /// Asks how each component does.
    async fn look(&self, base: &str, prepared: &Prepared) -> Look {
        let heard = self.plane.probes.ask(base, prepared.major).await;
        let web = self.web_server();
        let is_warm = match &heard {
            Ok(_) if prepared.major >= 3 && self.warmed != web => self.plane.probes.warm_up(base).await,
            _ => Ok(()),
        };
        let health = |program: &Program| {
            let name = program.name.as_str();
            let Some(kept) = self.kept.get(name) else {
                let trouble = self.troubles.get(name).map(|trouble| trouble.why.clone());
                return (
                    program.name.clone(),
                    Err(trouble.unwrap_or_else(|| "it is not started yet".into())),
                );
            };
            let is_web = matches!(name, "apiserver" | "webserver");
            let health = match &heard {
                Ok(_) if is_web => is_warm.clone(),
                Ok(heard) => heard.of(name, kept.started_at),
                Err(why) if is_web => Err(why.clone()),
                // Nobody can tell; what cannot be asked is not said to be broken.
                Err(_) => Ok(()),
            };
            (program.name.clone(), health)
        };
        let database = self.database_trouble().map(|why| ("database".to_owned(), Err(why)));
        Look {
            healths: prepared.programs.iter().map(health).chain(database).collect(),
            answered: heard.is_ok().then_some(web).flatten(),
            warmed: (heard.is_ok() && is_warm.is_ok()).then_some(web).flatten(),
        }
    }
}

impl Trouble {
    fn fail(&mut self, why: &str, pace: &Pace) {
        let pause = pace.pause(self.times);
        self.times += 1;
        self.start_at = Some(Instant::now() + pause);
        let times = if self.times == 1 { "once".to_owned() } else { format!("{} times", self.times) };
        // The same words until something happens: every change of them is written down.
        self.why =
            format!("{why}; that happened {times}, and it starts again {} s later", pause.as_secs_f32());
    }
}
