//! The reconciliation loops: they bring the observed state to the desired state, one small step at a time.
//!
//! A reconciler gets no payload, only an id. It reads the current state, does one idempotent step, and returns when to
//! run again. Signals, timers and retries all take this path, so there is one path to test. `podium-domain` decides
//! what to do; this crate does it, records it and retries failures.
//!
//! Work is a row that was written in the transaction that caused it. A process claims it with a lease while it works;
//! if the process dies another one takes over. Between events nothing runs: the loops sleep until the next work is due.

mod alerts;
mod clean_up;
mod clusters;
mod counts;
mod deployments;
mod deploys;
mod dispatcher;
mod environment;
mod events;
mod logging;
mod loops;
mod operations;
mod placement;
mod reconciler;
mod removal;
#[cfg(target_os = "linux")]
mod services;
mod webhooks;

use podium_app::App;
use podium_dataplane::Planes;
use podium_store::Steward;

pub use dispatcher::Running;
pub use logging::{AppendError, append_lines, log_sink};
pub use loops::{Loops, Options};
pub use reconciler::{Backoff, Effect, Failure, Next, PrepareStopFuture, Reconciler, StepFuture, StepResult};
#[cfg(target_os = "linux")]
pub use services::{keys, services};
pub use webhooks::{Lookup, Resolver, SystemResolver, Webhooks};

/// Every reconciler: one line for each kind of work.
fn all(app: &App, system: Steward, planes: &Planes, options: &Options) -> Vec<Box<dyn Reconciler>> {
    vec![
        Box::new(clusters::Clusters::new(app, system, planes)),
        Box::new(deployments::Deployments::new(app, system, planes)),
        Box::new(deploys::Deploys::new(app)),
        Box::new(Webhooks::new(app, system, options.step_time)),
        Box::new(alerts::Alerts::new(app, system, options.step_time)),
        Box::new(alerts::AlertMails::new(app, system, options.step_time)),
    ]
}
