//! Reloads the signing keys when a token names one that this process does not know.
//!
//! Another replica may have just created the key, so such a token is worth one database read. Anybody can make up key
//! ids, so all tokens that arrive within a second share one read and its outcome: if it failed, nobody knows whether their
//! keys exist.

use std::sync::Arc;
use std::time::Duration;

use podium_store::signing_keys;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until};

use crate::App;
use crate::error::{Error, Result};
use crate::signing::Keys;

crate::system::acts_for_the_system!();
crate::system::reaches_rows!();

const AT_MOST_EVERY: Duration = Duration::from_secs(1);

/// The last reload because of an unknown key.
#[derive(Default)]
pub(crate) struct KeyReload(Mutex<LastLook>);

#[derive(Default)]
struct LastLook {
    began: Option<Instant>,
    /// Its outcome; none while it runs, and if the request that started it was cancelled.
    outcome: Option<Result<()>>,
    count: u64,
}

impl App {
    /// Reads the signing keys again: another replica may have rotated them.
    pub async fn reload_keys(&self) -> Result<()> {
        let system = system(self);
        let rows = db(self).read(None, move |conn| signing_keys::all(conn, &system)).await?;
        self.keys.store(Arc::new(
            Keys::load(&rows, &self.secrets).map_err(|error| Error::Internal(error.to_string()))?,
        ));
        Ok(())
    }

    /// Reloads the signing keys, unless that was done since this was called. Does nothing if no other process
    /// can make keys.
    pub(crate) async fn reload_keys_for_unknown(&self) -> Result<()> {
        if !db(self).is_shared() {
            return Ok(());
        }
        let asked = Instant::now();
        let mut last = self.key_reload.0.lock().await;
        if let Some(began) = last.began {
            if began > asked
                && let Some(outcome) = &last.outcome
            {
                return again(outcome);
            }
            sleep_until(began + AT_MOST_EVERY).await;
        }
        *last = LastLook { began: Some(Instant::now()), outcome: None, count: last.count + 1 };
        let outcome = self.reload_keys().await;
        again(last.outcome.insert(outcome))
    }

    /// How often the keys were read because of an unknown one.
    pub async fn key_reloads(&self) -> u64 {
        self.key_reload.0.lock().await.count
    }
}

/// The same outcome for another caller that waited for it.
fn again(outcome: &Result<()>) -> Result<()> {
    match outcome {
        Ok(()) => Ok(()),
        Err(Error::Db(error)) => Err(Error::Db(error.clone())),
        Err(other) => Err(Error::Internal(other.to_string())),
    }
}
