//! Buffered bytes, of responses to be read and of requests that are still arriving: counted for as long as they are in
//! memory. No address may have more of them than are left for others.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

use super::Connection;

/// What a streamed response counts as: it buffers a chunk or two.
pub(super) const STREAM: usize = 64 * 1024;

/// Too many bytes are already buffered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LimitExceeded;

/// Bytes that count as buffered until this is dropped.
pub(crate) struct ByteReservation {
    connection: Arc<Connection>,
    bytes: usize,
}

impl Connection {
    /// Counts bytes that are about to be buffered. If nothing is buffered, any number is allowed; `must` is for
    /// responses that cannot be taken back.
    pub(crate) fn reserve(
        self: &Arc<Self>,
        bytes: usize,
        must: bool,
    ) -> Result<ByteReservation, LimitExceeded> {
        let bounds = &self.all.bounds.waiting;
        let of_address = if self.address.is_crowd { bounds.all - bounds.all / 8 } else { bounds.address };
        let exceeds = |counter: &AtomicUsize, bound: usize| {
            let before = counter.fetch_add(bytes, Ordering::Relaxed);
            before > 0 && before + bytes > bound
        };
        let left = bounds.all.saturating_sub(self.all.waiting());
        let is_too_much = [
            exceeds(&self.waiting, bounds.connection),
            exceeds(&self.address.waiting, of_address.min(left)),
            exceeds(&self.all.waiting, bounds.all),
        ];
        let held = ByteReservation { connection: Arc::clone(self), bytes };
        if !must && is_too_much.contains(&true) {
            self.all.counts.too_much.fetch_add(1, Ordering::Relaxed);
            return Err(LimitExceeded);
        }
        Ok(held)
    }

    /// Counts a streamed response.
    pub(crate) fn reserve_stream(self: &Arc<Self>, must: bool) -> Result<ByteReservation, LimitExceeded> {
        self.reserve(STREAM, must)
    }
}

impl Drop for ByteReservation {
    fn drop(&mut self) {
        let Connection { waiting, address, all, .. } = &*self.connection;
        for counter in [waiting, &address.waiting, &all.waiting] {
            counter.fetch_sub(self.bytes, Ordering::Relaxed);
        }
        // On HTTP/2 a response may outlive its connection.
        if address.waiting.load(Ordering::Relaxed) == 0 && address.connections.load(Ordering::Relaxed) == 0 {
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
    use super::super::Connections;
    use super::*;
    use crate::settings::{Settings, Waiting};

    #[test]
    fn so_much_waits_on_a_connection_for_an_address_and_altogether() {
        let waiting = Waiting { connection: 100, address: 150, all: 400 };
        let connections = Arc::new(Connections::new(&Settings { waiting, ..Settings::default() }));
        let [one, two, other, third] = ["192.0.2.1", "192.0.2.1", "192.0.2.2", "192.0.2.3"]
            .map(|text| connections.admit(text.parse().unwrap()).unwrap());
        let large = one.connection().reserve(120, false).expect("one answer may always wait");
        assert!(one.connection().reserve(1, false).is_err(), "the connection has enough");
        assert!(two.connection().reserve(31, false).is_err(), "the address has enough");
        let more = two.connection().reserve(30, false).unwrap();
        let others = [100, 40].map(|bytes| other.connection().reserve(bytes, true).unwrap());
        assert!(third.connection().reserve(120, false).is_err(), "all together have enough");
        let less = third.connection().reserve(30, false).unwrap();
        assert!(third.connection().reserve(51, false).is_err(), "that is more than is left");
        assert_eq!(connections.waiting(), 320, "what is refused does not count");
        let bytes = with_guard(Bytes::from_static(b"answer"), large);
        let part = bytes.slice(1..2);
        drop(bytes);
        assert_eq!(connections.waiting(), 320, "a part of it still waits");
        drop((part, more, others, less));
        assert_eq!(connections.waiting(), 0);
        let outlives = other.connection().reserve(10, false).unwrap();
        drop((one, two, other, third));
        assert_eq!(connections.lock().addresses.len(), 1, "something of it waits");
        drop(outlives);
        assert!(connections.lock().addresses.is_empty());
    }
}
