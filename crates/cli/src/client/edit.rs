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
    ) -> Outcome<Edited>
    where
        G: Endpoint,
        U: Endpoint<Path = G::Path>,
    {
        let mut tries = 0;
        loop {
            tries += 1;
            let Fetched { body, etag, .. } = self.client.send::<Value>(Call::to::<G>(path)).await?;
            let request = change(&body)?;
            let call = Call::to::<U>(path).body(&request)?.if_match(etag);
            if self.is_planned(&call).await? {
                return Ok(Edited { now: body, differs: false });
            }
            match self.client.send::<Value>(call).await {
                Err(error) if error.status() == Some(412) && tries < TRIES => {}
                done => {
                    let now = self.note_started(done?);
                    let is_hidden = has_hidden(&request, &now);
                    let edited = Edited::of(&body, now);
                    return Ok(Edited { differs: edited.differs || is_hidden, ..edited });
                }
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

/// What a change has come to.
pub(crate) struct Edited {
    /// As it is now.
    pub(crate) now: Value,
    /// Whether anything is different from before.
    pub(crate) differs: bool,
}

impl Edited {
    /// What has become of something.
    pub(crate) fn of(before: &Value, now: Value) -> Self {
        let stable = |thing: &Value| {
            let mut fields = thing.as_object().cloned().unwrap_or_default();
            fields.retain(|name, _| !PASSING.contains(&name.as_str()));
            fields
        };
        Self { differs: stable(before) != stable(&now), now }
    }

    /// Says whether it was changed, and gives what it is now.
    pub(crate) fn told(self, what: &str) -> Value {
        match self.differs {
            true => eprintln!("Changed {what}."),
            false => eprintln!("Nothing was changed: {what} already had these values."),
        }
        self.now
    }
}

/// Fields that change by themselves, or with every write.
const PASSING: &[&str] = &["updatedAt", "updatedBy", "updatedBySubject", "status", "statusReason"];

/// Whether a request has a text within a field that is not shown there: nobody can tell whether that differs.
fn has_hidden(request: &Value, shown: &Value) -> bool {
    let fields = request.as_object().into_iter().flatten();
    fields.filter(|(_, value)| value.is_object()).any(|(name, value)| has_secret(value, &shown[name]))
}

fn has_secret(request: &Value, shown: &Value) -> bool {
    match (request, shown) {
        (Value::Object(request), shown) => {
            request.iter().any(|(name, value)| has_secret(value, &shown[name]))
        }
        (Value::String(sent), Value::Null) => !sent.is_empty(),
        (Value::String(sent), Value::String(shown)) => !sent.is_empty() && shown.is_empty(),
        _ => false,
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
