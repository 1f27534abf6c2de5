use DeployType::{Bundle as BundleType, DagOnly, ImageAndDag, ImageOnly};
use podium_api::deploys::CreateDeployRequest;
use podium_api::enums::GitProvider;

use super::*;
use crate::deploys::fixtures::{bundle, id, request, spec, wrong};

/// A deployment that runs something.
fn running() -> Spec {
    let mut spec = spec();
    spec.release.image_tag = "old".into();
    spec.release.dag_version = Some(id::<UploadId>(90).to_string());
    spec.release.bundles = vec![bundle("dbt", "old"), bundle("soda", "old")];
    spec
}

fn details(kind: DeployType, runtime: Option<&str>) -> Details {
    let is_bundle = kind == BundleType;
    let requested = CreateDeployRequest {
        bundle_type: is_bundle.then(|| "dbt".into()),
        bundle_mount_path: is_bundle.then(|| "dbt".into()),
        platform_runtime_version: runtime.map(str::to_owned),
        ..request(kind)
    };
    create::new(&requested, &running(), true).unwrap()
}

fn requested(dags: Option<&str>, bundle: Option<&str>) -> FinalizeDeployRequest {
    FinalizeDeployRequest {
        dag_tarball_version: dags.map(str::to_owned),
        bundle_tarball_version: bundle.map(str::to_owned),
        strict: None,
    }
}

fn finalize(kind: DeployType, requested: &FinalizeDeployRequest, spec: &Spec) -> Result<Outcome> {
    let details = details(kind, None);
    let uploaded = [(UploadKind::Dags, id(1)), (UploadKind::Bundle, id(2))];
    let waiting = Waiting {
        id: id(9),
        kind,
        image_tag: "new",
        details: &details,
        uploaded: &uploaded,
        runs_images: true,
    };
    outcome(waiting, requested, spec).map(|(outcome, _)| outcome)
}

#[test]
fn each_type_takes_the_versions_that_belong_to_it() {
    let (dags, bundle, kept) =
        (id::<UploadId>(1).to_string(), id::<UploadId>(2).to_string(), id::<UploadId>(90).to_string());
    let (dags, bundle, kept) = (Some(dags.as_str()), Some(bundle.as_str()), Some(kept.as_str()));
    let table: [(_, _, _, &[&str]); 22] = [
        (ImageAndDag, dags, None, &[]),
        (ImageAndDag, dags, Some(""), &[]),
        (ImageAndDag, None, None, &["dagTarballVersion: required"]),
        (ImageAndDag, Some(""), None, &["dagTarballVersion: required"]),
        (ImageAndDag, bundle, None, &["dagTarballVersion: unknown"]),
        (ImageAndDag, kept, None, &["dagTarballVersion: unknown"]),
        (ImageAndDag, None, bundle, &["dagTarballVersion: required", "bundleTarballVersion: notAllowed"]),
        (DagOnly, dags, None, &[]),
        (DagOnly, Some(""), None, &["dagTarballVersion: required"]),
        (DagOnly, Some("nonsense"), None, &["dagTarballVersion: unknown"]),
        (ImageOnly, None, None, &[]),
        (ImageOnly, Some(""), None, &[]),
        (ImageOnly, kept, None, &[]),
        (ImageOnly, dags, None, &["dagTarballVersion: unknown"]),
        (ImageOnly, None, bundle, &["bundleTarballVersion: notAllowed"]),
        (BundleType, None, bundle, &[]),
        (BundleType, Some(""), bundle, &[]),
        (BundleType, None, Some(""), &[]),
        (BundleType, None, None, &["bundleTarballVersion: required"]),
        (BundleType, None, dags, &["bundleTarballVersion: unknown"]),
        (BundleType, dags, bundle, &["dagTarballVersion: notAllowed"]),
        (BundleType, dags, None, &["dagTarballVersion: notAllowed", "bundleTarballVersion: required"]),
    ];
    for (kind, dags, bundle, expected) in table {
        let requested = requested(dags, bundle);
        assert_eq!(wrong(finalize(kind, &requested, &running())), expected, "{kind} {requested:?}");
    }
}

#[test]
fn without_dag_deploys_the_dags_are_in_the_image() {
    let off = Spec { is_dag_deploy_enabled: false, ..running() };
    let dags = id::<UploadId>(1).to_string();
    let table: [(_, _, &[&str]); 4] = [
        (ImageAndDag, None, &[]),
        (ImageAndDag, Some(dags.as_str()), &["dagTarballVersion: notAllowed"]),
        (DagOnly, Some(dags.as_str()), &["type: notAllowed"]),
        (ImageOnly, None, &["type: notAllowed"]),
    ];
    for (kind, dags, expected) in table {
        assert_eq!(wrong(finalize(kind, &requested(dags, None), &off)), expected, "{kind} {dags:?}");
    }
    let outcome = finalize(ImageAndDag, &requested(None, None), &off).unwrap();
    assert_eq!((outcome.dag_version, outcome.is_dag_deploy_enabled), (None, false));
}

#[test]
fn each_type_changes_what_it_carries_and_keeps_the_rest() {
    let before = running();
    let unchanged = Outcome {
        image_tag: "old".into(),
        runtime_version: "3.1.0".into(),
        dag_version: Some(id::<UploadId>(90).to_string()),
        bundles: before.release.bundles.clone(),
        is_dag_deploy_enabled: true,
    };
    let dags = id::<UploadId>(1).to_string();
    let bundle_version = id::<UploadId>(2).to_string();
    let new_bundle = Bundle { version: bundle_version.clone(), deploy_id: id(9), ..bundle("dbt", "") };
    let table = [
        (
            ImageAndDag,
            requested(Some(&dags), None),
            Outcome { image_tag: "new".into(), dag_version: Some(dags.clone()), ..unchanged.clone() },
        ),
        (
            DagOnly,
            requested(Some(&dags), None),
            Outcome { dag_version: Some(dags.clone()), ..unchanged.clone() },
        ),
        (ImageOnly, requested(Some(""), None), Outcome { image_tag: "new".into(), ..unchanged.clone() }),
        (
            BundleType,
            requested(None, Some(&bundle_version)),
            Outcome { bundles: vec![new_bundle, bundle("soda", "old")], ..unchanged.clone() },
        ),
        (
            BundleType,
            requested(None, Some("")),
            Outcome { bundles: vec![bundle("soda", "old")], ..unchanged.clone() },
        ),
    ];
    for (kind, requested, expected) in table {
        assert_eq!(finalize(kind, &requested, &before), Ok(expected), "{kind} {requested:?}");
    }
}

#[test]
fn a_runtime_is_compared_with_the_one_of_the_moment() {
    let finalize = |runtime: Option<&str>, now: &str| {
        let details = details(ImageOnly, runtime);
        let waiting = Waiting {
            id: id(9),
            kind: ImageOnly,
            image_tag: "new",
            details: &details,
            uploaded: &[],
            runs_images: true,
        };
        let spec = Spec { runtime_version: now.into(), ..running() };
        outcome(waiting, &requested(None, None), &spec).map(|(outcome, _)| outcome.runtime_version)
    };
    assert_eq!(finalize(None, "3.1.0").as_deref(), Ok("3.1.0"));
    assert_eq!(finalize(None, "3.3.2").as_deref(), Ok("3.3.2"), "one that asked for none keeps the newest");
    assert_eq!(finalize(Some("3.2.0"), "3.1.0").as_deref(), Ok("3.2.0"));
    let refused = finalize(Some("3.2.0"), "3.3.2").unwrap_err();
    assert_eq!(
        refused.message(),
        "The runtime 3.2.0 of the deploy must not be older than the deployment's 3.3.2: only a rollback can go back."
    );
}

#[test]
fn a_bundle_that_came_in_the_way_since_is_refused() {
    let mut spec = running();
    spec.release.bundles = vec![bundle("dbt/core", "other")];
    let version = id::<UploadId>(2).to_string();
    let refused = finalize(BundleType, &requested(None, Some(&version)), &spec);
    assert_eq!(wrong(refused), ["bundleTarballVersion: collides"]);
}

#[test]
fn finalizing_again_is_for_the_same_versions() {
    let mut details = details(DagOnly, None);
    let (one, other) = (requested(Some("1"), None), requested(Some("2"), None));
    assert!(was_finalized_with(&details, &one).is_err());
    details.finalized_with = Some(versions(&one));
    assert_eq!(was_finalized_with(&details, &one), Ok(()));
    assert_eq!(was_finalized_with(&details, &requested(Some("1"), Some(""))), Ok(()));
    assert_eq!(was_finalized_with(&details, &other).unwrap_err().status(), 400);
}

#[test]
fn only_a_deployed_deploy_can_be_rolled_back_to() {
    let outcome = finalize(ImageOnly, &requested(None, None), &running()).unwrap();
    let mut details = details(ImageOnly, None);
    let refused = |result: Result<Outcome>| result.unwrap_err().message();
    for status in [DeployStatus::Initialized, DeployStatus::Failed] {
        let message = refused(roll_back_to(id(9), status, &details, None));
        assert_eq!(
            message,
            format!("The deploy is {status}: you can roll back only to a deploy that is DEPLOYED.")
        );
    }
    details.outcome = Some(outcome.clone());
    assert_eq!(roll_back_to(id(9), DeployStatus::Deployed, &details, Some(id(8))), Ok(outcome));
    let current = roll_back_to(id(9), DeployStatus::Deployed, &details, Some(id(9)));
    assert_eq!(refused(current), "The deploy is already the current one: there is nothing to roll back.");
}

#[test]
fn a_rollback_restores_only_what_was_deployed() {
    let git = DeployGit {
        provider: GitProvider::Generic,
        commit_sha: "4f1c".into(),
        account: None,
        repo: None,
        branch: None,
        path: None,
        remote_url: Some("https://git.example.com/dags.git".into()),
        commit_url: None,
        before_commit_sha: None,
        author_name: None,
        author_username: None,
        author_url: None,
    };
    let outcome = Outcome {
        image_tag: "then".into(),
        runtime_version: "3.0.0".into(),
        dag_version: None,
        bundles: vec![bundle("then", "1")],
        is_dag_deploy_enabled: false,
    };
    let mut after = running();
    apply(&mut after, id(5), &outcome, Some(git.clone()));
    let mut expected = running();
    expected.runtime_version = "3.0.0".into();
    expected.is_dag_deploy_enabled = false;
    expected.release.deploy_id = Some(id(5));
    expected.release.image_tag = "then".into();
    expected.release.dag_version = None;
    expected.release.bundles = vec![bundle("then", "1")];
    expected.release.git = Some(git);
    assert_eq!(after, expected);
}

#[test]
fn where_no_images_run_the_deployment_keeps_the_tag_that_it_has() {
    let details = details(ImageOnly, Some("3.3.2"));
    let finalize = |runs_images| {
        let waiting = Waiting {
            id: id(9),
            kind: ImageOnly,
            image_tag: "new",
            details: &details,
            uploaded: &[],
            runs_images,
        };
        outcome(waiting, &requested(None, None), &running()).unwrap().0
    };
    assert_eq!(finalize(true).image_tag, "new");
    let local = finalize(false);
    assert_eq!((local.image_tag, local.runtime_version.as_str()), (running().release.image_tag, "3.3.2"));
}

#[test]
fn a_deploy_is_strict_if_it_or_its_deployment_says_so() {
    let of_deployment = |is_strict| Spec { is_strict_deploy_enabled: is_strict, ..spec() };
    for (asked, set, expected) in [
        (None, None, false),
        (Some(false), None, false),
        (Some(true), None, true),
        (None, Some(true), true),
        (Some(false), Some(true), true),
        (Some(true), Some(false), true),
        (None, Some(false), false),
    ] {
        let requested = FinalizeDeployRequest { strict: asked, ..requested(None, None) };
        assert_eq!(is_strict(&requested, &of_deployment(set)), expected, "{asked:?} {set:?}");
    }
}
