//! Watches an environment that was brought up: what ends is started again, later each time.

use std::collections::HashMap;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::select_all;
use podium_domain::deployments::plan::Rollout;
use tokio::time::Instant;

use super::Keeper;
use super::prepare::{Prepared, running};
use crate::Environment;
use crate::local::process::last_words;
use crate::local::program::Program;
use crate::local::settings;

/// How long an environment may take to come up before that counts as trouble.
const PATIENCE: Duration = Duration::from_mins(5);
/// How often it is asked how it does, while it comes up and once it is up.
const IMPATIENT: Duration = Duration::from_secs(1);
const CALM: Duration = Duration::from_secs(10);
/// What ran for so long has not failed at the start.
const STEADY: Duration = Duration::from_secs(60);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// A component that ended.
#[derive(Default)]
struct Trouble {
    times: u32,
    start_at: Option<Instant>,
    why: String,
}

impl Keeper {
    /// Keeps the programs running until something else is wanted.
    pub(super) async fn watch(&mut self, environment: &Environment, prepared: &Prepared) {
        let base = format!(
            "http://127.0.0.1:{}{}",
            self.state.web_port,
            settings::base_path(&environment.namespace)
        );
        let given_up = Instant::now() + PATIENCE;
        let mut troubles: HashMap<String, Trouble> = HashMap::new();
        let mut is_done = false;
        let mut orders = self.orders.clone();
        while !self.has_changed() {
            self.start_missing(&prepared.programs, &mut troubles);
            let port = self.state.web_port;
            self.view.change(|shown| shown.web_port = Some(port));
            let components = tokio::select! {
                components = self.ask(&base, prepared, &troubles) => components,
                _ = orders.changed() => return,
            };
            let are_up = components.iter().all(|(_, health)| health.is_ok());
            if !is_done && (are_up || Instant::now() > given_up) {
                is_done = true;
                self.state.running = running(environment);
                self.remember();
                let (running, note) = (self.state.running.clone(), prepared.note.clone());
                self.view.change(|shown| (shown.running, shown.note) = (running, note));
            }
            self.show(if is_done { Rollout::Done } else { Rollout::Underway }, components);
            let pause = if are_up { CALM } else { IMPATIENT };
            let ended = tokio::select! {
                name = self.any_end() => Some(name),
                () = tokio::time::sleep(pause) => None,
                _ = orders.changed() => return,
            };
            if let Some(name) = ended {
                self.note_end(&name, &prepared.programs, &mut troubles).await;
            }
        }
    }

    /// Starts what does not run and need not wait any longer.
    fn start_missing(&mut self, programs: &[Program], troubles: &mut HashMap<String, Trouble>) {
        for program in programs {
            let trouble = troubles.get(&program.name);
            let must_wait =
                trouble.and_then(|trouble| trouble.start_at).is_some_and(|at| at > Instant::now());
            if self.kept.contains_key(&program.name) || must_wait {
                continue;
            }
            if let Err(error) = self.begin(program) {
                let trouble = troubles.entry(program.name.clone()).or_default();
                trouble.fail(format!("it cannot be started: {error}"));
            }
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
    async fn note_end(&mut self, name: &str, programs: &[Program], troubles: &mut HashMap<String, Trouble>) {
        let Some(kept) = self.kept.remove(name) else { return };
        let trouble = troubles.entry(name.to_owned()).or_default();
        if kept.since.elapsed() > STEADY {
            trouble.times = 0;
        }
        kept.process.kill().await;
        self.state.processes.remove(name);
        self.remember();
        let words =
            programs.iter().find(|program| program.name == name).and_then(|program| last_words(&program.log));
        tracing::warn!(id = %self.id, component = name, "a component ended and is started again");
        trouble.fail(match words {
            Some(words) => format!("it ended: {words}"),
            None => "it ended".into(),
        });
    }

    /// How each component does.
    async fn ask(
        &mut self,
        base: &str,
        prepared: &Prepared,
        troubles: &HashMap<String, Trouble>,
    ) -> Vec<(String, Result<(), String>)> {
        let heard = self.plane.probes.ask(base, prepared.major).await;
        let web = self.kept.get("apiserver").map(|kept| kept.process.identity.pid);
        let is_warm = match (&heard, web) {
            (Ok(_), Some(pid)) if self.warmed != Some(pid) => {
                let warmed = self.plane.probes.warm_up(base).await;
                self.warmed = warmed.is_ok().then_some(pid);
                warmed
            }
            _ => Ok(()),
        };
        let health = |program: &Program| {
            let name = program.name.as_str();
            let Some(kept) = self.kept.get(name) else {
                let trouble = troubles.get(name).map(|trouble| trouble.why.clone());
                return Err(trouble.unwrap_or_else(|| "it is not started yet".into()));
            };
            let is_web = matches!(name, "apiserver" | "webserver");
            match &heard {
                Ok(_) if is_web => is_warm.clone(),
                Ok(heard) => heard.of(name, kept.started_at),
                Err(why) if is_web => Err(why.clone()),
                // Nobody can tell; what cannot be asked is not said to be broken.
                Err(_) => Ok(()),
            }
        };
        prepared.programs.iter().map(|program| (program.name.clone(), health(program))).collect()
    }
}

impl Trouble {
    fn fail(&mut self, why: String) {
        let pause = Duration::from_secs(1 << self.times.min(6)).min(LONGEST_PAUSE);
        self.times += 1;
        self.start_at = Some(Instant::now() + pause);
        let times = if self.times == 1 { "once".to_owned() } else { format!("{} times", self.times) };
        // The same words until something happens: every change of them is written down.
        self.why = format!("{why}; that happened {times}, and it starts again {} s later", pause.as_secs());
    }
}
