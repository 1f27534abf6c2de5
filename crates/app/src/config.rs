//! Settings of the application.

use std::path::PathBuf;
use std::time::Duration;

use podium_domain::webhooks::Destinations;

use crate::disk::Reserve;
use crate::front_door::Environments;
use crate::mail::Mailer;
use crate::rate_limits::Rates;

#[derive(Clone)]
pub struct Config {
    /// The URL under which people and programs reach this installation, without a slash at the end.
    pub public_url: String,
    /// The name of the organization that the first start makes.
    pub organization_name: String,
    /// The e-mail address of its owner.
    pub owner_email: String,
    /// Whether this installation was made before: then an empty database is not where a new one is made.
    pub is_known: bool,
    pub session: Duration,
    /// How often subjects may call; `None` is as often as they like.
    pub rates: Option<Rates>,
    /// How many connections to the database are kept; `None` is the engine's default.
    pub connections: Option<usize>,
    /// How long audit records are kept.
    pub audit_retention: Duration,
    /// Whether deployments may run on the server's own infrastructure.
    pub shared_infrastructure: bool,
    /// Where logs of deployments are stored, by this process alone; `None` stores none.
    pub logs: Option<PathBuf>,
    /// How long logs of deployments are kept, in whole days.
    pub log_retention: Duration,
    pub files: PathBuf,
    /// The largest archive that is received, in bytes as it is sent.
    pub upload_limit: u64,
    /// What stays free on the disk.
    pub reserve: Reserve,
    /// How to send mail, where there is a way.
    pub mailer: Option<Mailer>,
    /// Whether secrets of environment objects may be shown to those who may change them.
    pub show_secrets: bool,
    /// Where the environments have origins of their own.
    pub environments: Environments,
    /// Where events may be sent.
    pub webhook_destinations: Destinations,
    /// Whether browsers may sign in where others can read along: without encryption, beyond this machine.
    pub allow_insecure_sign_in: bool,
}

impl Config {
    /// The defaults, for a public URL.
    pub fn new(public_url: impl Into<String>) -> Self {
        Self {
            public_url: public_url.into(),
            organization_name: "My organization".into(),
            owner_email: "owner@localhost".into(),
            is_known: false,
            session: Duration::from_hours(8),
            rates: None,
            connections: None,
            audit_retention: Duration::from_hours(90 * 24),
            shared_infrastructure: true,
            logs: None,
            log_retention: Duration::from_hours(15 * 24),
            files: PathBuf::from("podium-data/objects"),
            upload_limit: 1 << 30,
            reserve: Reserve::default(),
            mailer: None,
            show_secrets: false,
            environments: Environments::Ports(18_000..=18_999),
            webhook_destinations: Destinations::default(),
            allow_insecure_sign_in: false,
        }
    }
}
