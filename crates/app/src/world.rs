//! Time, ids and randomness: the only module that reads them from the machine.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use podium_api::{Id, Timestamp, TypedId};

/// Where time and randomness come from: the machine, or a test.
pub struct World {
    source: Source,
    counter: AtomicU32,
}

enum Source {
    Machine,
    Fixed(Mutex<Fixed>),
}

struct Fixed {
    now: Timestamp,
    seed: u64,
}

/// Ids of one millisecond are told apart by a counter of four base-36 digits.
const COUNTER_END: u32 = 36 * 36 * 36 * 36;

impl World {
    pub fn machine() -> Self {
        Self { source: Source::Machine, counter: AtomicU32::new(0) }
    }

    /// A fixed clock, and ids that are the same in every run.
    pub fn fixed(now: Timestamp) -> Self {
        Self::fixed_from(now, 0)
    }

    /// The same, with ids and randomness that begin elsewhere: for another process on one database.
    pub fn fixed_from(now: Timestamp, start: u32) -> Self {
        let fixed = Fixed { now, seed: u64::from(start) << 32 };
        Self { source: Source::Fixed(Mutex::new(fixed)), counter: AtomicU32::new(start) }
    }

    pub fn set(&self, now: Timestamp) {
        if let Source::Fixed(fixed) = &self.source {
            fixed.lock().unwrap_or_else(std::sync::PoisonError::into_inner).now = now;
        }
    }

    #[expect(clippy::disallowed_methods, reason = "this is the clock that everybody else is given")]
    pub fn now(&self) -> Timestamp {
        match &self.source {
            Source::Machine => {
                let since =
                    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
                Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
            }
            Source::Fixed(fixed) => fixed.lock().unwrap_or_else(std::sync::PoisonError::into_inner).now,
        }
    }

    #[expect(clippy::disallowed_methods, reason = "this is the randomness that everybody else is given")]
    pub fn fill(&self, bytes: &mut [u8]) {
        match &self.source {
            Source::Machine => getrandom::fill(bytes).expect("the machine has randomness"),
            Source::Fixed(fixed) => {
                let mut fixed = fixed.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                for chunk in bytes.chunks_mut(8) {
                    fixed.seed += 1;
                    chunk.copy_from_slice(&mix(fixed.seed).to_le_bytes()[..chunk.len()]);
                }
            }
        }
    }

    pub fn id<I: TypedId>(&self) -> I {
        let counter = self.counter.fetch_add(1, Ordering::Relaxed) % COUNTER_END;
        let mut random = [0; 8];
        if let Source::Machine = self.source {
            self.fill(&mut random);
        }
        I::from_raw(Id::from_parts(self.now().millis().unsigned_abs(), counter, u64::from_le_bytes(random)))
    }

    /// A secret of 32 random bytes, as text.
    pub fn secret(&self) -> String {
        use base64::Engine as _;
        let mut bytes = [0; 32];
        self.fill(&mut bytes);
        base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes)
    }
}

/// Spreads a counter over 64 bits (SplitMix64), for tests.
fn mix(seed: u64) -> u64 {
    let z = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
