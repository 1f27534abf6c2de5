//! `podium api`: any call of the API.

use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;

use clap::Args;
use podium_api::OrganizationId;
use podium_api::path::OfOperation;
use podium_client::Call;
use serde_json::{Map, Value};

use super::{Failed, Listing, Outcome, Setup, View, fields};

/// Call any path of the API and print the response.
///
/// {organization} in the path stands for the id of the organization. Fields become the query of a GET and the JSON body
/// of other requests.
#[derive(Args)]
#[command(after_help = "\
Examples:
  podium api GET /users/self
  podium api GET '/organizations/{organization}/deployments' -f limit=5 -f 'names=[\"a\", \"b\"]'
  podium api GET '/organizations/{organization}/users' --paginate --output jsonl
  podium api POST '/organizations/{organization}/workspaces' -f name=Reports
  podium api POST '/organizations/{organization}/deployments' --input deployment.json")]
pub(crate) struct Api {
    /// GET, POST or DELETE.
    method: String,
    /// Path, such as /organizations.
    path: String,
    /// Field of the query or body; the value is JSON, or else text.
    #[arg(long, short, value_name = "FIELD=VALUE")]
    field: Vec<String>,
    /// File with the body (JSON or YAML); - is standard input.
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// Read all pages of a list and print its items.
    #[arg(long)]
    paginate: bool,
    #[command(flatten)]
    setup: Setup,
}

const VIEW: View = View::plain("name", "NAME name, ID id");

impl Api {
    pub(crate) async fn run(self) -> Outcome {
        let session = self.setup.open()?;
        let path = match self.path.contains("{organization}") {
            true => self.path.replace("{organization}", session.organization().await?.as_str()),
            false => self.path.clone(),
        };
        let is_read = matches!(self.method.to_ascii_uppercase().as_str(), "GET" | "DELETE");
        let mut sent = match &self.input {
            Some(_) if is_read => return Err(Failed::usage("--input goes with POST")),
            Some(file) => fields::read(file)?,
            None => Value::Object(Map::new()),
        };
        for field in &self.field {
            fields::set(&mut sent, field)?;
        }
        let is_empty = sent.as_object().is_some_and(Map::is_empty) && self.input.is_none();
        let call = Call::raw(&self.method, &path)?;
        let call = if is_read {
            call.query_params(&sent)?
        } else if is_empty {
            call
        } else {
            call.body(&sent)?
        };
        if self.paginate {
            if !is_read {
                return Err(Failed::usage("--paginate goes with GET"));
            }
            return session.list_call(call, &VIEW, &Listing::default()).await;
        }
        session.is_planned(&call).await?;
        let (headers, bytes) = session.client.send_for_bytes(&call).await?;
        let mut out = std::io::stdout().lock();
        match serde_json::from_slice::<Value>(&bytes) {
            Ok(value) if out.is_terminal() => writeln!(out, "{value:#}")?,
            _ => {
                out.write_all(&bytes)?;
                if !bytes.is_empty() && !bytes.ends_with(b"\n") {
                    out.write_all(b"\n")?;
                }
            }
        }
        drop(out);
        let started = organization_in(&path).zip(podium_client::started(&headers));
        let started =
            started.map(|(organization_id, operation_id)| OfOperation { organization_id, operation_id });
        session.started.borrow_mut().extend(started);
        session.follow().await
    }
}

fn organization_in(path: &str) -> Option<OrganizationId> {
    let mut parts = path.split(['/', '?']).skip_while(|part| *part != "organizations");
    parts.nth(1)?.parse().ok()
}
