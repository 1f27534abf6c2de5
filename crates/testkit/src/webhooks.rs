//! Deliveries of webhooks for tests that have no receiver.

use podium_api::enums::EventType;
use podium_api::{WebhookDeliveryId, WebhookId};
use podium_domain::events::Cursor;
use podium_store::webhook_deliveries::{self, NewDelivery};
use podium_store::webhooks;

use crate::app::TestApp;

impl TestApp {
    /// A delivery of a webhook that has not been tried yet.
    pub async fn delivery(&self, webhook_id: WebhookId) -> WebhookDeliveryId {
        let (system, id, now) = (self.system, self.world.id(), self.world.now());
        let event = Cursor { transaction_id: 0, sequence: now.millis() };
        let new = NewDelivery { id, event, event_type: EventType::WebhookTested };
        let added = self.db().write(None, move |tx| {
            let webhook = webhooks::state(tx, &system, webhook_id)?.expect("there is one");
            webhook_deliveries::insert(tx, &system, &webhook, &[new], now)
        });
        let added: podium_db::Result<()> = added.await;
        added.expect("a delivery can be stored");
        id
    }
}
