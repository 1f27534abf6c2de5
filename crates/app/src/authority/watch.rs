//! Watches callers of long-running requests: log streams, and bodies on their way to and from an environment. The
//! request ends when the caller's rights change.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch::Receiver;

use super::Authority;
use super::db;
use crate::App;
use crate::error::{Error, Result};
use crate::request::OpenSession;

/// Detects when the rights of a caller being served change, or its token or session ends.
#[derive(Clone)]
pub struct Watch {
    app: App,
    authority: Arc<Authority>,
    session: Option<OpenSession>,
    changes: Receiver<()>,
    seen: u64,
}

impl Watch {
    /// Whether the caller's rights are unchanged. Costs nothing while nobody's rights change.
    pub async fn holds(&mut self) -> Result<bool> {
        if self.authority.has_not_ended(self.session, self.app.world.now()).is_err() {
            return Ok(false);
        }
        let generation = self.app.rights_generation();
        if generation == self.seen {
            return Ok(true);
        }
        let authority = Arc::clone(&self.authority);
        let (app, session) = (self.app.clone(), self.session);
        let confirmed = db(&self.app).read(None, move |conn| {
            authority.confirm(conn)?;
            app.confirm_session(conn, session)
        });
        match confirmed.await {
            Err(Error::Unauthenticated(_)) => return Ok(false),
            Err(error) if error.is_stale() => return Ok(false),
            confirmed => confirmed?,
        }
        self.seen = generation;
        Ok(true)
    }

    /// Resolves once the caller's rights have changed.
    pub async fn ended(&mut self) {
        loop {
            self.changes.borrow_and_update();
            // While the database is unavailable this is unknown: the caller is served until it is back.
            if matches!(self.holds().await, Ok(false)) {
                return;
            }
            let end =
                self.authority.end(self.session).map(|end| end.millis() - self.app.world.now().millis());
            let changed = self.changes.changed();
            match end {
                Some(millis) => {
                    let left = Duration::from_millis(millis.max(1).unsigned_abs());
                    let _ = tokio::time::timeout(left, changed).await;
                }
                None => drop(changed.await),
            }
        }
    }
}

impl App {
    /// Watches the caller of a long-running request, and the browser's session that it came with.
    pub fn watch(&self, authority: &Arc<Authority>, session: Option<OpenSession>) -> Watch {
        let changes = self.authorities.notifier.subscribe();
        // Changes since the caller and the session were read count as new.
        let seen =
            session.map_or(authority.generation, |session| session.generation.min(authority.generation));
        Watch { app: self.clone(), authority: Arc::clone(authority), session, changes, seen }
    }
}
