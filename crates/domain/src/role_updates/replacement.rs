//! Replaces the entries that a caller manages, and no others.

use std::collections::BTreeSet;

use crate::assignable::Facts;
use crate::grants::{Grant, Grants, On};
use crate::no_escalation::{may_give, place};
use crate::refusal::{Fields, Refusal, Result};

use super::SubjectKind;

/// A subject's new grants while they are computed, with all objections to them.
pub(super) struct Replacement<'a> {
    pub(super) kind: SubjectKind,
    pub(super) current: &'a [Grant],
    pub(super) caller: &'a Grants,
    pub(super) facts: &'a Facts,
    pub(super) fields: Fields,
    pub(super) after: Vec<Grant>,
    /// Whether an organization role is held or requested.
    pub(super) in_organization: bool,
    forbidden: Option<Refusal>,
}

impl<'a> Replacement<'a> {
    pub(super) fn new(kind: SubjectKind, current: &'a [Grant], caller: &'a Grants, facts: &'a Facts) -> Self {
        let (fields, after) = (Fields::new(), Vec::new());
        Self { kind, current, caller, facts, fields, after, in_organization: false, forbidden: None }
    }

    /// Keeps the grants at scopes of one kind.
    pub(super) fn keep(&mut self, of_kind: fn(&On) -> bool) {
        self.after.extend(self.current.iter().filter(|grant| of_kind(&grant.on)).cloned());
    }

    /// Replaces what the caller manages of one kind of scope; the rest stays, and must not be changed.
    pub(super) fn replace(&mut self, of_kind: fn(&On) -> bool, wanted: &[Grant]) {
        let requested: BTreeSet<_> = wanted.iter().map(entry).collect();
        let held: BTreeSet<_> = self.current.iter().map(entry).collect();
        let stays = |grant: &&Grant| {
            of_kind(&grant.on)
                && (requested.contains(&entry(grant)) || !self.kind.is_managed_by(self.caller, &grant.on))
        };
        self.after.extend(self.current.iter().filter(stays).cloned());
        for grant in wanted {
            if !held.contains(&entry(grant)) {
                self.attempt(self.may_add(grant));
                self.after.push(grant.clone());
            }
        }
    }

    fn may_add(&self, grant: &Grant) -> Result<()> {
        match self.kind.managing(&grant.on) {
            Some(permission) if !self.caller.at(&grant.on).contains(permission) => {
                Err(Refusal::Forbidden(format!(
                    "You may not change roles {}: that takes the permission `{permission}` there. \
                     Leave the entry out, or send it as it is.",
                    place(&grant.on),
                )))
            }
            _ => may_give(self.caller, &grant.held, &grant.on),
        }
    }

    /// Records the first refusal.
    pub(super) fn attempt(&mut self, outcome: Result<()>) {
        self.forbidden = self.forbidden.take().or(outcome.err());
    }

    /// The new grants, in a stable order; wrong fields are told before missing rights.
    pub(super) fn finish(mut self) -> Result<Vec<Grant>> {
        if !self.in_organization && !self.after.is_empty() {
            let message = "must be given with the other roles: they require a role in the organization, and the subject holds none";
            self.fields.push("organizationRole", "required", message);
        }
        self.fields.into_result()?;
        if let Some(refusal) = self.forbidden {
            return Err(refusal);
        }
        self.after.sort_by(|left, right| entry(left).cmp(&entry(right)));
        Ok(self.after)
    }
}

/// What makes a grant the same grant: where, and by which name.
fn entry(grant: &Grant) -> (&On, &str) {
    (&grant.on, grant.held.name())
}
