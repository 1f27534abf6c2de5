//! Numbers for the operator beyond requests, in the Prometheus text format: what the application counts itself, and
//! what others have asked to be shown.

use std::fmt::{Display, Write as _};
use std::sync::{Arc, PoisonError, RwLock};

use crate::error::Result;
use crate::{App, work};

/// Writes numbers.
pub type Meter = Arc<dyn Fn(&mut Page) + Send + Sync>;

/// What is shown beside the numbers of requests.
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
        let _ = writeln!(self.0, "{name}{{{}}} {value}", labels.join(","));
    }

    fn begin(&mut self, name: &str, about: &str, kind: &str) {
        let _ = writeln!(self.0, "# HELP {name} {about}\n# TYPE {name} {kind}");
    }
}

impl App {
    /// The numbers beyond requests.
    pub async fn meter_page(&self) -> Result<String> {
        let mut page = Page::default();
        work::measure(self, &mut page).await?;
        let meters = self.meters.0.read().unwrap_or_else(PoisonError::into_inner).clone();
        meters.iter().for_each(|meter| meter(&mut page));
        Ok(page.0)
    }
}
