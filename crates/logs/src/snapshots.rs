//! Searches stored by id, so that all their pages show the same snapshot.
//!
//! A snapshot belongs to the subject and the deployment that it was created for; others cannot find it. It expires some
//! time after its last use, and old ones make room for new ones.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use podium_api::{DeploymentId, SearchId, SubjectId, Timestamp};

use crate::Search;
use crate::find::Position;

/// How long a snapshot is kept after its last use.
const KEPT_FOR: Duration = Duration::from_mins(10);
const MOST: usize = 1000;
const MOST_OF_ONE_SUBJECT: usize = 100;
/// How many page ends a snapshot stores.
const MOST_ENDS: usize = 16;

/// A search with an id, which sees the lines that existed when it was created.
#[derive(Debug)]
pub struct Snapshot {
    pub id: SearchId,
    pub(crate) search: Search,
    /// Only lines below this number are seen.
    pub(crate) below: u64,
    /// Positions of page ends by offset, so that the next page need not start from the beginning.
    ends: Mutex<BTreeMap<u64, Position>>,
}

impl Snapshot {
    pub(crate) fn new(id: SearchId, search: Search, below: u64) -> Self {
        Self { id, search, below, ends: Mutex::default() }
    }

    /// The nearest known end of a page at or before an offset.
    pub(crate) fn end_before(&self, offset: u64) -> Option<(u64, Position)> {
        let ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        ends.range(..=offset).next_back().map(|(count, position)| (*count, *position))
    }

    /// Stores where a page ended.
    pub(crate) fn note_end(&self, (count, position): (u64, Position)) {
        let mut ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        ends.insert(count, position);
        if ends.len() > MOST_ENDS {
            ends.pop_first();
        }
    }
}

struct StoredSnapshot {
    subject_id: SubjectId,
    used_at: Timestamp,
    /// Orders uses with the same timestamp.
    turn: u64,
    snapshot: Arc<Snapshot>,
}

#[derive(Default)]
pub(crate) struct Snapshots(Mutex<(HashMap<SearchId, StoredSnapshot>, u64)>);

impl Snapshots {
    pub(crate) fn insert(&self, subject_id: SubjectId, snapshot: Snapshot, now: Timestamp) -> Arc<Snapshot> {
        let snapshot = Arc::new(snapshot);
        let mut lock = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (kept, turn) = &mut *lock;
        *turn += 1;
        kept.retain(|_, kept| kept.used_at + KEPT_FOR > now);
        let own = kept.values().filter(|kept| kept.subject_id == subject_id).count();
        let drops = |kept: &StoredSnapshot| own < MOST_OF_ONE_SUBJECT || kept.subject_id == subject_id;
        if own >= MOST_OF_ONE_SUBJECT || kept.len() >= MOST {
            let oldest = kept.iter().filter(|(_, kept)| drops(kept)).min_by_key(|(_, kept)| kept.turn);
            if let Some(id) = oldest.map(|(id, _)| *id) {
                kept.remove(&id);
            }
        }
        let entry = StoredSnapshot { subject_id, used_at: now, turn: *turn, snapshot: Arc::clone(&snapshot) };
        kept.insert(snapshot.id, entry);
        snapshot
    }

    /// The snapshot with this id, if it belongs to this subject and deployment and has not expired.
    pub(crate) fn find(
        &self,
        id: SearchId,
        subject_id: SubjectId,
        deployment_id: DeploymentId,
        now: Timestamp,
    ) -> Option<Arc<Snapshot>> {
        let mut lock = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (all, turn) = &mut *lock;
        let kept = all.get_mut(&id)?;
        let is_theirs = kept.subject_id == subject_id && kept.snapshot.search.deployment_id == deployment_id;
        if !is_theirs || kept.used_at + KEPT_FOR <= now {
            return None;
        }
        *turn += 1;
        (kept.used_at, kept.turn) = (now, *turn);
        Some(Arc::clone(&kept.snapshot))
    }

    pub(crate) fn forget(&self, deployment_id: DeploymentId) {
        let mut lock = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lock.0.retain(|_, kept| kept.snapshot.search.deployment_id != deployment_id);
    }
}

#[cfg(test)]
mod tests {
    use podium_api::{Id, TypedId};

    use super::*;
    use crate::Query;

    fn id<I: TypedId>(number: u64) -> I {
        I::from_raw(Id::from_parts(0, 0, number))
    }

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(0) + Duration::from_secs(seconds)
    }

    fn snapshot(number: u64, deployment_id: DeploymentId) -> Snapshot {
        let search = Search {
            deployment_id,
            window: at(0)..at(1),
            sources: Vec::new(),
            query: Query::default(),
            max_results: 1,
        };
        Snapshot::new(id(number), search, 0)
    }

    #[test]
    fn a_snapshot_is_found_by_its_owner_until_it_expires() {
        let (snapshots, grace, heidi, d1, d2) = (Snapshots::default(), id(1), id(2), id(11), id(12));
        snapshots.insert(grace, snapshot(100, d1), at(0));
        assert!(snapshots.find(id(100), grace, d1, at(599)).is_some());
        assert!(snapshots.find(id(100), heidi, d1, at(599)).is_none());
        assert!(snapshots.find(id(100), grace, d2, at(599)).is_none());
        assert!(snapshots.find(id(101), grace, d1, at(599)).is_none());
        assert!(snapshots.find(id(100), grace, d1, at(599 + 599)).is_some(), "its last use counts");
        assert!(snapshots.find(id(100), grace, d1, at(599 + 599 + 600)).is_none());
    }

    #[test]
    fn old_snapshots_make_room_for_new_ones() {
        let (snapshots, grace, d1) = (Snapshots::default(), id(1), id(11));
        snapshots.insert(id(2), snapshot(9999, d1), at(0));
        for number in 100..100 + MOST_OF_ONE_SUBJECT as u64 + 1 {
            snapshots.insert(grace, snapshot(number, d1), at(0));
        }
        assert!(snapshots.find(id(9999), id(2), d1, at(0)).is_some(), "another subject's is left alone");
        assert!(snapshots.find(id(100), grace, d1, at(0)).is_none());
        assert!(snapshots.find(id(101), grace, d1, at(0)).is_some());
        for number in 0..MOST as u64 {
            snapshots.insert(id(20_000 + number), snapshot(30_000 + number, d1), at(1));
        }
        assert_eq!(snapshots.0.lock().unwrap().0.len(), MOST);
        assert!(snapshots.find(id(101), grace, d1, at(1)).is_none());
        snapshots.forget(d1);
        assert_eq!(snapshots.0.lock().unwrap().0.len(), 0);
    }
}
