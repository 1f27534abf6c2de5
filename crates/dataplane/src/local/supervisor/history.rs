//! Failures of components: how often, why, and when they are restarted. They are also written to each component's log.

use podium_domain::{Reason, UserText};
use tokio::time::Instant;

use super::Supervisor;
use crate::LogLine;
use crate::local::components;
use crate::local::timing::Timing;

/// The failures of a component.
#[derive(Default)]
pub(super) struct Failure {
    pub(super) times: u32,
    pub(super) start_at: Option<Instant>,
    pub(super) why: Reason,
}

impl Failure {
    pub(super) fn fail(&mut self, why: Reason, timing: &Timing) {
        let pause = timing.pause(self.times);
        self.times += 1;
        self.start_at = Some(Instant::now() + pause);
        let times = match self.times {
            1 => UserText::new("once"),
            times => UserText::filled("{} times", &[&times]),
        };
        // The text stays the same until something happens, because every change of it is stored.
        let more = "; happened {}, restarting after {} s";
        self.why = why.followed_by(&UserText::filled(more, &[&times, &pause.as_secs_f32()]));
    }
}

impl Supervisor {
    /// Records that a component failed and when it restarts.
    pub(super) async fn record_failure(&mut self, name: &str, why: Reason, is_steady: bool) -> Reason {
        let timing = self.timing();
        let failure = self.failures.entry(name.to_owned()).or_default();
        if is_steady {
            failure.times = 0;
        }
        failure.fail(why, &timing);
        let why = failure.why.clone();
        tracing::warn!(id = %self.id, component = name, %why, "a component failed and will be restarted");
        *self.state.restarts.entry(name.to_owned()).or_default() += 1;
        self.save_state().await;
        self.log_for_component(name, why.user_text());
        why
    }

    /// Writes a line of the supervisor to a component's log.
    fn log_for_component(&self, component: &str, what: &UserText) {
        let Some(source) = components::source(component) else { return };
        let line = LogLine {
            deployment_id: self.id,
            source: source.to_owned(),
            timestamp: (self.plane.services.clock)(),
            text: format!("podium.supervisor: {component}: {what}"),
        };
        let logs = std::sync::Arc::clone(&self.plane.services.logs);
        let id = self.id;
        tokio::spawn(async move {
            if let Err(fault) = logs.append(vec![line]).await {
                tracing::warn!(%id, %fault, "a component's restart could not be written to its log");
            }
        });
    }
}
