//! Who may do what to an object: the permission is required on the workspace or deployment that it belongs to.

use crate::authorize::Target;
use crate::grants::Grants;
use crate::refusal::Result;
use crate::verbs::{self, verbs};

verbs! {
    "What is done to an object.", "envObjects":
    Get = "get", Create = "create", Update = "update", Delete = "delete"
}

/// Checks the right on an object that exists: a caller who may not read it does not see it.
pub fn may(caller: &Grants, verb: Verb, belongs_to: Target) -> Result<()> {
    let permissions = [Verb::Get, verb].map(|verb| verb.permission(belongs_to));
    verbs::may(caller, "environment object", permissions, belongs_to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{d1, d2, deployment, member_with, w1, w2};

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
