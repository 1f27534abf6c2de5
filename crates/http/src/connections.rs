//! Open connections: how many there are, from which addresses, which are idle, and how many bytes wait on each to be
//! read.
//!
//! Every limit here protects the process from clients that hold resources without using them. Idle connections are the
//! cheapest to lose, so they are closed first, the longest idle first; a connection with a running request or an
//! unread response is never closed to make room for another. A request whose caller is not authenticated does not count as
//! running while its body is awaited.

mod activity;
mod stalled;
mod waiting;
mod watched;

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use ipnet::IpNet;
use tokio::sync::Notify;

use activity::Activity;
pub(crate) use activity::{AwaitedBody, Shed};
pub(crate) use stalled::{CloseReason, PendingRequest, ResponseWatch};
use waiting::BufferedBytes;
pub(crate) use waiting::{Buffer, ByteReservation, LimitExceeded, with_guard};
pub(crate) use watched::WatchedStream;

use crate::settings::{Settings, Waiting};

/// When the limit is reached, this fraction of all connections is closed at once, if that many are idle.
const SHED: usize = 64;

pub(crate) struct Connections {
    bounds: Bounds,
    started: Instant,
    open: Mutex<Open>,
    next: AtomicU64,
    waiting: BufferedBytes,
    /// Whether the accept loop waits for a connection to become idle.
    is_full: AtomicBool,
    became_idle: Notify,
    pub(crate) counts: Counts,
}

struct Bounds {
    all: usize,
    per_address: usize,
    /// For addresses that many may be behind.
    per_crowd: usize,
    crowds: Vec<IpNet>,
    waiting: Waiting,
}

#[derive(Default)]
struct Open {
    connections: HashMap<u64, Arc<Connection>>,
    addresses: HashMap<IpAddr, Arc<Address>>,
}

/// Counts of closed and refused connections, by reason.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Idle ones, to make room.
    pub(crate) shed: AtomicU64,
    /// New ones of an address that has too many.
    pub(crate) refused: AtomicU64,
    /// Those whose clients did not read.
    pub(crate) unread: AtomicU64,
    /// Those without a request in time.
    pub(crate) idle: AtomicU64,
    /// Responses refused because too much was buffered.
    pub(crate) too_much: AtomicU64,
}

/// An address, or a network of IPv6, which one client may have all of.
struct Address {
    key: IpAddr,
    is_crowd: bool,
    connections: AtomicUsize,
    waiting: BufferedBytes,
}

pub(crate) struct Connection {
    id: u64,
    all: Arc<Connections>,
    address: Arc<Address>,
    activity: Activity,
    /// When it became idle: a later one has a higher number.
    idle_since: AtomicU64,
    /// The same in milliseconds since startup.
    idle_at: AtomicU64,
    /// Whether the peer does not read what is written.
    is_stalled: AtomicBool,
    waiting: BufferedBytes,
    go: Notify,
    /// Cancelled requests minus completed ones.
    abandoned: AtomicU32,
    gives_up: Notify,
    /// When a response last made progress, in milliseconds since the start.
    moved: AtomicU64,
    stalled: Mutex<HashMap<u64, Arc<AtomicU64>>>,
}

/// A connection that counts as open until this is dropped.
pub(crate) struct Admitted(Arc<Connection>);

/// A request running on a connection, until its response is sent.
pub(crate) struct Running(Arc<Connection>);

/// Set while the accept loop waits for room.
struct Full<'a>(&'a AtomicBool);

impl Drop for Full<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

impl Connections {
    pub(crate) fn new(settings: &Settings) -> Self {
        let all = settings.connections;
        let bounds = Bounds {
            all,
            per_address: settings.connections_per_address,
            per_crowd: settings.connections_per_address.max(all - all / 8),
            crowds: settings.trusted_proxies.clone(),
            waiting: settings.waiting,
        };
        Self {
            bounds,
            started: Instant::now(),
            open: Mutex::default(),
            next: AtomicU64::new(0),
            waiting: BufferedBytes::default(),
            is_full: AtomicBool::new(false),
            became_idle: Notify::new(),
            counts: Counts::default(),
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.lock().connections.len()
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting.sum()
    }

    /// Counts a connection from an address; `None` if it has too many, and none of them is idle. It can be asked
    /// to go once it is open.
    pub(crate) fn admit(self: &Arc<Self>, peer: IpAddr) -> Option<Admitted> {
        let key = network(peer);
        let mut open = self.lock();
        let address = open.addresses.entry(key).or_insert_with(|| Arc::new(self.address(key)));
        let address = Arc::clone(address);
        let most = if address.is_crowd { self.bounds.per_crowd } else { self.bounds.per_address };
        if address.connections.load(Ordering::Relaxed) >= most
            && self.shed_among(&open, 1, |connection| Arc::ptr_eq(&connection.address, &address)) == 0
        {
            self.counts.refused.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        address.connections.fetch_add(1, Ordering::Relaxed);
        let connection = Arc::new(Connection {
            id: self.next.fetch_add(1, Ordering::Relaxed),
            all: Arc::clone(self),
            address,
            activity: Activity::default(),
            idle_since: AtomicU64::new(self.next.fetch_add(1, Ordering::Relaxed)),
            idle_at: AtomicU64::new(self.now()),
            is_stalled: AtomicBool::new(false),
            waiting: BufferedBytes::default(),
            go: Notify::new(),
            abandoned: AtomicU32::new(0),
            gives_up: Notify::new(),
            moved: AtomicU64::new(0),
            stalled: Mutex::default(),
        });
        Some(Admitted(connection))
    }

    /// Closes idle connections, now and when one becomes idle, until this is dropped.
    pub(crate) async fn make_room(&self) {
        self.is_full.store(true, Ordering::SeqCst);
        let _full = Full(&self.is_full);
        loop {
            let became_idle = self.became_idle.notified();
            self.shed_among(&self.lock(), (self.bounds.all / SHED).max(1), |_| true);
            became_idle.await;
        }
    }

    /// Whoever waits for room may look again.
    fn note_one_became_idle(&self) {
        if self.is_full.load(Ordering::SeqCst) {
            self.became_idle.notify_one();
        }
    }

    /// Tells those to go whose turn it is.
    fn shed_among(&self, open: &Open, many: usize, of: impl Fn(&Connection) -> bool) -> usize {
        let (now, idle) = (self.now(), |one: &&Arc<Connection>| one.is_idle() && of(one));
        let mut found: Vec<_> =
            open.connections.values().filter(idle).map(|one| (one.rank(now), one)).collect();
        found.sort_unstable_by_key(|(rank, _)| *rank);
        found.truncate(many);
        found.iter().for_each(|(_, connection)| connection.go.notify_one());
        found.len()
    }

    fn address(&self, key: IpAddr) -> Address {
        let is_crowd = key.is_loopback() || self.bounds.crowds.iter().any(|range| range.contains(&key));
        Address { key, is_crowd, connections: AtomicUsize::new(0), waiting: BufferedBytes::default() }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    /// Drops an address without connections or buffered bytes.
    fn forget(&mut self, address: &Arc<Address>) {
        let is_gone = address.connections.load(Ordering::Relaxed) == 0
            && address.waiting.sum() == 0
            && self.addresses.get(&address.key).is_some_and(|known| Arc::ptr_eq(known, address));
        if is_gone {
            self.addresses.remove(&address.key);
        }
    }
}

impl Connection {
    pub(crate) fn begin(self: &Arc<Self>) -> Running {
        self.activity.begin();
        Running(Arc::clone(self))
    }
}

impl Admitted {
    /// It has a place, and is served from now on.
    pub(crate) fn open(&self) {
        self.0.all.lock().connections.insert(self.0.id, Arc::clone(&self.0));
    }

    pub(crate) fn connection(&self) -> &Arc<Connection> {
        &self.0
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let Connection { id, all, address, .. } = &*self.0;
        let mut open = all.lock();
        open.connections.remove(id);
        address.connections.fetch_sub(1, Ordering::Relaxed);
        open.forget(address);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.note_idle();
        if self.0.activity.end() {
            self.0.all.note_one_became_idle();
        }
    }
}

/// What counts as one address: of IPv6, a network that one client may have all of.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => {
            Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into()
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn connections(all: usize, per_address: usize) -> Arc<Connections> {
        let settings =
            Settings { connections: all, connections_per_address: per_address, ..Settings::default() };
        Arc::new(Connections::new(&settings))
    }

    fn at(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn opened(connections: &Arc<Connections>, address: &str) -> Option<Admitted> {
        connections.admit(at(address)).inspect(Admitted::open)
    }

    fn is_told_to_go(admitted: &Admitted) -> bool {
        admitted.0.close_requested().now_or_never().is_some()
    }

    #[test]
    fn an_address_has_so_many_connections_and_its_idle_ones_go_first() {
        let connections = connections(100, 2);
        let admit = || opened(&connections, "192.0.2.1");
        let (first, second) = (admit().unwrap(), admit().unwrap());
        let busy = first.0.begin();
        let third = admit().unwrap();
        assert!(!is_told_to_go(&first) && is_told_to_go(&second), "the idle one went");
        drop(second);
        let also_busy = third.0.begin();
        assert!(admit().is_none(), "nothing of it is idle");
        assert!(opened(&connections, "192.0.2.2").is_some(), "others have room of their own");
        assert_eq!(connections.counts.refused.load(Ordering::Relaxed), 1);
        drop((busy, also_busy, first, third));
        assert_eq!(connections.count(), 0);
        assert!(connections.lock().addresses.is_empty(), "nobody is remembered");
        let many: Vec<_> = (0..88).map(|_| opened(&connections, "127.0.0.1").unwrap()).collect();
        let busy: Vec<_> = many.iter().map(|one| one.0.begin()).collect();
        assert!(opened(&connections, "127.0.0.1").is_none(), "even of this machine some room is kept");
        drop(busy);
    }

    #[test]
    fn the_longest_idle_goes_first_and_a_busy_one_never() {
        let connections = connections(3, 3);
        let all: Vec<_> =
            ["192.0.2.1", "192.0.2.2", "192.0.2.3"].map(|text| opened(&connections, text).unwrap()).into();
        let busy = all[0].0.begin();
        assert!(connections.make_room().now_or_never().is_none(), "it goes on until there is room");
        let told: Vec<bool> = all.iter().map(is_told_to_go).collect();
        assert_eq!(told, [false, true, false]);
        let others = [all[1].0.begin(), all[2].0.begin()];
        let mut waiting = Box::pin(connections.make_room());
        assert!((&mut waiting).now_or_never().is_none());
        assert!(!all.iter().any(is_told_to_go), "nothing is idle");
        drop(busy);
        assert!((&mut waiting).now_or_never().is_none());
        assert!(is_told_to_go(&all[0]), "now something is");
        drop(others);
    }

    #[test]
    fn one_ipv6_network_is_one_address() {
        assert_eq!(network(at("2001:db8::1")), network(at("2001:db8::ffff:1")));
        assert_ne!(network(at("2001:db8::1")), network(at("2001:db8:0:1::1")));
        assert_eq!(network(at("::ffff:192.0.2.1")), at("192.0.2.1"));
        assert!(network(at("::1")).is_loopback());
    }
}
