//! Events are kept for thirty days; a reader who has missed some is told so.

use std::time::Duration;

use podium_api::enums::EventType;
use podium_domain::Target;
use podium_domain::events::{NewEvent, Resource};
use podium_store::events;
use podium_testkit::{TestApp, on_both_engines};

use super::{page, settled, shown};

const DAY: Duration = Duration::from_hours(24);

/// More than a page has and than are removed at once.
const MANY: usize = 1200;

/// Appends so many events.
async fn append(app: &TestApp, count: usize) {
    let (scope, now) = (app.scope(), app.world.now());
    let about = Resource::new(app.organization_id.id(), Target::Organization);
    let event = NewEvent::new(EventType::OrganizationUpdated, app.organization_id, about, None);
    let added = app
        .app
        .db(&app.system)
        .write(None, move |tx| (0..count).try_for_each(|_| events::append(tx, &scope, now, &event)));
    added.await.unwrap_or_else(|error: podium_db::Error| panic!("{error}"));
}

/// Removes what is too old, once all events can be read.
async fn tidy(app: &TestApp) {
    settled(app).await;
    podium_app::maintenance::once(&app.app).await.expect("it tidies up");
}

on_both_engines! {
    async fn old_events_are_removed_and_old_cursors_are_gone(app) {
        let follow = async |cursor: &str| {
            app.get(&app.owner, &app.path(&format!("/events/follow?waitSeconds=0&cursor={cursor}"))).await
        };
        app.team("first", &[]).await;
        let first = settled(&app).await[0]["id"].as_str().expect("an id").to_owned();
        app.team("second", &[]).await;
        let second = settled(&app).await[1]["id"].as_str().expect("an id").to_owned();
        app.advance(20 * DAY);
        app.team("third", &[]).await;
        tidy(&app).await;
        assert_eq!(shown(&app, &app.owner, &format!("cursor={first}")).await.len(), 2);
        app.advance(11 * DAY);
        tidy(&app).await;
        assert_eq!(app.rows("events").await, 1);
        assert_eq!(shown(&app, &app.owner, "").await, ["team.created third"]);
        assert_eq!(shown(&app, &app.owner, "since=2027-01-01T00:00:00Z").await, ["team.created third"]);
        let at = |cursor: &str| app.path(&format!("/events?cursor={cursor}"));
        let gone = app.get(&app.owner, &at(&first)).await.refused(410);
        assert_eq!(gone, "Events after this cursor are no longer kept: read the resources again, and continue without a cursor.");
        follow(&first).await.refused(410);
        // Who has come to the last event that was removed has missed nothing.
        assert_eq!(shown(&app, &app.owner, &format!("cursor={second}")).await, ["team.created third"]);
        assert_eq!(follow(&second).await.code(), 200);
        // With nothing left the end is still the end.
        app.advance(31 * DAY);
        tidy(&app).await;
        assert_eq!(app.rows("events").await, 0);
        let end = page(&app, &app.owner, "").await["nextCursor"].as_str().expect("a cursor").to_owned();
        app.team("fourth", &[]).await;
        assert_eq!(shown(&app, &app.owner, &format!("cursor={end}")).await, ["team.created fourth"]);
        app.get(&app.owner, &at(&second)).await.refused(410);
    }

    async fn many_old_events_are_removed_in_batches(app) {
        append(&app, MANY).await;
        app.advance(31 * DAY);
        app.team("last", &[]).await;
        tidy(&app).await;
        assert_eq!(app.rows("events").await, 1);
        assert_eq!(shown(&app, &app.owner, "").await, ["team.created last"]);
    }
}
