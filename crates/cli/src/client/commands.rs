//! One file for each noun, named as in the other layers; each is thin. What they share is imported here, once for all of them.

pub(crate) mod alerts;
pub(crate) mod allowed_ip_address_ranges;
pub(crate) mod api;
pub(crate) mod audit;
pub(crate) mod clusters;
pub(crate) mod completion;
pub(crate) mod contexts;
pub(crate) mod dag_runs;
pub(crate) mod dags;
pub(crate) mod declarations;
pub(crate) mod deployment_logs;
pub(crate) mod deployments;
pub(crate) mod deploys;
pub(crate) mod dev;
pub(crate) mod environment_objects;
pub(crate) mod events;
pub(crate) mod front_door;
pub(crate) mod init;
pub(crate) mod invites;
pub(crate) mod login;
pub(crate) mod manual;
pub(crate) mod operations;
pub(crate) mod organizations;
pub(crate) mod plans;
pub(crate) mod roles;
pub(crate) mod teams;
pub(crate) mod tokens;
pub(crate) mod top;
pub(crate) mod user_sessions;
pub(crate) mod users;
pub(crate) mod version;
pub(crate) mod webhooks;
pub(crate) mod workspaces;

use clap::{Args, Subcommand};

use super::answer::{Answer, Word, read, value_of};
use super::edit::Edited;
use super::ending::{Exit, Failed, Outcome, one_line, printable};
use super::fields::{self, Extra, id, merged, object, one_of, word};
use super::names::{Called, Kind, Noun};
use super::output::{Format, Listing, Output, View, is_styled, shout};
use super::progress::{Progress, beside, moving, pause};
use super::session::{Session, Setup, Target, text};
use super::wait::{Watch, duration};

/// A command about a kind of things: what to do with them, and at which server.
#[derive(Args)]
pub(crate) struct On<V: Subcommand> {
    #[command(flatten)]
    setup: Setup,
    #[command(subcommand)]
    verb: V,
}

/// Which thing of a kind.
#[derive(Args)]
pub(crate) struct One {
    /// Name or id.
    #[arg(id = "one", value_name = "NAME")]
    name: String,
}

/// Which things of a kind.
#[derive(Args)]
pub(crate) struct Several {
    /// Names or ids.
    #[arg(id = "several", value_name = "NAME", required = true)]
    names: Vec<String>,
}

/// What can be done with a kind of things.
pub(crate) trait Verbs: Subcommand {
    async fn run(self, session: &Session) -> Outcome;
}

impl<V: Verbs> On<V> {
    pub(crate) async fn run(self) -> Outcome {
        let session = self.setup.open()?;
        self.verb.run(&session).await
    }
}
