//! Metrics other than requests, in the Prometheus text format: those that the application counts itself, and those
//! that other crates register.

use std::fmt::{Display, Write as _};
use std::sync::{Arc, PoisonError, RwLock};

use podium_api::OrganizationId;
use podium_domain::DeploymentReach;
use podium_store::statuses;
pub use podium_store::statuses::Status;

use crate::error::Result;
use crate::{App, deploys, work};

crate::system::acts_for_the_system!();

/// So many deployments have numbers of their own; more would cost more than they tell.
const MOST_SHOWN: u32 = 1000;

/// Writes numbers.
pub type Meter = Arc<dyn Fn(&mut Page) + Send + Sync>;

/// Metrics in addition to those of requests.
#[derive(Default)]
pub struct Meters(RwLock<Vec<Meter>>);

impl Meters {
    /// Shows these numbers too, from now on.
    pub fn show(&self, meter: Meter) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).push(meter);
    }
}

/// Numbers that are being written.
#[derive(Default)]
pub struct Page(String);

impl Page {
    /// Begins a number that goes up and down.
    pub fn gauge(&mut self, name: &str, about: &str) {
        self.begin(name, about, "gauge");
    }

    /// Begins a number that only goes up.
    pub fn counter(&mut self, name: &str, about: &str) {
        self.begin(name, about, "counter");
    }

    /// Writes one value. Labels are words of ours: they need no escapes.
    pub fn line(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let labels: Vec<String> =
            labels.iter().map(|(label, value)| format!("{label}=\"{value}\"")).collect();
        // Writing to a string cannot fail.
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.0, "{name}{labels} {value}");
    }

    fn begin(&mut self, name: &str, about: &str, kind: &str) {
        let _ = writeln!(self.0, "# HELP {name} {about}\n# TYPE {name} {kind}");
    }
}

/// Whose deployments are shown.
pub enum Audience {
    /// All deployments: for callers on this machine.
    Machine,
    /// Those that a caller may see in an organization.
    Caller(OrganizationId, DeploymentReach),
    /// None.
    Nobody,
}

impl App {
    /// What the deployments of an audience are doing, a thousand at most.
    pub async fn deployments_shown(&self, audience: &Audience) -> Result<Vec<Status>> {
        let organization_id = match audience {
            Audience::Machine => None,
            Audience::Caller(id, _) => Some(*id),
            Audience::Nobody => return Ok(Vec::new()),
        };
        let system = system(self);
        let mut found: Vec<Status> = self
            .db
            .scan(None, move |conn| statuses::some(conn, &system, organization_id, MOST_SHOWN))
            .await?;
        if let Audience::Caller(_, DeploymentReach::Only { workspaces, deployments }) = audience {
            found.retain(|row| workspaces.contains(&row.workspace_id) || deployments.contains(&row.id));
        }
        Ok(found)
    }

    /// The numbers beyond requests.
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
