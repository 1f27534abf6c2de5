//! What Airflow says about a request that it refuses, which has another form than what the server says.

use serde_json::Value;

/// The longest text that is repeated.
const MOST_CHARACTERS: usize = 2_000;

/// Why Airflow refused a request. Airflow 2 says so in `detail`, which may be null, or else in `title`; Airflow 3 in
/// `detail`, which is a text, a list of what is wrong with the fields, or an object with a reason.
pub(crate) fn reason(bytes: &[u8]) -> Option<String> {
    let body: Value = serde_json::from_slice(bytes).ok()?;
    let text = said_in(&body["detail"]).or_else(|| said_in(&body["title"]))?;
    Some(format!("Airflow: {}", text.chars().take(MOST_CHARACTERS).collect::<String>()))
}

fn said_in(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Array(problems) => problems.iter().filter_map(problem).collect::<Vec<_>>().join("; "),
        Value::Object(fields) => said_in(fields.get("reason").or_else(|| fields.get("message"))?)?,
        _ => return None,
    };
    Some(text).filter(|text| !text.is_empty())
}

/// What is wrong with one field.
fn problem(problem: &Value) -> Option<String> {
    let message = problem["msg"].as_str().or(problem.as_str())?;
    let part = |part: &Value| part.as_str().map_or_else(|| part.to_string(), str::to_owned);
    let place: Vec<String> = problem["loc"].as_array().into_iter().flatten().map(part).collect();
    Some(if place.is_empty() { message.to_owned() } else { format!("{}: {message}", place.join(".")) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bodies as Airflow 2.11.2 and 3.0.6 send them.
    #[test]
    fn both_lines_say_why_in_their_own_form() {
        let errors =
            "https://airflow.apache.org/docs/apache-airflow/2.11.2/stable-rest-api-ref.html#section/Errors";
        let table = [
            (
                format!(r#"{{"detail": "The DAG with dag_id: lod was not found", "status": 404, "title": "DAG not found", "type": "{errors}/NotFound"}}"#),
                "The DAG with dag_id: lod was not found",
            ),
            (
                format!(r#"{{"detail": null, "status": 404, "title": "Dag with id: 'lod' not found", "type": "{errors}/NotFound"}}"#),
                "Dag with id: 'lod' not found",
            ),
            (
                r#"{"detail":"The DagRun with dag_id: `load` and run_id: `x` was not found"}"#.to_owned(),
                "The DagRun with dag_id: `load` and run_id: `x` was not found",
            ),
            (
                r#"{"detail":[{"type":"greater_than_equal","loc":["query","limit"],"msg":"Input should be greater than or equal to 0","input":"-1","ctx":{"ge":0}},{"type":"missing","loc":["body","logical_date"],"msg":"Field required","input":{}}]}"#.to_owned(),
                "query.limit: Input should be greater than or equal to 0; body.logical_date: Field required",
            ),
            (
                r#"{"detail":{"reason":"Unique constraint violation","statement":"hidden","orig_error":"hidden","message":"Serious error"}}"#.to_owned(),
                "Unique constraint violation",
            ),
        ];
        for (body, expected) in table {
            assert_eq!(reason(body.as_bytes()), Some(format!("Airflow: {expected}")), "{body}");
        }
    }

    #[test]
    fn what_says_nothing_gives_no_reason() {
        for body in [
            "",
            "<html>",
            "null",
            "{}",
            r#"{"detail":null}"#,
            r#"{"detail":"","title":" "}"#,
            r#"{"detail":[]}"#,
        ] {
            assert_eq!(reason(body.as_bytes()), None, "{body}");
        }
        let long = format!(r#"{{"detail":"{}"}}"#, "x".repeat(10_000));
        assert_eq!(reason(long.as_bytes()).map(|text| text.len()), Some("Airflow: ".len() + MOST_CHARACTERS));
    }
}
