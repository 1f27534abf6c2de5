//! A deploy of a folder: what it changes is shown, and then it is packed, uploaded and finalized.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use indicatif::ProgressBar;
use podium_api::enums::{DeployType, DeploymentStatus, ErrorCode};
use podium_api::path::OfDeployment;
use podium_api::union::OneOf;
use podium_api::{deployments, deploys as api};
use podium_terminal as terminal;
use podium_terminal::typed;

use super::{Deploy, Which, archive, diff, follow, git, is_folder, of_deploy, unable};
use crate::client::commands::{Answer, Called, Exit, Failed, Outcome, Session, moving, one_line};
use crate::client::follow::Now;
use crate::client::project::{FILE, Project, settings};

#[derive(Args)]
pub(super) struct New {
    /// Folder to deploy.
    #[arg(default_value = ".")]
    folder: PathBuf,
    /// What this deploy changes.
    #[arg(long)]
    description: Option<String>,
    /// Create the deployment if it does not exist.
    #[arg(long)]
    create: bool,
    /// Fail if a file cannot be imported, unless it is also broken in the live version: the default without a terminal.
    /// A deploy that fails does not go live.
    #[arg(long, overrides_with = "no_strict")]
    strict: bool,
    /// Go live with files that cannot be imported: the default on a terminal.
    #[arg(long, overrides_with = "strict")]
    no_strict: bool,
    /// Wake the deployment if it hibernates.
    #[arg(long)]
    wake: bool,
    /// Only show what would be packed.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    which: Which,
}

impl New {
    pub(super) async fn run(self) -> Outcome {
        is_folder(&self.folder)?;
        let files = archive::files(&self.folder)?;
        if self.dry_run {
            let mut out = std::io::stdout().lock();
            for file in &files {
                writeln!(out, "{}", file.name)?;
            }
            eprintln!(
                "{} would be packed; nothing was sent.",
                podium_api::counted(files.len() as u64, "file")
            );
            return Ok(());
        }
        if !files.iter().any(|file| file.name.ends_with(".py")) {
            return Err(Failed::usage(format!("there is no Python file in {}", self.folder.display()))
                .hint("Write a first project: podium init"));
        }
        let session = self.which.setup.open_patiently().await?;
        if session.is_planning() {
            return self.plan(&session, &files).await;
        }
        let path = self.deployment(&session).await?;
        let git = match git::describe(&self.folder) {
            Ok(git) => Some(git),
            Err(reason) => {
                eprintln!("Without git metadata: {reason}.");
                None
            }
        };
        unable::tell(&self.folder, &files);
        let replaces_all = diff::tell(&session, path, &files).await;
        if replaces_all && !self.names_deployment()? {
            let folder = self.folder.display();
            session.agree(&format!("Replace every file of the only deployment with those in {folder}?"))?;
        }
        let runtime = Project::read(&self.folder)?.apply(&session, &self.folder, &path).await?;
        let new = api::CreateDeployRequest {
            description: self.description.clone(),
            git,
            wake: self.wake.then_some(true),
            ..new_deploy(runtime)
        };
        let finalized = hand_over(&session, path, &files, &new, self.is_strict()).await?;
        follow(&session, path, &finalized).await
    }

    /// Whether somebody has said which deployment this is for, and it was not taken because it is the only one.
    fn names_deployment(&self) -> Outcome<bool> {
        Ok(self.which.deployment.is_some() || Project::read(&self.folder)?.deployment.is_some())
    }

    /// Whether what cannot be imported stays off: as told, or else if nobody watches.
    fn is_strict(&self) -> bool {
        self.strict || (!self.no_strict && !terminal::is_interactive())
    }

    /// Shows what would change, and stops.
    async fn plan(&self, session: &Session, files: &[archive::File]) -> Outcome {
        let path = self.deployment(session).await?;
        let now: Now = session.get::<deployments::Get>(&path).await?.part()?;
        if now.status.is(DeploymentStatus::Hibernating) && !self.wake {
            let message = format!("{} hibernates, and would refuse the deploy", now.name);
            return Err(Failed::because(message).hint(how_to_wake()));
        }
        let settings = Project::read(&self.folder)?.planned(session, &self.folder, &path).await?;
        unable::tell(&self.folder, files);
        diff::show(session, path, files).await?;
        settings.iter().for_each(|change| eprintln!("{FILE} changes the deployment: {}", one_line(change)));
        eprintln!("Nothing was changed.");
        Ok(())
    }

    /// The deployment to deploy to, made if that is wanted.
    async fn deployment(&self, session: &Session) -> Outcome<OfDeployment> {
        let found = self.which.find(session, &self.folder).await;
        let is_missing = matches!(&found, Err(failed) if failed.exit == Exit::NotFound);
        if !is_missing {
            return found;
        }
        let project = Project::read(&self.folder)?;
        let Some(name) = self.which.deployment.clone().or(project.deployment.clone()) else { return found };
        if !self.create {
            return found.map_err(|failed| match failed.is_missing("deployment") {
                true => {
                    let again = typed::again_with("--create");
                    failed.or_hint(&format!("To create it: {again}. Its name is in {FILE}."))
                }
                false => failed,
            });
        }
        let workspace = self.which.flags.workspace.clone().or(project.workspace.clone());
        let workspace_id = session.chosen_workspace(workspace.as_deref()).await?;
        let body = project.creation(session, &self.folder, &name, workspace_id).await?;
        let path = session.in_organization().await?;
        match session.post::<deployments::Create>(&path, &OneOf(body)).await {
            Ok(made) => {
                eprintln!("Created deployment {name}.");
                session.deployment(made.part::<Called>()?.id.as_str(), None).await
            }
            // Somebody else has created it meanwhile.
            Err(failed) if failed.exit == Exit::Conflict => self.which.find(session, &self.folder).await,
            Err(failed) => Err(settings::translated(failed)),
        }
    }
}

/// Deploys a folder, and moves to another runtime if one is given; the id of the deploy.
pub(crate) async fn send(
    session: &Session,
    path: OfDeployment,
    folder: &Path,
    runtime: Option<String>,
) -> Outcome<String> {
    let files = archive::files(folder)?;
    let finalized = hand_over(session, path, &files, &new_deploy(runtime), false).await?;
    Ok(finalized.part::<Deploy>()?.id.to_string())
}

/// What to do about a deployment that hibernates.
fn how_to_wake() -> String {
    format!("To wake it for this deploy: {}", typed::again_with("--wake"))
}

/// A deploy of code; another runtime counts as an image.
fn new_deploy(runtime: Option<String>) -> api::CreateDeployRequest {
    api::CreateDeployRequest {
        kind: if runtime.is_some() { DeployType::ImageAndDag } else { DeployType::DagOnly },
        description: None,
        bundle_type: None,
        bundle_mount_path: None,
        platform_runtime_version: runtime,
        git: None,
        wake: None,
    }
}

/// Packs files, uploads them and finalizes the deploy.
async fn hand_over(
    session: &Session,
    path: OfDeployment,
    files: &[archive::File],
    new: &api::CreateDeployRequest,
    strict: bool,
) -> Outcome<Answer<api::Deploy>> {
    let mut packed = tempfile::NamedTempFile::new()?;
    archive::pack(files, packed.as_file_mut())?;
    let size = packed.as_file().metadata()?.len();
    eprintln!("Packed {}, {size} bytes.", podium_api::counted(files.len() as u64, "file"));
    let deploy = session.post::<api::Create>(&path, new).await.map_err(|failed| match failed.code() {
        Some(ErrorCode::Hibernating) => failed.hint(how_to_wake()),
        _ => failed,
    })?;
    let deploy: Deploy = deploy.part()?;
    let url = deploy.dags_upload_url.unwrap_or_default();
    let body = api::FinalizeDeployRequest {
        dag_tarball_version: Some(upload(session, &url, packed.path(), size).await?),
        bundle_tarball_version: None,
        strict: strict.then_some(true),
    };
    session.post::<api::Finalize>(&of_deploy(path, deploy.id.as_str())?, &body).await
}

/// Uploads an archive and shows how far it is.
async fn upload(session: &Session, url: &str, file: &Path, size: u64) -> Outcome<String> {
    let template = "Uploading {bar:30} {bytes}/{total_bytes} {bytes_per_sec}";
    let bar = moving(ProgressBar::new(size), template);
    let shown = bar.clone();
    let progress: podium_client::Progress = Arc::new(move |sent| shown.set_position(sent));
    let version = session.client.upload(url, file, &progress).await;
    bar.finish_and_clear();
    Ok(version?)
}
