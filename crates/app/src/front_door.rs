//! The front door of environments: who stands before it, how a browser gets to an environment's own origin, and what
//! is written down of what passed.
//!
//! A browser never takes a token of the control plane to an environment's origin. It takes a one-time code there, and
//! gets a *pass*: a random value that opens this one environment. A pass has no rights of its own. It stands for the
//! token or session that it was made with, and every request asks again what that may do.

mod admit;
mod airflow_tokens;
mod codes;
mod origins;
mod ports;
mod record;

pub use admit::{AdmittedCaller, PresentedCredential};
pub use airflow_tokens::{bearer_for_three, header_for_two};
pub use codes::{Entered, open};
pub use origins::{Environments, PublicUrl};
pub use podium_store::front_door::DeploymentRef;
pub use ports::{ListenRequest, Listeners};
pub use record::{ForwardedRequest, OPERATION_ID};

crate::system::acts_for_the_system!();
