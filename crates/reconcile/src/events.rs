//! The events that the loops of webhooks and alerts read, one page after the other.

use podium_api::OrganizationId;
use podium_api::enums::EventType;
use podium_app::App;
use podium_domain::events::{Cursor, Visibility};
use podium_store::Steward;
use podium_store::events::{self, Bounds, EventRow, Start, View};

use crate::reconciler::Failure;

/// The next events of these types in an organization, how far they come, and whether there may be more. An owner of the
/// organization may see them all.
pub(crate) async fn next(
    app: &App,
    system: Steward,
    organization_id: OrganizationId,
    types: Vec<EventType>,
    position: Cursor,
    bounds: Bounds,
) -> Result<(Vec<EventRow>, Cursor, bool), Failure> {
    let (scope, visibility) = (system.scope(organization_id), Visibility::All);
    let view = View { visibility, types, workspace_id: None, deployment_id: None, since: None };
    let page = app.db(&system).scan(None, move |conn| {
        match events::after(conn, &scope, &view, position, bounds)? {
            Some(page) => Ok::<_, podium_db::Error>((page.rows, page.next, page.has_more)),
            // What came next is no longer kept: it goes on with the oldest that is.
            None => {
                Ok((Vec::new(), events::position(conn, &scope, Start::Oldest)?.unwrap_or(position), true))
            }
        }
    });
    Ok(page.await?)
}
