//! Password hashing: argon2id, few at a time, off the request threads.

use std::sync::{Arc, OnceLock};

use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use tokio::sync::Semaphore;
use zeroize::Zeroizing;

use crate::error::{Error, Result};
use crate::world::World;

/// Each hash takes a core and some megabytes: more at once would only take longer.
const AT_ONCE: usize = 2;

/// Hashes and verifies passwords.
pub(crate) struct Passwords {
    world: Arc<World>,
    turns: Arc<Semaphore>,
    nobody: OnceLock<String>,
}

impl Passwords {
    pub(crate) fn new(world: Arc<World>) -> Self {
        Self { world, turns: Arc::new(Semaphore::new(AT_ONCE)), nobody: OnceLock::new() }
    }

    /// Hashes a password.
    pub(crate) async fn hash(&self, password: String) -> Result<String> {
        let mut salt = [0; 16];
        self.world.fill(&mut salt);
        self.in_turn(password, move |password| hash(password, &salt)).await?
    }

    /// Whether a password fits. Takes as long where there is no hash, so that nobody learns who has an account.
    pub(crate) async fn fits(&self, password: String, stored: Option<String>) -> Result<bool> {
        let known = stored.is_some();
        let stored = match stored {
            Some(stored) => stored,
            None => match self.nobody.get() {
                Some(nobody) => nobody.clone(),
                None => {
                    let made = self.hash("nobody has this password".into()).await?;
                    self.nobody.get_or_init(|| made).clone()
                }
            },
        };
        let fits = self.in_turn(password, move |password| {
            PasswordHash::new(&stored)
                .is_ok_and(|hash| Argon2::default().verify_password(password, &hash).is_ok())
        });
        Ok(fits.await? && known)
    }

    async fn in_turn<T: Send + 'static>(
        &self,
        password: String,
        work: impl FnOnce(&[u8]) -> T + Send + 'static,
    ) -> Result<T> {
        let password = Zeroizing::new(password);
        let turns = Arc::clone(&self.turns);
        let turn = turns.acquire_owned().await.map_err(|error| Error::Internal(error.to_string()))?;
        let task = tokio::task::spawn_blocking(move || {
            let done = work(password.as_bytes());
            drop(turn);
            done
        });
        task.await.map_err(|error| Error::Internal(error.to_string()))
    }
}

fn hash(password: &[u8], salt: &[u8]) -> Result<String> {
    let hash: PasswordHash = Argon2::default()
        .hash_password_with_salt(password, salt)
        .map_err(|error| Error::Internal(format!("hashing a password: {error}")))?;
    Ok(hash.to_string())
}
