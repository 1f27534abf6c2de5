//! Actions on resources that belong to the organization, a workspace or a deployment: each requires the permission of
//! the same name there.

use crate::authorize::{Target, require};
use crate::grants::Grants;
use crate::permissions::Permission;
use crate::refusal::{Refusal, Result};

/// Defines `Verb`, with one permission for each verb and each kind of place; none that is not known compiles.
macro_rules! verbs {
    ($about:literal, $group:literal: $($verb:ident = $name:literal),+) => {
        #[doc = $about]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Verb {
            $($verb),+
        }

        impl Verb {
            /// The permission that this requires on the resource's owner.
            pub const fn permission(self, belongs_to: $crate::Target) -> $crate::Permission {
                use $crate::{Permission, Target};
                match (belongs_to, self) {
                    $(
                        (Target::Organization, Self::$verb) => {
                            const { Permission::known(concat!("organization.", $group, ".", $name)) }
                        }
                        (Target::Workspace(_), Self::$verb) => {
                            const { Permission::known(concat!("workspace.", $group, ".", $name)) }
                        }
                        (Target::Deployment { .. }, Self::$verb) => {
                            const { Permission::known(concat!("deployment.", $group, ".", $name)) }
                        }
                    )+
                }
            }
        }
    };
}

pub(crate) use verbs;

/// Checks the right on an existing resource: a caller who may not read it does not see it.
pub(crate) fn may(
    caller: &Grants,
    thing: &str,
    [read, wanted]: [Permission; 2],
    belongs_to: Target,
) -> Result<()> {
    require(caller, read, belongs_to).map_err(|_| Refusal::not_found(thing))?;
    require(caller, wanted, belongs_to)
}
