//! The logs of the deployment as they are written, on standard output. What components say while all is well, such as a line
//! for every request, would hide what the tasks say; it is shown only if it is asked for.

use std::io::Write as _;

use podium_api::deployment_logs as api;
use podium_api::enums::LogSource;
use podium_api::path::OfDeployment;
use podium_client::Call;
use serde_json::{Value, json};

use crate::client::commands::deployment_logs::line_of;
use crate::client::ending::{Exit, Failed, Outcome};
use crate::client::output::is_styled;
use crate::client::progress::{beside, pause};
use crate::client::session::{Session, text};

/// How often a broken stream is opened again before it is given up.
const MOST_CUTS: usize = 30;

/// Shows lines as they are written; a broken stream goes on where it broke.
pub(super) async fn show(session: &Session, path: &OfDeployment, is_everything: bool) -> Outcome {
    let (is_styled, mut last, mut cuts) = (is_styled(), None, 0);
    let params = json!({ "sources": LogSource::ALL });
    loop {
        let call = Call::to::<api::Follow>(path).query_params(&params)?.after_event(last.clone());
        match session.client.events(&call).await {
            Ok(mut stream) => {
                while let Ok(Some(event)) = stream.next().await {
                    cuts = 0;
                    last = event.id.or(last);
                    let line = serde_json::from_str::<Value>(&event.data).unwrap_or_default();
                    if is_everything || is_of_interest(text(&line["source"]), text(&line["raw"])) {
                        beside(|| writeln!(std::io::stdout(), "{}", line_of(&line, is_styled)))?;
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

/// Whether a line is shown to whoever writes DAGs: what tasks say, and what is not well.
fn is_of_interest(source: &str, raw: &str) -> bool {
    let (level, rest) = raw.split_once(' ').unwrap_or((raw, ""));
    match source {
        "worker" => !rest.starts_with("::group::") && !rest.starts_with("::endgroup::"),
        _ => !matches!(level, "INFO" | "DEBUG"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tasks_say_and_what_is_not_well_is_shown() {
        let table = [
            ("worker", "INFO Hello from your first DAG dag_id=hello", true),
            ("worker", "INFO ::group::Pre Execute dag_id=hello", false),
            ("worker", "INFO ::endgroup:: dag_id=hello", false),
            ("worker", "", true),
            ("apiserver", "INFO request finished method=GET", false),
            ("scheduler", "DEBUG nothing to do", false),
            ("scheduler", "ERROR the database is gone", true),
            ("dag-processor", "WARNING slow", true),
            ("triggerer", "Traceback (most recent call last):", true),
        ];
        for (source, raw, expected) in table {
            assert_eq!(is_of_interest(source, raw), expected, "{source} {raw}");
        }
    }
}
