//! `podium deploy`: packs a folder, uploads it, and follows until it is live.

mod archive;
mod diff;
mod git;
mod report;

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use clap::{Args, Subcommand};
use indicatif::ProgressBar;
use podium_api::path::{OfDeploy, OfDeployment};
use podium_api::{deploy_reports as reports, deployments, deploys as api};
use podium_client::Call;
use serde_json::{Value, json};

use crate::client::ending::{Exit, Failed, Outcome};
use crate::client::fields::given;
use crate::client::follow::{Wait, moving, pause};
use crate::client::output::{Listing, View, column, wide};
use crate::client::project::{DeploymentFlags, FILE, Project};
use crate::client::session::{Session, Setup, text};

pub(crate) use report::lines as report_lines;

/// Deploy a folder with DAGs: pack it, upload it, and wait until it is live.
///
/// Files that .gitignore or .podiumignore name are left out, and so are .git, .env and podium-data. If there is a folder
/// named dags, it becomes the DAGs' root.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "\
Examples:
  podium deploy
  podium deploy ./hello --create
  podium deploy --deployment nightly --description 'Fix the totals'
  podium deploy --strict --wake
  podium deploy --dry-run
  podium deploy diff
  podium deploy list --deployment nightly
  podium deploy report --deployment nightly
  podium deploy rollback --deployment nightly --yes")]
pub(crate) struct Deploys {
    #[command(flatten)]
    new: New,
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Args)]
struct New {
    /// Folder to deploy.
    #[arg(default_value = ".")]
    folder: PathBuf,
    /// What this deploy changes.
    #[arg(long)]
    description: Option<String>,
    /// Create the deployment if there is none of that name.
    #[arg(long)]
    create: bool,
    /// Fail if the deploy breaks a DAG that could be imported before; what ran before keeps running.
    #[arg(long)]
    strict: bool,
    /// Wake the deployment if it hibernates.
    #[arg(long)]
    wake: bool,
    /// Only show what would be packed.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    wait: Wait,
    #[command(flatten)]
    setup: Setup,
}

/// Which deployment.
#[derive(Args)]
struct Which {
    /// Name or id; the default is the deployment of podium.yaml, or the only one.
    #[arg(long, env = "PODIUM_DEPLOYMENT")]
    deployment: Option<String>,
    #[command(flatten)]
    flags: DeploymentFlags,
}

#[derive(Subcommand)]
enum Verb {
    /// Show what a deploy of a folder would change: files that differ from those that run, and the DAGs in them.
    Diff {
        /// Folder to compare.
        #[arg(default_value = ".")]
        folder: PathBuf,
        #[command(flatten)]
        which: Which,
        #[command(flatten)]
        setup: Setup,
    },
    /// List deploys, newest first.
    List {
        #[command(flatten)]
        which: Which,
        #[command(flatten)]
        listing: Listing,
        #[command(flatten)]
        setup: Setup,
    },
    /// Show a deploy.
    Get {
        /// Id of the deploy.
        deploy: String,
        #[command(flatten)]
        which: Which,
        #[command(flatten)]
        setup: Setup,
    },
    /// Show what came of a deploy: files and DAGs that changed, and files that Airflow could not import.
    Report {
        /// Id of the deploy; the default is the newest one.
        deploy: Option<String>,
        #[command(flatten)]
        which: Which,
        #[command(flatten)]
        setup: Setup,
    },
    /// Change the description of a deploy.
    Update {
        /// Id of the deploy.
        deploy: String,
        /// What it changed.
        #[arg(long)]
        description: String,
        #[command(flatten)]
        which: Which,
        #[command(flatten)]
        setup: Setup,
    },
    /// Go back to an earlier deploy.
    Rollback {
        /// Id of the deploy to go back to; the default is the one before the current one.
        deploy: Option<String>,
        /// Why.
        #[arg(long)]
        description: Option<String>,
        /// Do not ask.
        #[arg(long, short)]
        yes: bool,
        #[command(flatten)]
        which: Which,
        #[command(flatten)]
        wait: Wait,
        #[command(flatten)]
        setup: Setup,
    },
}

const VIEW: View = View {
    name: "id",
    columns: &[
        column("ID", "id"),
        column("STATUS", "status"),
        column("TYPE", "type"),
        column("DESCRIPTION", "description"),
        column("CREATED", "createdAt"),
        wide("BY", "createdBySubject.username"),
        wide("COMMIT", "git.commitSha"),
        wide("ROLLS BACK TO", "rollbackFromId"),
        wide("ROLLED BACK BY", "rolledBackById"),
    ],
};

/// How many files that cannot be imported are shown with their traceback if a deploy fails.
const MOST_TRACEBACKS: usize = 5;

impl Which {
    async fn find(&self, session: &Session, folder: &std::path::Path) -> Outcome<OfDeployment> {
        self.flags.find(session, self.deployment.as_deref(), folder).await
    }
}

impl Deploys {
    pub(crate) async fn run(self) -> Outcome {
        let here = std::path::Path::new(".");
        match self.verb {
            None => self.new.run().await,
            Some(Verb::Diff { folder, which, setup }) => {
                is_folder(&folder)?;
                let files = archive::files(&folder)?;
                let session = setup.open()?;
                let path = which.find(&session, &folder).await?;
                diff::show(&session, path, &files).await
            }
            Some(Verb::List { which, listing, setup }) => {
                let session = setup.open()?;
                let path = which.find(&session, here).await?;
                session.list(Call::to::<api::List>(&path), &VIEW, &listing).await
            }
            Some(Verb::Get { deploy, which, setup }) => {
                let session = setup.open()?;
                let path = of_deploy(which.find(&session, here).await?, &deploy)?;
                session.show(&session.get::<api::Get>(&path).await?, &VIEW)
            }
            Some(Verb::Report { deploy, which, setup }) => {
                let session = setup.open()?;
                let path = which.find(&session, here).await?;
                let deploy = match deploy {
                    Some(deploy) => deploy,
                    None => newest(&session, &path).await?,
                };
                report::show(&session, &of_deploy(path, &deploy)?).await
            }
            Some(Verb::Update { deploy, description, which, setup }) => {
                let session = setup.open()?;
                let path = of_deploy(which.find(&session, here).await?, &deploy)?;
                let edit = |_: &Value| Ok(json!({ "description": description }));
                let changed = session.edit::<api::Get, api::Update>(&path, edit).await?;
                session.show(&changed, &VIEW)
            }
            Some(Verb::Rollback { deploy, description, yes, which, wait, setup }) => {
                let session = setup.open()?;
                let path = which.find(&session, here).await?;
                let target = match deploy {
                    Some(deploy) => deploy,
                    None => previous(&session, &path).await?,
                };
                session.agree(&format!("Go back to the deploy {target}?"), yes)?;
                let body = given(json!({ "description": description }));
                let made = session.post::<api::Rollback>(&of_deploy(path, &target)?, &body).await?;
                eprintln!("Going back to {target}.");
                follow(&session, path, &made, &wait).await
            }
        }
    }
}

fn is_folder(folder: &std::path::Path) -> Outcome {
    match folder.is_dir() {
        true => Ok(()),
        false => Err(Failed::usage(format!("{} is not a folder", folder.display()))
            .hint("Write a first project: podium init hello")),
    }
}

impl New {
    async fn run(self) -> Outcome {
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
        let session = self.setup.open_patiently().await?;
        session.never_plans("To see what would go in: podium deploy --dry-run")?;
        let path = self.deployment(&session).await?;
        let git = match git::describe(&self.folder) {
            Ok(git) => Some(git),
            Err(reason) => {
                eprintln!("Without git metadata: {reason}.");
                None
            }
        };
        diff::tell(&session, path, &files).await;
        let described = json!({ "description": self.description, "git": git });
        let modes = Modes { strict: self.strict, wake: self.wake };
        let finalized = hand_over(&session, path, &files, described, modes).await?;
        follow(&session, path, &finalized, &self.wait).await
    }

    /// The deployment to deploy to, made if that is wanted.
    async fn deployment(&self, session: &Session) -> Outcome<OfDeployment> {
        let found = self.which.find(session, &self.folder).await;
        let is_missing = matches!(&found, Err(failed) if failed.exit == Exit::NotFound);
        if !is_missing {
            return found;
        }
        let project = Project::read(&self.folder)?;
        let Some(name) = self.which.deployment.clone().or(project.deployment) else { return found };
        if !self.create {
            return found.map_err(|failed| {
                failed.hint(format!("To create it: podium deploy --create, or correct its name in {FILE}."))
            });
        }
        let workspace = self.which.flags.workspace.clone().or(project.workspace);
        let workspace_id = session.chosen_workspace(workspace.as_deref()).await?;
        let body = json!({ "name": name, "workspaceId": workspace_id });
        let path = session.in_organization().await?;
        match session.post::<deployments::Create>(&path, &body).await {
            Ok(made) => {
                eprintln!("Created deployment {name}.");
                session.deployment(text(&made["id"]), None).await
            }
            // Somebody else has created it meanwhile.
            Err(failed) if failed.exit == Exit::Conflict => self.which.find(session, &self.folder).await,
            Err(failed) => Err(failed),
        }
    }
}

/// Deploys a folder; the id of the deploy.
pub(crate) async fn send(
    session: &Session,
    path: OfDeployment,
    folder: &std::path::Path,
    description: Option<&str>,
) -> Outcome<String> {
    let files = archive::files(folder)?;
    let described = json!({ "description": description });
    let finalized = hand_over(session, path, &files, described, Modes::default()).await?;
    Ok(text(&finalized["id"]).to_owned())
}

/// The report of a deploy whose rollout has ended; none while it is on its way.
pub(crate) async fn ended(session: &Session, path: OfDeployment, id: &str) -> Outcome<Option<Value>> {
    let report = session.get::<reports::Get>(&of_deploy(path, id)?).await?;
    Ok(Some(report).filter(|report| !matches!(text(&report["state"]), "WAITING" | "ROLLING_OUT")))
}

/// The files of a folder that are deployed, with the time and size of each.
pub(crate) fn stamps(folder: &std::path::Path) -> Outcome<Vec<archive::Stamped>> {
    Ok(archive::files(folder)?.iter().map(archive::File::stamped).collect())
}

/// How a deploy is made.
#[derive(Clone, Copy, Default)]
struct Modes {
    /// Whether it fails if it breaks a DAG.
    strict: bool,
    /// Whether it wakes a hibernating deployment.
    wake: bool,
}

/// Packs files, uploads them and finalizes the deploy.
async fn hand_over(
    session: &Session,
    path: OfDeployment,
    files: &[archive::File],
    described: Value,
    modes: Modes,
) -> Outcome<Value> {
    let mut packed = tempfile::NamedTempFile::new()?;
    archive::pack(files, packed.as_file_mut())?;
    let size = packed.as_file().metadata()?.len();
    eprintln!("Packed {}, {size} bytes.", podium_api::counted(files.len() as u64, "file"));
    let mut body = given(described);
    body["type"] = "DAG_ONLY".into();
    if modes.wake {
        body["wake"] = true.into();
    }
    let deploy = session.post::<api::Create>(&path, &body).await?;
    let version = upload(session, text(&deploy["dagsUploadUrl"]), packed.path(), size).await?;
    let of = of_deploy(path, text(&deploy["id"]))?;
    let strict = modes.strict.then_some(true);
    session
        .post::<api::Finalize>(&of, &given(json!({ "dagTarballVersion": version, "strict": strict })))
        .await
}

/// Uploads an archive and shows how far it is.
async fn upload(session: &Session, url: &str, file: &std::path::Path, size: u64) -> Outcome<String> {
    let template = "Uploading {bar:30} {bytes}/{total_bytes} {bytes_per_sec}";
    let bar = moving(ProgressBar::new(size), template);
    let shown = bar.clone();
    let progress: podium_client::Progress = Arc::new(move |sent| shown.set_position(sent));
    let version = session.client.upload(url, file, &progress).await;
    bar.finish_and_clear();
    Ok(version?)
}

/// Waits until a deploy is live, unless told not to, and shows it.
async fn follow(session: &Session, path: OfDeployment, deploy: &Value, wait: &Wait) -> Outcome {
    let id = text(&deploy["id"]);
    if !wait.is_default() {
        eprintln!("Deploy {id} is on its way.");
        return session.show(deploy, &VIEW);
    }
    let settled = session.settle(&path, wait).await;
    let of = of_deploy(path, id)?;
    let (deadline, mut round) = (wait.deadline(), 0);
    let deploy = loop {
        let deploy = session.get::<api::Get>(&of).await?;
        if text(&deploy["status"]) != "INITIALIZED" || Instant::now() > deadline {
            break deploy;
        }
        pause(round).await;
        round += 1;
    };
    let report = session.get::<reports::Get>(&of).await?;
    if text(&deploy["status"]) == "FAILED" {
        return Err(Failed::new(Exit::OperationFailed, format!("the deploy {id} failed"))
            .details(report["reason"].as_str().map(str::to_owned))
            .details(report::tracebacks(&report, MOST_TRACEBACKS))
            .hint("What ran before still runs."));
    }
    settled?;
    // Which files a new deploy changes was said before it was sent.
    let is_rollback = deploy["rollbackFromId"].is_string();
    let lines = if is_rollback { report::lines(&report) } else { report::lines_of_dags(&report) };
    lines.iter().for_each(|line| eprintln!("{line}"));
    eprintln!("Deploy {id} is live.");
    session.show(&deploy, &VIEW)
}

/// The newest deploy.
async fn newest(session: &Session, path: &OfDeployment) -> Outcome<String> {
    let first = session.client.pages(Call::to::<api::List>(path), None).next().await?;
    let newest = first.and_then(|page| page.into_iter().next());
    newest.map(|deploy| text(&deploy["id"]).to_owned()).ok_or_else(|| {
        Failed::new(Exit::NotFound, "nothing was deployed yet").hint("See podium deploy --help.")
    })
}

/// The newest deploy before the current one that can be gone back to.
async fn previous(session: &Session, path: &OfDeployment) -> Outcome<String> {
    let mut pages = session.client.pages(Call::to::<api::List>(path), None);
    let mut deployed = Vec::new();
    while let Some(page) = pages.next().await? {
        deployed.extend(page.into_iter().filter(|deploy| text(&deploy["status"]) == "DEPLOYED"));
        if deployed.len() >= 2 {
            return Ok(text(&deployed[1]["id"]).to_owned());
        }
    }
    Err(Failed::new(Exit::NotFound, "there is no earlier deploy to go back to")
        .hint("Those that there are: podium deploy list"))
}

fn of_deploy(path: OfDeployment, deploy: &str) -> Outcome<OfDeploy> {
    let deploy_id = deploy.parse().map_err(|_| {
        Failed::usage(format!("{deploy:?} is not the id of a deploy")).hint("See podium deploy list.")
    })?;
    Ok(OfDeploy { organization_id: path.organization_id, deployment_id: path.deployment_id, deploy_id })
}
