//! Joins the nodes of an installation, for a server whose deployments run on its own machine.

use podium_app::nodes::Node;
use podium_app::{App, Error};
use podium_dataplane::Planes;

use crate::failure::Failure;
use crate::settings::Installation;

/// The message if an operator removed this node while it was running.
pub(crate) const FORGOTTEN: &str = "an operator has removed this node (`podium node forget`): its deployments now run on other nodes. Start it again to join as a new node; the environments that it ran are then set aside";

/// A name that can be used in a sentence, in a URL and on a command line.
pub(crate) fn node_name(text: &str) -> Result<String, Failure> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if (1..=64).contains(&text.len()) && text.bytes().all(is_plain) {
        Ok(text.to_owned())
    } else {
        Err("give a name of at most 64 letters, digits, hyphens, underscores and full stops".into())
    }
}

/// Registers this machine, takes over its environments and sets aside those that other nodes now run.
pub(crate) async fn join(
    app: &App,
    planes: &Planes,
    installation: &Installation,
    name: Option<String>,
) -> Result<(), Failure> {
    let Some(machine) = planes.machine() else { return Ok(()) };
    let id = installation.node_id(&app.world)?;
    let name = match name {
        Some(name) => name,
        None => host_name(),
    };
    let joined = app.join(Node { id, name: name.clone() }, machine.environments()).await.map_err(
        |error| match error {
            Error::Refused(refusal) => refusal.message(),
            other => other.to_string(),
        },
    )?;
    for id in joined.unknown {
        tracing::warn!(%id, "an environment on this machine belongs to no deployment; it is ignored");
    }
    for id in joined.on_other_nodes {
        machine.set_aside(id).await.map_err(|fault| {
            format!("the environment {id}, which another node now runs, cannot be set aside: {fault}")
        })?;
    }
    if app.node().is_some() {
        tracing::info!(name, %id, "this server is a node: it runs the deployments that are placed on it");
    }
    Ok(())
}

/// The host name, adapted to be the name of a node.
fn host_name() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let name: String = name.chars().map(plain).take(64).collect();
    if name.is_empty() { "node".into() } else { name }
}
