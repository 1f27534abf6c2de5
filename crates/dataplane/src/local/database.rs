//! Metadata databases of environments: a copy of a migrated template, in a file or on a PostgreSQL server.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use tokio::sync::Mutex;

use super::isolation::Isolation;
use super::layout::Place;
use super::options::AirflowDatabase;
use super::postgres::Cluster;
use super::process::arguments;
use super::python::readable_by_all;
use super::runtimes::{Runtime, run};
use super::server_url;
use super::settings::Variables;
use super::state::State;
use crate::Hidden;

/// Templates are made one after the other: two environments of a new runtime would be in each other's way.
static TEMPLATES: Mutex<()> = Mutex::const_new(());

/// The most connections that one environment has to the plane's own server, so that none takes them all.
pub(super) const CONNECTIONS_OF_ONE: u32 = 150;

/// Where the metadata databases are.
#[derive(Clone)]
pub(super) struct Databases {
    /// Where new ones are made.
    pub(super) kind: Kind,
    /// The server that is given, by the URL of its administrator.
    server: Option<Hidden>,
    /// The server of the plane's own, whether anything is on it or not.
    pub(super) cluster: Arc<Cluster>,
}

/// What a metadata database is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Nothing: it is a file of its environment.
    Files,
    /// The server that is given.
    Server,
    /// The server of the plane's own.
    Private,
}

/// Where one metadata database is.
#[derive(Clone, Debug)]
pub(super) enum At {
    /// In a file of its environment.
    File,
    /// On a server, whose administrator the URL names, with a bound on its connections where the server is shared with
    /// other environments only.
    Server { admin: Hidden, connections: Option<u32> },
}

impl Databases {
    /// Decides where new ones are made.
    pub(super) fn new(choice: &AirflowDatabase, plane: &Path, cluster: Arc<Cluster>) -> Self {
        let (kind, server) = match choice {
            AirflowDatabase::Sqlite => (Kind::Files, None),
            AirflowDatabase::Private => (Kind::Private, None),
            AirflowDatabase::Server(url) => (Kind::Server, Some(url.clone())),
            AirflowDatabase::Best => match Cluster::why_not(plane) {
                None => (Kind::Private, None),
                Some(why) => {
                    tracing::info!(why, "metadata databases of new environments are SQLite files");
                    (Kind::Files, None)
                }
            },
        };
        Self { kind, server, cluster }
    }

    /// What the database of an environment is on: where it was made. A new one is made where they are made now.
    pub(super) fn kind_of(&self, state: &State) -> Kind {
        match (&state.server_runtime, &state.migrated_for) {
            (Some(_), _) if state.is_private => Kind::Private,
            (Some(_), _) => Kind::Server,
            (None, Some(_)) => Kind::Files,
            (None, None) => self.kind,
        }
    }

    /// The directories of sockets that lead to the server of an environment's database.
    pub(super) fn sockets(&self, state: &State) -> Option<PathBuf> {
        match self.kind_of(state) {
            Kind::Files => None,
            Kind::Private => self.cluster.socket_directory().ok(),
            Kind::Server => server_url::socket_directory(self.server.as_ref()?.reveal()),
        }
    }

    /// Where the database of an environment is. A server of the plane's own is up then.
    pub(super) async fn of(&self, state: &State) -> Result<At, String> {
        match self.kind_of(state) {
            Kind::Files => Ok(At::File),
            Kind::Private => {
                let admin = self.cluster.ensure().await?;
                Ok(At::Server { admin, connections: Some(CONNECTIONS_OF_ONE) })
            }
            Kind::Server => match &self.server {
                Some(admin) => Ok(At::Server { admin: admin.clone(), connections: None }),
                None => Err(
                    "it is on a PostgreSQL server: start the control plane with --airflow-database and the \
                             URL of that server, as when the deployment was made"
                        .into(),
                ),
            },
        }
    }
}

/// The database of one environment.
pub(super) struct Database<'a> {
    pub(super) at: At,
    pub(super) place: &'a Place,
    pub(super) namespace: &'a str,
    pub(super) password: Hidden,
    pub(super) support: &'a Path,
}

/// The name of a database on a server, which is also its role.
pub(super) fn name_of(namespace: &str) -> String {
    format!("podium_{}", namespace.replace('-', "_"))
}

impl Database<'_> {
    /// The URL that Airflow is told.
    pub(super) fn url(&self) -> Hidden {
        let url = match &self.at {
            At::File => format!("sqlite:///{}", self.place.database_file().display()),
            At::Server { admin, .. } => server_url::of_environment(admin, &self.name(), &self.password),
        };
        Hidden::new(url)
    }

    /// Its name on the server, which is also its role.
    fn name(&self) -> String {
        name_of(self.namespace)
    }

    /// Makes it from the template of a runtime, unless it is there.
    pub(super) async fn make(&self, runtime: &Runtime, isolation: &Isolation) -> Result<(), String> {
        match &self.at {
            At::File => {
                let file = self.place.database_file();
                if file.exists() {
                    return Ok(());
                }
                // There as a whole or not at all.
                let draft = file.with_extension("draft");
                let copied = fs::copy(runtime.template(), &draft).and_then(|_| {
                    fs::set_permissions(&draft, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
                    isolation.give(&draft)?;
                    fs::rename(&draft, &file)
                });
                copied.map_err(|error| format!("the metadata database cannot be made: {error}"))
            }
            At::Server { admin, .. } => {
                let template = format!("podium_template_{}", runtime.version.to_string().replace('.', "_"));
                let fail = |why| format!("the metadata database cannot be made: {why}");
                self.make_template(runtime, admin, &template).await.map_err(fail)?;
                let mut ensure = self.script(runtime, admin, "ensure");
                ensure.env("TEMPLATE", template).env("PASSWORD", self.password.reveal());
                if let At::Server { connections: Some(most), .. } = &self.at {
                    ensure.env("CONNECTIONS", most.to_string());
                }
                run(ensure, |_| {}).await.map_err(fail)
            }
        }
    }

    async fn make_template(&self, runtime: &Runtime, admin: &Hidden, name: &str) -> Result<(), String> {
        let _turn = TEMPLATES.lock().await;
        let mut make = self.script(runtime, admin, "template");
        let output = make.env("TEMPLATE", name).stderr(Stdio::piped()).output().await;
        let output = output.map_err(|error| error.to_string())?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let words = said.lines().rev().find(|line| !line.trim().is_empty());
            return Err(words.unwrap_or("no reason was given").trim().to_owned());
        }
        if output.stdout.starts_with(b"there") {
            return Ok(());
        }
        let url = server_url::of_database(admin, &format!("{name}_draft"));
        let mut migrate = readable_by_all(runtime.program("airflow"));
        migrate
            .args(["db", "migrate"])
            .env_clear()
            .env("PATH", runtime.programs())
            .env("HOME", self.place.temporary())
            .env("AIRFLOW_HOME", self.place.temporary())
            .env("AIRFLOW__CORE__LOAD_EXAMPLES", "False")
            .env("AIRFLOW__DATABASE__LOAD_DEFAULT_CONNECTIONS", "False")
            .env("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", url);
        run(migrate, |_| {}).await?;
        let mut keep = self.script(runtime, admin, "keep");
        keep.env("TEMPLATE", name);
        run(keep, |_| {}).await
    }

    /// Drops it, where it is on a server; a file goes with its directory.
    pub(super) async fn drop(&self, runtime: &Runtime) -> Result<(), String> {
        match &self.at {
            At::File => Ok(()),
            At::Server { admin, .. } => run(self.script(runtime, admin, "drop"), |_| {})
                .await
                .map_err(|why| format!("the metadata database cannot be dropped: {why}")),
        }
    }

    fn script(&self, runtime: &Runtime, admin: &Hidden, verb: &str) -> tokio::process::Command {
        let mut command = tokio::process::Command::new(runtime.program("python"));
        command
            .arg(self.support.join("podium_database.py"))
            .arg(verb)
            .env_clear()
            .env("PATH", runtime.programs())
            .env("ADMIN_URL", admin.reveal())
            .env("DATABASE", self.name())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        command
    }
}

/// What brings a database from one runtime to another: run with the newer of the two.
pub(super) fn migration(newer: &Runtime, to: &Runtime) -> Vec<OsString> {
    let airflow = newer.program("airflow");
    if newer.version == to.version {
        return arguments(airflow, ["db", "migrate"]);
    }
    arguments(airflow, ["db", "downgrade", "--yes", "--to-version", &to.version.to_string()])
}

/// Runs one of an environment's programs to its end.
pub(super) async fn run_within(
    isolation: &Isolation,
    arguments: &[OsString],
    variables: &Variables,
    directory: &Path,
) -> Result<(), String> {
    let mut command = isolation.command(arguments, variables);
    command.current_dir(directory).stdin(Stdio::null());
    let mut command = tokio::process::Command::from(command);
    command.kill_on_drop(true);
    run(command, |_| {}).await
}
