//! What an environment shows of itself while its keeper is at work.

use std::sync::{Mutex, PoisonError};

use podium_api::DeploymentId;
use podium_domain::deployments::Running;
use podium_domain::deployments::plan::{Component, Health, Observed, Rollout};
use podium_domain::{Reason, UserText};

use super::vitals::Pulse;
use crate::{Changed, News};

/// What is shown; whoever changes it tells the listeners.
pub(super) struct View {
    id: DeploymentId,
    news: News,
    shown: Mutex<Shown>,
    /// What is counted of its components, which is no news to anybody.
    pub(super) pulse: Pulse,
}

/// What is shown of an environment.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Shown {
    /// The generation that was applied; none since a restart, so that it is applied again.
    pub(super) generation: Option<i64>,
    pub(super) is_hibernating: bool,
    pub(super) rollout: Rollout,
    pub(super) components: Vec<Component>,
    pub(super) running: Running,
    pub(super) note: Option<UserText>,
    /// Where its web server listens, while it does.
    pub(super) web_port: Option<u16>,
}

impl View {
    pub(super) fn new(id: DeploymentId, news: News, shown: Shown) -> Self {
        Self { id, news, shown: Mutex::new(shown), pulse: Pulse::default() }
    }

    /// Changes what is shown.
    pub(super) fn change(&self, change: impl FnOnce(&mut Shown)) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let before = shown.clone();
        change(&mut shown);
        let is_news = *shown != before;
        drop(shown);
        if is_news {
            self.news.tell(Changed::Environment(self.id));
        }
    }

    /// What stands in the way, while a rollout is under way.
    pub(super) fn wait_for(&self, what: &str, why: impl Into<Reason>) {
        let down = Component { name: what.to_owned(), health: Health::Down(why.into()) };
        self.change(|shown| {
            shown.rollout = Rollout::Underway;
            shown.components = vec![down];
        });
    }

    pub(super) fn get(&self) -> Shown {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn observed(&self) -> Observed {
        let shown = self.get();
        Observed {
            generation: shown.generation.unwrap_or(-1),
            is_hibernating: shown.is_hibernating,
            rollout: shown.rollout,
            components: shown.components,
            running: shown.running,
            note: shown.note,
            look_again_at: None,
        }
    }
}
