//! `podium stop` and `podium start`: the environments of this machine, whether or not a server runs.
//!
//! Both write down what is wanted, where a server finds it. Without one, `stop` opens the installation and carries it out.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use podium_api::enums::DeploymentStatus;
use podium_app::{Config, Started};
use podium_dataplane::local::{Local, Options, Stop, StoppableEnvironment, stoppable_environments};
use podium_db::Error;
use podium_store::deployments;

use super::data_dir::LOCAL;
use super::operator_socket::is_served;
use crate::failure::Failure;
use crate::settings::Installation;
use podium_terminal::typed;

/// How often to look whether everything has stopped.
const PAUSE: Duration = Duration::from_millis(200);
/// How often to look whether a server has noticed a start.
const MOST_LOOKS: u32 = 50;
/// How often a server that is about to start or has just ended is waited for, a second each.
const TRIES: u32 = 10;

/// Which environments.
#[derive(Args)]
struct Chosen {
    #[command(flatten)]
    installation: Installation,
    /// Deployments, by name, namespace or id; all on this machine if none is given.
    deployments: Vec<String>,
}

/// Stop environments of this machine, once their running tasks have finished.
///
/// The server need not run. Stopped environments stay stopped over restarts and reboots until `podium start`. Deploys and
/// changes are accepted meanwhile, and applied once the environments start.
#[derive(Args)]
#[command(after_help = "\
Examples:
  podium stop
  podium stop nightly --now
  podium stop --data-dir /var/lib/podium")]
pub struct StopEnvironments {
    #[command(flatten)]
    chosen: Chosen,
    /// Do not wait for running tasks: end them.
    #[arg(long)]
    now: bool,
    /// Request the stop and return; needs a running server.
    #[arg(long)]
    no_wait: bool,
}

/// Start environments of this machine that `podium stop` has stopped.
///
/// A running server starts them at once, otherwise the next one does.
#[derive(Args)]
#[command(after_help = "\
Examples:
  podium start
  podium start nightly")]
pub struct StartEnvironments {
    #[command(flatten)]
    chosen: Chosen,
}

/// An environment and the name that people know it by.
struct Named {
    name: String,
    status: DeploymentStatus,
    reason: String,
    environment: StoppableEnvironment,
}

impl Chosen {
    fn local(&self) -> PathBuf {
        self.installation.data_dir.join(LOCAL)
    }

    fn is_served(&self) -> bool {
        is_served(&self.installation.data_dir)
    }

    async fn find(&self) -> Result<Vec<Named>, Failure> {
        let mut all = self.all().await?;
        if self.deployments.is_empty() {
            return Ok(all);
        }
        let mut found = Vec::new();
        for asked in &self.deployments {
            let is_meant = |known: &Named| {
                let StoppableEnvironment { id, namespace, .. } = &known.environment;
                [known.name.as_str(), id.as_str(), namespace].contains(&asked.as_str())
            };
            let meant: Vec<Named> = all.extract_if(.., |known| is_meant(known)).collect();
            match meant.len() {
                0 if found.iter().any(is_meant) => {}
                0 => return Err(unknown(asked, &all).into()),
                1 => found.extend(meant),
                count => {
                    let ids: Vec<&str> = meant.iter().map(|known| known.environment.id.as_str()).collect();
                    let ids = ids.join(", ");
                    return Err(
                        format!("{count} deployments are called {asked:?}: give an id ({ids})").into()
                    );
                }
            }
        }
        Ok(found)
    }

    async fn all(&self) -> Result<Vec<Named>, Failure> {
        self.installation.must_exist()?;
        let environments = stoppable_environments(&self.local())
            .map_err(|error| format!("the environments of this machine cannot be read: {error}"))?;
        let ids: Vec<_> = environments.iter().map(|environment| environment.id).collect();
        let (db, system) = self.installation.view().await?;
        let rows = db.read(None, move |conn| {
            ids.iter().map(|id| deployments::state(conn, &system, *id)).collect::<Result<Vec<_>, Error>>()
        });
        let rows = rows.await;
        db.close().await;
        // Without a row it is about to be removed.
        let named = environments.into_iter().zip(rows?).filter_map(|(environment, row)| {
            let row = row?;
            let reason = row.status_reason.to_string();
            Some(Named { name: row.name, status: row.status, reason, environment })
        });
        Ok(named.collect())
    }
}

impl StopEnvironments {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let found = self.chosen.find().await?;
        if found.is_empty() {
            eprintln!("No environments run on this machine.");
            return Ok(());
        }
        if self.no_wait && !self.chosen.is_served() {
            return Err("--no-wait needs a running server: leave it out, or start the server".into());
        }
        let stop = if self.now { Stop::Now } else { Stop::Drain };
        for Named { name, environment, .. } in &found {
            environment.mark(stop).map_err(|error| format!("{name} cannot be stopped: {error}"))?;
        }
        let names = names(&found);
        if self.no_wait {
            eprintln!("Stopping {names}.");
            return Ok(());
        }
        match stop {
            Stop::Now => eprintln!("Stopping {names}."),
            Stop::Drain => eprintln!(
                "Stopping {names}, once running tasks have finished. To end them: {}",
                typed::again_with("--now")
            ),
        }
        self.wait(&found).await?;
        let start = typed::with_verb("start", &["--now", "--no-wait"]);
        eprintln!("Stopped {names}. To start again: {start}");
        Ok(())
    }

    /// Waits until a server has stopped them, or stops them.
    async fn wait(&self, found: &[Named]) -> Result<(), Failure> {
        let mut tries = 0;
        while !are_at_rest(found)? {
            if self.chosen.is_served() {
                tokio::time::sleep(PAUSE).await;
                continue;
            }
            match self.carry_out(found).await {
                Ok(()) => {}
                // A server may be starting: it has the database, but is not ready.
                Err(_) if tries < TRIES => {
                    tries += 1;
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
                Err(failure) => return Err(failure),
            }
        }
        Ok(())
    }

    /// Stops them without a server.
    async fn carry_out(&self, found: &[Named]) -> Result<(), Failure> {
        let config = Config::new("http://localhost");
        let Started { app, system, .. } = self.chosen.installation.open(config).await?;
        let options = Options {
            directory: self.chosen.local(),
            launcher: std::env::current_exe().ok(),
            ..Options::default()
        };
        let plane = Local::open(options, podium_reconcile::services(&app, system.steward())).await?;
        while !are_at_rest(found)? {
            tokio::time::sleep(PAUSE).await;
        }
        plane.stop_unused_database().await;
        drop(plane);
        app.close().await;
        Ok(())
    }
}

impl StartEnvironments {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let mut found = self.chosen.find().await?;
        found.retain(|known| known.environment.is_marked());
        if found.is_empty() {
            eprintln!("No environments are stopped on this machine.");
            return Ok(());
        }
        for Named { name, environment, .. } in &found {
            environment.unmark().map_err(|error| format!("{name} cannot be started: {error}"))?;
        }
        let names = names(&found);
        match self.chosen.is_served() {
            true => {
                self.until_noticed(&found).await?;
                eprintln!("Starting {names}. To watch: podium top");
            }
            false => eprintln!("The server is not running. Start it to start {names}: podium serve"),
        }
        Ok(())
    }

    /// Waits until the server no longer says of any of them that it is stopped, so that whoever waits for it next waits for the
    /// start.
    async fn until_noticed(&self, found: &[Named]) -> Result<(), Failure> {
        let is_as_before = |now: &Named| {
            now.status == DeploymentStatus::Unhealthy
                && found
                    .iter()
                    .any(|then| then.environment.id == now.environment.id && then.reason == now.reason)
        };
        for _ in 0..MOST_LOOKS {
            if !self.chosen.find().await?.iter().any(is_as_before) {
                break;
            }
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }
}

fn are_at_rest(found: &[Named]) -> Result<bool, Failure> {
    for Named { name, environment, .. } in found {
        let is_at_rest = environment.is_at_rest();
        if !is_at_rest.map_err(|error| format!("the state of {name} cannot be read: {error}"))? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn names(found: &[Named]) -> String {
    let names: Vec<&str> = found.iter().map(|known| known.name.as_str()).collect();
    names.join(", ")
}

fn unknown(asked: &str, all: &[Named]) -> String {
    match all {
        [] => format!("{asked:?} does not run on this machine: no environment does"),
        _ => format!("{asked:?} does not run on this machine. These environments do: {}", names(all)),
    }
}
