//! The logs of the deployment as they are written, on standard output.

use std::io::Write as _;

use podium_api::deployment_logs as api;
use podium_api::enums::LogSource;
use podium_api::path::OfDeployment;
use podium_client::Call;
use serde_json::{Value, json};

use crate::client::commands::deployment_logs::line_of;
use crate::client::ending::{Exit, Failed, Outcome};
use crate::client::follow::pause;
use crate::client::output::is_styled;
use crate::client::session::Session;

/// How often a broken stream is opened again before it is given up.
const MOST_CUTS: usize = 30;

/// Shows lines as they are written; a broken stream goes on where it broke.
pub(super) async fn show(session: &Session, path: &OfDeployment) -> Outcome {
    let (is_styled, mut last, mut cuts) = (is_styled(), None, 0);
    let params = json!({ "sources": LogSource::ALL });
    loop {
        let call = Call::to::<api::Follow>(path).query_params(&params)?.after_event(last.clone());
        match session.client.events(&call).await {
            Ok(mut stream) => {
                while let Ok(Some(event)) = stream.next().await {
                    cuts = 0;
                    last = event.id.or(last);
                    if let Ok(line) = serde_json::from_str::<Value>(&event.data) {
                        writeln!(std::io::stdout(), "{}", line_of(&line, is_styled))?;
                    }
                }
            }
            Err(error) => {
                let failed = Failed::from(error);
                if failed.exit != Exit::Unreachable || cuts >= MOST_CUTS {
                    return Err(failed);
                }
            }
        }
        pause(cuts).await;
        cuts += 1;
    }
}
