//! Metadata databases of environments: a copy of a migrated template, in a file or on a PostgreSQL server.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Stdio;

use tokio::sync::Mutex;

use super::isolation::Isolation;
use super::layout::Place;
use super::process::arguments;
use super::python::readable_by_all;
use super::runtimes::{Runtime, run};
use super::settings::Variables;
use super::state::State;
use crate::Hidden;

/// Templates are made one after the other: two environments of a new runtime would be in each other's way.
static TEMPLATES: Mutex<()> = Mutex::const_new(());

/// Where the metadata databases are.
#[derive(Clone, Debug)]
pub(super) enum Databases {
    /// Each is a file of its environment.
    Files,
    /// On this server, whose administrator the URL names.
    Server(Hidden),
}

/// What an environment keeps that began with a file, whatever the server is started with later.
static FILES: Databases = Databases::Files;

impl Databases {
    /// Where the database of an environment is: where it was made. A new one is made where they are made now.
    pub(super) fn of<'a>(&'a self, state: &State) -> Result<&'a Self, String> {
        match (&state.server_runtime, &state.migrated_for, self) {
            (Some(_), _, Self::Files) => Err("it is on a PostgreSQL server: start the control plane with \
                                              --airflow-database-url, as when the deployment was made"
                .into()),
            (None, Some(_), _) => Ok(&FILES),
            _ => Ok(self),
        }
    }
}

/// The database of one environment.
pub(super) struct Database<'a> {
    pub(super) databases: &'a Databases,
    pub(super) place: &'a Place,
    pub(super) namespace: &'a str,
    pub(super) password: Hidden,
    pub(super) support: &'a Path,
}

impl Database<'_> {
    /// The URL that Airflow is told.
    pub(super) fn url(&self) -> Hidden {
        let url = match self.databases {
            Databases::Files => format!("sqlite:///{}", self.place.database_file().display()),
            Databases::Server(admin) => {
                let url = admin.reveal();
                let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
                let host = rest.split('/').next().unwrap_or_default();
                let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
                let (name, password) = (self.name(), self.password.reveal());
                format!("postgresql+psycopg2://{name}:{password}@{host}/{name}")
            }
        };
        Hidden::new(url)
    }

    /// Its name on the server, which is also its role.
    fn name(&self) -> String {
        format!("podium_{}", self.namespace.replace('-', "_"))
    }

    /// Makes it from the template of a runtime, unless it is there.
    pub(super) async fn make(&self, runtime: &Runtime, isolation: &Isolation) -> Result<(), String> {
        match self.databases {
            Databases::Files => {
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
            Databases::Server(admin) => {
                let template = format!("podium_template_{}", runtime.version.to_string().replace('.', "_"));
                let fail = |why| format!("the metadata database cannot be made: {why}");
                self.make_template(runtime, admin, &template).await.map_err(fail)?;
                let mut ensure = self.script(runtime, admin, "ensure");
                ensure.env("TEMPLATE", template).env("PASSWORD", self.password.reveal());
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
        let base = admin.reveal().replacen("postgres://", "postgresql://", 1);
        let url = match base.splitn(4, '/').collect::<Vec<_>>().as_slice() {
            [scheme, empty, host, ..] => format!("{scheme}/{empty}/{host}/{name}_draft"),
            _ => base.clone(),
        };
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
        match self.databases {
            Databases::Files => Ok(()),
            Databases::Server(admin) => run(self.script(runtime, admin, "drop"), |_| {})
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
