//! Follows events: a stream that ends when the caller may read nothing any more, and narrows when it may read less.
//!
//! A stream buffers nothing. It is woken when its organization has new events, and reads them by an index at its
//! reader's pace, with the rights that the caller has at that moment.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use podium_api::events as api;
use podium_api::text::escaped_json;
use podium_domain::events::{Cursor, Visibility};
use podium_domain::{Permission, Target};
use podium_store::Scope;
use podium_store::events::{self, Bounds, EventRow, EventRows, Start, View};
use tokio::sync::watch::Receiver;
use tokio::time::Instant;

use super::wakes::Follower;
use super::{gone, shown, start};
use crate::App;
use crate::authority::Authority;
use crate::cx::{Call, Cx};
use crate::error::{Error, Result};
use crate::request::OpenSession;
use crate::streams::OpenStream;

/// What a follower must hold.
const READ: Permission = Permission::known("organization.get");
/// How often a keep-alive is sent when there are no events.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How often a stream without events looks how far the stream of all has come, so that its cursor stays young.
const REFRESH: Duration = Duration::from_hours(1);
/// How much is read at once.
const BOUNDS: Bounds = Bounds { limit: 100, window: 500 };
/// How often a read is repeated because rights changed meanwhile.
const ATTEMPTS: usize = 8;

pub struct EventStream {
    subscriber: Subscriber,
    wanted: api::FollowEvents,
    position: Cursor,
    /// Whether everything was read that there was when it was last woken.
    is_caught_up: bool,
    follower: Follower,
    rights: Receiver<()>,
    end: Option<Instant>,
    /// When it looks at the database again though there is no news.
    refresh: Instant,
    _open: OpenStream,
}

/// What a look at the database came to.
enum Read {
    Chunk(Vec<u8>),
    Nothing,
    /// The caller may follow no longer.
    End,
}

/// Who follows, with the rights that it has now.
struct Subscriber {
    app: App,
    authority: Arc<Authority>,
    scope: Scope,
    address: IpAddr,
    session: Option<OpenSession>,
}

/// Follows the events of an organization, after the one that `Last-Event-ID` or `cursor` names.
pub async fn follow(cx: Cx<Scope>, call: Call<api::Follow>) -> Result<EventStream> {
    let wanted = call.query;
    let header = cx.request().last_event_id.clone().filter(|id| !id.is_empty());
    let cursor = match &header {
        Some(id) => ("Last-Event-ID", Some(id.as_str())),
        None => ("cursor", wanted.cursor.as_deref()),
    };
    let start = start(cursor, wanted.since, Start::Newest)?;
    let open = cx.app().event_streams.open(&cx)?;
    let rights = cx.app().rights_changes();
    let follower = cx.app().follow_events(cx.organization_id());
    let position = cx.read(move |cx, conn| {
        // It may have ended before changes were listened for.
        cx.app().confirm_session(conn, cx.request().session)?;
        events::position(conn, cx.scope(), start)?.ok_or_else(gone)
    });
    let position = position.await?;
    let end = wanted.wait_seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let subscriber = Subscriber {
        app: cx.app().clone(),
        authority: cx.shared_authority(),
        scope: *cx.scope(),
        address: cx.request().address,
        session: cx.request().session,
    };
    let refresh = Instant::now() + REFRESH;
    Ok(EventStream {
        subscriber,
        wanted,
        position,
        is_caught_up: false,
        follower,
        rights,
        end,
        refresh,
        _open: open,
    })
}

impl EventStream {
    /// The next chunk to send, once there is one; `None` at the end.
    pub async fn next(&mut self) -> Option<Result<Vec<u8>>> {
        let beat = Instant::now() + HEARTBEAT;
        loop {
            if !self.is_caught_up {
                match self.read().await {
                    Ok(Read::Chunk(chunk)) => return Some(Ok(chunk)),
                    Ok(Read::Nothing) => {}
                    Ok(Read::End) => return None,
                    Err(error) => return Some(Err(error)),
                }
            }
            if self.end.is_some_and(|end| end <= Instant::now()) {
                return None;
            }
            let until = [self.end, self.subscriber.expiry()].into_iter().flatten().fold(beat, Instant::min);
            tokio::select! {
                news = self.follower.news.changed() => if news.is_err() { return None },
                rights = self.rights.changed() => if rights.is_err() { return None },
                () = tokio::time::sleep_until(until) => if until == beat && Instant::now() < self.refresh {
                    // Clients ignore an event without data; its id only records the reader's position.
                    return Some(Ok(format!(": nothing new\nid: {}\n\n", self.position).into_bytes()));
                },
            }
            self.is_caught_up = false;
        }
    }

    async fn read(&mut self) -> Result<Read> {
        self.follower.news.borrow_and_update();
        self.rights.borrow_and_update();
        let Some(page) = self.subscriber.read(&self.wanted, self.position).await? else {
            return Ok(Read::End);
        };
        self.position = page.next;
        self.is_caught_up = !page.has_more;
        self.refresh = Instant::now() + REFRESH;
        Ok(match page {
            EventRows { rows, .. } if !rows.is_empty() => Read::Chunk(self.subscriber.written(rows)?),
            // Clients ignore an event without data; its id records how far the search has come. Until the client has
            // taken it, nothing more is read.
            EventRows { has_more: true, .. } => {
                Read::Chunk(format!(": searching\nid: {}\n\n", self.position).into_bytes())
            }
            _ => Read::Nothing,
        })
    }
}

impl Subscriber {
    /// Reads the next events with the rights that the caller has meanwhile; `None` once it has none.
    ///
    /// While the rights of others change all the time, the caller's own are compared in the snapshot of the events.
    async fn read(&mut self, wanted: &api::FollowEvents, position: Cursor) -> Result<Option<EventRows>> {
        for attempt in 0..ATTEMPTS {
            if self.authority.has_not_ended(self.session, self.app.world.now()).is_err() {
                return Ok(None);
            }
            let Some(member) = &self.authority.member else { return Ok(None) };
            let view = View {
                visibility: Visibility::of(member.grants()),
                types: wanted.types.clone(),
                workspace_id: wanted.workspace_id,
                deployment_id: wanted.deployment_id,
                since: wanted.since,
            };
            let (scope, rechecks) = (self.scope, attempt > 0);
            let page = self.app.page_as(&self.authority, rechecks, move |conn| {
                events::after(conn, &scope, &view, position, BOUNDS)?.ok_or_else(gone)
            });
            match page.await {
                Ok(page) if rechecks || self.app.is_current(&self.authority) => return Ok(Some(page)),
                Err(error) if !error.is_stale() => return Err(error),
                Ok(_) | Err(_) => {}
            }
            if !self.renew().await? {
                return Ok(None);
            }
        }
        Err(Error::STALE)
    }

    /// Reads the caller's rights again; returns whether it may still follow.
    async fn renew(&mut self) -> Result<bool> {
        let Some(authority) = self.app.renewed(&self.authority).await? else { return Ok(false) };
        match self.app.reconfirm_session(self.session).await {
            Err(Error::Unauthenticated(_)) => return Ok(false),
            confirmed => confirmed?,
        }
        let Some(member) = &authority.member else { return Ok(false) };
        if member.admit_address(self.address).is_err() {
            return Ok(false);
        }
        let Ok(scope) = member.membership.authorize(READ, Target::Organization) else { return Ok(false) };
        self.scope = scope;
        self.authority = authority;
        Ok(true)
    }

    /// Events as text, as they were read with the caller's rights.
    fn written(&self, rows: Vec<EventRow>) -> Result<Vec<u8>> {
        let Some(member) = &self.authority.member else { return Err(Error::STALE) };
        let mut text = String::new();
        for row in rows {
            let event = shown(&self.app, member.grants(), row);
            let data = serde_json::to_string(&event).map_err(|error| Error::Internal(error.to_string()))?;
            let data = escaped_json(data);
            let _ = write!(text, "id: {}\ndata: {data}\n\n", event.id);
        }
        Ok(text.into_bytes())
    }

    /// When the caller's token or session ends.
    fn expiry(&self) -> Option<Instant> {
        let end = self.authority.end(self.session)?;
        let left = end.millis().saturating_sub(self.app.world.now().millis());
        Some(Instant::now() + Duration::from_millis(left.max(1).unsigned_abs()))
    }
}
