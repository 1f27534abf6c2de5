//! Bundles: where they are mounted. Bundles are never nested, however their paths are written.

use crate::deployments::Bundle;
use crate::deployments::spec::placed_at;

pub(crate) fn wrong_mount_path(path: &str) -> Option<&'static str> {
    let path = placed_at(path);
    if path.starts_with('/') {
        return Some("must be relative to the environment's home, or be below /usr/local/airflow/");
    }
    if path.chars().any(|c| c.is_control() || c == '\\') {
        return Some("must not contain control characters or backslashes");
    }
    let wrong = |part: &str| part.is_empty() || part == "." || part == ".." || part.trim() != part;
    path.split('/')
        .any(wrong)
        .then_some("must be normalized: names separated by single slashes, none of them `.` or `..`")
}

/// The bundle that one at this path would lie inside of, or that would lie inside of it.
pub(super) fn in_the_way<'b>(bundles: &'b [Bundle], mount_path: &str) -> Option<&'b Bundle> {
    let place = placed_at(mount_path);
    let inside =
        |inner: &str, outer: &str| inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('/'));
    bundles.iter().find(|bundle| inside(bundle.place(), place) || inside(place, bundle.place()))
}

/// The bundles with this one in the place of the one at its path, by mount path.
pub(super) fn with(bundles: &[Bundle], bundle: Bundle) -> Vec<Bundle> {
    let mut bundles = without(bundles, &bundle.mount_path);
    bundles.push(bundle);
    bundles.sort_by(|left, right| left.place().cmp(right.place()));
    bundles
}

pub(super) fn without(bundles: &[Bundle], mount_path: &str) -> Vec<Bundle> {
    bundles.iter().filter(|bundle| bundle.place() != placed_at(mount_path)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deploys::fixtures::bundle;

    #[test]
    fn mount_paths_are_clean_and_below_the_home() {
        for good in ["dbt", "dbt/models", "a.b/c-d_e", "with space", "ä", "..."] {
            assert_eq!(wrong_mount_path(good), None, "{good}");
            assert_eq!(wrong_mount_path(&format!("/usr/local/airflow/{good}")), None, "{good}");
        }
        let homes =
            ["/usr/local/airflow", "/usr/local/airflow/", "/usr/local/airflow2/a", "/usr/local/airflow//a"];
        for bad in homes.into_iter().chain(["//usr/local/airflow/a", "/usr/local/airflow/../a", "/etc"]) {
            assert!(wrong_mount_path(bad).is_some(), "{bad:?}");
        }
        let twice = "/usr/local/airflow//usr/local/airflow/a";
        assert!(wrong_mount_path(twice).is_some(), "the home is taken off once");
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
            ("/usr/local/airflow/soda/x", Some("soda")),
            ("/usr/local/airflow/dbt", Some("dbt/core")),
            ("/usr/local/airflow/soda", None),
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
        let spelled = with(&bundles, bundle("/usr/local/airflow/b", "4"));
        assert_eq!(spelled, [bundle("a", "2"), bundle("/usr/local/airflow/b", "4"), bundle("c", "3")]);
        assert_eq!(without(&spelled, "b"), without(&spelled, "/usr/local/airflow/b"));
        assert_eq!(without(&spelled, "b").len(), 2);
    }
}
