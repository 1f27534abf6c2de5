//! `podium node`: the machines that run the environments of one installation.

use std::io::Write as _;

use clap::{Args, Subcommand};
use podium_api::Timestamp;
use podium_app::nodes::NODE_TIMEOUT;
use podium_app::world::World;
use podium_db::Db;
use podium_store::System;
use podium_store::nodes::{self, NodeRow};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::settings::Installation;
use crate::table;

/// What is lost when a node is removed.
const LOST: &str = "Their Airflow metadata (runs, their states, variables and connections that were created in Airflow) and their task logs on that node are lost.";

/// The machines that run environments.
#[derive(Subcommand)]
pub enum Node {
    /// Show the nodes, when each was last seen and how many deployments it runs.
    ///
    /// Reads the installation's database, even while servers are running, and changes nothing.
    List(List),
    /// Remove a node that is gone for good: its deployments are recreated from scratch on other nodes.
    ///
    /// Whatever only that machine had is lost: the Airflow metadata of its deployments (runs, their states, variables
    /// and connections that were created in Airflow) and their task logs. The deployments themselves, their settings
    /// and their code are in the database and in the objects directory, and are not lost. First make sure that the
    /// machine is off: anything that it still runs would keep running.
    Forget(Forget),
}

/// Which installation.
#[derive(Args)]
#[command(after_help = "Example: podium node list --database-url postgres://podium@db.example.com/podium")]
pub struct List {
    #[command(flatten)]
    installation: Installation,
    /// As JSON, for programs.
    #[arg(long)]
    json: bool,
}

/// Which node.
#[derive(Args)]
#[command(
    after_help = "Example: podium node forget machine-2 --database-url postgres://podium@db.example.com/podium"
)]
pub struct Forget {
    #[command(flatten)]
    installation: Installation,
    /// The node to remove.
    #[arg(required_unless_present = "unknown", conflicts_with = "unknown")]
    name: Option<String>,
    /// Instead of a node: choose new nodes for deployments that no node reports running.
    #[arg(long)]
    unknown: bool,
}

impl Node {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        match self {
            Self::List(list) => list.run().await,
            Self::Forget(forget) => forget.run().await,
        }
    }
}

impl List {
    async fn run(self) -> Result<(), Failure> {
        let (db, system) = self.installation.view().await?;
        let found = db.scan(None, move |conn| nodes::list(conn, &system)).await;
        let unknown = match db.is_shared() {
            true => db.scan(None, move |conn| nodes::without_placement(conn, &system)).await,
            false => Ok(Vec::new()),
        };
        db.close().await;
        let (found, unknown) = (found?, unknown?.len());
        let now = World::machine().now();
        let text = if self.json { as_json(&found, now) } else { as_table(&found, unknown, now) };
        let _ = std::io::stdout().write_all(text.as_bytes());
        Ok(())
    }
}

impl Forget {
    async fn run(self) -> Result<(), Failure> {
        if self.installation.is_embedded() {
            return Err("an installation with the embedded database has only one node".into());
        }
        let (db, system) = self.installation.view().await?;
        let said = match &self.name {
            Some(name) => forget(&db, system, name).await,
            None => forget_unknown(&db, system).await,
        };
        db.close().await;
        eprintln!("{}", said?);
        Ok(())
    }
}

async fn forget(db: &Db, system: System, name: &str) -> Result<String, Failure> {
    let now = World::machine().now();
    let (asked, wanted) = (name.to_owned(), name.to_owned());
    let found = db.read(None, move |conn| nodes::by_name(conn, &system, &asked)).await?;
    let node = found.ok_or_else(|| format!("there is no node {wanted:?}: see `podium node list`"))?;
    if is_online(&node, now) {
        return Err(format!(
            "node {name} was last seen {} s ago: stop its server and the environments that it runs first, then wait {} s",
            (now.millis() - node.last_seen_at.millis()) / 1000,
            NODE_TIMEOUT.as_secs()
        )
        .into());
    }
    let count = db.write(None, move |tx| nodes::forget(tx, &system, node.id, now)).await?;
    Ok(match count {
        0 => format!("Removed node {name}. No deployment ran there."),
        1 => format!("Removed node {name}. One deployment is recreated from scratch on another node. {LOST}"),
        count => {
            format!(
                "Removed node {name}. {count} deployments are recreated from scratch on other nodes. {LOST}"
            )
        }
    })
}

async fn forget_unknown(db: &Db, system: System) -> Result<String, Failure> {
    let now = World::machine().now();
    let unit = move |tx: &podium_db::Tx| {
        let ids = nodes::without_placement(tx, &system)?;
        nodes::request_placement(tx, &system, &ids, now)?;
        Ok::<_, podium_db::Error>(ids.len())
    };
    let count = db.write(None, unit).await?;
    Ok(format!("{count} deployments that no node reported running are placed on new nodes. {LOST}"))
}

fn is_online(node: &NodeRow, now: Timestamp) -> bool {
    node.last_seen_at >= now - NODE_TIMEOUT
}

fn as_json(rows: &[NodeRow], now: Timestamp) -> String {
    let value = |row: &NodeRow| {
        json!({
            "name": row.name,
            "id": row.id,
            "isSeen": is_online(row, now),
            "firstSeenAt": row.first_seen_at,
            "lastSeenAt": row.last_seen_at,
            "deployments": row.deployments,
        })
    };
    format!("{:#}\n", Value::Array(rows.iter().map(value).collect()))
}

fn as_table(rows: &[NodeRow], unknown: usize, now: Timestamp) -> String {
    if rows.is_empty() {
        return "There are no nodes: a server becomes one when it starts with a data plane on its own machine.\n"
            .into();
    }
    let head = ["NAME", "ID", "STATE", "LAST SEEN", "DEPLOYMENTS"].map(str::to_owned);
    let line = |row: &NodeRow| {
        [
            row.name.clone(),
            row.id.to_string(),
            if is_online(row, now) { "online" } else { "offline" }.to_owned(),
            row.last_seen_at.to_string(),
            row.deployments.to_string(),
        ]
    };
    let mut text = table::text(std::iter::once(head).chain(rows.iter().map(line)).collect());
    if unknown > 0 {
        text.push_str(&format!("Deployments that no node reports running: {unknown}.\n"));
    }
    text
}
