//! Buffered bytes, of responses to be read and of requests that are still arriving: counted for as long as they are in
//! memory. No address may have more of them than are left for others.
//!
//! Streams of events and the bodies of requests are counted apart from other responses, so that whoever lets responses
//! wait keeps nobody from signing in or changing something
//! ([decision 65](../../../../docs/decisions/0065-streams-cost-others-nothing.md)).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

use super::Connection;

/// What a streamed response counts as: it buffers a chunk or two.
const STREAM: usize = 64 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Buffer {
    Response,
    /// Events of a stream that a reader has not read yet.
    Events,
    RequestBody,
}

impl Buffer {
    /// Its share of a bound. They are apart, and add up to more than the bound of responses.
    const fn share(self, bound: usize) -> usize {
        match self {
            Self::Response => bound,
            Self::Events => bound / 4,
            Self::RequestBody => bound / 2,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct BufferedBytes([AtomicUsize; 3]);

impl BufferedBytes {
    fn of(&self, buffer: Buffer) -> &AtomicUsize {
        &self.0[buffer as usize]
    }

    pub(super) fn sum(&self) -> usize {
        self.0.iter().map(|bytes| bytes.load(Ordering::Relaxed)).sum()
    }
}

/// Too many bytes are already buffered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LimitExceeded;

/// Bytes that count as buffered until this is dropped.
pub(crate) struct ByteReservation {
    connection: Arc<Connection>,
    buffer: Buffer,
    bytes: usize,
}

impl Connection {
    /// Counts bytes that are about to be buffered. If nothing is buffered, any number is allowed; `must` is for
    /// responses that cannot be taken back.
    pub(crate) fn reserve(
        self: &Arc<Self>,
        buffer: Buffer,
        bytes: usize,
        must: bool,
    ) -> Result<ByteReservation, LimitExceeded> {
        let bounds = &self.all.bounds.waiting;
        let all = buffer.share(bounds.all);
        let of_address = if self.address.is_crowd { all - all / 8 } else { buffer.share(bounds.address) };
        let exceeds = |counter: &BufferedBytes, bound: usize| {
            let before = counter.of(buffer).fetch_add(bytes, Ordering::Relaxed);
            before > 0 && before + bytes > bound
        };
        let left = all.saturating_sub(self.all.waiting.of(buffer).load(Ordering::Relaxed));
        let is_too_much = [
            exceeds(&self.waiting, bounds.connection),
            exceeds(&self.address.waiting, of_address.min(left)),
            exceeds(&self.all.waiting, all),
        ];
        let held = ByteReservation { connection: Arc::clone(self), buffer, bytes };
        if !must && is_too_much.contains(&true) {
            self.all.counts.too_much.fetch_add(1, Ordering::Relaxed);
            return Err(LimitExceeded);
        }
        Ok(held)
    }

    pub(crate) fn reserve_stream(self: &Arc<Self>, must: bool) -> Result<ByteReservation, LimitExceeded> {
        self.reserve(Buffer::Response, STREAM, must)
    }
}

impl Drop for ByteReservation {
    fn drop(&mut self) {
        let Connection { waiting, address, all, .. } = &*self.connection;
        for counter in [waiting, &address.waiting, &all.waiting] {
            counter.of(self.buffer).fetch_sub(self.bytes, Ordering::Relaxed);
        }
        // On HTTP/2 a response may outlive its connection.
        if address.waiting.sum() == 0 && address.connections.load(Ordering::Relaxed) == 0 {
            all.lock().forget(address);
        }
    }
}

/// Bytes that keep a guard alive for as long as any part of them is in memory.
pub(crate) fn with_guard<H: Send + 'static>(bytes: Bytes, held: H) -> Bytes {
    struct Owner<H>(Bytes, H);
    impl<H> AsRef<[u8]> for Owner<H> {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }
    Bytes::from_owner(Owner(bytes, held))
}

#[cfg(test)]
mod tests {
    use super::super::{Admitted, Connections};
    use super::*;
    use crate::settings::{Settings, Waiting};

    #[test]
    fn so_much_waits_on_a_connection_for_an_address_and_altogether() {
        let waiting = Waiting { connection: 100, address: 150, all: 400 };
        let connections = Arc::new(Connections::new(&Settings { waiting, ..Settings::default() }));
        let [one, two, other, third] = ["192.0.2.1", "192.0.2.1", "192.0.2.2", "192.0.2.3"]
            .map(|text| connections.admit(text.parse().unwrap()).unwrap());
        let respond = |on: &Admitted, bytes| on.connection().reserve(Buffer::Response, bytes, false);
        let large = respond(&one, 120).expect("one answer may always wait");
        assert!(respond(&one, 1).is_err(), "the connection has enough");
        assert!(respond(&two, 31).is_err(), "the address has enough");
        let more = respond(&two, 30).unwrap();
        let others =
            [100, 40].map(|bytes| other.connection().reserve(Buffer::Response, bytes, true).unwrap());
        assert!(respond(&third, 120).is_err(), "all together have enough");
        let less = respond(&third, 30).unwrap();
        assert!(respond(&third, 51).is_err(), "that is more than is left");
        assert_eq!(connections.waiting(), 320, "what is refused does not count");
        let bytes = with_guard(Bytes::from_static(b"answer"), large);
        let part = bytes.slice(1..2);
        drop(bytes);
        assert_eq!(connections.waiting(), 320, "a part of it still waits");
        drop((part, more, others, less));
        assert_eq!(connections.waiting(), 0);
        let bodies = one.connection().reserve(Buffer::RequestBody, 60, false).unwrap();
        let full = one.connection().reserve(Buffer::Response, 100, false).unwrap();
        assert!(one.connection().reserve(Buffer::Response, 1, false).is_err());
        assert!(one.connection().reserve(Buffer::RequestBody, 10, false).is_ok(), "bodies are counted apart");
        assert!(two.connection().reserve(Buffer::RequestBody, 20, false).is_err(), "and have a bound");
        let events = two.connection().reserve(Buffer::Events, 30, false).unwrap();
        assert!(two.connection().reserve(Buffer::Events, 10, false).is_err(), "so have events");
        assert!(other.connection().reserve(Buffer::Response, 50, false).is_ok());
        drop((bodies, full, events));
        assert_eq!(connections.waiting(), 0);
        let outlives = other.connection().reserve(Buffer::Response, 10, false).unwrap();
        drop((one, two, other, third));
        assert_eq!(connections.lock().addresses.len(), 1, "something of it waits");
        drop(outlives);
        assert!(connections.lock().addresses.is_empty());
    }
}
