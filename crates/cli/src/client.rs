//! Commands that call the API of a server.
//!
//! Each noun is one file in [`commands`], named as in the other layers, and is thin. What they share stands once: which
//! server and as whom ([`session`], [`contexts`]), names for ids ([`names`]), changes ([`edit`], [`fields`]), files that
//! declare what there is ([`declared`]), output
//! ([`output`], [`table`]), what was started ([`follow`], [`wait`], [`progress`]), names in a shell ([`completing`]) and how a command ends ([`ending`]).

mod airflow;
mod answer;
mod browser;
pub(crate) mod commands;
pub(crate) mod completing;
mod contexts;
mod declared;
mod edit;
mod ending;
mod fields;
mod follow;
mod grants;
mod kept;
mod names;
mod operator;
mod output;
mod planning;
mod progress;
mod project;
mod session;
mod streams;
mod table;
mod wait;

use std::pin::Pin;
use std::process::ExitCode;

use clap::Subcommand;

use commands::{
    On, alerts, api, audit, clusters, completion, contexts as context, dag_runs, dags, declarations,
    deployment_logs, deployments, deploys, dev, environment_objects, events, front_door, init, invites,
    login, manual, operations, organizations, plans, roles, teams, tokens, top, user_sessions, users,
    version, webhooks, workspaces,
};
use ending::Outcome;

/// A command that calls the API of a server, or prepares such a call.
#[derive(Subcommand)]
pub(crate) enum Command {
    Login(login::Login),
    Logout(login::Logout),
    Whoami(login::Whoami),
    /// Servers that you signed in to.
    Context(context::Contexts),
    Init(init::Init),
    Dev(Box<dev::Dev>),
    Deploy(Box<deploys::Deploys>),
    #[command(alias = "log")]
    Logs(deployment_logs::Logs),
    Open(front_door::Open),
    Top(top::Watch),
    Plan(plans::Plan),
    Apply(Box<plans::Apply>),
    Export(declarations::Export),
    /// Apache Airflow environments.
    #[command(alias = "deployments", after_help = deployments::EXAMPLES)]
    Deployment(Box<On<deployments::Verb>>),
    /// Connections, variables and metrics exports for deployments.
    #[command(alias = "environment-object", after_help = environment_objects::EXAMPLES)]
    Env(Box<On<environment_objects::Verb>>),
    /// Changes that take time: their progress and results.
    #[command(alias = "operations", after_help = operations::EXAMPLES)]
    Operation(On<operations::Verb>),
    /// Events of the organization.
    #[command(alias = "events", after_help = events::EXAMPLES)]
    Event(On<events::Verb>),
    /// DAGs of a deployment.
    #[command(alias = "dags")]
    Dag(dags::Dags),
    /// Runs of DAGs.
    #[command(alias = "runs")]
    Run(dag_runs::Runs),
    /// Workspaces, which group deployments.
    #[command(alias = "workspaces", after_help = workspaces::EXAMPLES)]
    Workspace(On<workspaces::Verb>),
    /// Clusters that deployments run on.
    #[command(alias = "clusters", after_help = clusters::EXAMPLES)]
    Cluster(On<clusters::Verb>),
    /// The organizations that you belong to.
    #[command(alias = "organizations", after_help = organizations::EXAMPLES)]
    Organization(On<organizations::Verb>),
    /// Users of the organization, and their roles.
    #[command(alias = "users", after_help = users::EXAMPLES)]
    User(On<users::Verb>),
    /// Invites to the organization.
    #[command(alias = "invites", after_help = invites::EXAMPLES)]
    Invite(On<invites::Verb>),
    /// Teams of users, and their roles.
    #[command(alias = "teams", after_help = teams::EXAMPLES)]
    Team(On<teams::Verb>),
    /// Custom roles, and their permissions.
    #[command(alias = "roles", after_help = roles::EXAMPLES)]
    Role(On<roles::Verb>),
    /// API tokens, and tokens of remote agents.
    #[command(alias = "tokens", after_help = tokens::EXAMPLES)]
    Token(On<tokens::Verb>),
    /// Your sessions.
    #[command(alias = "sessions", after_help = user_sessions::EXAMPLES)]
    Session(On<user_sessions::Verb>),
    /// Webhooks, which receive events of the organization.
    #[command(alias = "webhooks", after_help = webhooks::EXAMPLES)]
    Webhook(Box<On<webhooks::Verb>>),
    /// Alert rules.
    #[command(alias = "alerts", after_help = alerts::EXAMPLES)]
    Alert(Box<On<alerts::Verb>>),
    /// The audit log.
    #[command(after_help = audit::EXAMPLES)]
    Audit(On<audit::Verb>),
    Api(api::Api),
    Version(version::Version),
    Completion(completion::Completion),
    #[command(hide = true)]
    Manual(manual::Manual),
}

/// Runs whichever command it is: those that need no server at once, and others on a runtime.
macro_rules! run {
    ($command:expr, at_once: $($at_once:ident)+, on_a_runtime: $($other:ident)+) => {
        match $command {
            $(Command::$at_once(command) => command.run(),)+
            $(Command::$other(command) => block_on(Box::pin(command.run())),)+
        }
    };
}

/// Runs a command, says how it ended, and gives its exit code.
pub(crate) fn run(command: Command) -> ExitCode {
    finish(run! {
        command,
        at_once: Context Init Version Completion Manual,
        on_a_runtime: Login Logout Whoami Dev Deploy Logs Open Top Plan Apply Export Deployment Env Operation Event Dag Run
            Workspace Cluster Organization User Invite Team Role Token Session Webhook Alert Audit Api
    })
}

/// Says why a command failed, and gives its exit code.
pub(crate) fn finish(done: Outcome) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failed) => failed.report(),
    }
}

/// Runs a future of a command on this thread.
pub(crate) fn block_on(work: Pin<Box<dyn Future<Output = Outcome>>>) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let done = runtime.block_on(work);
    // A thread that still waits for a name server or a line of input is not waited for.
    runtime.shutdown_background();
    done
}
