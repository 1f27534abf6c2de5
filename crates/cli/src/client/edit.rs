//! Changes: only what was named is changed, and nothing that somebody else changed meanwhile is lost.

use podium_api::enums::ErrorCode;
use podium_api::path::InOrganization;
use podium_api::{Endpoint, Nothing, Reply};
use podium_client::{Call, Fetched};
use podium_terminal as terminal;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::answer::{Answer, BodyOf};
use super::ending::{Failed, Outcome};
use super::names::{Noun, OrganizationNoun};
use super::session::Session;

/// How often a change is made anew after somebody else's.
const TRIES: u32 = 4;

impl Session {
    /// Sends a body, and gives what the server made of it.
    pub(crate) async fn post<E: Endpoint>(
        &self,
        path: &E::Path,
        body: &E::Body,
    ) -> Outcome<Answer<BodyOf<E>>> {
        self.post_any::<E>(path, body).await
    }

    /// The same with a body that may have any field of the API.
    pub(crate) async fn post_any<E: Endpoint>(
        &self,
        path: &E::Path,
        body: &impl Serialize,
    ) -> Outcome<Answer<BodyOf<E>>> {
        let call = Call::to::<E>(path).body(body)?;
        match self.is_planned(&call).await? {
            true => Ok(Value::Null.into()),
            false => Ok(self.note_started(self.client.send::<Value>(call).await?).into()),
        }
    }

    /// Makes what is called so, and shows it.
    pub(crate) async fn create_named<G, C>(&self, name: &str, body: &C::Body) -> Outcome
    where
        G: OrganizationNoun,
        C: Endpoint<Path = InOrganization>,
    {
        let made = self.post::<C>(&self.in_organization().await?, body).await?;
        eprintln!("Created {} {name}.", G::KIND.noun);
        self.show(&made.raw, G::VIEW)
    }

    /// Asks a person to agree; what is only planned needs no agreement.
    pub(crate) fn agree(&self, question: &str) -> Outcome {
        agree(question, self.is_agreed || self.is_planning())
    }

    /// Reads, edits and writes; again if somebody else wrote in between.
    pub(crate) async fn edit<G, U, B>(
        &self,
        path: &G::Path,
        change: impl Fn(BodyOf<G>) -> Outcome<B>,
    ) -> Outcome<Edited>
    where
        G: Endpoint<Reply: Reply<Body: DeserializeOwned>>,
        U: Endpoint<Path = G::Path>,
        B: Serialize,
    {
        self.edit_part::<G, U, B>(path, |now| change(now.body()?)).await
    }

    /// The same for whoever needs a part of what is there.
    pub(crate) async fn edit_part<G, U, B>(
        &self,
        path: &G::Path,
        change: impl Fn(&Answer<BodyOf<G>>) -> Outcome<B>,
    ) -> Outcome<Edited>
    where
        G: Endpoint,
        U: Endpoint<Path = G::Path>,
        B: Serialize,
    {
        let mut tries = 0;
        loop {
            tries += 1;
            let Fetched { body, etag, .. } = self.client.send::<Value>(Call::to::<G>(path)).await?;
            let before = Answer::<BodyOf<G>>::from(body);
            let request = change(&before)?;
            let call = Call::to::<U>(path).body(&request)?.if_match(etag);
            if self.is_planned(&call).await? {
                return Ok(Edited { now: before.raw, differs: false });
            }
            match self.client.send::<Value>(call).await {
                Err(error) if error.code() == Some(ErrorCode::PreconditionFailed) && tries < TRIES => {}
                done => {
                    let now = self.note_started(done?);
                    let request = serde_json::to_value(&request).unwrap_or_default();
                    let is_hidden = has_hidden(&request, &now);
                    let edited = Edited::of(&before.raw, now);
                    return Ok(Edited { differs: edited.differs || is_hidden, ..edited });
                }
            }
        }
    }

    /// Changes the fields of a request that are given, and shows what came of it.
    pub(crate) async fn update_named<G, U>(&self, name: &str, request: &U::Body) -> Outcome
    where
        G: OrganizationNoun,
        U: Endpoint<Path = G::Path>,
    {
        let noun = G::KIND.noun;
        if serde_json::to_value(request).is_ok_and(|fields| fields == json!({})) {
            return Err(Failed::usage(format!("nothing to change: see podium {noun} update --help")));
        }
        let path = self.named::<G>(name).await?;
        let edited = self.edit_part::<G, U, _>(&path, |_| Ok(request)).await?;
        self.show(&edited.told(&format!("{noun} {name}")), G::VIEW)
    }

    /// Deletes what is called so, if a person agrees.
    pub(crate) async fn delete_named<G, D>(&self, names: &[String]) -> Outcome
    where
        G: OrganizationNoun,
        D: Endpoint<Path = G::Path>,
    {
        self.delete::<G, D>(names, async |name: &str| self.named::<G>(name).await, &Nothing).await
    }

    /// Deletes what is found if a person agrees, and follows what that takes.
    pub(crate) async fn delete<G: Noun, D: Endpoint>(
        &self,
        names: &[String],
        find: impl AsyncFn(&str) -> Outcome<D::Path>,
        query: &impl Serialize,
    ) -> Outcome {
        let noun = G::KIND.noun;
        let mut paths = Vec::new();
        for name in names {
            paths.push(find(name).await?);
        }
        self.agree(&format!("Delete {noun} {}?", names.join(", ")))?;
        self.hold_plan();
        for (path, name) in paths.iter().zip(names) {
            let call = Call::to::<D>(path).query_params(query)?;
            if !self.is_planned(&call).await? {
                self.note_started(self.client.send::<Nothing>(call).await?);
                eprintln!("Deleted {noun} {name}.");
            }
        }
        self.show_plan().await?;
        self.follow().await
    }
}

pub(crate) struct Edited {
    pub(crate) now: Value,
    /// Whether anything is different from before.
    pub(crate) differs: bool,
}

impl Edited {
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
