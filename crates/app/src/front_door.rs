//! The front door of environments: who is calling, how a browser gets to an environment's own origin, and the audit
//! records of forwarded requests.
//!
//! A browser never carries a token of the control plane to an environment's origin. It takes a one-time code there and
//! gets a *pass*: a random value that gives access to this one environment. A pass has no rights of its own. It refers
//! to the token or session that it was created with, and every request reads the rights of that token again.

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
crate::system::reaches_rows!();
