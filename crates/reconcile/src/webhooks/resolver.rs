//! Looks up hosts, and refuses addresses that events may not be sent to. What is looked up here is what is connected to:
//! the host is not looked up again in between, so a name that leads elsewhere a moment later gains nothing.

use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::{fmt, io};

use podium_domain::webhooks::{Destinations, Scheme};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::sync::Semaphore;

/// A look-up under way.
pub type Lookup = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Looks up the addresses of a host.
pub trait Resolver: Send + Sync {
    /// Its addresses now.
    fn resolve(&self, host: String) -> Lookup;
}

/// How many look-ups go on at once, each in a thread of its own.
static LOOKUPS: Semaphore = Semaphore::const_new(64);

/// Looks up as the system does.
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve(&self, host: String) -> Lookup {
        // A look-up that nobody waits for any more keeps its thread until it has ended, and so its turn.
        let found = tokio::spawn(async move {
            let _turn = LOOKUPS.acquire().await;
            let found = tokio::net::lookup_host((host, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        });
        Box::pin(async move { found.await.map_err(io::Error::other)? })
    }
}

/// Why a host is not connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// It has no address.
    NotFound,
    /// One of its addresses is not allowed.
    NotAllowed,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotFound => "the host cannot be found",
            Self::NotAllowed => "the host leads to an address that is not allowed",
        })
    }
}

impl std::error::Error for Refused {}

/// A resolver that returns only what may be connected to.
pub(super) struct Guarded {
    pub(super) resolver: Arc<dyn Resolver>,
    pub(super) destinations: Destinations,
    pub(super) scheme: Scheme,
}

impl Resolve for Guarded {
    fn resolve(&self, name: Name) -> Resolving {
        let (destinations, scheme) = (self.destinations.clone(), self.scheme);
        let found = self.resolver.resolve(name.as_str().to_owned());
        Box::pin(async move {
            let found = found.await.map_err(|_| Refused::NotFound)?;
            if found.is_empty() {
                return Err(Refused::NotFound.into());
            }
            // A name that leads to both kinds is not trusted with either.
            if !found.iter().all(|address| destinations.admit(scheme, *address)) {
                return Err(Refused::NotAllowed.into());
            }
            let found: Addrs = Box::new(found.into_iter().map(|address| SocketAddr::new(address, 0)));
            Ok(found)
        })
    }
}
