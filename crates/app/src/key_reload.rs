//! Reloads the signing keys when a token names one that this process does not know.
//!
//! Another replica may have just created the key, so such a token is worth one database read. Anybody can make up key
//! ids, so all tokens that arrive within a second share one read.

use std::sync::Arc;
use std::time::Duration;

use podium_store::signing_keys;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until};

use crate::App;
use crate::error::{Error, Result};
use crate::signing::Keys;

crate::system::acts_for_the_system!();

const AT_MOST_EVERY: Duration = Duration::from_secs(1);

/// When the keys were read because of an unknown one, and how often.
#[derive(Default)]
pub(crate) struct KeyReload(Mutex<(Option<Instant>, u64)>);

impl App {
    /// Reads the signing keys again: another replica may have rotated them.
    pub async fn reload_keys(&self) -> Result<()> {
        let system = system(self);
        let rows = self.db.read(None, move |conn| signing_keys::all(conn, &system)).await?;
        self.keys.store(Arc::new(
            Keys::load(&rows, &self.secrets).map_err(|error| Error::Internal(error.to_string()))?,
        ));
        Ok(())
    }

    /// Reloads the signing keys, unless that was done since this was called. Does nothing if no other process
    /// can make keys.
    pub(crate) async fn reload_keys_for_unknown(&self) -> Result<()> {
        if !self.db.is_shared() {
            return Ok(());
        }
        let asked = Instant::now();
        let mut last = self.key_reload.0.lock().await;
        if let Some(at) = last.0 {
            if at > asked {
                return Ok(());
            }
            sleep_until(at + AT_MOST_EVERY).await;
        }
        *last = (Some(Instant::now()), last.1 + 1);
        self.reload_keys().await
    }

    /// How often the keys were read because of an unknown one.
    pub async fn key_reloads(&self) -> u64 {
        self.key_reload.0.lock().await.1
    }
}
