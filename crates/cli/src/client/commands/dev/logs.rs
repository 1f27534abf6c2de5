//! The logs of the deployment as they are written, on standard output. What components say while all is well, such as a line
//! for every request, would hide what the tasks say; it is shown only if it is asked for.

use std::io::Write as _;

use podium_api::deployment_logs as api;
use podium_api::enums::LogSource;
use podium_api::path::OfDeployment;
use podium_client::Call;

use crate::client::commands::deployment_logs::Line;
use crate::client::commands::{Outcome, Session, beside, is_styled, read};
use crate::client::streams::Stream;

/// How often a broken stream is opened again before it is given up.
const MOST_CUTS: usize = 30;

/// Shows lines as they are written; a broken stream goes on where it broke.
pub(super) async fn show(session: &Session, path: &OfDeployment, is_everything: bool) -> Outcome {
    let query = api::FollowDeploymentLogs { sources: LogSource::ALL.to_vec(), ..Default::default() };
    let call = Call::to::<api::Follow>(path).query_params(&query)?;
    let (is_styled, mut stream) = (is_styled(), Stream::new(session, call, MOST_CUTS));
    loop {
        let line: Line = read(&stream.next().await?)?;
        if is_everything || is_of_interest(line.source.known(), &line.raw) {
            beside(|| writeln!(std::io::stdout(), "{}", line.shown(is_styled)))?;
        }
    }
}

/// Whether a line is shown to whoever writes DAGs: what tasks say, and what is not well.
fn is_of_interest(source: Option<&LogSource>, raw: &str) -> bool {
    let (level, rest) = raw.split_once(' ').unwrap_or((raw, ""));
    match source {
        Some(LogSource::Worker) => !rest.starts_with("::group::") && !rest.starts_with("::endgroup::"),
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
            assert_eq!(is_of_interest(source.parse().ok().as_ref(), raw), expected, "{source} {raw}");
        }
    }
}
