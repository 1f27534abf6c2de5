//! Turns at something of which little can be done at once, shared out fairly.
//!
//! Each turn is asked for on somebody's account, or on that of several: an address and a user, say. Whoever asks often
//! queues behind itself: the next turn goes to whoever has had the fewest, so that one that asks three hundred times
//! delays others by one turn and not by three hundred (start-time fair queueing). The queue is bounded for each account
//! and altogether; when it is full, whoever would have been last has to go.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;

/// Accounts without anybody waiting are forgotten when there are so many.
const REMEMBERED: usize = 4096;

/// Turns at something; clones share them.
#[derive(Clone)]
pub(crate) struct Turns<K: Clone + Eq + Hash>(Arc<Shared<K>>);

struct Shared<K: Clone + Eq + Hash> {
    bounds: Bounds,
    state: Mutex<State<K>>,
}

/// How many turns there are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// At once.
    pub(crate) at_once: usize,
    /// That wait on one account.
    pub(crate) waiting_of_one: usize,
    /// That wait altogether.
    pub(crate) waiting: usize,
}

struct State<K: Clone + Eq + Hash> {
    taken: usize,
    /// The rank of the turn that was given last.
    now: u64,
    asked: u64,
    accounts: HashMap<K, Account>,
    /// By rank, and within one by who came first.
    queue: BTreeMap<(u64, u64), Waiter<K>>,
}

#[derive(Default)]
struct Account {
    /// The rank that its next turn has at the least.
    next: u64,
    waiting: usize,
}

struct Waiter<K: Clone + Eq + Hash> {
    keys: Vec<K>,
    turn: oneshot::Sender<Turn<K>>,
}

/// Somebody's turn, until this is dropped.
pub(crate) struct Turn<K: Clone + Eq + Hash>(Option<Arc<Shared<K>>>);

/// There is no room to wait in.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Full;

impl<K: Clone + Eq + Hash> Turns<K> {
    pub(crate) fn new(bounds: Bounds) -> Self {
        let state = State { taken: 0, now: 0, asked: 0, accounts: HashMap::new(), queue: BTreeMap::new() };
        Self(Arc::new(Shared { bounds, state: Mutex::new(state) }))
    }

    /// Waits for a turn on these accounts.
    pub(crate) async fn take(&self, keys: &[K]) -> Result<Turn<K>, Full> {
        let receiver = {
            let mut state = self.0.lock();
            let rank = state.rank(keys);
            if state.taken < self.0.bounds.at_once {
                state.charge(keys, rank);
                state.now = rank;
                state.taken += 1;
                return Ok(Turn(Some(Arc::clone(&self.0))));
            }
            state.make_room(self.0.bounds, keys, rank)?;
            state.charge(keys, rank);
            state.asked += 1;
            let place = (rank, state.asked);
            let (turn, receiver) = oneshot::channel();
            for key in keys {
                state.accounts.entry(key.clone()).or_default().waiting += 1;
            }
            state.queue.insert(place, Waiter { keys: keys.to_vec(), turn });
            receiver
        };
        // Whoever had to go for somebody else finds the other end dropped.
        receiver.await.map_err(|_| Full)
    }

    /// How many wait.
    pub(crate) fn waiting(&self) -> usize {
        self.0.lock().queue.len()
    }
}

impl<K: Clone + Eq + Hash> Shared<K> {
    fn lock(&self) -> std::sync::MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a turn that has ended to the next one.
    fn pass_on(self: &Arc<Self>) {
        loop {
            let next = {
                let mut state = self.lock();
                let Some(next) = state.queue.pop_first() else {
                    state.taken -= 1;
                    if state.taken == 0 {
                        state.accounts.clear();
                        state.now = 0;
                    }
                    return;
                };
                let ((rank, _), waiter) = next;
                state.leave(&waiter.keys);
                state.now = state.now.max(rank);
                waiter
            };
            match next.turn.send(Turn(Some(Arc::clone(self)))) {
                Ok(()) => return,
                // It does not wait any more: the turn is still this one's to pass on.
                Err(mut turn) => turn.0 = None,
            }
        }
    }
}

impl<K: Clone + Eq + Hash> State<K> {
    /// Where one more turn on these accounts stands: behind all others of each of them.
    fn rank(&self, keys: &[K]) -> u64 {
        let next = keys.iter().filter_map(|key| self.accounts.get(key)).map(|account| account.next).max();
        next.unwrap_or_default().max(self.now)
    }

    fn charge(&mut self, keys: &[K], rank: u64) {
        if self.accounts.len() > REMEMBERED {
            let now = self.now;
            self.accounts.retain(|_, account| account.waiting > 0 || account.next > now);
        }
        for key in keys {
            self.accounts.entry(key.clone()).or_default().next = rank + 1;
        }
    }

    /// Sees to it that one more can wait.
    fn make_room(&mut self, bounds: Bounds, keys: &[K], rank: u64) -> Result<(), Full> {
        let is_full = |state: &Self| {
            let first = keys.first().and_then(|key| state.accounts.get(key));
            state.queue.len() >= bounds.waiting
                || first.is_some_and(|account| account.waiting >= bounds.waiting_of_one)
        };
        if is_full(self) {
            self.forget_gone();
        }
        let first = keys.first().and_then(|key| self.accounts.get(key));
        if first.is_some_and(|account| account.waiting >= bounds.waiting_of_one) {
            return Err(Full);
        }
        while self.queue.len() >= bounds.waiting {
            let Some(last) = self.queue.last_entry().filter(|last| last.key().0 > rank) else {
                return Err(Full);
            };
            let waiter = last.remove();
            self.leave(&waiter.keys);
        }
        Ok(())
    }

    /// Takes those out of the queue who do not wait any more.
    fn forget_gone(&mut self) {
        let gone: Vec<_> = self
            .queue
            .iter()
            .filter(|(_, waiter)| waiter.turn.is_closed())
            .map(|(place, _)| *place)
            .collect();
        for place in gone {
            if let Some(waiter) = self.queue.remove(&place) {
                self.leave(&waiter.keys);
            }
        }
    }

    fn leave(&mut self, keys: &[K]) {
        for key in keys {
            if let Some(account) = self.accounts.get_mut(key) {
                account.waiting -= 1;
            }
        }
    }
}

impl<K: Clone + Eq + Hash> Drop for Turn<K> {
    fn drop(&mut self) {
        if let Some(shared) = self.0.take() {
            shared.pass_on();
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

    type Waiting = (String, BoxFuture<'static, Result<Turn<String>, Full>>);

    fn ask(turns: &Turns<String>, keys: &[&str], waiting: &mut Vec<Waiting>) -> bool {
        let owned: Vec<String> = keys.iter().map(|&key| key.to_owned()).collect();
        let turns = turns.clone();
        let mut asked = async move { turns.take(&owned).await }.boxed();
        let polled = asked.poll_unpin(&mut std::task::Context::from_waker(std::task::Waker::noop()));
        match polled {
            Poll::Ready(Ok(_)) => panic!("it was free"),
            Poll::Ready(Err(Full)) => false,
            Poll::Pending => {
                waiting.push((keys.join(" "), asked));
                true
            }
        }
    }

    /// Who gets its turn, one after the other.
    async fn order(first: Turn<String>, mut waiting: Vec<Waiting>) -> Vec<String> {
        let (mut order, mut turn) = (Vec::new(), first);
        loop {
            drop(turn);
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
            turn = given;
        }
    }

    #[tokio::test]
    async fn one_that_asks_three_hundred_times_delays_others_by_one_turn() {
        let (turns, mut waiting) = (Turns::new(BOUNDS), Vec::new());
        let first = turns.take(&["hog".to_owned()]).await.unwrap();
        for _ in 0..300 {
            assert!(ask(&turns, &["hog"], &mut waiting));
        }
        assert!(!ask(&turns, &["hog"], &mut waiting), "its queue is full");
        for who in ["ada", "bob", "ada"] {
            assert!(ask(&turns, &[who], &mut waiting));
        }
        let order = order(first, waiting).await;
        assert_eq!(order[..5], ["ada", "bob", "hog", "ada", "hog"].map(String::from));
        assert_eq!(order.len(), 303);
        assert_eq!(turns.0.lock().accounts.len(), 0, "nobody is remembered");
    }

    #[tokio::test]
    async fn neither_many_names_at_one_address_nor_many_addresses_for_one_name_get_more() {
        let (turns, mut waiting) = (Turns::new(BOUNDS), Vec::new());
        let first = turns.take(&["x".to_owned()]).await.unwrap();
        for number in 0..20 {
            assert!(ask(&turns, &["evil address", &format!("name {number}")], &mut waiting));
            assert!(ask(&turns, &[&format!("address {number}"), "one name"], &mut waiting));
        }
        assert!(ask(&turns, &["home", "ada"], &mut waiting));
        let order = order(first, waiting).await;
        assert!(order.iter().position(|who| who == "home ada").unwrap() <= 2, "{order:?}");
    }

    #[tokio::test]
    async fn a_full_queue_drops_whoever_would_be_last() {
        let (turns, mut waiting) = (Turns::new(Bounds { waiting: 10, ..BOUNDS }), Vec::new());
        let first = turns.take(&["x".to_owned()]).await.unwrap();
        for _ in 0..10 {
            assert!(ask(&turns, &["hog"], &mut waiting));
        }
        assert!(!ask(&turns, &["hog"], &mut waiting));
        assert!(ask(&turns, &["ada"], &mut waiting));
        assert!(
            matches!(poll_immediate(&mut waiting[9].1).await, Some(Err(Full))),
            "the last of the greedy one"
        );
        // Those who went away by themselves make room, too.
        waiting.truncate(3);
        assert!(ask(&turns, &["hog"], &mut waiting));
        assert_eq!(turns.waiting(), 4);
        drop(waiting);
        drop(first);
        assert_eq!(turns.waiting(), 0);
        assert!(turns.take(&["hog".to_owned()]).now_or_never().is_some(), "the turn came back");
    }
}
