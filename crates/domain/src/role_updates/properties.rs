//! Properties that hold for every role update.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::fixtures::{any_grant, facts, member};
use crate::subject_roles;

/// Grants that one subject can hold together: one role in the organization, and one in each workspace and deployment.
fn any_subject() -> impl Strategy<Value = Vec<Grant>> {
    prop::collection::vec(any_grant(), 0..8).prop_map(|grants| {
        let role_if_many = |grant: &Grant| match grant.on {
            On::Dag { .. } | On::DagTag { .. } => grant.held.name().to_owned(),
            _ => String::new(),
        };
        let with_member = [member()].into_iter().chain(grants);
        let held: BTreeMap<_, _> =
            with_member.map(|grant| ((grant.on.clone(), role_if_many(&grant)), grant)).collect();
        held.into_values().collect()
    })
}

fn any_kind() -> impl Strategy<Value = SubjectKind> {
    prop::sample::select(vec![SubjectKind::User, SubjectKind::Team])
}

fn names<'a>(grants: impl IntoIterator<Item = &'a Grant>) -> Vec<(On, String)> {
    let mut names: Vec<_> =
        grants.into_iter().map(|grant| (grant.on.clone(), grant.held.name().to_owned())).collect();
    names.sort();
    names
}

proptest! {
    #[test]
    fn entries_that_the_caller_does_not_manage_never_change(
        kind in any_kind(), caller in any_subject(), current in any_subject(), requested in any_subject(),
    ) {
        let caller = Grants::new(caller);
        let change = Change::Set(subject_roles::all(&requested));
        if let Ok(after) = update(kind, &current, &change, &caller, &facts()) {
            let elsewhere = |grant: &&Grant| !kind.is_managed_by(&caller, &grant.on);
            prop_assert_eq!(names(after.iter().filter(elsewhere)), names(current.iter().filter(elsewhere)));
        }
    }

    #[test]
    fn no_grant_exceeds_the_callers_own_permissions(
        kind in any_kind(), caller in any_subject(), current in any_subject(), requested in any_subject(),
    ) {
        let caller = Grants::new(caller);
        let change = Change::Set(subject_roles::all(&requested));
        if let Ok(after) = update(kind, &current, &change, &caller, &facts()) {
            let (before, after) = (Grants::new(current), Grants::new(after));
            for grant in requested {
                let gained = after.at(&grant.on).without(before.at(&grant.on));
                prop_assert!(caller.at(&grant.on).contains_all(gained), "{gained:?} on {:?}", grant.on);
            }
        }
    }

    #[test]
    fn sending_back_what_is_shown_changes_nothing(
        kind in any_kind(), caller in any_subject(), current in any_subject(),
    ) {
        let caller = Grants::new(caller);
        let shown = subject_roles::managed_by(&caller, kind, &current);
        let after = update(kind, &current, &Change::Set(shown.clone()), &caller, &facts());
        prop_assert_eq!(after.as_ref().map(names), Ok(names(&current)));
        prop_assert_eq!(subject_roles::managed_by(&caller, kind, &after.unwrap()), shown);
    }

    #[test]
    fn the_order_of_what_is_stored_does_not_matter(
        kind in any_kind(), caller in any_subject(), current in any_subject(), requested in any_subject(),
    ) {
        let caller = Grants::new(caller);
        let change = Change::Set(subject_roles::all(&requested));
        let backwards: Vec<Grant> = current.iter().rev().cloned().collect();
        prop_assert_eq!(
            update(kind, &current, &change, &caller, &facts()),
            update(kind, &backwards, &change, &caller, &facts())
        );
    }
}
