//! A cache of responses to reads, valid while nothing has changed.
//!
//! It is used only if this process is the only writer: a response is cached with the database's generation from before
//! it was read, and every commit starts a new generation before it is acknowledged. So a cached response is what a new
//! read would return. The caller's rights are checked each time, before the cache is used; they also decide what is in a
//! list, and a commit is visible before the rights that it changed are forgotten. So a response is cached with the number
//! of the rights that it was read with, too.

use std::hash::{Hash, Hasher};
use std::time::Duration;

use podium_api::{CredentialId, Timestamp};
use quick_cache::sync::Cache;
use quick_cache::{Equivalent, Weighter};

use crate::respond::WrittenReply;

/// The maximum size of the cache in bytes.
const MEMORY: u64 = 8 * 1024 * 1024;
const LARGEST: usize = 64 * 1024;
/// Responses that depend on the time, such as an invite's expiry, are never older than this.
const FRESH: Duration = Duration::from_secs(1);

/// The borrowed key: the request and its token.
#[derive(Clone, Copy, Hash)]
pub(crate) struct KeyRef<'a> {
    pub(crate) token_id: CredentialId,
    pub(crate) uri: &'a str,
}

#[derive(Clone)]
struct Key {
    token_id: CredentialId,
    uri: Box<str>,
}

impl Key {
    fn key_ref(&self) -> KeyRef<'_> {
        KeyRef { token_id: self.token_id, uri: &self.uri }
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key_ref().hash(state);
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.key_ref().equivalent(other)
    }
}

impl Eq for Key {}

impl Equivalent<Key> for KeyRef<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        self.token_id == key.token_id && *self.uri == *key.uri
    }
}

/// What a response was made from; as long as both numbers are the same, so is the response.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct MadeFrom {
    /// The generation of the database, from before it was read.
    pub(crate) data: u64,
    /// How many changes of rights were known before those of the caller were read.
    pub(crate) rights: u64,
}

#[derive(Clone)]
struct Known {
    made_from: MadeFrom,
    until: Timestamp,
    answer: WrittenReply,
}

#[derive(Clone)]
struct Bytes;

impl Weighter<Key, Known> for Bytes {
    fn weight(&self, key: &Key, known: &Known) -> u64 {
        (key.uri.len() + known.answer.len() + 256) as u64
    }
}

pub(crate) struct ResponseCache(Cache<Key, Known, Bytes>);

impl Default for ResponseCache {
    fn default() -> Self {
        Self(Cache::with_weighter(4096, MEMORY, Bytes))
    }
}

impl ResponseCache {
    /// The cached response, if it is still current.
    pub(crate) fn find(
        &self,
        key_ref: KeyRef<'_>,
        made_from: MadeFrom,
        now: Timestamp,
    ) -> Option<WrittenReply> {
        let known = self.0.get(&key_ref)?;
        (known.made_from == made_from && now <= known.until).then_some(known.answer)
    }

    /// Caches a response that was read after these numbers were taken.
    pub(crate) fn remember(
        &self,
        key_ref: KeyRef<'_>,
        made_from: MadeFrom,
        now: Timestamp,
        answer: &WrittenReply,
    ) {
        if answer.len() <= LARGEST {
            let key = Key { token_id: key_ref.token_id, uri: key_ref.uri.into() };
            self.0.insert(key, Known { made_from, until: now + FRESH, answer: answer.clone() });
        }
    }
}
