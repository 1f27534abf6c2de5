//! Who may do what to an object: the right is asked for on the workspace or deployment that it belongs to.

use crate::authorize::{Target, require};
use crate::grants::Grants;
use crate::permissions::Permission;
use crate::refusal::{Refusal, Result};

/// What is done to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants are the verbs")]
pub enum Verb {
    Get,
    Create,
    Update,
    Delete,
}

impl Verb {
    /// The permission that this takes on what the object belongs to.
    pub const fn permission(self, belongs_to: Target) -> Permission {
        macro_rules! on {
            ($thing:literal) => {
                match self {
                    Self::Get => const { Permission::known(concat!($thing, ".envObjects.get")) },
                    Self::Create => const { Permission::known(concat!($thing, ".envObjects.create")) },
                    Self::Update => const { Permission::known(concat!($thing, ".envObjects.update")) },
                    Self::Delete => const { Permission::known(concat!($thing, ".envObjects.delete")) },
                }
            };
        }
        match belongs_to {
            Target::Organization => on!("organization"),
            Target::Workspace(_) => on!("workspace"),
            Target::Deployment { .. } => on!("deployment"),
        }
    }
}

/// Checks the right on an object that exists: a caller who may not read it does not see it.
pub fn may(caller: &Grants, verb: Verb, belongs_to: Target) -> Result<()> {
    let unseen = |_| Refusal::not_found("environment object");
    require(caller, Verb::Get.permission(belongs_to), belongs_to).map_err(unseen)?;
    require(caller, verb.permission(belongs_to), belongs_to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cast::{d1, d2, deployment, member_with, w1, w2};

    #[test]
    fn rights_are_those_on_what_the_object_belongs_to() {
        let (here, there) = (Target::Workspace(w1()), Target::Workspace(w2()));
        let table = [
            ("ORGANIZATION_OWNER", here, [200, 200, 200, 200]),
            ("WORKSPACE_OWNER", here, [200, 200, 200, 200]),
            ("WORKSPACE_OPERATOR", here, [200, 200, 200, 200]),
            ("WORKSPACE_OPERATOR", there, [404, 404, 404, 404]),
            ("WORKSPACE_OPERATOR", deployment(d1()), [200, 200, 200, 200]),
            ("WORKSPACE_OPERATOR", deployment(d2()), [404, 404, 404, 404]),
            ("WORKSPACE_AUTHOR", here, [200, 403, 403, 403]),
            ("WORKSPACE_AUTHOR", deployment(d1()), [200, 403, 403, 403]),
            ("WORKSPACE_MEMBER", here, [404, 404, 404, 404]),
            ("WORKSPACE_MEMBER", deployment(d1()), [404, 404, 404, 404]),
            ("DEPLOYMENT_ADMIN", deployment(d1()), [200, 200, 200, 200]),
            ("DEPLOYMENT_ADMIN", here, [404, 404, 404, 404]),
            ("DEPLOYMENT_ACCESSOR", deployment(d1()), [404, 404, 404, 404]),
            ("ORGANIZATION_MEMBER", here, [404, 404, 404, 404]),
        ];
        for (role, target, expected) in table {
            let got = [Verb::Get, Verb::Create, Verb::Update, Verb::Delete].map(|verb| {
                may(&member_with(role), verb, target).map_or_else(|refusal| refusal.status(), |()| 200)
            });
            assert_eq!(got, expected, "{role} on {target:?}");
        }
    }
}
