//! The Prometheus text format.

use std::fmt::{Display, Write as _};

/// Numbers that are being written.
#[derive(Default)]
pub struct Page(pub(super) String);

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
