//! Permissions and sets of them, small enough to copy and fast enough to check on every request.
//!
//! Names are in the table of [`crate::groups`]; everything else uses an index into it.

use std::fmt;
use std::sync::LazyLock;

use podium_api::const_text;
use podium_api::enums::RoleScope;

use crate::groups::{NAMES, scope_of};

const WORDS: usize = 3;
const _: () = assert!(NAMES.len() <= WORDS * 64, "PermissionSet needs another word");

/// A permission: the right to do one thing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Permission(u8);

impl Permission {
    pub const fn named(name: &str) -> Option<Self> {
        match const_text::index_in(NAMES, name) {
            Some(index) => Some(Self(index as u8)),
            None => None,
        }
    }

    /// The permission of this name, which must exist: in a constant a misspelt name does not compile.
    pub const fn known(name: &str) -> Self {
        match Self::named(name) {
            Some(permission) => permission,
            None => panic!("there is no permission of that name"),
        }
    }

    pub fn all() -> impl Iterator<Item = Self> {
        (0..NAMES.len()).map(|index| Self(index as u8))
    }

    /// Its full name, such as `deployment.logs.get`.
    pub const fn name(self) -> &'static str {
        NAMES[self.0 as usize]
    }

    /// What it is held on.
    pub const fn scope(self) -> RoleScope {
        scope_of(self.name())
    }
}

impl fmt::Debug for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of permissions: three words, copied like a number.
#[derive(Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct PermissionSet([u64; WORDS]);

impl PermissionSet {
    pub const EMPTY: Self = Self([0; WORDS]);

    pub fn everything() -> Self {
        Permission::all().collect()
    }

    #[must_use]
    pub const fn with(mut self, permission: Permission) -> Self {
        self.0[permission.0 as usize / 64] |= 1 << (permission.0 % 64);
        self
    }

    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        let ([a, b, c], [x, y, z]) = (self.0, other.0);
        Self([a | x, b | y, c | z])
    }

    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        let ([a, b, c], [x, y, z]) = (self.0, other.0);
        Self([a & !x, b & !y, c & !z])
    }

    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        let ([a, b, c], [x, y, z]) = (self.0, other.0);
        Self([a & x, b & y, c & z])
    }

    /// What in this set is held on `scope`.
    #[must_use]
    pub fn of_scope(self, scope: RoleScope) -> Self {
        self.intersection(OF_SCOPE[scope as usize])
    }

    pub const fn contains(self, permission: Permission) -> bool {
        self.0[permission.0 as usize / 64] & (1 << (permission.0 % 64)) != 0
    }

    pub const fn contains_all(self, other: Self) -> bool {
        other.without(self).is_empty()
    }

    /// Whether there is no permission in the set.
    pub const fn is_empty(self) -> bool {
        matches!(self.0, [0, 0, 0])
    }

    pub const fn len(self) -> usize {
        let [a, b, c] = self.0;
        (a.count_ones() + b.count_ones() + c.count_ones()) as usize
    }

    pub fn iter(self) -> impl Iterator<Item = Permission> {
        Permission::all().filter(move |permission| self.contains(*permission))
    }

    /// The names of the set's permissions, in alphabetical order.
    pub fn names(self) -> Vec<String> {
        let mut names: Vec<_> = self.iter().map(|permission| permission.name().to_owned()).collect();
        names.sort_unstable();
        names
    }
}

/// Every permission of each scope.
static OF_SCOPE: LazyLock<Vec<PermissionSet>> = LazyLock::new(|| {
    let all_of =
        |scope: &RoleScope| Permission::all().filter(|permission| permission.scope() == *scope).collect();
    RoleScope::ALL.iter().map(all_of).collect()
});

impl FromIterator<Permission> for PermissionSet {
    fn from_iter<I: IntoIterator<Item = Permission>>(permissions: I) -> Self {
        permissions.into_iter().fold(Self::EMPTY, Self::with)
    }
}

impl fmt::Debug for PermissionSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_permissions() {
        for permission in Permission::all() {
            assert_eq!(Permission::named(permission.name()), Some(permission));
        }
        for unknown in ["", "deployment", "deployment.", "deployment.fly", "Deployment.get"] {
            assert_eq!(Permission::named(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn sets_behave_as_sets() {
        let get = Permission::known("deployment.get");
        let last = Permission::all().last().unwrap();
        let both: PermissionSet = [get, last, get].into_iter().collect();
        assert_eq!(both.len(), 2);
        assert!(both.contains(get) && both.contains(last));
        assert!(both.contains_all(PermissionSet::EMPTY.with(get)));
        assert!(!PermissionSet::EMPTY.with(get).contains_all(both));
        assert_eq!(both.without(PermissionSet::EMPTY.with(get)).iter().collect::<Vec<_>>(), [last]);
        assert_eq!(both.of_scope(RoleScope::Deployment).iter().collect::<Vec<_>>(), [get]);
        assert!(PermissionSet::everything().contains_all(both));
    }
}
