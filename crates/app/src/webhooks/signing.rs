//! Signatures of deliveries, as the Standard Webhooks specification describes them.

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use podium_api::{Timestamp, WebhookId};
use podium_store::events::EventRow;
use podium_store::webhooks::{StoredUrl, WebhookRow};
use zeroize::Zeroizing;

use crate::App;
use crate::error::{Error, Result};
use crate::events;
use crate::world::World;

/// What the text of a secret begins with.
const PREFIX: &str = "whsec_";

pub(super) struct Secret(Zeroizing<[u8; 32]>);

impl Secret {
    pub(super) fn generate(world: &World) -> Self {
        let mut bytes = Zeroizing::new([0; 32]);
        world.fill(bytes.as_mut());
        Self(bytes)
    }

    pub(super) fn text(&self) -> String {
        format!("{PREFIX}{}", STANDARD.encode(self.0.as_ref()))
    }

    pub(super) fn seal(&self, app: &App, id: WebhookId) -> Vec<u8> {
        app.secrets.seal(&app.world, &owner(id), self.0.as_ref())
    }
}

#[derive(Debug)]
pub struct SignedEvent {
    /// The header `webhook-id`: that of the event, so that a receiver recognizes what it has received before.
    pub id: String,
    /// The header `webhook-timestamp`, in seconds.
    pub timestamp: String,
    /// The header `webhook-signature`: one for each secret that is valid now.
    pub signature: String,
    /// The event in the JSON format of CloudEvents.
    pub body: Vec<u8>,
}

impl App {
    pub(crate) fn seal_url(&self, id: WebhookId, url: &str) -> Vec<u8> {
        self.secrets.seal(&self.world, &owner_of_url(id), url.as_bytes())
    }

    /// Where the events of a webhook are sent.
    pub fn url_of(&self, webhook: &WebhookRow) -> Result<String> {
        let unreadable = || Error::Internal(format!("cannot decrypt the URL of the webhook {}", webhook.id));
        let sealed = match &webhook.url {
            StoredUrl::Plain(url) => return Ok(url.clone()),
            StoredUrl::Sealed(sealed) => sealed,
        };
        let url = self.secrets.open(&owner_of_url(webhook.id), sealed).map_err(|_| unreadable())?;
        String::from_utf8(url.to_vec()).map_err(|_| unreadable())
    }

    pub(crate) fn is_secret_of(&self, webhook: &WebhookRow, text: &str) -> bool {
        let opened = self.secrets.open(&owner(webhook.id), &webhook.sealed_secret);
        let given = text.strip_prefix(PREFIX).and_then(|text| STANDARD.decode(text).ok()).map(Zeroizing::new);
        opened.ok().zip(given).is_some_and(|(secret, given)| {
            aws_lc_rs::constant_time::verify_slices_are_equal(&secret, &given).is_ok()
        })
    }

    pub fn sign_event(&self, webhook: &WebhookRow, event: EventRow, now: Timestamp) -> Result<SignedEvent> {
        let event = events::whole(self, event);
        let body = serde_json::to_vec(&event).map_err(|error| Error::Internal(error.to_string()))?;
        let timestamp = now.millis().div_euclid(1000).to_string();
        let message = [event.id.as_bytes(), b".", timestamp.as_bytes(), b".", &body].concat();
        let previous =
            webhook.previous_secret.iter().filter(|(_, until)| now < *until).map(|(sealed, _)| sealed);
        let mut signatures = Vec::new();
        for sealed in std::iter::once(&webhook.sealed_secret).chain(previous) {
            let key = self.secrets.open(&owner(webhook.id), sealed).map_err(|_| {
                Error::Internal(format!("cannot decrypt the secret of the webhook {}", webhook.id))
            })?;
            let signature = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key), &message);
            signatures.push(format!("v1,{}", STANDARD.encode(signature)));
        }
        Ok(SignedEvent { id: event.id, timestamp, signature: signatures.join(" "), body })
    }
}

fn owner_of_url(id: WebhookId) -> String {
    format!("URL of the webhook {id}")
}

fn owner(id: WebhookId) -> String {
    format!("webhook {id}")
}
