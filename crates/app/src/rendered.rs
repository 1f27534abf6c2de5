//! A cache of rendered JSON, keyed by the row that it was rendered from.
//!
//! The JSON of a resource is a pure function of its row (its columns, including those of joined rows) and this
//! process's settings. So it is cached under the id and a fingerprint of all these columns. Nothing has to be
//! invalidated: a changed row has another fingerprint, and unused entries are evicted.

use std::sync::Arc;

use podium_api::{Id, Shown};
use podium_db::{Error, Result};
use podium_store::LazyRow;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use serde::Serialize;
use serde_json::value::RawValue;

/// Maximum size of the cache in bytes.
const MEMORY: u64 = 32 * 1024 * 1024;
/// Estimated size of an entry.
const TYPICAL: u64 = 1024;

type Key = (Id, u128);

#[derive(Clone)]
struct Bytes;

impl Weighter<Key, Arc<RawValue>> for Bytes {
    fn weight(&self, _: &Key, json: &Arc<RawValue>) -> u64 {
        (json.get().len() + 128) as u64
    }
}

/// The cache of rendered JSON.
pub(crate) struct Rendered(Cache<Key, Arc<RawValue>, Bytes>);

impl Default for Rendered {
    fn default() -> Self {
        Self(Cache::with_weighter((MEMORY / TYPICAL) as usize, MEMORY, Bytes))
    }
}

/// The result of rendering a row.
pub(crate) enum Made<T> {
    /// It depends on the row alone.
    OfRow(T),
    /// It depends on the current time.
    OfNow(T),
}

impl Rendered {
    /// Renders a row; `make` is called on a cache miss.
    pub(crate) fn show<R, T: Serialize>(
        &self,
        found: &LazyRow<'_, R>,
        make: impl FnOnce(R) -> Made<T>,
    ) -> Result<Shown<T>> {
        let key = found.key()?;
        if let Some(json) = self.0.get(&key) {
            return Ok(Shown::Json(json));
        }
        match make(found.read()?) {
            Made::OfNow(value) => Ok(value.into()),
            Made::OfRow(value) => {
                let json = serde_json::value::to_raw_value(&value)
                    .map_err(|error| Error::Other(error.to_string()))?;
                let json: Arc<RawValue> = json.into();
                self.0.insert(key, Arc::clone(&json));
                Ok(Shown::Json(json))
            }
        }
    }
}
