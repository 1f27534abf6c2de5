//! Metrics other than requests, in the Prometheus text format: those that the application counts itself, and those
//! that other crates register.

pub(crate) mod page;

use std::sync::{Arc, PoisonError, RwLock};

use podium_db::Conn;
use podium_domain::DeploymentReach;
pub use podium_store::statuses::Status;
use podium_store::{Scope, statuses};

pub use self::page::Page;
use crate::error::Result;
use crate::{App, deploys, work};

crate::system::acts_for_the_system!();
crate::system::reaches_rows!();

/// So many deployments have numbers of their own; more would cost more than they tell.
const MOST_SHOWN: u32 = 1000;

pub type Meter = Arc<dyn Fn(&mut Page) + Send + Sync>;

/// Metrics in addition to those of requests.
#[derive(Default)]
pub struct Meters(RwLock<Vec<Meter>>);

impl Meters {
    pub fn show(&self, meter: Meter) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).push(meter);
    }
}

pub enum Audience {
    /// All deployments: for callers on this machine.
    Machine,
    /// Those that a caller may see in an organization.
    Caller(Scope, DeploymentReach),
    Nobody,
}

impl App {
    /// What the deployments of an audience are doing, a thousand at most.
    pub async fn deployments_shown(&self, audience: Audience) -> Result<Vec<Status>> {
        let system = system(self);
        let read = move |conn: &Conn| match &audience {
            Audience::Machine => Ok(statuses::of_all(conn, &system, MOST_SHOWN)?),
            Audience::Caller(scope, reach) => Ok(statuses::reached(conn, scope, reach, MOST_SHOWN)?),
            Audience::Nobody => Ok(Vec::new()),
        };
        db(self).scan(None, read).await
    }

    pub async fn meter_page(&self) -> Result<String> {
        let mut page = Page::default();
        work::measure(self, &mut page).await?;
        self.passwords.measure(&mut page);
        deploys::measure_uploads(self, &mut page);
        let meters = self.meters.0.read().unwrap_or_else(PoisonError::into_inner).clone();
        meters.iter().for_each(|meter| meter(&mut page));
        Ok(page.0)
    }
}
