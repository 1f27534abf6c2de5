//! `podium deploy`: packs a folder, uploads it, and follows until it is live.

mod archive;
mod diff;
mod git;
mod report;
mod sending;
mod unable;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use podium_api::enums::{DeployReportState, DeployStatus};
use podium_api::path::{OfDeploy, OfDeployment};
use podium_api::{DeployId, Nothing, deploy_reports as reports, deployments, deploys as api};
use serde::Deserialize;

use super::{Answer, Exit, Failed, Listing, Outcome, Session, Setup, View, Watch, Word, id, pause, shout};
use crate::client::follow::say_settled;
use crate::client::project::DeploymentFlags;

pub(crate) use report::{Report, lines as report_lines};
pub(crate) use sending::send;

use podium_terminal::typed;
use sending::New;

/// Deploy a folder with DAGs: pack it, upload it, and wait until it is live.
///
/// Files that .gitignore or .podiumignore name are left out, and so are .git, .venv, .env, __pycache__ and podium-data.
/// If there is a folder named dags, it becomes the DAGs' root. The settings in podium.yaml are applied first.
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

/// Which deployment.
#[derive(Args)]
struct Which {
    /// Name or id; the default is the deployment of podium.yaml, or the only one.
    #[arg(long, env = "PODIUM_DEPLOYMENT")]
    deployment: Option<String>,
    #[command(flatten)]
    flags: DeploymentFlags,
    #[command(flatten)]
    setup: Setup,
}

#[derive(Subcommand)]
enum Verb {
    /// Show what a deploy of a folder would change: files that differ from the running version, and the DAGs in them.
    Diff {
        /// Folder to compare.
        #[arg(default_value = ".")]
        folder: PathBuf,
        #[command(flatten)]
        which: Which,
    },
    /// List deploys, newest first.
    List {
        #[command(flatten)]
        which: Which,
        #[command(flatten)]
        listing: Listing,
    },
    /// Show a deploy.
    Get {
        /// Id of the deploy.
        deploy: String,
        #[command(flatten)]
        which: Which,
    },
    /// Show the result of a deploy: files and DAGs that changed, and files that Airflow could not import.
    Report {
        /// Id of the deploy; the default is the newest one.
        deploy: Option<String>,
        #[command(flatten)]
        which: Which,
    },
    /// Change the description of a deploy.
    Update {
        /// Id of the deploy.
        deploy: String,
        /// What the deploy changed.
        #[arg(long)]
        description: String,
        #[command(flatten)]
        which: Which,
    },
    /// Go back to an earlier deploy.
    Rollback {
        /// Id of the deploy to go back to; the default is the one before the current one.
        deploy: Option<String>,
        /// Reason for the rollback.
        #[arg(long)]
        description: Option<String>,
        #[command(flatten)]
        which: Which,
    },
}

const VIEW: View = View {
    name: "id",
    columns: "ID id, STATUS status, TYPE type, DESCRIPTION description, CREATED createdAt",
    wide: "BY createdBySubject.username, COMMIT git.commitSha, ROLLS BACK TO rollbackFromId, \
              ROLLED BACK BY rolledBackById",
};

/// How many files that cannot be imported are shown with their traceback if a deploy fails.
const MOST_TRACEBACKS: usize = 5;

impl Which {
    async fn find(&self, session: &Session, folder: &Path) -> Outcome<OfDeployment> {
        self.flags.find(session, self.deployment.as_deref(), folder).await
    }

    async fn open(&self, folder: &Path) -> Outcome<(Session, OfDeployment)> {
        let session = self.setup.open()?;
        let path = self.find(&session, folder).await?;
        Ok((session, path))
    }
}

impl Deploys {
    pub(crate) async fn run(self) -> Outcome {
        let here = Path::new(".");
        match self.verb {
            None => self.new.run().await,
            Some(Verb::Diff { folder, which }) => {
                is_folder(&folder)?;
                let files = archive::files(&folder)?;
                let (session, path) = which.open(&folder).await?;
                diff::show(&session, path, &files).await
            }
            Some(Verb::List { which, listing }) => {
                let (session, path) = which.open(here).await?;
                session.list::<api::List>(&path, &VIEW, &listing).await
            }
            Some(Verb::Get { deploy, which }) => {
                let (session, path) = which.open(here).await?;
                session.show_at::<api::Get>(&of_deploy(path, &deploy)?, &VIEW).await
            }
            Some(Verb::Report { deploy, which }) => {
                let (session, path) = which.open(here).await?;
                let deploy = match deploy {
                    Some(deploy) => deploy,
                    None => newest(&session, &path).await?,
                };
                report::show(&session, &of_deploy(path, &deploy)?).await
            }
            Some(Verb::Update { deploy, description, which }) => {
                let (session, path) = which.open(here).await?;
                let path = of_deploy(path, &deploy)?;
                let body = api::UpdateDeployRequest { description: Some(description) };
                let edited = session.edit_part::<api::Get, api::Update, _>(&path, |_| Ok(&body)).await?;
                session.show(&edited.now, &VIEW)
            }
            Some(Verb::Rollback { deploy, description, which }) => {
                let (session, path) = which.open(here).await?;
                let target = match deploy {
                    Some(deploy) => deploy,
                    None => previous(&session, &path).await?,
                };
                report::warn_of_errors(&session, &of_deploy(path, &target)?).await;
                session.agree(&format!("Go back to the deploy {target}?"))?;
                let body = api::DeployRollbackRequest { description };
                let made = session.post::<api::Rollback>(&of_deploy(path, &target)?, &body).await?;
                eprintln!("Going back to {target}.");
                follow(&session, path, &made).await
            }
        }
    }
}

/// Refuses what is not the folder of a project.
pub(crate) fn is_folder(folder: &Path) -> Outcome {
    match folder.is_dir() {
        true => Ok(()),
        false => Err(Failed::usage(format!("{} is not a folder", folder.display()))
            .hint("Write a first project: podium init hello")),
    }
}

/// The report of a deploy whose rollout has ended; none while it is on its way.
pub(crate) async fn ended(session: &Session, path: OfDeployment, id: &str) -> Outcome<Option<Report>> {
    let report: Report = session.get::<reports::Get>(&of_deploy(path, id)?).await?.part()?;
    let is_open =
        matches!(report.state.known(), Some(DeployReportState::Waiting | DeployReportState::RollingOut));
    Ok(Some(report).filter(|_| !is_open))
}

/// The files of a folder that are deployed, with the time and size of each.
pub(crate) fn stamps(folder: &Path) -> Outcome<Vec<archive::Stamped>> {
    Ok(archive::files(folder)?.iter().map(archive::File::stamped).collect())
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Deploy {
    id: DeployId,
    status: Word<DeployStatus>,
    dags_upload_url: Option<String>,
    dag_tarball_version: Option<String>,
    rollback_from_id: Option<DeployId>,
}

/// Waits until a deploy is live, unless told not to, and shows it.
async fn follow(session: &Session, path: OfDeployment, made: &Answer<api::Deploy>) -> Outcome {
    let id = made.part::<Deploy>()?.id;
    if !session.wait.is_default() {
        eprintln!("Deploy {id} is on its way.");
        return session.show(&made.raw, &VIEW);
    }
    let (of, watch) = (of_deploy(path, id.as_str())?, Watch::new());
    let rolled_out = async {
        let settled = match session.settled(&path, &watch).await {
            Err(gone) if gone.is_passing() => return Err(gone),
            settled => settled,
        };
        let mut round = 0;
        loop {
            let answer = watch.ask(async || session.get::<api::Get>(&of).await).await?;
            let deploy: Deploy = answer.part()?;
            if !deploy.status.is(DeployStatus::Initialized) {
                return Ok((settled, deploy, answer.raw));
            }
            pause(&mut round).await;
        }
    };
    let (settled, deploy, raw) = session.wait.until(&watch, rolled_out).await?;
    drop(watch);
    let report: Report = session.get::<reports::Get>(&of).await?.part()?;
    if report.state.is(DeployReportState::Superseded) {
        say_settled(&settled?)?;
        eprintln!("A newer deploy replaced {id} before it went live: podium deploy list");
        return session.show(&raw, &VIEW);
    }
    let is_rollback = deploy.rollback_from_id.is_some();
    if deploy.status.is(DeployStatus::Failed) {
        let failed = Failed::new(Exit::OperationFailed, format!("the deploy {id} failed"))
            .details(report.reason.clone())
            .details(report::tracebacks(&report, MOST_TRACEBACKS))
            .hint("The deploy did not go live: the previous version is still running.");
        // A rollback is never strict.
        let is_strict = report.import_error_count > 0 && !is_rollback;
        return Err(match is_strict {
            true => failed.or_hint(&how_to_go_live(session, &path).await),
            false => failed,
        });
    }
    say_settled(&settled?)?;
    // Which files a new deploy changes was said before it was sent.
    let lines = if is_rollback { report::lines(&report) } else { report::lines_of_dags(&report) };
    lines.iter().for_each(|line| eprintln!("{line}"));
    match report.import_error_count {
        0 => eprintln!("Deploy {id} is live."),
        broken => {
            let files = podium_api::counted(broken, "file");
            shout(&format!("Deploy {id} is live, but BROKEN: {files} cannot be imported."));
            let of = format!("--deployment {}", path.deployment_id);
            eprintln!("See podium deploy report {id} {of}. To go back: podium deploy rollback {of}");
        }
    }
    session.show(&raw, &VIEW)
}

/// What somebody can do whose deploy failed because of files that cannot be imported.
async fn how_to_go_live(session: &Session, path: &OfDeployment) -> String {
    match session.get::<deployments::Get>(path).await {
        Ok(deployment) if deployment.raw["isStrictDeployEnabled"] == true => {
            "The deployment accepts only strict deploys while its isStrictDeployEnabled is true.".to_owned()
        }
        _ => format!("To go live all the same: {}", typed::again_with("--no-strict")),
    }
}

async fn newest(session: &Session, path: &OfDeployment) -> Outcome<String> {
    let newest: Vec<Deploy> = session.all::<api::List, _>(path, &Nothing, Some(1)).await?;
    newest.first().map(|deploy| deploy.id.to_string()).ok_or_else(|| {
        Failed::new(Exit::NotFound, "nothing has been deployed yet").hint("See podium deploy --help.")
    })
}

/// The newest deploy before the current one that can be gone back to.
async fn previous(session: &Session, path: &OfDeployment) -> Outcome<String> {
    let is_deployed = |deploy: &Deploy| deploy.status.is(DeployStatus::Deployed);
    let deployed = session.first::<api::List, _>(path, &Nothing, None, 2, is_deployed).await?;
    deployed.get(1).map(|deploy| deploy.id.to_string()).ok_or_else(|| {
        Failed::new(Exit::NotFound, "there is no earlier deploy to go back to")
            .hint("List deploys: podium deploy list")
    })
}

fn of_deploy(path: OfDeployment, deploy: &str) -> Outcome<OfDeploy> {
    let deploy_id = id(deploy, "a deploy", "See podium deploy list.")?;
    Ok(OfDeploy { organization_id: path.organization_id, deployment_id: path.deployment_id, deploy_id })
}
