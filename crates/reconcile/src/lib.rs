//! The loops: they bring what is to what is wanted, one small step at a time.
//!
//! A reconciler takes no payload. It is told "look at this id", reads the world again, does one step that may be
//! repeated, and says when to look again. Signals, timers and retries all come that way, so there is one path to test.
//! What to do is decided in `podium-domain`; here it is done, recorded and, where it failed, done again.
//!
//! Work is a row that was written in the transaction that caused it. A process holds it for the time of a lease while
//! it works; when the process dies another takes over. Between events nothing runs: the loops sleep until the next work
//! is due.

mod backoff;
mod clusters;
mod counts;
mod deployments;
mod deploys;
mod dispatcher;
mod environment;
mod logging;
mod loops;
mod options;
mod placement;
mod reconciler;
#[cfg(target_os = "linux")]
mod services;

use std::sync::Arc;

use podium_app::App;
use podium_dataplane::DataPlane;
use podium_store::System;

pub use dispatcher::Running;
pub use logging::{AppendError, append_lines, log_sink};
pub use loops::Loops;
pub use options::Options;
pub use reconciler::{Backoff, Effect, Failure, Next, Reconciler, StepFuture, StepResult};
#[cfg(target_os = "linux")]
pub use services::{keys, services};

/// Every reconciler: one line for each kind of work.
fn all(app: &App, system: System, plane: &Arc<dyn DataPlane>) -> Vec<Box<dyn Reconciler>> {
    vec![
        Box::new(clusters::Clusters::new(app, system, plane)),
        Box::new(deployments::Deployments::new(app, system, plane)),
        Box::new(deploys::Deploys::new(app)),
    ]
}
