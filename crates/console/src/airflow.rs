//! The Airflow of a deployment, asked through the front door as the person who looks.
//!
//! What an environment answers is written by its authors: it is read strictly, bounded, and shown as text only.

use podium_api::deployments::Deployment;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::answer::Result;
use crate::calls::{Calls, Problem};
use crate::visit::OrganizationVisit;

/// How much of an error of Airflow is shown.
const LONGEST_DETAIL: usize = 500;

/// A request to the Airflow of a deployment.
#[derive(Debug)]
pub struct AirflowCall {
    /// The name of the deployment in the data plane.
    pub namespace: String,
    pub method: &'static str,
    /// The parts of the path, decoded.
    pub path: Vec<String>,
    /// The query, encoded.
    pub query: String,
    pub body: Option<Value>,
}

#[derive(Debug)]
pub struct AirflowReply {
    pub status: u16,
    pub body: Vec<u8>,
}

/// A request that somebody may want to make.
#[derive(Debug)]
pub struct AirflowQuestion {
    pub method: &'static str,
    /// The parts of the path, decoded.
    pub path: Vec<String>,
    /// The tags of the DAG in it, as Airflow told them.
    pub tags: Vec<String>,
}

pub(crate) struct Airflow<'a> {
    calls: &'a dyn Calls,
    pub(crate) namespace: String,
    /// Whether it is Airflow 2.
    pub(crate) is_old: bool,
}

impl<'a> Airflow<'a> {
    pub(crate) fn of(visit: &'a OrganizationVisit<'_>, deployment: &Deployment) -> Self {
        Self {
            calls: visit.calls(),
            namespace: deployment.namespace.clone(),
            is_old: deployment.airflow_version.starts_with("2."),
        }
    }

    fn path(&self, parts: &[&str]) -> Vec<String> {
        let version = if self.is_old { "v1" } else { "v2" };
        ["api", version].iter().chain(parts).map(|part| (*part).to_owned()).collect()
    }

    /// Something that the person may want to do with a DAG.
    pub(crate) fn question(&self, method: &'static str, parts: &[&str], tags: &[String]) -> AirflowQuestion {
        AirflowQuestion { method, path: self.path(parts), tags: tags.to_vec() }
    }

    /// Which of these the person may do.
    pub(crate) async fn admits(&self, asked: Vec<AirflowQuestion>) -> Vec<bool> {
        self.calls.airflow_admits(self.namespace.clone(), asked).await
    }

    /// Whether the person may list DAGs.
    pub(crate) async fn shows_dags(&self) -> bool {
        self.admits(vec![self.question("GET", &["dags"], &[])]).await == [true]
    }

    pub(crate) async fn get<T: DeserializeOwned>(&self, parts: &[&str], query: &[(&str, &str)]) -> Result<T> {
        let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(query).finish();
        // Not every decoder takes a plus for a space.
        typed(&self.send("GET", parts, query.replace('+', "%20"), None).await?)
    }

    /// Reads something that is asked for with a body.
    pub(crate) async fn ask<T: DeserializeOwned>(&self, parts: &[&str], body: Value) -> Result<T> {
        typed(&self.send("POST", parts, String::new(), Some(body)).await?)
    }

    pub(crate) async fn change(
        &self,
        method: &'static str,
        parts: &[&str],
        query: &str,
        body: Value,
    ) -> Result<()> {
        self.send(method, parts, query.to_owned(), Some(body)).await.map(drop)
    }

    async fn send(
        &self,
        method: &'static str,
        parts: &[&str],
        query: String,
        body: Option<Value>,
    ) -> Result<Vec<u8>> {
        let (namespace, path) = (self.namespace.clone(), self.path(parts));
        let reply = self.calls.airflow(AirflowCall { namespace, method, path, query, body }).await?;
        if (200..300).contains(&reply.status) {
            return Ok(reply.body);
        }
        let status = if (400..500).contains(&reply.status) { reply.status } else { 502 };
        let detail = detail(&reply.body).map(|detail| format!(": {detail}")).unwrap_or_default();
        Err(Problem::new(status, format!("Airflow answered with {}{detail}", reply.status)))
    }
}

fn typed<T: DeserializeOwned>(body: &[u8]) -> Result<T> {
    let unreadable = |_| Problem::new(502, "Airflow sent an answer that this page cannot read.");
    serde_json::from_slice(body).map_err(unreadable)
}

/// What Airflow says is wrong.
fn detail(body: &[u8]) -> Option<String> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let text = body["detail"].as_str().or_else(|| body["title"].as_str())?;
    Some(plain(text, LONGEST_DETAIL)).filter(|text| !text.is_empty())
}

/// A text of an environment, on one line: bounded, and without characters that hide or turn around what stands beside it.
pub(crate) fn plain(text: &str, most: usize) -> String {
    shown(text, most, false)
}

/// A text of an environment with its lines, bounded.
pub(crate) fn lines(text: &str, most: usize) -> String {
    shown(text, most, true)
}

fn shown(text: &str, most: usize, keeps_lines: bool) -> String {
    let readable = |character: char| match character {
        '\n' if keeps_lines => character,
        '\t' | '\n' | '\r' => ' ',
        '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' => {
            '\u{fffd}'
        }
        character if character.is_control() => '\u{fffd}',
        character => character,
    };
    let mut characters = text.chars();
    let mut kept: String = characters.by_ref().take(most).map(readable).collect();
    if characters.next().is_some() {
        kept.push('…');
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_environments_are_bounded_and_hide_nothing() {
        assert_eq!(plain("a\u{202e}b\u{7}\nc", 10), "a\u{fffd}b\u{fffd} c");
        assert_eq!(lines("a\r\nb", 10), "a \nb");
        assert_eq!((plain("äöü", 2), plain("äö", 2)), ("äö…".to_owned(), "äö".to_owned()));
    }

    #[test]
    fn what_airflow_says_is_wrong_is_found() {
        let table = [
            (r#"{"detail":"not found"}"#, Some("not found")),
            (r#"{"title":"Conflict"}"#, Some("Conflict")),
            (r#"{"detail":[{"msg":"x"}]}"#, None),
            ("<html>", None),
        ];
        for (body, expected) in table {
            assert_eq!(detail(body.as_bytes()).as_deref(), expected, "{body}");
        }
    }
}
