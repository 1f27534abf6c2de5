//! Password hashing: argon2id, a few hashes at a time from a fair queue, off the request threads.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use podium_domain::names;
use zeroize::Zeroizing;

use crate::error::{Error, Result};
use crate::fair_queue::{Bounds, FairQueue, QueueFull};
use crate::meters::page::Page;
use crate::throttle::{Account, Place};
use crate::world::World;

/// Each hash takes a core and some megabytes: more at once would only take longer. An address may have some seconds'
/// worth of them waiting.
const BOUNDS: Bounds = Bounds { at_once: 2, waiting_of_one: 64, waiting: 1024 };

/// On whose account a password is hashed. Addresses come first where there are several: how many wait is bounded for
/// them, never for users, whom anybody can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Requester {
    Address(Place),
    User(Account),
    Operator,
}

impl Requester {
    pub(crate) fn at(address: IpAddr) -> Self {
        Self::Address(Place::from(address))
    }

    pub(crate) fn of(username: &str) -> Self {
        Self::User(Account::named(&names::fold(username)))
    }
}

pub(crate) struct Passwords {
    world: Arc<World>,
    queue: FairQueue<Requester>,
    refused: AtomicU64,
    nobody: OnceLock<String>,
}

impl Passwords {
    pub(crate) fn new(world: Arc<World>) -> Self {
        Self { world, queue: FairQueue::new(BOUNDS), refused: AtomicU64::new(0), nobody: OnceLock::new() }
    }

    pub(crate) async fn hash(&self, password: String, requesters: &[Requester]) -> Result<String> {
        let mut salt = [0; 16];
        self.world.fill(&mut salt);
        self.queued(password, requesters, move |password| hash(password, &salt)).await?
    }

    /// Whether a password is correct. Takes equally long without a stored hash, so that it does not reveal which
    /// accounts exist.
    pub(crate) async fn fits(
        &self,
        password: String,
        stored: Option<String>,
        requesters: &[Requester],
    ) -> Result<bool> {
        let known = stored.is_some();
        let stored = match stored {
            Some(stored) => stored,
            None => match self.nobody.get() {
                Some(nobody) => nobody.clone(),
                None => {
                    let made = self.hash("nobody has this password".into(), requesters).await?;
                    self.nobody.get_or_init(|| made).clone()
                }
            },
        };
        let fits = self.queued(password, requesters, move |password| {
            PasswordHash::new(&stored)
                .is_ok_and(|hash| Argon2::default().verify_password(password, &hash).is_ok())
        });
        Ok(fits.await? && known)
    }

    async fn queued<T: Send + 'static>(
        &self,
        password: String,
        requesters: &[Requester],
        work: impl FnOnce(&[u8]) -> T + Send + 'static,
    ) -> Result<T> {
        let password = Zeroizing::new(password);
        let permit = self.queue.take(requesters).await.map_err(|QueueFull| {
            self.refused.fetch_add(1, Ordering::Relaxed);
            Error::TooMany { retry_after: 1 }
        })?;
        let task = tokio::task::spawn_blocking(move || {
            let done = work(password.as_bytes());
            drop(permit);
            done
        });
        task.await.map_err(|error| Error::Internal(error.to_string()))
    }

    /// Writes how many wait, and how many could not.
    pub(crate) fn measure(&self, page: &mut Page) {
        let name = "podium_passwords_waiting";
        page.gauge(name, "Passwords waiting to be hashed.");
        page.line(name, &[], self.queue.waiting());
        let name = "podium_passwords_refused_total";
        page.counter(name, "Passwords rejected because the hashing queue was full.");
        page.line(name, &[], self.refused.load(Ordering::Relaxed));
    }
}

fn hash(password: &[u8], salt: &[u8]) -> Result<String> {
    let hash: PasswordHash = Argon2::default()
        .hash_password_with_salt(password, salt)
        .map_err(|error| Error::Internal(format!("hashing a password: {error}")))?;
    Ok(hash.to_string())
}
