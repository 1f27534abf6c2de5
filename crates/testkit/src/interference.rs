//! Calls with interference: a delayed body, or a write that has to wait while rights are revoked.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::mpsc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::Frame;
use http_body_util::BodyExt as _;
use podium_db::{AdvisoryLock, Engine, Sql, Tx};
use tokio::sync::{mpsc as channel, oneshot};

use crate::answer::Answer;
use crate::app::{Call, TestApp};

/// A body that reports when it is polled, and arrives when it is released.
struct DelayedBody {
    asked: Option<oneshot::Sender<()>>,
    come: oneshot::Receiver<()>,
    bytes: Option<Bytes>,
}

impl http_body::Body for DelayedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(asked) = self.asked.take() {
            let _ = asked.send(());
        }
        if self.bytes.is_some() {
            let _ = ready!(Pin::new(&mut self.come).poll(context));
        }
        Poll::Ready(self.bytes.take().map(|bytes| Ok(Frame::data(bytes))))
    }
}

impl Call<'_> {
    /// Sends the headers; once the server waits for the body, runs `meanwhile`, and then sends the body.
    pub async fn send_with_delayed_body(self, meanwhile: impl Future<Output = ()>) -> Answer {
        let (asked, was_asked) = oneshot::channel();
        let (come, comes) = oneshot::channel();
        let (app, peer) = (self.app, self.peer);
        let body = DelayedBody { asked: Some(asked), come: comes, bytes: Some(self.body) };
        let request = self.request.body(body).expect("a request");
        let interfering = async {
            was_asked.await.expect("the server asks for the body");
            meanwhile.await;
            let _ = come.send(());
        };
        let (response, ()) = tokio::join!(app.server.call(request, peer), interfering);
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.expect("a whole body").to_bytes().to_vec();
        Answer { status: parts.status, headers: parts.headers, bytes }
    }
}

impl TestApp {
    /// Sends a call while a transaction is open that began before the call, and ends only when the call has been
    /// authorized and waits to write. The transaction takes the same locks as such a change.
    pub async fn send_during_change(
        &self,
        call: Call<'_>,
        locks: Vec<AdvisoryLock>,
        change: impl FnMut(&Tx) -> podium_app::Result<()> + Send + 'static,
    ) -> Answer {
        self.send_during_change_and(call, locks, change, async {}).await
    }

    /// The same, and runs `meanwhile` while the call waits.
    pub async fn send_during_change_and(
        &self,
        call: Call<'_>,
        locks: Vec<AdvisoryLock>,
        mut change: impl FnMut(&Tx) -> podium_app::Result<()> + Send + 'static,
        meanwhile: impl Future<Output = ()>,
    ) -> Answer {
        let (begun, mut has_begun) = channel::unbounded_channel();
        let (go_on, goes_on) = mpsc::channel::<()>();
        let unit = move |tx: &Tx| {
            change(tx)?;
            let _ = begun.send(());
            // Until the other end is dropped; a retried unit does not wait again.
            let _ = goes_on.recv();
            Ok::<_, podium_app::Error>(())
        };
        let db = self.db().clone();
        let changing = tokio::spawn(async move { db.write_locked(None, locks, unit).await });
        has_begun.recv().await.expect("the change begins");
        let mut calling = Box::pin(call.send());
        let mut answer = None;
        loop {
            let is_done = poll_fn(|context| {
                if answer.is_none()
                    && let Poll::Ready(got) = calling.as_mut().poll(context)
                {
                    answer = Some(got);
                }
                Poll::Ready(answer.is_some())
            });
            if is_done.await || self.is_waiting_to_write().await {
                break;
            }
            tokio::task::yield_now().await;
        }
        meanwhile.await;
        drop(go_on);
        changing.await.expect("the change does not panic").expect("the change is made");
        match answer {
            Some(answer) => answer,
            None => calling.await,
        }
    }

    /// Whether a transaction waits for another.
    async fn is_waiting_to_write(&self) -> bool {
        if self.db().engine() == Engine::Sqlite {
            return self.db().waiting() > 0;
        }
        let sql = Sql::new(
            "SELECT COUNT(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database \
             WHERE d.datname = current_database() AND NOT l.granted",
        );
        let count = self.db().read(None, move |conn| conn.query_one(&sql, &[], |row| row.get::<i64>(0)));
        count.await.unwrap_or_else(|error: podium_db::Error| panic!("{error}")) > 0
    }
}
