//! Sends one event: to an address that is allowed, without following redirects, within bounds of time and size.

use std::borrow::Cow;
use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use podium_api::Timestamp;
use podium_app::webhooks::SignedEvent;
use podium_domain::webhooks::{self as rules, Destinations, Host, HostAndScheme, Outcome, Scheme};
use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
use reqwest::{Client, Response, Url, redirect};

use super::resolver::{Guarded, Refused, Resolver};

/// How much of an answer is read.
const MOST_RESPONSE: usize = 1024;
/// How long a connection is kept for the next event.
const IDLE: Duration = Duration::from_secs(15);
const USER_AGENT: &str = concat!("podium-webhooks/", env!("CARGO_PKG_VERSION"));
const EVENT: &str = "application/cloudevents+json; charset=utf-8";

pub(super) struct Sender {
    https: Client,
    http: Client,
    destinations: Destinations,
    attempt: Duration,
}

/// What has become of an attempt.
pub(super) struct Answer {
    pub(super) outcome: Outcome,
    pub(super) status: Option<u16>,
    pub(super) response: String,
    /// Why it failed, for the owner of the webhook.
    pub(super) error: Cow<'static, str>,
    pub(super) retry_after: Option<Duration>,
}

impl Answer {
    pub(super) fn failed(error: impl Into<Cow<'static, str>>) -> Self {
        let (response, error) = (String::new(), error.into());
        Self { outcome: Outcome::Failed, status: None, response, error, retry_after: None }
    }
}

impl Sender {
    /// With a limit for the time of an attempt.
    pub(super) fn new(
        resolver: &Arc<dyn Resolver>,
        destinations: &Destinations,
        attempt: Duration,
    ) -> reqwest::Result<Self> {
        let client = |scheme| {
            let (resolver, destinations) = (Arc::clone(resolver), destinations.clone());
            Client::builder()
                .no_proxy()
                .redirect(redirect::Policy::none())
                .referer(false)
                .https_only(scheme == Scheme::Https)
                .dns_resolver(Arc::new(Guarded { resolver, destinations, scheme }))
                .timeout(attempt)
                .pool_max_idle_per_host(1)
                .pool_idle_timeout(IDLE)
                .user_agent(USER_AGENT)
                .build()
        };
        let (https, http) = (client(Scheme::Https)?, client(Scheme::Http)?);
        Ok(Self { https, http, destinations: destinations.clone(), attempt })
    }

    pub(super) async fn send(&self, url: &str, event: SignedEvent, now: Timestamp) -> Answer {
        let url = Url::parse(url).ok().and_then(|url| HostAndScheme::of(&url).map(|to| (url, to)));
        let Some((url, to)) = url else { return Answer::failed("The URL cannot be used.") };
        // An address in a URL is not looked up, so it is judged here; a name is judged when it is.
        if let Host::Address(address) = to.host
            && !self.destinations.admit(to.scheme, address)
        {
            return Answer::failed(NOT_ALLOWED);
        }
        let client = if to.scheme == Scheme::Https { &self.https } else { &self.http };
        let SignedEvent { id, timestamp, signature, body } = event;
        let request = client
            .post(url)
            .header(CONTENT_TYPE, EVENT)
            .header("webhook-id", id)
            .header("webhook-timestamp", timestamp)
            .header("webhook-signature", signature)
            .body(body);
        match request.send().await {
            Ok(response) => read(response, now).await,
            Err(error) => Answer::failed(self.complaint(&error)),
        }
    }

    /// Why there was no answer, without what only the operator may know.
    fn complaint(&self, error: &reqwest::Error) -> Cow<'static, str> {
        let mut source = error.source();
        while let Some(cause) = source {
            match cause.downcast_ref() {
                Some(Refused::NotAllowed) => return NOT_ALLOWED.into(),
                Some(Refused::NotFound) => return "The host of the URL cannot be found.".into(),
                None => source = cause.source(),
            }
        }
        if error.is_timeout() {
            return format!("There was no answer within {} seconds.", self.attempt.as_secs()).into();
        }
        if error.is_connect() {
            return "The receiver cannot be connected to, or its certificate is not trusted.".into();
        }
        "The connection ended before there was an answer.".into()
    }
}

const NOT_ALLOWED: &str = "The URL leads to an address that events may not be sent to.";

/// Reads the status and the beginning of an answer.
async fn read(mut response: Response, now: Timestamp) -> Answer {
    let status = response.status().as_u16();
    let outcome = rules::outcome(status);
    let asked = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    let retry_after = asked.and_then(|text| rules::retry_after(text, now));
    let mut start = Vec::new();
    // The status is what counts: an answer that breaks off after it was one.
    while start.len() < MOST_RESPONSE
        && let Ok(Some(chunk)) = response.chunk().await
    {
        start.extend_from_slice(&chunk[..chunk.len().min(MOST_RESPONSE - start.len())]);
    }
    let error = match status {
        200..=299 => Cow::Borrowed(""),
        300..=399 => format!("The answer was a redirect ({status}), which is not followed.").into(),
        _ => format!("The answer was {status}.").into(),
    };
    Answer { outcome, status: Some(status), response: rules::shown_response(&start), error, retry_after }
}
