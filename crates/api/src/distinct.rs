//! The list of all endpoints, and the compile-time check that no two of them are the same.

use crate::const_text;
use crate::endpoint::Description;

/// How many endpoints several resources have.
pub const fn count(resources: &[&[Description]]) -> usize {
    let (mut count, mut index) = (0, 0);
    while index < resources.len() {
        count += resources[index].len();
        index += 1;
    }
    count
}

/// The endpoints of several resources in one list; there are `N` of them, and not none.
pub const fn joined<const N: usize>(resources: &[&[Description]]) -> [Description; N] {
    let mut all = [resources[0][0]; N];
    let (mut filled, mut resource) = (0, 0);
    while resource < resources.len() {
        let mut index = 0;
        while index < resources[resource].len() {
            all[filled] = resources[resource][index];
            filled += 1;
            index += 1;
        }
        resource += 1;
    }
    all
}

/// Fails to compile if two endpoints have the same id, or the same method and path.
pub const fn check(endpoints: &[Description]) {
    let mut rest = endpoints;
    while let [first, others @ ..] = rest {
        let mut index = 0;
        while index < others.len() {
            let other = &others[index];
            if const_text::same(first.id, other.id) {
                two_endpoints_have_this_id(first.id);
            }
            if have_the_same_shape(first.path, other.path) {
                if first.method as u8 == other.method as u8 {
                    two_endpoints_have_the_method_and_path_of(first.id);
                }
                // The router needs one set of parameter names for each path.
                if !const_text::same(first.path, other.path) {
                    two_endpoints_name_the_same_parameters_differently(first.id);
                }
            }
            index += 1;
        }
        rest = others;
    }
}

/// Whether two paths differ only in the names of their `{parameters}`, so that they match the same requests.
const fn have_the_same_shape(left: &str, right: &str) -> bool {
    let (left, right) = (left.as_bytes(), right.as_bytes());
    let (mut at_left, mut at_right) = (0, 0);
    while at_left < left.len() && at_right < right.len() {
        if left[at_left] != right[at_right] {
            return false;
        }
        if left[at_left] == b'{' {
            at_left = end_of_parameter(left, at_left);
            at_right = end_of_parameter(right, at_right);
        } else {
            at_left += 1;
            at_right += 1;
        }
    }
    at_left == left.len() && at_right == right.len()
}

/// The end of the parameter that starts here.
const fn end_of_parameter(path: &[u8], begin: usize) -> usize {
    let mut at = begin;
    while at < path.len() && path[at] != b'}' {
        at += 1;
    }
    at
}

// The names of these functions are what a failed build shows beside the id.

const fn two_endpoints_have_this_id(id: &str) -> ! {
    panic!("{}", id)
}

const fn two_endpoints_have_the_method_and_path_of(id: &str) -> ! {
    panic!("{}", id)
}

const fn two_endpoints_name_the_same_parameters_differently(id: &str) -> ! {
    panic!("{}", id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ENDPOINTS, Method};

    #[test]
    fn parameter_names_do_not_distinguish_paths() {
        let path = "/organizations/{organizationId}/teams/{teamId}";
        for same in [path, "/organizations/{id}/teams/{organizationId}"] {
            assert!(have_the_same_shape(path, same) && have_the_same_shape(same, path), "{same}");
        }
        for other in [
            "/organizations/{organizationId}/teams",
            "/organizations/{organizationId}/teams/self",
            "/organizations/{organizationId}/teams/{teamId}/members",
            "/organizations/{organizationId}/roles/{teamId}",
            "",
        ] {
            assert!(!have_the_same_shape(path, other) && !have_the_same_shape(other, path), "{other}");
        }
    }

    /// The id that the check reports for two endpoints, of which the second is changed.
    fn refused(change: impl FnOnce(&mut Description, &Description)) -> String {
        let find = |id| *ENDPOINTS.iter().find(|endpoint| endpoint.id == id).unwrap();
        let (first, mut second) = (find("GetTeam"), find("DeleteTeam"));
        change(&mut second, &first);
        let checked = std::panic::catch_unwind(|| check(&[first, second]));
        checked.err().and_then(|panic| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
    }

    #[test]
    fn a_duplicate_endpoint_is_reported_by_id() {
        assert_eq!(refused(|_, _| {}), "");
        assert_eq!(refused(|second, first| second.id = first.id), "GetTeam");
        assert_eq!(refused(|second, _| second.method = Method::Get), "GetTeam");
        assert_eq!(
            refused(|second, _| second.path = "/organizations/{organizationId}/teams/{id}"),
            "GetTeam"
        );
        assert_eq!(refused(|second, _| second.path = "/organizations/{organizationId}/roles/{id}"), "");
    }
}
