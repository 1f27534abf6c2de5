//! The functions behind the endpoints: one each, the same parts in the same order as the rules.
//!
//! Also the code that all of them use: the caller ([`authority`]), the proof of its rights ([`cx`]), the audit log,
//! idempotency, signing keys, and the start of an installation. It knows no HTTP: another transport could call it the
//! same way.

pub mod audit;
pub mod authority;
pub mod caller;
pub mod config;
pub mod cx;
pub mod disk;
mod error;
mod fair_queue;
pub mod follow;
pub mod idempotency;
mod key_reload;
pub mod log_events;
pub mod mail;
pub mod maintenance;
pub mod meters;
mod passwords;
pub mod public_cx;
mod rate_limits;
mod rendered;
pub mod request;
pub mod secrets;
pub mod shared_capacity;
mod signing;
pub mod start;
pub mod streams;
mod system;
mod throttle;
pub mod work;
pub mod world;

pub mod agent_logs;
pub mod agent_tokens;
pub mod agents;
pub mod alerts;
mod allowed_addresses;
pub mod allowed_ip_address_ranges;
pub mod auth;
pub mod authorization;
pub mod clusters;
pub mod declared_sets;
pub mod deploy_files;
pub mod deploy_reports;
pub mod deployment_logs;
pub mod deployment_processes;
pub mod deployments;
pub mod deploys;
pub mod device_sign_ins;
pub mod environment_objects;
pub mod events;
mod facts;
pub mod front_door;
pub mod invites;
pub mod issued;
pub mod nodes;
pub mod observer;
pub mod operations;
pub mod operator;
pub mod options;
pub mod organizations;
pub mod outside;
mod own;
pub mod plans;
mod role_holders;
pub mod roles;
pub mod sessions;
pub mod teams;
pub mod tokens;
pub mod user_sessions;
pub mod users;
pub mod webhooks;
pub mod workspaces;

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex, OnceLock};

use arc_swap::ArcSwap;
use podium_api::{Id, SessionId, Timestamp, TokenId};
use podium_store::landmarks::Landmarks;

pub use config::Config;
pub use cx::{Call, Cx};
pub use error::{Error, OrConflict, Replay, Result, Unauthenticated, WhoseStreams};
pub use podium_store::{Membership, Scope};
pub use rate_limits::{RateLimits, Rates};
pub use request::Request;
pub use signing::{Claims, Keys};
pub use start::Started;

/// The application: what every call shares.
#[derive(Clone)]
pub struct App(Arc<Shared>);

impl Deref for App {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

pub struct Shared {
    pub(crate) rows: system::Rows,
    /// Logs and uploaded files.
    pub(crate) outside: outside::Outside,
    /// Time, ids and randomness.
    pub world: Arc<world::World>,
    pub config: Config,
    pub(crate) public_url: front_door::PublicUrl,
    pub secrets: secrets::Secrets,
    pub keys: ArcSwap<Keys>,
    pub(crate) key_reload: key_reload::KeyReload,
    /// How often subjects may call.
    pub rate_limits: RateLimits,
    /// Handles calls that are part of a plan: set where endpoints are bound.
    pub calls: OnceLock<Arc<dyn plans::Calls>>,
    /// Observes environments: set where the data plane is known.
    pub observer: OnceLock<Arc<dyn observer::Observer>>,
    /// Wakes the loops of this process.
    pub work_notifier: work::WorkNotifier,
    pub meters: meters::Meters,
    /// Who listens on the ports of environments.
    pub listeners: front_door::Listeners,
    pub(crate) system: system::Vault,
    pub(crate) disk: disk::Disk,
    pub(crate) node: OnceLock<nodes::Node>,
    pub(crate) log_streams: streams::Streams,
    /// Wakes those who follow operations.
    pub(crate) operation_notifier: operations::OperationNotifier,
    pub(crate) webhook_notifier: webhooks::WebhookNotifier,
    pub(crate) event_wakes: events::wakes::Wakes,
    pub(crate) event_streams: streams::Streams,
    pub(crate) uploading: shared_capacity::SharedCapacity<Id>,
    pub(crate) file_lists: deploy_files::FileLists,
    pub(crate) uploads_refused: std::sync::atomic::AtomicU64,
    pub(crate) authorities: Arc<authority::Authorities>,
    pub(crate) running: idempotency::Running,
    pub(crate) refusals: rate_limits::Refusals,
    pub(crate) landmarks: Arc<Landmarks>,
    pub(crate) rendered_workspaces: rendered::Rendered<podium_api::workspaces::Workspace>,
    pub(crate) rendered_deployments: rendered::Rendered<podium_api::deployments::Deployment>,
    pub(crate) passwords: passwords::Passwords,
    pub(crate) sign_in_throttle: throttle::Throttle,
    pub(crate) device_polls: device_sign_ins::Polls,
    pub(crate) operator_sessions: operator::OperatorSessions,
    pub(crate) used_tokens: Mutex<HashMap<TokenId, Timestamp>>,
    pub(crate) used_sessions: Mutex<HashMap<SessionId, Timestamp>>,
}
