//! `podium dev`: a project that runs while it is written.
//!
//! A server is started if none is named, the project gets a deployment of its own, and every saved file is deployed. At the end
//! the deployment is put to sleep and the server stopped, also after Ctrl-C; what a kill leaves behind, the next `podium dev`
//! finds and uses again.

mod changes;
mod logs;
mod server;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use podium_api::deployments::{self, CreateDeploymentRequest};
use podium_api::enums::{DeployReportState, DeploymentStatus};
use podium_api::path::{InOrganization, OfDeployment};
use podium_api::union::OneOf;
use podium_api::workspaces::{self, CreateWorkspaceRequest};
use podium_api::{Nothing, WorkspaceId};
use podium_terminal as terminal;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use self::changes::Snapshot;
use self::server::Server;
use super::deploys::Report;
use super::{
    Called, Exit, Failed, Outcome, Progress, Session, Setup, beside, dags, deploys, front_door, pause,
    printable,
};
use crate::client::airflow::Airflow;
use crate::client::follow::Now;
use crate::client::project::{FILE, Project, settings};

/// How long the deployment may take to fall asleep at the end.
const FALLING_ASLEEP: Duration = Duration::from_mins(15);
const HELP: &str = "o opens Airflow, t DAG starts a run, q stops; each with Enter.";

/// Run a project while you write it: every saved file is live within seconds.
#[derive(Args)]
#[command(after_help = "\
Examples:
  podium dev
  podium dev hello
  podium dev hello --keep
  podium dev hello --all-logs
  podium dev hello --context staging")]
pub(crate) struct Dev {
    /// Folder of the project.
    #[arg(default_value = ".")]
    folder: PathBuf,
    /// Name of the deployment; the default is the name in podium.yaml, or that of the folder.
    #[arg(long, env = "PODIUM_DEPLOYMENT")]
    deployment: Option<String>,
    /// Leave the deployment and the server running at the end.
    #[arg(long)]
    keep: bool,
    /// Show all log lines; by default only those of tasks, and warnings and errors of other components.
    #[arg(long)]
    all_logs: bool,
    /// Directory of the server that podium dev starts if no server is named; the default is in your state directory.
    #[arg(long, env = "PODIUM_DEV_DIR", value_name = "DIRECTORY")]
    dev_dir: Option<PathBuf>,
    #[command(flatten)]
    setup: Setup,
}

/// A project and the deployment that runs it.
struct Running<'a> {
    session: &'a Session,
    path: OfDeployment,
    folder: PathBuf,
    name: String,
    all_logs: bool,
}

impl Dev {
    pub(crate) async fn run(self) -> Outcome {
        deploys::is_folder(&self.folder)?;
        let (mut interrupted, mut terminated) =
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        let server = match self.setup.target.is_named() {
            true => None,
            false => Some(Server::start(self.dev_dir.clone()).await?),
        };
        let session = match &server {
            Some(server) => self.setup.open_at(server.url(), server.token()?)?,
            None => self.setup.open()?,
        };
        let found = match session.never_plans("podium dev changes only its own deployment.") {
            Ok(()) => tokio::select! {
                found = self.find(&session) => found.map(Some),
                _ = interrupted.recv() => Ok(None),
                _ = terminated.recv() => Ok(None),
            },
            Err(failed) => Err(failed),
        };
        let (found, worked) = match found {
            Ok(Some(running)) => {
                let worked = tokio::select! {
                    done = running.work() => done,
                    _ = interrupted.recv() => Ok(()),
                    _ = terminated.recv() => Ok(()),
                };
                (Some(running), worked)
            }
            Ok(None) => (None, Ok(())),
            Err(failed) => (None, Err(failed)),
        };
        let ended = tokio::select! {
            done = self.end(&session, found.as_ref(), server) => done,
            stopped = is_stopped_again() => stopped,
        };
        worked.and(ended)
    }

    /// The deployment of the project: made if there is none, and awake.
    async fn find<'a>(&self, session: &'a Session) -> Outcome<Running<'a>> {
        let project = Project::read(&self.folder)?.being_written();
        let folder = self.folder.canonicalize()?;
        let of_folder = folder.file_name().and_then(|name| name.to_str()).map(str::to_owned);
        let Some(name) = self.deployment.clone().or(project.deployment.clone()).or(of_folder) else {
            return Err(Failed::usage(format!("name the deployment in {FILE}, or with --deployment")));
        };
        let organization = session.in_organization().await?;
        let workspace_id = match &project.workspace {
            Some(workspace) => self.workspace_of(session, &organization, workspace, &project).await?,
            None => session.chosen_workspace(None).await?,
        };
        let path = match session.deployment(&name, Some(workspace_id.as_str())).await {
            Ok(path) => path,
            Err(failed) if failed.exit == Exit::NotFound => {
                let new = project.creation(session, &folder, &name, workspace_id).await?;
                let body = OneOf(CreateDeploymentRequest { is_development_mode: Some(true), ..new });
                let made = session.post::<deployments::Create>(&organization, &body).await;
                let made: Called = made.map_err(settings::translated)?.part()?;
                eprintln!("Created deployment {name}.");
                session.deployment(made.id.as_str(), None).await?
            }
            Err(failed) => return Err(failed),
        };
        let deployment = session.get::<deployments::Get>(&path).await?.raw;
        if deployment["isDevelopmentMode"] != true {
            let message = format!(
                "deployment {name} is not a development deployment: podium dev would overwrite its files"
            );
            return Err(Failed::new(Exit::Refused, message).hint(
                "To create one, give a new name: podium dev --deployment NAME. To deploy once: podium deploy",
            ));
        }
        if deployment["scalingSpec"]["hibernationSpec"]["override"]["isHibernating"] == true {
            session.override_hibernation(&path, false, None).await?;
        }
        Ok(Running { session, path, folder, name, all_logs: self.all_logs })
    }

    /// The workspace that the project names; made if there is none.
    async fn workspace_of(
        &self,
        session: &Session,
        path: &InOrganization,
        name: &str,
        project: &Project,
    ) -> Outcome<WorkspaceId> {
        match session.workspace(name).await {
            Ok(found) => Ok(found.workspace_id),
            Err(failed) if failed.exit == Exit::NotFound => {
                // What is wrong with the rest is said before anything is made.
                project.can_be_created(session, &self.folder).await?;
                let body = CreateWorkspaceRequest { name: name.into(), ..Default::default() };
                let made: Called = session.post::<workspaces::Create>(path, &body).await?.part()?;
                eprintln!("Created workspace {name}.");
                Ok(WorkspaceId::from_raw(made.id))
            }
            Err(failed) => Err(failed),
        }
    }

    /// Puts the deployment to sleep and stops the server, unless they are to be kept.
    async fn end(&self, session: &Session, running: Option<&Running<'_>>, server: Option<Server>) -> Outcome {
        if self.keep {
            if let Some(server) = &server {
                eprintln!("The server keeps running at {}. To stop it: podium dev, then q.", server.url());
            }
            return Ok(());
        }
        if let Some(running) = running {
            running.sleep().await?;
        }
        match server {
            Some(server) if is_quiet(session).await? => server.stop().await,
            Some(_) => {
                eprintln!("The server keeps running, because another project uses it.");
                Ok(())
            }
            None => Ok(()),
        }
    }
}

/// Ends with an error when the person stops it once more, later than a moment after the first time.
async fn is_stopped_again() -> Outcome {
    tokio::time::sleep(Duration::from_secs(1)).await;
    signal(SignalKind::interrupt())?.recv().await;
    Err(Failed::because("stopped before everything was put to sleep")
        .hint("The deployment or the server may still be running: the next podium dev picks them up."))
}

/// Whether no deployment is awake.
async fn is_quiet(session: &Session) -> Outcome<bool> {
    let organization = session.in_organization().await?;
    let is_awake = |now: &Now| !now.status.is(DeploymentStatus::Hibernating);
    let awake = session.first::<deployments::List, _>(&organization, &Nothing, None, 1, is_awake).await?;
    Ok(awake.is_empty())
}

impl Running<'_> {
    /// Deploys what is saved, shows logs and does what is typed, until somebody stops it.
    async fn work(&self) -> Outcome {
        tokio::select! {
            done = self.watch() => done,
            done = logs::show(self.session, &self.path, self.all_logs) => done,
            done = self.listen() => done,
        }
    }

    /// Deploys the project, and again whenever a file was saved.
    async fn watch(&self) -> Outcome {
        let mut saved = Snapshot::take(&self.folder).await?;
        loop {
            let deployed = tokio::select! {
                deployed = self.deploy() => Some(deployed),
                // Something newer was saved: that is deployed instead.
                () = saved.is_outdated(&self.folder) => None,
            };
            match deployed {
                Some(Err(failed)) if failed.exit == Exit::Unreachable => return Err(failed),
                Some(Err(failed)) => {
                    beside(|| failed.report());
                }
                Some(Ok(())) | None => {}
            }
            saved.is_outdated(&self.folder).await;
            let newer = saved.settled(&self.folder).await?;
            let names = newer.differences(&saved).join(", ");
            beside(|| eprintln!("Saved: {}", printable(&names)));
            saved = newer;
        }
    }

    /// Deploys the project and says what came of it.
    async fn deploy(&self) -> Outcome {
        let began = Instant::now();
        let project = Project::read(&self.folder)?.being_written();
        let runtime = project.apply(self.session, &self.folder, &self.path).await?;
        let id = deploys::send(self.session, self.path, &self.folder, runtime).await?;
        let (mut progress, mut round) = (Progress::new(), 0);
        let report = loop {
            let ended = deploys::ended(self.session, self.path, &id).await?;
            let now: Now = self.session.get::<deployments::Get>(&self.path).await?.part()?;
            // The code can be there before everything that serves it is.
            let is_starting = matches!(
                now.status.known(),
                Some(
                    DeploymentStatus::Creating | DeploymentStatus::Deploying | DeploymentStatus::Hibernating
                )
            );
            let is_live = |report: &Report| report.state.is(DeployReportState::Live);
            if let Some(report) = ended.filter(|report| !is_live(report) || !is_starting) {
                break report;
            }
            progress.say(&format!("{} is {}{}", self.name, now.status, now.why()));
            pause(&mut round).await;
        };
        drop(progress);
        beside(|| deploys::report_lines(&report).iter().for_each(|line| eprintln!("{line}")));
        let seconds = began.elapsed().as_secs_f64();
        match report.state.known() {
            Some(DeployReportState::Failed) => Err(Failed::new(Exit::OperationFailed, "the deploy failed")
                .details(report.reason)
                .hint("The previous version is still running. Save a file to try again.")),
            // Somebody else has deployed something newer.
            Some(DeployReportState::Superseded) => Ok(()),
            _ => {
                let broken = match report.import_error_count {
                    0 => String::new(),
                    count => format!(", with {}", podium_api::counted(count, "broken file")),
                };
                let folder = self.folder.display();
                beside(|| eprintln!("Live after {seconds:.1} s{broken}. Watching {folder}."));
                Ok(())
            }
        }
    }

    /// Does what is typed; without a terminal nothing is.
    async fn listen(&self) -> Outcome {
        if !terminal::is_interactive() {
            return std::future::pending().await;
        }
        eprintln!("{HELP}");
        let (typed, mut lines) = mpsc::channel(16);
        // Nobody waits for this thread: it ends with the program.
        std::thread::spawn(move || {
            while let Ok(line) = terminal::line() {
                if typed.blocking_send(line).is_err() {
                    break;
                }
            }
        });
        while let Some(line) = lines.recv().await {
            let done = match line.trim().split_once(' ').unwrap_or((line.trim(), "")) {
                ("q", _) => return Ok(()),
                ("o", _) => front_door::show(self.session, &self.path, false).await,
                ("t", dag) if !dag.trim().is_empty() => self.trigger(dag.trim()).await,
                ("", _) => Ok(()),
                _ => {
                    beside(|| eprintln!("{HELP}"));
                    Ok(())
                }
            };
            if let Err(failed) = done {
                beside(|| failed.report());
            }
        }
        Ok(())
    }

    async fn trigger(&self, dag: &str) -> Outcome {
        let airflow = Airflow::of(self.session, &self.path).await?.asked_once();
        let run = dags::start_now(&airflow, dag).await?;
        beside(|| eprintln!("Started {}.", printable(&run)));
        Ok(())
    }

    /// Puts the deployment to sleep, and waits until it is.
    async fn sleep(&self) -> Outcome {
        if let Err(failed) = self.session.override_hibernation(&self.path, true, None).await {
            // One that was made for something else does not hibernate.
            return if failed.exit == Exit::Failed { Ok(()) } else { Err(failed) };
        }
        let (deadline, mut progress, mut round) = (Instant::now() + FALLING_ASLEEP, Progress::new(), 0);
        loop {
            let now: Now = self.session.get::<deployments::Get>(&self.path).await?.part()?;
            if now.status.is(DeploymentStatus::Hibernating) || Instant::now() > deadline {
                return Ok(());
            }
            progress.say(&format!("Putting {} to sleep; press Ctrl-C to quit without waiting", self.name));
            pause(&mut round).await;
        }
    }
}
