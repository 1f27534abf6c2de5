//! A fair queue for an operation of which only a few can run at once.
//!
//! Each permit is requested on an account, such as that of an address. An account with many requests queues behind
//! itself: the next permit goes to the account that has had the fewest, so an account with three hundred requests
//! delays others by one permit and not by three hundred (start-time fair queueing). The queue is bounded for each
//! account and in total; when it is full, the request that would have been last is dropped.
//!
//! A request may also name accounts that it concerns, such as a user. Anybody can name anybody, so this only moves a
//! request back by a bounded number of places among those of equal rank: a user named by strangers is never locked
//! out. A request that stops waiting leaves nothing behind, and an account is dropped when none of its requests is
//! waiting or running.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;

/// How many places a turn goes back for each other one that waits on behalf of whom it names, and how many at most.
const PLACES_BACK: u64 = 64;
const MOST_PLACES_BACK: u64 = 512;

#[derive(Clone)]
pub(crate) struct FairQueue<K: Clone + Eq + Hash>(Arc<Shared<K>>);

struct Shared<K: Clone + Eq + Hash> {
    bounds: Bounds,
    state: Mutex<State<K>>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) at_once: usize,
    /// That wait on one account.
    pub(crate) waiting_of_one: usize,
    pub(crate) waiting: usize,
}

struct State<K: Clone + Eq + Hash> {
    taken: usize,
    /// The rank of the turn that was given last.
    now: u64,
    asked: u64,
    /// Accounts with waiting or running requests only: the queue bounds their number.
    accounts: HashMap<K, Account>,
    queue: BTreeMap<Place, Waiter<K>>,
}

/// By rank, then by arrival plus the places moved back, then by arrival.
type Place = (u64, u64, u64);

#[derive(Default)]
struct Account {
    /// The rank that its next turn has at the least.
    next: u64,
    waiting: usize,
    running: usize,
}

struct Waiter<K: Clone + Eq + Hash> {
    keys: Vec<K>,
    permit: oneshot::Sender<Permit<K>>,
}

/// A waiting request; leaves the queue when this is dropped.
struct Waiting<K: Clone + Eq + Hash> {
    shared: Arc<Shared<K>>,
    place: Place,
    permit: oneshot::Receiver<Permit<K>>,
}

/// A permit, released when this is dropped.
pub(crate) struct Permit<K: Clone + Eq + Hash> {
    shared: Option<Arc<Shared<K>>>,
    keys: Vec<K>,
}

/// There is no room to wait in.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct QueueFull;

impl<K: Clone + Eq + Hash> FairQueue<K> {
    pub(crate) fn new(bounds: Bounds) -> Self {
        let state = State { taken: 0, now: 0, asked: 0, accounts: HashMap::new(), queue: BTreeMap::new() };
        Self(Arc::new(Shared { bounds, state: Mutex::new(state) }))
    }

    /// Waits for a turn on the first of these accounts, which names the others.
    pub(crate) async fn take(&self, keys: &[K]) -> Result<Permit<K>, QueueFull> {
        let mut waiting = {
            let mut state = self.0.lock();
            let rank = state.rank(keys);
            if state.taken < self.0.bounds.at_once {
                state.charge(keys, rank);
                state.run(keys);
                state.now = rank;
                state.taken += 1;
                return Ok(Permit { shared: Some(Arc::clone(&self.0)), keys: keys.to_vec() });
            }
            state.make_room(self.0.bounds, keys, rank)?;
            state.asked += 1;
            let place = (rank, state.asked + state.places_back(keys), state.asked);
            state.charge(keys, rank);
            let (permit, receiver) = oneshot::channel();
            for key in keys {
                state.accounts.entry(key.clone()).or_default().waiting += 1;
            }
            state.queue.insert(place, Waiter { keys: keys.to_vec(), permit });
            Waiting { shared: Arc::clone(&self.0), place, permit: receiver }
        };
        // The sender of a request that was dropped from a full queue is dropped.
        (&mut waiting.permit).await.map_err(|_| QueueFull)
    }

    pub(crate) fn waiting(&self) -> usize {
        self.0.lock().queue.len()
    }
}

impl<K: Clone + Eq + Hash> Shared<K> {
    fn lock(&self) -> std::sync::MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes a released permit to the next request.
    fn pass_on(self: &Arc<Self>, mut ended: Vec<K>) {
        loop {
            let next = {
                let mut state = self.lock();
                state.end(&ended);
                let Some(((rank, ..), waiter)) = state.queue.pop_first() else {
                    state.taken -= 1;
                    if state.taken == 0 {
                        state.now = 0;
                    }
                    return;
                };
                state.run(&waiter.keys);
                state.leave(&waiter.keys);
                state.now = state.now.max(rank);
                waiter
            };
            let permit = Permit { shared: Some(Arc::clone(self)), keys: next.keys };
            match next.permit.send(permit) {
                Ok(()) => return,
                // It no longer waits: pass the permit on to the next one.
                Err(mut permit) => {
                    permit.shared = None;
                    ended = std::mem::take(&mut permit.keys);
                }
            }
        }
    }
}

impl<K: Clone + Eq + Hash> State<K> {
    /// The rank of another request of an account: behind all its others.
    fn rank(&self, keys: &[K]) -> u64 {
        let account = keys.first().and_then(|key| self.accounts.get(key));
        account.map_or(0, |account| account.next).max(self.now)
    }

    /// How many places a request moves back because of waiting requests that name the same accounts.
    fn places_back(&self, keys: &[K]) -> u64 {
        let named = keys.iter().skip(1).filter_map(|key| self.accounts.get(key));
        let waiting = named.map(|account| account.waiting).max().unwrap_or_default();
        u64::try_from(waiting).unwrap_or(u64::MAX).saturating_mul(PLACES_BACK).min(MOST_PLACES_BACK)
    }

    fn charge(&mut self, keys: &[K], rank: u64) {
        if let Some(key) = keys.first() {
            self.accounts.entry(key.clone()).or_default().next = rank + 1;
        }
    }

    /// Makes room for one more request.
    fn make_room(&mut self, bounds: Bounds, keys: &[K], rank: u64) -> Result<(), QueueFull> {
        let first = keys.first().and_then(|key| self.accounts.get(key));
        if first.is_some_and(|account| account.waiting >= bounds.waiting_of_one) {
            return Err(QueueFull);
        }
        while self.queue.len() >= bounds.waiting {
            let Some(last) = self.queue.last_entry().filter(|last| last.key().0 > rank) else {
                return Err(QueueFull);
            };
            let place = *last.key();
            self.give_up(place);
        }
        Ok(())
    }

    /// Removes a request that gets no permit from the queue, and refunds its cost.
    fn give_up(&mut self, place: Place) {
        let Some(waiter) = self.queue.remove(&place) else { return };
        if let Some(account) = waiter.keys.first().and_then(|key| self.accounts.get_mut(key)) {
            account.next = account.next.saturating_sub(1);
        }
        self.leave(&waiter.keys);
    }

    fn run(&mut self, keys: &[K]) {
        for key in keys {
            self.accounts.entry(key.clone()).or_default().running += 1;
        }
    }

    fn end(&mut self, keys: &[K]) {
        self.count_off(keys, |account| &mut account.running);
    }

    fn leave(&mut self, keys: &[K]) {
        self.count_off(keys, |account| &mut account.waiting);
    }

    fn count_off(&mut self, keys: &[K], count: impl Fn(&mut Account) -> &mut usize) {
        for key in keys {
            if let Some(account) = self.accounts.get_mut(key) {
                *count(account) -= 1;
                if account.waiting + account.running == 0 {
                    self.accounts.remove(key);
                }
            }
        }
    }
}

impl<K: Clone + Eq + Hash> Drop for Waiting<K> {
    fn drop(&mut self) {
        self.shared.lock().give_up(self.place);
    }
}

impl<K: Clone + Eq + Hash> Drop for Permit<K> {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.take() {
            shared.pass_on(std::mem::take(&mut self.keys));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::Poll;

    use futures_util::FutureExt as _;
    use futures_util::future::{BoxFuture, poll_immediate};

    use super::*;

    const BOUNDS: Bounds = Bounds { at_once: 1, waiting_of_one: 300, waiting: 400 };

    type Waiting = (String, BoxFuture<'static, Result<Permit<String>, QueueFull>>);

    fn ask(queue: &FairQueue<String>, keys: &[&str], waiting: &mut Vec<Waiting>) -> bool {
        let owned: Vec<String> = keys.iter().map(|&key| key.to_owned()).collect();
        let queue = queue.clone();
        let mut asked = async move { queue.take(&owned).await }.boxed();
        let polled = asked.poll_unpin(&mut std::task::Context::from_waker(std::task::Waker::noop()));
        match polled {
            Poll::Ready(Ok(_)) => panic!("it was free"),
            Poll::Ready(Err(QueueFull)) => false,
            Poll::Pending => {
                waiting.push((keys.join(" "), asked));
                true
            }
        }
    }

    /// Who gets its turn, one after the other.
    async fn order(first: Permit<String>, mut waiting: Vec<Waiting>) -> Vec<String> {
        let (mut order, mut permit) = (Vec::new(), first);
        loop {
            drop(permit);
            // The runtime lets a task do so much at a time.
            tokio::task::yield_now().await;
            let mut next = None;
            for (at, (_, asked)) in waiting.iter_mut().enumerate() {
                if let Some(Ok(given)) = poll_immediate(asked).await {
                    next = Some((at, given));
                    break;
                }
            }
            let Some((at, given)) = next else { return order };
            order.push(waiting.remove(at).0);
            permit = given;
        }
    }

    #[tokio::test]
    async fn an_account_with_three_hundred_requests_delays_others_by_one_permit() {
        let (queue, mut waiting) = (FairQueue::new(BOUNDS), Vec::new());
        let first = queue.take(&["hog".to_owned()]).await.unwrap();
        for _ in 0..300 {
            assert!(ask(&queue, &["hog"], &mut waiting));
        }
        assert!(!ask(&queue, &["hog"], &mut waiting), "its queue is full");
        for who in ["ada", "bob", "ada"] {
            assert!(ask(&queue, &[who], &mut waiting));
        }
        let order = order(first, waiting).await;
        assert_eq!(order[..5], ["ada", "bob", "hog", "ada", "hog"].map(String::from));
        assert_eq!(order.len(), 303);
        assert_eq!(queue.0.lock().accounts.len(), 0, "nobody is remembered");
    }

    #[tokio::test]
    async fn neither_many_names_at_one_address_nor_many_addresses_for_one_name_get_more() {
        let (queue, mut waiting) = (FairQueue::new(BOUNDS), Vec::new());
        let first = queue.take(&["x".to_owned()]).await.unwrap();
        for number in 0..20 {
            assert!(ask(&queue, &["evil address", &format!("name {number}")], &mut waiting));
            assert!(ask(&queue, &[&format!("address {number}"), "one name"], &mut waiting));
        }
        assert!(ask(&queue, &["home", "ada"], &mut waiting));
        let order = order(first, waiting).await;
        assert!(order.iter().position(|who| who == "home ada").unwrap() <= 2, "{order:?}");
    }

    #[tokio::test]
    async fn a_full_queue_drops_the_request_that_would_be_last() {
        let (queue, mut waiting) = (FairQueue::new(Bounds { waiting: 10, ..BOUNDS }), Vec::new());
        let first = queue.take(&["x".to_owned()]).await.unwrap();
        for _ in 0..10 {
            assert!(ask(&queue, &["hog"], &mut waiting));
        }
        assert!(!ask(&queue, &["hog"], &mut waiting));
        assert!(ask(&queue, &["ada"], &mut waiting));
        assert!(
            matches!(poll_immediate(&mut waiting[9].1).await, Some(Err(QueueFull))),
            "the last of the greedy one"
        );
        // Those who went away by themselves make room, too.
        waiting.truncate(3);
        assert!(ask(&queue, &["hog"], &mut waiting));
        assert_eq!(queue.waiting(), 4);
        drop(waiting);
        drop(first);
        assert_eq!(queue.waiting(), 0);
        assert!(queue.take(&["hog".to_owned()]).now_or_never().is_some(), "the turn came back");
    }

    #[tokio::test]
    async fn a_user_named_by_strangers_is_not_locked_out_and_cancelled_requests_leave_nothing_behind() {
        let (queue, mut waiting) = (FairQueue::new(BOUNDS), Vec::new());
        let first = queue.take(&["x".to_owned()]).await.unwrap();
        for _ in 0..2000 {
            let mut gone = Vec::new();
            assert!(ask(&queue, &["stranger", "bob"], &mut gone));
        }
        assert_eq!((queue.waiting(), queue.0.lock().accounts.len()), (0, 1), "only who runs is remembered");
        for _ in 0..200 {
            assert!(ask(&queue, &["stranger", "bob"], &mut waiting));
        }
        assert!(ask(&queue, &["home", "bob"], &mut waiting));
        for number in 0..100 {
            assert!(ask(&queue, &[&format!("address {number}"), "eve"], &mut waiting));
        }
        let order = order(first, waiting).await;
        let bob = order.iter().position(|who| who == "home bob").unwrap();
        let strangers = order[..bob].iter().filter(|who| *who == "stranger bob").count();
        assert!(strangers <= 1 && bob <= 12, "{bob}: behind a few only that rank like it");
        assert_eq!(queue.0.lock().accounts.len(), 0);
    }
}
