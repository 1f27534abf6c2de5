//! Events: how endpoints make them, and how they are listed and followed.

mod stream;
pub(crate) mod wakes;

use podium_api::Many;
use podium_api::enums::EventType;
use podium_api::events::{self as api, DATA_CONTENT_TYPE, Event, EventPage, SPEC_VERSION};
use podium_api::openapi::PREFIX;
use podium_db::Tx;
use podium_domain::events::{Cursor, NewEvent, Resource, Visibility};
use podium_domain::{Fields, Grants, Refusal, dag_viewers};
use podium_store::Scope;
use podium_store::events::{self, Bounds, EventRow, Start, View};

use crate::App;
use crate::cx::{Call, Cx};
use crate::error::{Error, Result};

pub use stream::{EventStream, follow};

/// The most rows that one page looks through for what its reader asked for and may see.
const WINDOW: u32 = 5000;

pub async fn list(cx: Cx<Scope>, call: Call<api::List>) -> Result<Many<EventPage>> {
    let query = call.query;
    let start = start(("cursor", query.cursor.as_deref()), query.since, Start::Oldest)?;
    let bounds = Bounds { limit: query.limit, window: WINDOW.max(query.limit) };
    let page = cx.scan(move |cx, conn| {
        let view = View {
            visibility: Visibility::of(cx.grants()),
            types: query.types.clone(),
            workspace_id: query.workspace_id,
            deployment_id: query.deployment_id,
            since: query.since,
        };
        let position = events::position(conn, cx.scope(), start)?.ok_or_else(gone)?;
        events::after(conn, cx.scope(), &view, position, bounds)?.ok_or_else(gone)
    });
    let page = page.await?;
    let (next_cursor, has_more) = (page.next.to_string(), page.has_more);
    let events = page.rows.into_iter().map(|row| shown(cx.app(), cx.grants(), row)).collect();
    Ok(Many(EventPage { events, next_cursor, has_more }))
}

impl Cx<Scope> {
    /// Records that a resource of the organization changed: in the change log, and as the event of the endpoint.
    pub(crate) fn changed(
        &self,
        tx: &Tx,
        kind: &'static str,
        version: i64,
        about: Resource<'_>,
    ) -> Result<()> {
        self.logged(tx, kind, about.id(), version)?;
        self.event(tx, about)
    }

    /// Writes the event of the endpoint: what happened to a resource of the organization.
    pub(crate) fn event(&self, tx: &Tx, about: Resource<'_>) -> Result<()> {
        let endpoint = self.request().endpoint;
        let none = || Error::Internal(format!("{} has no type of event", endpoint.id));
        self.event_of(tx, endpoint.event.ok_or_else(none)?, about)
    }

    /// Writes an event of another type than the endpoint's.
    pub(crate) fn event_of(&self, tx: &Tx, event: EventType, about: Resource<'_>) -> Result<()> {
        let event = NewEvent::new(event, self.organization_id(), about, Some(&self.profile()));
        Ok(events::append(tx, self.scope(), self.now(), &event)?)
    }
}

/// Where a reader begins, by the cursor that it sent under this name.
fn start(
    (field, cursor): (&str, Option<&str>),
    since: Option<podium_api::Timestamp>,
    otherwise: Start,
) -> Result<Start> {
    let Some(text) = cursor.filter(|text| !text.is_empty()) else {
        return Ok(since.map_or(otherwise, Start::Since));
    };
    let mut fields = Fields::new();
    let cursor = fields.take(Cursor::parse(field, text));
    Ok(fields.finish(cursor).map(Start::After)?)
}

/// What a reader is told who has missed events that are no longer kept.
fn gone() -> Error {
    let message = "Events after this cursor are no longer kept: read the resources again, and continue without a cursor.";
    Refusal::Gone(message.into()).into()
}

fn shown(app: &App, reader: &Grants, row: EventRow) -> Event {
    let mut event = whole(app, row);
    dag_viewers::narrow_event(reader, &mut event.data);
    event
}

/// An event as it is sent to webhooks.
pub(crate) fn whole(app: &App, row: EventRow) -> Event {
    let EventRow { cursor, at, event_type, mut data } = row;
    if let Some(alert) = &mut data.alert {
        // Whom an alert tells is for its owners.
        alert.webhook_ids = None;
    }
    Event {
        specversion: SPEC_VERSION.to_owned(),
        id: cursor.to_string(),
        source: format!("{}{PREFIX}/organizations/{}", app.config.public_url, data.organization_id),
        r#type: event_type,
        subject: format!("{}/{}", data.resource.r#type, data.resource.id),
        time: at,
        datacontenttype: DATA_CONTENT_TYPE.to_owned(),
        data,
    }
}
