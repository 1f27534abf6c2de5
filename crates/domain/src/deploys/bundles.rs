//! Bundles: where they are mounted. Two bundles never lie inside each other.

use crate::deployments::Bundle;

/// What is wrong with a mount path, if anything is.
pub(super) fn wrong_mount_path(path: &str) -> Option<&'static str> {
    if path.starts_with('/') {
        return Some("must be relative: it must not begin with a slash");
    }
    if path.chars().any(|c| c.is_control() || c == '\\') {
        return Some("must not contain control characters or backslashes");
    }
    let wrong = |part: &str| part.is_empty() || part == "." || part == ".." || part.trim() != part;
    path.split('/')
        .any(wrong)
        .then_some("must be clean: names between single slashes, none of them `.` or `..`")
}

/// The bundle that one at this path would lie inside of, or that would lie inside of it.
pub(super) fn in_the_way<'b>(bundles: &'b [Bundle], mount_path: &str) -> Option<&'b Bundle> {
    let inside =
        |inner: &str, outer: &str| inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('/'));
    bundles
        .iter()
        .find(|bundle| inside(&bundle.mount_path, mount_path) || inside(mount_path, &bundle.mount_path))
}

/// The bundles with this one in the place of the one at its path, by mount path.
pub(super) fn with(bundles: &[Bundle], bundle: Bundle) -> Vec<Bundle> {
    let mut bundles = without(bundles, &bundle.mount_path);
    bundles.push(bundle);
    bundles.sort_by(|left, right| left.mount_path.cmp(&right.mount_path));
    bundles
}

/// The bundles without the one at this path.
pub(super) fn without(bundles: &[Bundle], mount_path: &str) -> Vec<Bundle> {
    bundles.iter().filter(|bundle| bundle.mount_path != mount_path).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deploys::cast::bundle;

    #[test]
    fn mount_paths_are_relative_and_clean() {
        for good in ["dbt", "dbt/models", "a.b/c-d_e", "with space", "ä", "..."] {
            assert_eq!(wrong_mount_path(good), None, "{good}");
        }
        for bad in [
            "", "/dbt", "dbt/", "a//b", ".", "..", "a/../b", "./a", "a/.", "a\\b", "a\nb", " a", "a /b", "\0",
        ] {
            assert!(wrong_mount_path(bad).is_some(), "{bad:?}");
        }
    }

    #[test]
    fn bundles_do_not_lie_inside_each_other() {
        let bundles = [bundle("dbt/core", "1"), bundle("soda", "2")];
        let table = [
            ("dbt", Some("dbt/core")),
            ("dbt/core/models", Some("dbt/core")),
            ("dbt/core", None),
            ("dbt/core2", None),
            ("sod", None),
            ("soda/x", Some("soda")),
        ];
        for (path, expected) in table {
            let found = in_the_way(&bundles, path).map(|bundle| bundle.mount_path.as_str());
            assert_eq!(found, expected, "{path}");
        }
    }

    #[test]
    fn a_bundle_takes_the_place_of_the_one_at_its_path() {
        let bundles = with(&[bundle("b", "1"), bundle("c", "1")], bundle("a", "2"));
        let bundles = with(&bundles, bundle("c", "3"));
        assert_eq!(bundles, [bundle("a", "2"), bundle("b", "1"), bundle("c", "3")]);
        assert_eq!(without(&bundles, "b"), [bundle("a", "2"), bundle("c", "3")]);
        assert_eq!(without(&bundles, "x"), bundles);
    }
}
