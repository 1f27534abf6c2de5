//! The effect of a deploy on its deployment, and what a rollback restores.

use podium_api::deploys::{DeployGit, FinalizeDeployRequest};
use podium_api::enums::{DeployStatus, DeployType, UploadKind};
use podium_api::{DeployId, UploadId};

use super::{Details, Outcome, Versions, bundles, create, has_image};
use crate::deployments::{Bundle, Spec};
use crate::refusal::{Fields, Refusal, Result};

#[derive(Clone, Copy, Debug)]
pub struct Waiting<'a> {
    pub id: DeployId,
    pub kind: DeployType,
    pub image_tag: &'a str,
    /// The rest of it.
    pub details: &'a Details,
    /// What was uploaded for it: kinds and versions.
    pub uploaded: &'a [(UploadKind, UploadId)],
    /// Whether the data plane runs images: if not, none was pushed.
    pub runs_images: bool,
}

/// Checks that a repeated finalize request names the same versions.
pub fn was_finalized_with(details: &Details, requested: &FinalizeDeployRequest) -> Result<()> {
    if details.finalized_with.as_ref() == Some(&versions(requested)) {
        return Ok(());
    }
    let same_but_strict = Versions { strict: !versions(requested).strict, ..versions(requested) };
    let message = match details.finalized_with.as_ref() == Some(&same_but_strict) {
        true => {
            "The deploy has already been finalized with another value of `strict`: create another deploy."
        }
        false => "The deploy has already been finalized with other versions: create another deploy.",
    };
    Err(Refusal::invalid(message))
}

pub fn outcome(
    waiting: Waiting<'_>,
    requested: &FinalizeDeployRequest,
    spec: &Spec,
) -> Result<(Outcome, Versions)> {
    let mut fields = Fields::new();
    let release = &spec.release;
    let dag_version = dags(&mut fields, waiting, requested, spec);
    let bundles = match waiting.kind {
        DeployType::Bundle => bundle(&mut fields, waiting, requested, &release.bundles),
        _ => {
            must_be_empty(
                &mut fields,
                "bundleTarballVersion",
                requested.bundle_tarball_version.as_deref(),
                "a BUNDLE",
            );
            release.bundles.clone()
        }
    };
    let runtime = waiting.details.asked_runtime.as_ref().unwrap_or(&spec.runtime_version);
    if let Err((_, message)) = create::may_move(spec, runtime, waiting.kind) {
        // The deployment has moved on since the deploy was created.
        return Err(Refusal::invalid(format!("The runtime {runtime} of the deploy {message}.")));
    }
    fields.into_result()?;
    let brings_image = has_image(waiting.kind) && waiting.runs_images;
    let image_tag = if brings_image { waiting.image_tag } else { &release.image_tag };
    let outcome = Outcome {
        image_tag: image_tag.to_owned(),
        runtime_version: runtime.clone(),
        dag_version,
        bundles,
        is_dag_deploy_enabled: spec.is_dag_deploy_enabled,
    };
    Ok((outcome, versions(requested)))
}

fn dags(
    fields: &mut Fields,
    waiting: Waiting<'_>,
    requested: &FinalizeDeployRequest,
    spec: &Spec,
) -> Option<String> {
    const FIELD: &str = "dagTarballVersion";
    let given = requested.dag_tarball_version.as_deref().filter(|version| !version.is_empty());
    let current = &spec.release.dag_version;
    match (waiting.kind, spec.is_dag_deploy_enabled) {
        (DeployType::ImageOnly | DeployType::DagOnly, false) => {
            let message = format!("is {}, and DAG deploys are off: create another deploy", waiting.kind);
            fields.push("type", "notAllowed", message);
            None
        }
        // The DAGs are in the image.
        (DeployType::ImageAndDag, false) => {
            must_be_empty(fields, FIELD, given, "deployments whose DAG deploys are on");
            None
        }
        (DeployType::ImageAndDag | DeployType::DagOnly, true) => {
            uploaded(fields, FIELD, waiting, UploadKind::Dags, given)
        }
        (DeployType::ImageOnly, true) => {
            if given.is_some() && given != current.as_deref() {
                let message = "must be empty: IMAGE_ONLY keeps the DAGs that the deployment has";
                fields.push(FIELD, "unknown", message);
            }
            current.clone()
        }
        (DeployType::Bundle, _) => {
            must_be_empty(fields, FIELD, given, "deploys with DAGs");
            current.clone()
        }
    }
}

fn bundle(
    fields: &mut Fields,
    waiting: Waiting<'_>,
    requested: &FinalizeDeployRequest,
    current: &[Bundle],
) -> Vec<Bundle> {
    const FIELD: &str = "bundleTarballVersion";
    let mount_path = waiting.details.bundle_mount_path.clone().unwrap_or_default();
    if requested.bundle_tarball_version.as_deref() == Some("") {
        return bundles::without(current, &mount_path);
    }
    let version =
        uploaded(fields, FIELD, waiting, UploadKind::Bundle, requested.bundle_tarball_version.as_deref());
    if let Some(other) = bundles::in_the_way(current, &mount_path) {
        let message = format!(
            "is mounted at `{mount_path}`, which lies inside or around the bundle at `{}`",
            other.mount_path
        );
        fields.push(FIELD, "collides", message);
    }
    let bundle = Bundle {
        mount_path,
        bundle_type: waiting.details.bundle_type.clone().unwrap_or_default(),
        version: version.unwrap_or_default(),
        deploy_id: waiting.id,
    };
    bundles::with(current, bundle)
}

fn uploaded(
    fields: &mut Fields,
    field: &str,
    waiting: Waiting<'_>,
    kind: UploadKind,
    given: Option<&str>,
) -> Option<String> {
    let Some(given) = given else {
        let message = format!("is required in {}: the version returned by the upload", waiting.kind);
        fields.push(field, "required", message);
        return None;
    };
    let known = waiting.uploaded.iter().any(|(of, version)| *of == kind && version.as_str() == given);
    if !known {
        fields.push(field, "unknown", "is not a version that was uploaded for this deploy");
    }
    known.then(|| given.to_owned())
}

fn must_be_empty(fields: &mut Fields, field: &str, given: Option<&str>, of: &str) {
    if given.is_some_and(|version| !version.is_empty()) {
        fields.push(field, "notAllowed", format!("must be empty: it is for {of}"));
    }
}

fn versions(requested: &FinalizeDeployRequest) -> Versions {
    let text = |version: &Option<String>| version.clone().unwrap_or_default();
    Versions {
        dags: text(&requested.dag_tarball_version),
        bundle: text(&requested.bundle_tarball_version),
        strict: requested.strict.unwrap_or_default(),
    }
}

/// Whether a deploy may only go live without import errors that the live version does not have.
pub fn is_strict(requested: &FinalizeDeployRequest, spec: &Spec) -> bool {
    requested.strict.unwrap_or_default() || spec.is_strict_deploy_enabled.unwrap_or_default()
}

/// What a rollback to a deploy brings back.
pub fn roll_back_to(
    id: DeployId,
    status: DeployStatus,
    details: &Details,
    current: Option<DeployId>,
) -> Result<Outcome> {
    if current == Some(id) {
        return Err(Refusal::invalid(
            "The deploy is already the current one: there is nothing to roll back.",
        ));
    }
    match (status, &details.outcome) {
        (DeployStatus::Deployed, Some(outcome)) => Ok(outcome.clone()),
        (status, _) => Err(Refusal::invalid(format!(
            "The deploy is {status}: you can roll back only to a deploy that is DEPLOYED."
        ))),
    }
}

/// Applies the outcome of a deploy to the desired state, and changes nothing else.
pub fn apply(spec: &mut Spec, deploy_id: DeployId, outcome: &Outcome, git: Option<DeployGit>) {
    let Outcome { image_tag, runtime_version, dag_version, bundles, is_dag_deploy_enabled } = outcome.clone();
    spec.runtime_version = runtime_version;
    spec.is_dag_deploy_enabled = is_dag_deploy_enabled;
    let release = &mut spec.release;
    release.deploy_id = Some(deploy_id);
    release.image_tag = image_tag;
    release.dag_version = dag_version;
    release.bundles = bundles;
    release.git = git;
    release.is_strict = false;
}

#[cfg(test)]
mod tests;
