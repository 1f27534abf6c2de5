//! `podium deployment processes`.

use podium_api::deployment_processes as api;
use podium_api::path::{InOrganization, OfDeployment};
use podium_client::Call;
use serde_json::{Value, json};

use crate::client::ending::{Exit, Failed, Outcome};
use crate::client::output::{View, column, wide};
use crate::client::session::{Session, text};

const VIEW: View = View {
    name: "name",
    columns: &[
        column("NAME", "name"),
        column("STATE", "state"),
        column("MEMORY", "memory"),
        column("RESTARTS", "restarts"),
        column("STARTED", "startedAt"),
        column("REASON", "reason"),
        wide("HEARTBEAT", "heartbeatAt"),
    ],
};

/// Shows the processes of a deployment.
pub(super) async fn show(session: &Session, path: &OfDeployment) -> Outcome {
    let of = InOrganization { organization_id: path.organization_id };
    let query = json!({ "deploymentIds": [path.deployment_id] });
    let page = session.client.send::<Value>(Call::to::<api::List>(&of).query_params(&query)?).await?.body;
    let found =
        page["deploymentProcesses"].as_array().and_then(|all| all.first()).cloned().unwrap_or_default();
    if let Some(reason) = found.get("reason").and_then(Value::as_str) {
        return Err(Failed::new(Exit::Failed, format!("the processes cannot be observed: {reason}")));
    }
    if !session.format.is_table() {
        return session.show(&found, &VIEW);
    }
    let rows: Vec<Value> = found["processes"].as_array().into_iter().flatten().map(row).collect();
    if rows.is_empty() {
        eprintln!("No process is running: see podium deployment get {}", path.deployment_id);
        return Ok(());
    }
    session.show_all(&rows, &VIEW)?;
    let disk = found["diskBytes"].as_u64().map(|bytes| format!(", {} on disk", size(bytes)));
    let memory = found["memoryBytes"].as_u64().unwrap_or_default();
    eprintln!("{} of memory{}", size(memory), disk.unwrap_or_default());
    Ok(())
}

/// A process as people read it.
fn row(process: &Value) -> Value {
    let mut row = process.clone();
    row["state"] = if process["isUp"] == true { "up" } else { "down" }.into();
    row["memory"] = process["memoryBytes"].as_u64().map_or(Value::Null, |bytes| size(bytes).into());
    row["reason"] = text(&process["reason"]).into();
    row
}

/// A number of bytes as people read it.
pub(crate) fn size(bytes: u64) -> String {
    indicatif::BinaryBytes(bytes).to_string()
}
