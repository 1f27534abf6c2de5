//! Streams of events: one that breaks goes on where it broke.

use podium_client::{Call, Events};
use serde_json::Value;

use super::ending::{Failed, Outcome};
use super::progress::pause;
use super::session::Session;

/// How often a stream that is read once is opened again before it is given up.
pub(crate) const MOST_CUTS: usize = 8;

pub(crate) struct Stream<'a> {
    session: &'a Session,
    call: Call,
    stream: Option<Events>,
    last: Option<String>,
    cuts: usize,
    most_cuts: usize,
}

pub(crate) enum Heard {
    /// It was opened: from now on nothing is missed.
    Opened,
    Event(Value),
    /// It cannot be opened for now.
    Broken(Failed),
}

impl<'a> Stream<'a> {
    /// The stream that a call opens, so often.
    pub(crate) fn new(session: &'a Session, call: Call, most_cuts: usize) -> Self {
        Self { session, call, stream: None, last: None, cuts: 0, most_cuts }
    }

    /// The next event. It is an error if the server refuses, or is gone.
    pub(crate) async fn next(&mut self) -> Outcome<Value> {
        loop {
            if let Heard::Event(event) = self.hear().await? {
                return Ok(event);
            }
        }
    }

    /// What comes next, whatever it is.
    pub(crate) async fn hear(&mut self) -> Outcome<Heard> {
        if let Some(stream) = &mut self.stream {
            if let Ok(Some(event)) = stream.next().await {
                self.cuts = 0;
                self.last = event.id.or(self.last.take());
                let read = serde_json::from_str(&event.data).map(Heard::Event);
                return read.map_err(|_| Failed::because("the server sent an event that is not JSON"));
            }
            self.stream = None;
            self.cuts += 1;
        }
        if self.cuts > 0 {
            pause(&mut (self.cuts - 1)).await;
        }
        let call = self.call.clone().after_event(self.last.clone());
        match self.session.client.events(&call).await.map_err(Failed::from) {
            Ok(opened) => {
                self.stream = Some(opened);
                Ok(Heard::Opened)
            }
            Err(failed) if failed.is_passing() && self.cuts < self.most_cuts => {
                self.cuts += 1;
                Ok(Heard::Broken(failed))
            }
            Err(failed) => Err(failed),
        }
    }
}
