//! What a deployment wants again after a release that cannot go live: what serves.

use podium_api::DeployId;

use super::{Details, Outcome, apply};
use crate::deployments::{Release, Running, Spec};

/// The desired state with the release that runs, as the newest of these deploys describes it; `None` if that is wanted
/// already.
pub fn want_what_serves<'a>(
    spec: &Spec,
    running: &Running,
    deploys: impl IntoIterator<Item = (DeployId, &'a Details)>,
) -> Option<Spec> {
    if is_running(spec, running) {
        return None;
    }
    let mut restored = spec.clone();
    let outcomes =
        deploys.into_iter().filter_map(|(id, details)| Some((id, details.outcome.as_ref()?, details)));
    let found = outcomes.into_iter().find(|(_, outcome, _)| runs(outcome, running));
    if let Some((id, outcome, details)) = found {
        apply(&mut restored, id, outcome, details.git.clone());
    } else {
        // Nothing was deployed before, or it ran before deploys were recorded.
        let runtime_version = running.runtime_version.clone().unwrap_or_else(|| spec.runtime_version.clone());
        let is_running = |place: &str, version: &str| {
            running.bundles.iter().any(|bundle| bundle.place() == place && bundle.version == version)
        };
        let bundles = spec.release.bundles.iter().filter(|b| is_running(b.place(), &b.version));
        restored.release = Release {
            image_tag: running.image_tag.clone().unwrap_or_else(|| runtime_version.clone()),
            dag_version: running.dag_version.clone(),
            bundles: bundles.cloned().collect(),
            ..Release::default()
        };
        restored.runtime_version = runtime_version;
    }
    (restored != *spec).then_some(restored)
}

/// Whether the desired release is what runs.
pub fn is_running(spec: &Spec, running: &Running) -> bool {
    runs(&Outcome::of(spec), running)
}

fn runs(outcome: &Outcome, running: &Running) -> bool {
    let bundles = outcome.bundles.iter().map(|bundle| (bundle.place(), bundle.version.as_str()));
    running.dag_version == outcome.dag_version
        && running.runtime_version.as_ref() == Some(&outcome.runtime_version)
        && running.image_tag.as_ref() == Some(&outcome.image_tag)
        && bundles.eq(running.bundles.iter().map(|bundle| (bundle.place(), bundle.version.as_str())))
}

#[cfg(test)]
mod tests {
    use podium_api::Id;
    use podium_api::enums::DeploymentType;

    use super::*;
    use crate::deployments::{Bundle, RunningBundle};

    fn deploy_id(number: u64) -> DeployId {
        DeployId::from_raw(Id::from_parts(number, 0, 0))
    }

    fn spec(dag_version: Option<&str>) -> Spec {
        let mut spec = Spec::new(DeploymentType::Standard, "3.3.2");
        spec.release.dag_version = dag_version.map(str::to_owned);
        spec.release.deploy_id = Some(deploy_id(9));
        spec
    }

    fn deploy_of(spec: &Spec) -> Details {
        let (runtime_version, outcome) = (spec.runtime_version.clone(), Some(Outcome::of(spec)));
        Details { runtime_version, is_dag_deploy_enabled: true, outcome, ..Details::default() }
    }

    fn running(spec: &Spec) -> Running {
        let bundle = |bundle: &Bundle| RunningBundle {
            mount_path: bundle.mount_path.clone(),
            version: bundle.version.clone(),
        };
        Running {
            image_tag: Some(spec.release.image_tag.clone()),
            runtime_version: Some(spec.runtime_version.clone()),
            dag_version: spec.release.dag_version.clone(),
            bundles: spec.release.bundles.iter().map(bundle).collect(),
        }
    }

    #[test]
    fn the_newest_deploy_of_what_runs_is_wanted_again() {
        let (bad, good) = (spec(Some("bad")), spec(Some("good")));
        let never_ran = deploy_of(&spec(Some("between")));
        let ran = deploy_of(&good);
        let deploys = [(deploy_id(8), &never_ran), (deploy_id(7), &ran), (deploy_id(6), &ran)];
        let restored = want_what_serves(&bad, &running(&good), deploys).unwrap();
        assert_eq!(restored.release.deploy_id, Some(deploy_id(7)));
        assert_eq!(restored.release.dag_version.as_deref(), Some("good"));
    }

    #[test]
    fn the_runtime_goes_back_with_its_release() {
        let (mut bad, good) = (spec(Some("bad")), spec(Some("good")));
        bad.runtime_version = "3.4.0".into();
        let ran = deploy_of(&good);
        let restored = want_what_serves(&bad, &running(&good), [(deploy_id(7), &ran)]).unwrap();
        assert_eq!(restored.runtime_version, "3.3.2");
    }

    #[test]
    fn what_runs_already_is_nothing_to_go_back_to() {
        let good = spec(Some("good"));
        let ran = deploy_of(&good);
        assert_eq!(want_what_serves(&good, &running(&good), [(deploy_id(7), &ran)]), None);
    }

    #[test]
    fn before_the_first_deploy_nothing_is_wanted() {
        let bad = spec(Some("bad"));
        let restored = want_what_serves(&bad, &Running::default(), []).unwrap();
        assert_eq!((restored.release.deploy_id, restored.release.dag_version.clone()), (None, None));
        assert_eq!(restored.runtime_version, "3.3.2");
        assert_eq!(want_what_serves(&restored, &Running::default(), []), None, "and that is the end of it");
    }
}
