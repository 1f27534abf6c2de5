//! What has become of events that were sent to a webhook, and sending them again.

use podium_api::path::OfWebhookDelivery;
use podium_api::webhooks::{self as api, WebhookDelivery, WebhookDeliveryPage};
use podium_api::{Many, One};
use podium_db::Conn;
use podium_domain::events::Cursor;
use podium_domain::{Fields, Refusal};
use podium_store::Scope;
use podium_store::webhook_deliveries as deliveries;

use super::{find, must_be_enabled};
use crate::cx::{Call, Cx};
use crate::error::Result;

/// Lists the deliveries of a webhook, the newest event first.
pub async fn list_deliveries(
    cx: Cx<Scope>,
    call: Call<api::ListDeliveries>,
) -> Result<Many<WebhookDeliveryPage>> {
    let (id, query) = (call.path.webhook_id, call.query);
    let mut fields = Fields::new();
    let cursor = query.cursor.as_deref().filter(|text| !text.is_empty());
    let before = cursor.map(|text| fields.take(Cursor::parse("cursor", text)));
    fields.into_result()?;
    let (before, limit) = (before.flatten(), query.limit);
    let page = cx.scan(move |cx, conn| {
        find(conn, cx.scope(), id)?;
        // One more than is asked for says whether there are more.
        Ok(deliveries::list(conn, cx.scope(), id, query.state, before, limit + 1)?)
    });
    let mut rows = page.await?;
    let has_more = rows.len() > limit as usize;
    rows.truncate(limit as usize);
    let next_cursor = rows.last().filter(|_| has_more).map(|row| row.body.event_id.clone());
    let deliveries = rows.into_iter().map(|row| row.body).collect();
    Ok(Many(WebhookDeliveryPage { deliveries, next_cursor }))
}

pub async fn get_delivery(cx: Cx<Scope>, call: Call<api::GetDelivery>) -> Result<One<WebhookDelivery>> {
    cx.read(move |cx, conn| find_delivery(conn, cx.scope(), &call.path)).await
}

/// Sends an event again, with all attempts.
pub async fn redeliver(cx: Cx<Scope>, call: Call<api::Redeliver>) -> Result<One<WebhookDelivery>> {
    let path = call.path;
    cx.mutate(move |cx, tx| {
        let webhook = find(tx, cx.scope(), path.webhook_id)?;
        let delivery = find_delivery(tx, cx.scope(), &path)?;
        cx.expect_version(delivery.version)?;
        must_be_enabled(&webhook)?;
        deliveries::again(tx, cx.scope(), webhook.id, &delivery, cx.now())?;
        let delivery = find_delivery(tx, cx.scope(), &path)?;
        cx.logged(tx, deliveries::KIND, path.delivery_id.id(), delivery.version)?;
        Ok(delivery)
    })
    .await
}

fn find_delivery(conn: &Conn, scope: &Scope, path: &OfWebhookDelivery) -> Result<One<WebhookDelivery>> {
    let found = deliveries::get(conn, scope, path.webhook_id, path.delivery_id)?;
    found.ok_or_else(|| Refusal::not_found("delivery").into())
}
