//! Minimum transfer rate of request bodies: one that delivers too little for too long is aborted, however long it may
//! take overall.
//!
//! Only time spent waiting for the sender counts, so a slow disk is not blamed on an upload. Received bytes count
//! towards their connection's limit for as long as they are in memory.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::{Sleep, sleep};

use crate::body::{BodyError, Polled, RequestBody};
use crate::connections::{Buffer, Connection, LimitExceeded, with_guard};

/// The least that a body has to bring.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// So many bytes
    pub(crate) bytes: u64,
    /// for each such time of waiting.
    pub(crate) within: Duration,
}

/// What came, and how long it was waited for, since the pace was last kept.
#[derive(Default)]
struct Progress {
    came: u64,
    waited: Duration,
}

impl Progress {
    fn note(&mut self, pace: Pace, bytes: u64, waited: Duration) {
        self.came += bytes;
        self.waited += waited;
        if self.came >= pace.bytes {
            *self = Self::default();
        }
    }

    /// How long the next piece may take.
    fn left(&self, pace: Pace) -> Duration {
        pace.within.saturating_sub(self.waited)
    }
}

pub(crate) struct Paced {
    body: RequestBody,
    pace: Pace,
    connection: Option<Arc<Connection>>,
    progress: Progress,
    /// Since when it is waited for, and how long that may be.
    waits: Option<(Instant, Pin<Box<Sleep>>)>,
}

impl Paced {
    pub(crate) fn new(body: RequestBody, pace: Pace, connection: Option<Arc<Connection>>) -> Self {
        Self { body, pace, connection, progress: Progress::default(), waits: None }
    }

    /// Counts a piece that has arrived.
    fn counted(&self, frame: Frame<Bytes>) -> Result<Frame<Bytes>, BodyError> {
        let (Some(connection), Some(length)) = (&self.connection, frame.data_ref().map(Bytes::len)) else {
            return Ok(frame);
        };
        let held = connection
            .reserve(Buffer::RequestBody, length, false)
            .map_err(|LimitExceeded| BodyError::too_much())?;
        Ok(frame.map_data(|bytes| with_guard(bytes, held)))
    }
}

impl Body for Paced {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Polled {
        let this = self.get_mut();
        if let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(cx) {
            let waited = this.waits.take().map_or(Duration::ZERO, |(since, _)| since.elapsed());
            let bytes = match &frame {
                Some(Ok(frame)) => frame.data_ref().map_or(0, Bytes::len),
                _ => 0,
            };
            this.progress.note(this.pace, bytes as u64, waited);
            return Poll::Ready(frame.map(|frame| this.counted(frame?)));
        }
        let left = this.progress.left(this.pace);
        let (_, deadline) = this.waits.get_or_insert_with(|| (Instant::now(), Box::pin(sleep(left))));
        ready!(deadline.as_mut().poll(cx));
        Poll::Ready(Some(Err(BodyError::timeout())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACE: Pace = Pace { bytes: 100, within: Duration::from_secs(60) };

    /// How many pieces come in time, of a thousand, when each brings so much and takes so long.
    fn pieces(bytes: u64, takes: u64) -> usize {
        let (mut progress, takes) = (Progress::default(), Duration::from_secs(takes));
        let in_time = |_: &usize| {
            let is_in_time = takes < progress.left(PACE);
            progress.note(PACE, bytes, takes);
            is_in_time
        };
        (0..1000).take_while(in_time).count()
    }

    #[test]
    fn a_body_may_take_as_long_as_it_likes_if_it_moves() {
        assert_eq!(pieces(100, 59), 1000, "slow and steady, for sixteen hours");
        assert_eq!(pieces(20, 10), 1000);
        assert_eq!(pieces(1, 1), 59, "a byte now and then is not enough");
        assert_eq!(pieces(1, 0), 1000, "what is there already is not waited for");
        assert_eq!(pieces(1_000_000, 61), 0);
    }
}
