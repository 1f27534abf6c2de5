//! `podium deployment processes`.

use podium_api::deployment_processes::{self as api, DeploymentProcesses};
use podium_api::path::{InOrganization, OfDeployment};
use serde_json::{Value, json};

use crate::client::commands::{Exit, Failed, Outcome, Session, View, merged, object, read};

const VIEW: View = View {
    name: "name",
    columns: "NAME name, STATE state, MEMORY memory, RESTARTS restarts, STARTED startedAt, REASON reason",
    wide: "HEARTBEAT heartbeatAt",
};

pub(super) async fn show(session: &Session, path: &OfDeployment) -> Outcome {
    let of = InOrganization { organization_id: path.organization_id };
    let deployment_ids = vec![path.deployment_id.into()];
    let query = api::ListDeploymentProcesses { deployment_ids, ..Default::default() };
    let Some(raw) = session.all::<api::List, Value>(&of, &query, Some(1)).await?.into_iter().next() else {
        return Err(Failed::new(Exit::NotFound, "the server does not list its processes"));
    };
    let found: DeploymentProcesses = read(&raw)?;
    if let Some(reason) = &found.reason {
        return Err(Failed::new(Exit::Failed, format!("the processes cannot be observed: {reason}")));
    }
    if !session.format.is_table() {
        return session.show(&raw, &VIEW);
    }
    if found.processes.is_empty() {
        eprintln!("No process is running: see podium deployment get {}", path.deployment_id);
        return Ok(());
    }
    let row = |process: &api::DeploymentProcess| {
        let words = json!({
            "state": if process.is_up { "up" } else { "down" },
            "memory": process.memory_bytes.map(size),
        });
        merged(object(process), words)
    };
    session.show_all(&found.processes.iter().map(row).collect::<Vec<_>>(), &VIEW)?;
    let disk = found.disk_bytes.map(|bytes| format!(", {} on disk", size(bytes)));
    eprintln!("{} of memory{}", size(found.memory_bytes.unwrap_or_default()), disk.unwrap_or_default());
    Ok(())
}

/// A number of bytes as people read it.
pub(crate) fn size(bytes: u64) -> String {
    indicatif::BinaryBytes(bytes).to_string()
}
