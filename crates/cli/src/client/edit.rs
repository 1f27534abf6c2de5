//! Changes: only what was named is changed, and nothing that somebody else changed meanwhile is lost.

use podium_api::{Endpoint, Nothing};
use podium_client::{Call, Fetched};
use serde_json::{Map, Value};

use super::ending::{Failed, Outcome};
use super::session::Session;
use crate::terminal;

/// How often a change is made anew after somebody else's.
const TRIES: u32 = 4;

impl Session {
    /// Reads something as it is on the wire.
    pub(crate) async fn get<G: Endpoint>(&self, path: &G::Path) -> Outcome<Value> {
        Ok(self.client.send(Call::to::<G>(path)).await?.body)
    }

    /// Sends a body, and gives what the server made of it.
    pub(crate) async fn post<E: Endpoint>(&self, path: &E::Path, body: &Value) -> Outcome<Value> {
        self.change(Call::to::<E>(path).body(body)?).await
    }

    /// Sends a call that changes something, and gives what the server made of it.
    pub(crate) async fn change(&self, call: Call) -> Outcome<Value> {
        match self.is_planned(&call).await? {
            true => Ok(Value::Null),
            false => Ok(self.note_started(self.client.send(call).await?)),
        }
    }

    /// Asks a person to agree; what is only planned needs no agreement.
    pub(crate) fn agree(&self, question: &str) -> Outcome {
        agree(question, self.is_agreed || self.is_planning())
    }

    /// Reads, edits and writes; again if somebody else wrote in between.
    pub(crate) async fn edit<G, U>(
        &self,
        path: &G::Path,
        change: impl Fn(&Value) -> Outcome<Value>,
    ) -> Outcome<Value>
    where
        G: Endpoint,
        U: Endpoint<Path = G::Path>,
    {
        let mut tries = 0;
        loop {
            tries += 1;
            let Fetched { body, etag, .. } = self.client.send::<Value>(Call::to::<G>(path)).await?;
            let call = Call::to::<U>(path).body(&change(&body)?)?.if_match(etag);
            if self.is_planned(&call).await? {
                return Ok(body);
            }
            match self.client.send(call).await {
                Err(error) if error.status() == Some(412) && tries < TRIES => {}
                done => return Ok(self.note_started(done?)),
            }
        }
    }

    /// Deletes things if a person agrees, and follows what that takes; the labels say which.
    pub(crate) async fn delete<D: Endpoint>(&self, noun: &str, all: &[(D::Path, String)]) -> Outcome {
        self.delete_with::<D>(noun, all, &Value::Null).await
    }

    /// The same with query parameters.
    pub(crate) async fn delete_with<D: Endpoint>(
        &self,
        noun: &str,
        all: &[(D::Path, String)],
        query: &Value,
    ) -> Outcome {
        let names: Vec<&str> = all.iter().map(|(_, label)| label.as_str()).collect();
        self.agree(&format!("Delete {noun} {}?", names.join(", ")))?;
        self.hold_plan();
        for (path, label) in all {
            let call = match query.is_null() {
                true => Call::to::<D>(path),
                false => Call::to::<D>(path).query_params(query)?,
            };
            if self.is_planned(&call).await? {
                continue;
            }
            self.note_started(self.client.send::<Nothing>(call).await?);
            eprintln!("Deleted {noun} {label}.");
        }
        self.show_plan().await?;
        self.follow().await
    }
}

/// Asks a person to agree; without a terminal `--yes` must say so.
fn agree(question: &str, is_agreed: bool) -> Outcome {
    if is_agreed {
        return Ok(());
    }
    if !terminal::is_interactive() {
        return Err(Failed::usage(format!("{question} There is no terminal to ask on"))
            .hint("To go ahead without being asked, add --yes."));
    }
    match terminal::confirm(question)? {
        true => Ok(()),
        false => Err(Failed::because("nothing was changed")),
    }
}

/// Some fields of a thing, where it has them.
pub(crate) fn pick(current: &Value, fields: &[&str]) -> Map<String, Value> {
    let found = |field: &&str| current.get(*field).map(|value| ((*field).to_owned(), value.clone()));
    fields.iter().filter_map(found).collect()
}
