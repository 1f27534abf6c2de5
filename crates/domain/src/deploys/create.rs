//! What may be deployed, and by whom.

use podium_api::deploys::CreateDeployRequest;
use podium_api::enums::{DeployType, DeploymentStatus};

use super::{Details, bundles, git, has_image};
use crate::deployments::Spec;
use crate::options;
use crate::refusal::{Fields, Refusal, Result};

/// The conditions that decide whether a caller may deploy.
#[derive(Clone, Copy, Debug)]
pub struct DeployConditions {
    pub is_api_token: bool,
    pub status: DeploymentStatus,
    /// Whether the deployment is to hibernate.
    pub is_hibernating: bool,
    /// Whether only API tokens make deploys.
    pub is_cicd_enforced: bool,
    pub wakes: bool,
}

/// Refuses deploys that the deployment accepts from nobody now, or from this caller never.
pub fn may_deploy(conditions: DeployConditions) -> Result<()> {
    if conditions.is_cicd_enforced && !conditions.is_api_token {
        let message = "This deployment takes deploys from API tokens only: deploy from your pipeline, or switch \
            `isCicdEnforced` off.";
        return Err(Refusal::Forbidden(message.into()));
    }
    let is_asleep = conditions.is_hibernating || conditions.status == DeploymentStatus::Hibernating;
    if is_asleep && !conditions.wakes {
        let message = "The deployment is hibernating: wake it first, with `{\"isHibernating\": false}` to its \
            `hibernation-override`, and deploy once it is HEALTHY. Or create the deploy with `\"wake\": true`.";
        return Err(Refusal::Hibernating(message.into()));
    }
    Ok(())
}

/// Checks a new deploy, for a data plane that runs images or one that does not.
pub fn new(requested: &CreateDeployRequest, spec: &Spec, runs_images: bool) -> Result<Details> {
    let mut fields = Fields::new();
    let text = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    if !spec.is_dag_deploy_enabled && matches!(requested.kind, DeployType::DagOnly | DeployType::ImageOnly) {
        let message = format!(
            "must be IMAGE_AND_DAG or BUNDLE: DAG deploys are off, so {} would separate the image from its DAGs",
            requested.kind
        );
        fields.push("type", "notAllowed", message);
    }
    let (bundle_type, bundle_mount_path) = (text(&requested.bundle_type), text(&requested.bundle_mount_path));
    check_bundle(&mut fields, requested.kind, bundle_type.as_deref(), bundle_mount_path.as_deref(), spec);
    let asked_runtime = text(&requested.platform_runtime_version);
    if let Some(runtime) = &asked_runtime
        && let Err((code, message)) = may_move(spec, runtime, requested.kind)
    {
        fields.push("platformRuntimeVersion", code, message);
    }
    if !runs_images && has_image(requested.kind) {
        check_without_images(&mut fields, requested.kind, asked_runtime.as_deref(), spec);
    }
    let git = requested.git.as_ref().map(|requested| git::git(&mut fields, requested));
    fields.into_result()?;
    Ok(Details {
        description: requested.description.clone().unwrap_or_default(),
        runtime_version: spec.runtime_version.clone(),
        asked_runtime,
        is_dag_deploy_enabled: spec.is_dag_deploy_enabled,
        bundle_type,
        bundle_mount_path,
        git,
        wakes: requested.wake.unwrap_or_default(),
        ..Details::default()
    })
}

/// If the data plane runs no images, a deploy with an image may only change the runtime, with or without DAGs.
fn check_without_images(fields: &mut Fields, kind: DeployType, runtime: Option<&str>, spec: &Spec) {
    let changes_runtime = runtime.is_some_and(|runtime| runtime != spec.runtime_version);
    let has_dags_in_image = kind == DeployType::ImageAndDag && !spec.is_dag_deploy_enabled;
    if changes_runtime && !has_dags_in_image {
        return;
    }
    let message = match has_dags_in_image {
        true => {
            "brings an image, and this server runs none: switch `isDagDeployEnabled` on and deploy the DAGs with \
             DAG_ONLY"
        }
        false => {
            "brings an image, and this server runs none: deploy DAGs with DAG_ONLY, and change the runtime with \
             IMAGE_ONLY and a newer `platformRuntimeVersion`; packages of your own cannot be added yet"
        }
    };
    // Where DAG deploys are off, IMAGE_ONLY is refused for that already.
    if kind == DeployType::ImageAndDag || spec.is_dag_deploy_enabled {
        fields.push("type", "notAllowed", message);
    }
}

fn check_bundle(
    fields: &mut Fields,
    kind: DeployType,
    bundle_type: Option<&str>,
    path: Option<&str>,
    spec: &Spec,
) {
    let given = [("bundleType", bundle_type), ("bundleMountPath", path)];
    if kind != DeployType::Bundle {
        let given = given.map(|(name, value)| (name, value.is_some()));
        fields.push_each(given, "notAllowed", format!("is for BUNDLE deploys and must be empty in {kind}"));
        return;
    }
    let missing = given.map(|(name, value)| (name, value.is_none_or(|text| text.trim().is_empty())));
    fields.push_each(missing, "required", "is required in a BUNDLE deploy");
    let Some(path) = path.filter(|path| !path.trim().is_empty()) else { return };
    if let Some(wrong) = bundles::wrong_mount_path(path) {
        fields.push("bundleMountPath", "format", wrong);
    } else if let Some(other) = bundles::in_the_way(&spec.release.bundles, path) {
        let message = format!("must not lie inside or around the bundle at `{}`", other.mount_path);
        fields.push("bundleMountPath", "collides", message);
    }
}

/// Refuses a runtime that the deployment cannot move to by a deploy.
pub(super) fn may_move(
    spec: &Spec,
    to: &str,
    kind: DeployType,
) -> std::result::Result<(), (&'static str, String)> {
    let current = &spec.runtime_version;
    if to == current {
        return Ok(());
    }
    if !has_image(kind) {
        let message = format!("changes only with an image: {kind} runs on the deployment's {current}");
        return Err(("notAllowed", message));
    }
    let Some(known) = options::runtime(to) else {
        return Err(("unknown", "is not an available runtime: see the deployment options".into()));
    };
    let older = current.parse::<options::Version>().is_ok_and(|current| known.version < current);
    if older {
        let message =
            format!("must not be older than the deployment's {current}: only a rollback can go back");
        return Err(("downgrade", message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deploys::fixtures::{bundle, request, spec, wrong};

    #[test]
    fn a_deployment_decides_who_may_deploy_and_when() {
        let open = DeployConditions {
            is_api_token: false,
            status: DeploymentStatus::Healthy,
            is_hibernating: false,
            is_cicd_enforced: false,
            wakes: false,
        };
        let status = |conditions| may_deploy(conditions).map_or_else(|refusal| refusal.status(), |()| 200);
        let table = [
            (open, 200),
            (DeployConditions { status: DeploymentStatus::Deploying, ..open }, 200),
            (DeployConditions { status: DeploymentStatus::Unhealthy, ..open }, 200),
            (DeployConditions { status: DeploymentStatus::Unknown, ..open }, 200),
            (DeployConditions { status: DeploymentStatus::Creating, ..open }, 200),
            (DeployConditions { status: DeploymentStatus::Hibernating, ..open }, 400),
            (DeployConditions { is_hibernating: true, ..open }, 400),
            (DeployConditions { is_hibernating: true, wakes: true, ..open }, 200),
            (DeployConditions { status: DeploymentStatus::Hibernating, wakes: true, ..open }, 200),
            (DeployConditions { is_cicd_enforced: true, wakes: true, ..open }, 403),
            (DeployConditions { is_cicd_enforced: true, ..open }, 403),
            (DeployConditions { is_cicd_enforced: true, status: DeploymentStatus::Creating, ..open }, 403),
            (DeployConditions { is_cicd_enforced: true, is_api_token: true, ..open }, 200),
        ];
        for (conditions, expected) in table {
            assert_eq!(status(conditions), expected, "{conditions:?}");
        }
        let asleep = may_deploy(DeployConditions { is_hibernating: true, ..open }).unwrap_err();
        assert!(asleep.message().contains("hibernation-override"), "{}", asleep.message());
    }

    #[test]
    fn types_take_what_belongs_to_them() {
        use DeployType::{Bundle, DagOnly, ImageAndDag, ImageOnly};
        let mut taken = spec();
        taken.release.bundles = vec![bundle("dbt", "1")];
        let some = |text: &str| Some(text.to_owned());
        let table: [(_, _, _, &[&str]); 14] = [
            (ImageAndDag, None, None, &[]),
            (DagOnly, some(""), some(""), &[]),
            (ImageOnly, some("dbt"), None, &["bundleType: notAllowed"]),
            (DagOnly, some("dbt"), some("x"), &["bundleType: notAllowed", "bundleMountPath: notAllowed"]),
            (Bundle, some("dbt"), some("models"), &[]),
            (Bundle, some("dbt"), some("dbt"), &[]),
            (Bundle, None, some(""), &["bundleType: required", "bundleMountPath: required"]),
            (Bundle, some(" "), some("a"), &["bundleType: required"]),
            (Bundle, some("dbt"), some("/a"), &["bundleMountPath: format"]),
            (Bundle, some("dbt"), some("/usr/local/airflow/a"), &[]),
            (Bundle, some("dbt"), some("/usr/local/airflow/dbt/a"), &["bundleMountPath: collides"]),
            (Bundle, some("dbt"), some("a/../b"), &["bundleMountPath: format"]),
            (Bundle, some("dbt"), some("dbt/models"), &["bundleMountPath: collides"]),
            (Bundle, some("dbt"), some(" "), &["bundleMountPath: required"]),
        ];
        for (kind, bundle_type, bundle_mount_path, expected) in table {
            let requested = CreateDeployRequest { bundle_type, bundle_mount_path, ..request(kind) };
            assert_eq!(wrong(new(&requested, &taken, true)), expected, "{requested:?}");
        }
    }

    #[test]
    fn without_dag_deploys_image_and_dags_stay_together() {
        use DeployType::{Bundle, DagOnly, ImageAndDag, ImageOnly};
        let off = Spec { is_dag_deploy_enabled: false, ..spec() };
        for (kind, expected) in [
            (ImageAndDag, vec![]),
            (ImageOnly, vec!["type: notAllowed"]),
            (DagOnly, vec!["type: notAllowed"]),
        ] {
            assert_eq!(wrong(new(&request(kind), &off, true)), expected, "{kind}");
        }
        let bundle = CreateDeployRequest {
            bundle_type: Some("dbt".into()),
            bundle_mount_path: Some("dbt".into()),
            ..request(Bundle)
        };
        assert!(!new(&bundle, &off, true).unwrap().is_dag_deploy_enabled);
    }

    #[test]
    fn a_runtime_is_known_and_never_older() {
        let on = Spec { runtime_version: "3.1.0".into(), ..spec() };
        let table: [(_, _, &[&str]); 7] = [
            (DeployType::ImageAndDag, "3.1.0", &[]),
            (DeployType::ImageOnly, "3.3.2", &[]),
            (DeployType::ImageOnly, "3.0.0", &["platformRuntimeVersion: downgrade"]),
            (DeployType::ImageOnly, "9.9.9", &["platformRuntimeVersion: unknown"]),
            (DeployType::ImageOnly, "newest", &["platformRuntimeVersion: unknown"]),
            (DeployType::DagOnly, "3.1.0", &[]),
            (DeployType::DagOnly, "3.3.2", &["platformRuntimeVersion: notAllowed"]),
        ];
        for (kind, runtime, expected) in table {
            let platform_runtime_version = Some(runtime.to_owned());
            let requested = CreateDeployRequest { platform_runtime_version, ..request(kind) };
            assert_eq!(wrong(new(&requested, &on, true)), expected, "{kind} {runtime}");
        }
        let none = CreateDeployRequest {
            platform_runtime_version: Some(String::new()),
            ..request(DeployType::DagOnly)
        };
        assert_eq!(new(&none, &on, true).unwrap().asked_runtime, None);
    }

    #[test]
    fn where_no_images_run_only_the_runtime_changes_by_one() {
        use DeployType::{Bundle, DagOnly, ImageAndDag, ImageOnly};
        const REFUSED: &[&str] = &["type: notAllowed"];
        let (on, off) = (spec(), Spec { is_dag_deploy_enabled: false, ..spec() });
        let newer = Some("3.3.2");
        let same = Some("3.1.0");
        let table: [(_, _, _, &[&str]); 12] = [
            (&on, ImageOnly, None, REFUSED),
            (&on, ImageOnly, same, REFUSED),
            (&on, ImageOnly, newer, &[]),
            (&on, ImageOnly, Some("3.0.0"), &["platformRuntimeVersion: downgrade"]),
            (&on, ImageAndDag, None, REFUSED),
            (&on, ImageAndDag, newer, &[]),
            (&on, DagOnly, None, &[]),
            (&on, Bundle, None, &[]),
            (&off, ImageAndDag, None, REFUSED),
            (&off, ImageAndDag, newer, REFUSED),
            (&off, ImageOnly, newer, REFUSED),
            (&off, Bundle, None, &[]),
        ];
        for (spec, kind, runtime, expected) in table {
            let of_bundle = |text: &str| (kind == Bundle).then(|| text.to_owned());
            let requested = CreateDeployRequest {
                platform_runtime_version: runtime.map(str::to_owned),
                bundle_type: of_bundle("dbt"),
                bundle_mount_path: of_bundle("dbt"),
                ..request(kind)
            };
            assert_eq!(wrong(new(&requested, spec, false)), expected, "{kind} {runtime:?}");
        }
        let Err(Refusal::Invalid { fields, .. }) = new(&request(ImageOnly), &on, false) else { panic!() };
        assert!(fields[0].message.contains("DAG_ONLY"), "{}", fields[0].message);
        assert!(fields[0].message.contains("platformRuntimeVersion"), "{}", fields[0].message);
    }
}
