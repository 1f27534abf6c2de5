//! Room that many share: whoever has taken as much as is left gets no more.
//!
//! One who takes everything it can therefore gets half of the room, two of them get a third each, and there is always
//! some left for the next. Many together could take all of it, so whoever has nothing may take one beyond the room, up to
//! twice as much altogether. Nobody waits: what has no room is refused, and asked for again.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

/// Room that many share; clones share it.
#[derive(Debug)]
pub struct Shares<K> {
    room: usize,
    taken: Arc<Mutex<Taken<K>>>,
}

#[derive(Debug)]
struct Taken<K> {
    all: usize,
    by_key: HashMap<K, usize>,
}

/// A place that is taken until this is dropped.
#[derive(Debug)]
pub struct Share<K: Eq + Hash> {
    taken: Arc<Mutex<Taken<K>>>,
    keys: Vec<K>,
}

impl<K: Clone + Eq + Hash> Shares<K> {
    /// Room for so many.
    pub fn new(room: usize) -> Self {
        Self { room, taken: Arc::new(Mutex::new(Taken { all: 0, by_key: HashMap::new() })) }
    }

    /// Takes a place. Keys go from the outside to the inside, such as organization, user, thing: each has a share of the
    /// one before it, at the most half of what that one may have.
    pub fn take(&self, keys: &[K]) -> Option<Share<K>> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.all >= self.room.saturating_mul(2) {
            return None;
        }
        let (mut room, mut outside) = (self.room, taken.all);
        for key in keys {
            let own = taken.by_key.get(key).copied().unwrap_or_default();
            if own > 0 && own >= room.saturating_sub(outside) {
                return None;
            }
            (room, outside) = (room.div_ceil(2), own);
        }
        taken.all += 1;
        for key in keys {
            *taken.by_key.entry(key.clone()).or_default() += 1;
        }
        Some(Share { taken: Arc::clone(&self.taken), keys: keys.to_vec() })
    }
}

impl<K: Eq + Hash> Drop for Share<K> {
    fn drop(&mut self) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.all -= 1;
        for key in &self.keys {
            if let Some(own) = taken.by_key.get_mut(key) {
                *own -= 1;
                if *own == 0 {
                    taken.by_key.remove(key);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take_all<'a>(shares: &Shares<&'a str>, keys: &[&'a str]) -> Vec<Share<&'a str>> {
        std::iter::from_fn(|| shares.take(keys)).collect()
    }

    #[test]
    fn whoever_takes_all_it_can_leaves_room_for_the_next() {
        let shares = Shares::new(64);
        let first = take_all(&shares, &["ada"]);
        assert_eq!(first.len(), 32);
        let second = take_all(&shares, &["bob"]);
        assert_eq!(second.len(), 16);
        let third = take_all(&shares, &["eve"]);
        assert_eq!(third.len(), 8);
        assert!(shares.take(&["ada"]).is_none());
        drop(first);
        assert_eq!(take_all(&shares, &["zoe"]).len(), 20, "what is given back is shared again");
        drop((second, third));
        assert!(shares.taken.lock().unwrap().by_key.is_empty(), "nobody is remembered");
    }

    #[test]
    fn whoever_has_nothing_gets_one_even_where_many_have_taken_everything() {
        let shares = Shares::new(8);
        let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"];
        let many: Vec<_> = names.iter().flat_map(|name| take_all(&shares, &[*name])).collect();
        assert_eq!(many.len(), 8 + 7, "four, two, one and one each");
        let last = shares.take(&["ada"]);
        assert!(last.is_some() && shares.take(&["ada"]).is_none(), "one");
        assert!(shares.take(&["bob"]).is_none(), "there is an end to it");
        drop(last);
        assert!(shares.take(&["bob"]).is_some());
    }

    #[test]
    fn shares_lie_within_shares() {
        let shares = Shares::new(128);
        let hog = take_all(&shares, &["org", "ada", "deploy"]);
        assert_eq!(hog.len(), 16);
        let more = take_all(&shares, &["org", "ada", "another"]);
        assert_eq!(more.len(), 8);
        let colleague = take_all(&shares, &["org", "bob", "third"]);
        assert_eq!(
            colleague.len(),
            16,
            "one's own share does not depend on what others of the organization do"
        );
        assert!(shares.take(&["other", "eve", "fourth"]).is_some());
    }
}
