//! Capacity that many users share: a user who already holds as much as is still free gets no more.
//!
//! A single greedy user therefore gets half of the capacity, two get a third each, and there is always some left for
//! the next. Many together could take all of it, so a user who holds nothing may take one beyond the capacity, up to
//! twice the capacity in total. Nobody waits: a request without capacity is refused and can be retried.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

/// Capacity that many share; clones share it.
#[derive(Debug)]
pub struct SharedCapacity<K> {
    room: usize,
    usage: Arc<Mutex<Usage<K>>>,
}

#[derive(Debug)]
struct Usage<K> {
    all: usize,
    by_key: HashMap<K, usize>,
}

/// A unit of capacity, released when this is dropped.
#[derive(Debug)]
pub struct CapacityPermit<K: Eq + Hash> {
    usage: Arc<Mutex<Usage<K>>>,
    keys: Vec<K>,
}

/// Who has taken what somebody else asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// The key at this place has all that it may have.
    ByKey(usize),
    ByAll,
}

impl<K> Clone for SharedCapacity<K> {
    fn clone(&self) -> Self {
        Self { room: self.room, usage: Arc::clone(&self.usage) }
    }
}

impl<K: Clone + Eq + Hash> SharedCapacity<K> {
    pub fn new(room: usize) -> Self {
        Self { room, usage: Arc::new(Mutex::new(Usage { all: 0, by_key: HashMap::new() })) }
    }

    /// Takes one unit. Keys go from the outside to the inside, such as organization, user, resource: each has a share
    /// of the one before it, at most half of what that one may have.
    pub fn take(&self, keys: &[K]) -> Option<CapacityPermit<K>> {
        let keys: Vec<(K, usize)> = keys.iter().map(|key| (key.clone(), usize::MAX)).collect();
        self.take_within(&keys).ok()
    }

    /// The same where each key also has a bound of its own.
    pub fn take_within(&self, keys: &[(K, usize)]) -> Result<CapacityPermit<K>, Taken> {
        let mut usage = self.usage.lock().unwrap_or_else(PoisonError::into_inner);
        if usage.all >= self.room.saturating_mul(2) {
            return Err(Taken::ByAll);
        }
        let of = |key: &K| usage.by_key.get(key).copied().unwrap_or_default();
        // What a caller can mend itself comes first: the innermost bound.
        if let Some(index) = keys.iter().rposition(|(key, most)| of(key) >= *most) {
            return Err(Taken::ByKey(index));
        }
        let (mut room, mut outside) = (self.room, usage.all);
        for (index, (key, _)) in keys.iter().enumerate() {
            let own = of(key);
            if own > 0 && own >= room.saturating_sub(outside) {
                return Err(Taken::ByKey(index));
            }
            (room, outside) = (room.div_ceil(2), own);
        }
        usage.all += 1;
        for (key, _) in keys {
            *usage.by_key.entry(key.clone()).or_default() += 1;
        }
        let keys = keys.iter().map(|(key, _)| key.clone()).collect();
        Ok(CapacityPermit { usage: Arc::clone(&self.usage), keys })
    }
}

impl<K: Eq + Hash> Drop for CapacityPermit<K> {
    fn drop(&mut self) {
        let mut usage = self.usage.lock().unwrap_or_else(PoisonError::into_inner);
        usage.all -= 1;
        for key in &self.keys {
            if let Some(own) = usage.by_key.get_mut(key) {
                *own -= 1;
                if *own == 0 {
                    usage.by_key.remove(key);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take_all<'a>(capacity: &SharedCapacity<&'a str>, keys: &[&'a str]) -> Vec<CapacityPermit<&'a str>> {
        std::iter::from_fn(|| capacity.take(keys)).collect()
    }

    #[test]
    fn a_greedy_user_leaves_capacity_for_the_next() {
        let capacity = SharedCapacity::new(64);
        let first = take_all(&capacity, &["ada"]);
        assert_eq!(first.len(), 32);
        let second = take_all(&capacity, &["bob"]);
        assert_eq!(second.len(), 16);
        let third = take_all(&capacity, &["eve"]);
        assert_eq!(third.len(), 8);
        assert!(capacity.take(&["ada"]).is_none());
        drop(first);
        assert_eq!(take_all(&capacity, &["zoe"]).len(), 20, "what is given back is shared again");
        drop((second, third));
        assert!(capacity.usage.lock().unwrap().by_key.is_empty(), "nobody is remembered");
    }

    #[test]
    fn a_user_without_any_gets_one_even_when_capacity_is_exhausted() {
        let capacity = SharedCapacity::new(8);
        let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"];
        let many: Vec<_> = names.iter().flat_map(|name| take_all(&capacity, &[*name])).collect();
        assert_eq!(many.len(), 8 + 7, "four, two, one and one each");
        let last = capacity.take(&["ada"]);
        assert!(last.is_some() && capacity.take(&["ada"]).is_none(), "one");
        assert!(capacity.take(&["bob"]).is_none(), "there is an end to it");
        drop(last);
        assert!(capacity.take(&["bob"]).is_some());
    }

    #[test]
    fn a_key_has_a_bound_of_its_own() {
        let capacity = SharedCapacity::new(1000);
        let take = |user| capacity.take_within(&[("org", 5), (user, 3)]);
        let ada: Vec<_> = std::iter::from_fn(|| take("ada").ok()).collect();
        assert_eq!((ada.len(), take("ada").unwrap_err()), (3, Taken::ByKey(1)));
        let bob: Vec<_> = std::iter::from_fn(|| take("bob").ok()).collect();
        assert_eq!((bob.len(), take("bob").unwrap_err()), (2, Taken::ByKey(0)));
        assert!(capacity.take_within(&[("other", 5), ("eve", 3)]).is_ok());
        drop(ada);
        assert!(take("bob").is_ok());
    }

    #[test]
    fn shares_lie_within_shares() {
        let capacity = SharedCapacity::new(128);
        let hog = take_all(&capacity, &["org", "ada", "deploy"]);
        assert_eq!(hog.len(), 16);
        let more = take_all(&capacity, &["org", "ada", "another"]);
        assert_eq!(more.len(), 8);
        let colleague = take_all(&capacity, &["org", "bob", "third"]);
        assert_eq!(
            colleague.len(),
            16,
            "one's own share does not depend on what others of the organization do"
        );
        assert!(capacity.take(&["other", "eve", "fourth"]).is_some());
    }
}
