//! Places for sending, shared out between organizations: one whose receivers are slow leaves room for the others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use podium_api::OrganizationId;

/// How many webhooks of one organization this process works on at once; there are four times as many places.
const MOST_OF_ONE: u32 = 16;

/// How many places each organization has taken.
#[derive(Clone, Default)]
pub(super) struct Places(Arc<Mutex<HashMap<OrganizationId, u32>>>);

/// A place that was taken; it is free again when this is dropped.
pub(super) struct Place(Places, OrganizationId);

impl Places {
    fn lock(&self) -> MutexGuard<'_, HashMap<OrganizationId, u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place, if the organization may have one more.
    pub(super) fn take(&self, organization_id: OrganizationId) -> Option<Place> {
        let mut taken = self.lock();
        let of_one = taken.entry(organization_id).or_default();
        if *of_one >= MOST_OF_ONE {
            return None;
        }
        *of_one += 1;
        Some(Place(self.clone(), organization_id))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.0.lock();
        if let Some(of_one) = taken.get_mut(&self.1) {
            *of_one -= 1;
            if *of_one == 0 {
                taken.remove(&self.1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_organization_leaves_room_for_others() {
        let organization = |number| OrganizationId::from_raw(podium_api::Id::from_parts(number, 0, 0));
        let places = Places::default();
        let mut taken: Vec<Place> = (0..MOST_OF_ONE).map_while(|_| places.take(organization(1))).collect();
        assert_eq!(taken.len(), MOST_OF_ONE as usize);
        assert!(places.take(organization(1)).is_none());
        assert!(places.take(organization(2)).is_some());
        taken.pop();
        assert!(places.take(organization(1)).is_some());
        drop(taken);
        assert!(places.lock().is_empty(), "nothing is remembered");
    }
}
