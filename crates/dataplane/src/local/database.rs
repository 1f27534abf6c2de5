//! Metadata databases of environments: a copy of a migrated template, in a file or on a PostgreSQL server.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::{fs, io};

use podium_airflow::database_url;
use podium_domain::Reason;
use tokio::sync::Mutex;

use super::command::{CommandError, run};
use super::isolation::Isolation;
use super::layout::{Place, rename_whole};
use super::options::AirflowDatabase;
use super::postgres::Cluster;
use super::runtimes::Runtime;
use super::state::State;
use crate::Secret;
use crate::blocking::{assert_may_block, blocking_exclusive};

/// Templates are created one at a time: two environments of a new runtime would interfere with each other. Servers that
/// share a database server wait for each other there.
static TEMPLATES: Mutex<()> = Mutex::const_new(());

/// The connection limit of one environment on the plane's own server, so that none can take them all.
pub(super) const MAX_CONNECTIONS_PER_ENVIRONMENT: u32 = 150;

#[derive(Clone)]
pub(super) struct Databases {
    /// Where new ones are created.
    pub(super) kind: Kind,
    /// The administrator's URL of the configured server.
    server: Option<Secret>,
    /// The plane's own server, whether it holds databases or not.
    pub(super) cluster: Arc<Cluster>,
}

/// What holds a metadata database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A SQLite file of its environment.
    Files,
    Server,
    /// The plane's own server.
    Private,
}

#[derive(Clone, Debug)]
pub(super) enum Location {
    /// In a file of its environment.
    File,
    /// On a server, with its administrator's URL, and a connection limit if only environments share the server.
    Server { admin: Secret, connections: Option<u32> },
}

impl Databases {
    /// Decides where new databases are created.
    pub(super) fn new(choice: &AirflowDatabase, plane: &Path, cluster: Arc<Cluster>) -> Self {
        let (kind, server) = match choice {
            AirflowDatabase::Sqlite => (Kind::Files, None),
            AirflowDatabase::Private => (Kind::Private, None),
            AirflowDatabase::Server(url) => (Kind::Server, Some(url.clone())),
            AirflowDatabase::Best => match Cluster::why_not(plane) {
                None => (Kind::Private, None),
                Some(why) => {
                    tracing::info!(%why, "metadata databases of new environments are SQLite files");
                    (Kind::Files, None)
                }
            },
        };
        Self { kind, server, cluster }
    }

    /// What holds the database of an environment: where it was created, or for a new one where they are created now.
    pub(super) fn kind_of(&self, state: &State) -> Kind {
        match (&state.server_runtime, &state.migrated_for) {
            (Some(_), _) if state.is_private => Kind::Private,
            (Some(_), _) => Kind::Server,
            (None, Some(_)) => Kind::Files,
            (None, None) => self.kind,
        }
    }

    /// The paths that a client of an environment's database needs: the socket directory, and files with trusted
    /// certificates.
    pub(super) fn required_paths(&self, state: &State) -> Vec<PathBuf> {
        match (self.kind_of(state), &self.server) {
            (Kind::Files, _) | (Kind::Server, None) => Vec::new(),
            (Kind::Private, _) => self.cluster.socket_directory().into_iter().collect(),
            (Kind::Server, Some(url)) => {
                let files = database_url::files(url.reveal());
                database_url::socket_directory(url.reveal()).into_iter().chain(files).collect()
            }
        }
    }

    /// Where the database of an environment is. Starts the plane's own server if the database is there.
    pub(super) async fn of(&self, state: &State) -> Result<Location, Reason> {
        match self.kind_of(state) {
            Kind::Files => Ok(Location::File),
            Kind::Private => {
                let admin = self.cluster.ensure().await?;
                Ok(Location::Server { admin, connections: Some(MAX_CONNECTIONS_PER_ENVIRONMENT) })
            }
            Kind::Server => match &self.server {
                Some(admin) => Ok(Location::Server { admin: admin.clone(), connections: None }),
                None => Err(
                    "the database is on a PostgreSQL server: start the control plane with --airflow-database and the URL of that server, as it was when the deployment was created"
                        .into(),
                ),
            },
        }
    }
}

pub(super) struct Database<'a> {
    pub(super) at: Location,
    /// The socket directory through which the environment reaches it, if that is not the server's own.
    pub(super) relay: Option<PathBuf>,
    pub(super) place: &'a Place,
    pub(super) namespace: &'a str,
    pub(super) password: Secret,
    pub(super) support: &'a Path,
}

/// The name of a database on a server, which is also its role.
pub(super) fn name_of(namespace: &str) -> String {
    format!("podium_{}", namespace.replace('-', "_"))
}

/// The name under which a database on a server is made: no environment's contains a hyphen.
pub(super) fn draft_of(name: &str) -> String {
    format!("{name}-draft")
}

impl Database<'_> {
    pub(super) fn url(&self) -> Secret {
        let url = match &self.at {
            Location::File => format!("sqlite:///{}", self.place.database_file().display()),
            Location::Server { admin, .. } => {
                let relay = |at: &PathBuf| Secret::new(format!("postgresql:///?host={}", at.display()));
                let server = self.relay.as_ref().map_or_else(|| admin.clone(), relay);
                database_url::of_environment(&server, &self.name(), &self.password)
            }
        };
        Secret::new(url)
    }

    /// Its name on the server, which is also its role.
    fn name(&self) -> String {
        name_of(self.namespace)
    }

    /// Creates it from the template of a runtime, unless it exists.
    pub(super) async fn make(&self, runtime: &Runtime, isolation: &Isolation) -> Result<(), Reason> {
        match &self.at {
            Location::File => {
                let (template, file) = (runtime.template(), self.place.database_file());
                let isolation = isolation.clone();
                let copied =
                    blocking_exclusive(&self.place.database(), move || copy(&template, &file, &isolation))
                        .await;
                copied.map_err(|error| Reason::of_io(NOT_MADE, &error))
            }
            Location::Server { admin, .. } => {
                let template = format!("podium_template_{}", runtime.version.to_string().replace('.', "_"));
                self.make_template(runtime, admin, &template).await?;
                let mut ensure = self.script(runtime, admin, "ensure");
                ensure.env("TEMPLATE", template).env("PASSWORD", self.password.reveal());
                if let Location::Server { connections: Some(most), .. } = &self.at {
                    ensure.env("CONNECTIONS", most.to_string());
                }
                run(ensure, |_| {}).await.map_err(not_made)
            }
        }
    }

    async fn make_template(&self, runtime: &Runtime, admin: &Secret, name: &str) -> Result<(), Reason> {
        let _turn = TEMPLATES.lock().await;
        let mut make = self.script(runtime, admin, "template");
        make.arg(runtime.program("airflow"))
            .args(["db", "migrate"])
            .env("TEMPLATE", name)
            .env("HOME", self.place.temporary())
            .env("AIRFLOW_HOME", self.place.temporary())
            .env("AIRFLOW__CORE__LOAD_EXAMPLES", "False")
            .env("AIRFLOW__DATABASE__LOAD_DEFAULT_CONNECTIONS", "False")
            .env("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", database_url::of_database(admin, &draft_of(name)));
        run(make, |_| {}).await.map_err(not_made)
    }

    /// Drops it if it is on a server; a file is removed with its directory.
    pub(super) async fn drop(&self, runtime: &Runtime) -> Result<(), Reason> {
        match &self.at {
            Location::File => Ok(()),
            Location::Server { admin, .. } => run(self.script(runtime, admin, "drop"), |_| {})
                .await
                .map_err(|error| Reason::new("the metadata database cannot be dropped", error)),
        }
    }

    fn script(&self, runtime: &Runtime, admin: &Secret, verb: &str) -> tokio::process::Command {
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

/// The text for users if a database cannot be created.
const NOT_MADE: &str = "the metadata database cannot be created";

fn not_made(error: CommandError) -> Reason {
    Reason::new(NOT_MADE, error)
}

/// Copies a template unless the file exists: atomically and durably.
fn copy(template: &Path, file: &Path, isolation: &Isolation) -> io::Result<()> {
    assert_may_block();
    if file.exists() {
        return Ok(());
    }
    let draft = file.with_extension("draft");
    fs::copy(template, &draft)?;
    fs::set_permissions(&draft, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    isolation.give(&draft)?;
    rename_whole(&draft, file)
}
