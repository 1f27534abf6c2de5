//! Dumps and restores metadata databases, for backups.
//!
//! Both work whether or not the control plane is running: the plane's own database server is started if needed, and
//! [`Metadata::close`] stops it again if it was not running before.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::Path;
use std::process::Stdio;

use podium_api::DeploymentId;
use podium_domain::{Reason, UserText};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use super::command::{CommandError, run};
use super::database::{Databases, Kind, Location, name_of};
use super::layout::{Layout, Place, rename_whole};
use super::options::Options;
use super::plane::{Plane, databases};
use super::postgres::Programs;
use super::server_url;
use super::services::Services;
use super::state::State;
use super::timing::Timing;
use crate::Secret;
use crate::blocking::{blocking, blocking_exclusive};

/// Copies a SQLite database that may be in use.
const COPY: &str = "import sqlite3, sys\n\
                    source, target = sqlite3.connect(sys.argv[1]), sqlite3.connect(sys.argv[2])\n\
                    source.backup(target)\n\
                    target.close()";

/// The metadata databases of a plane.
pub struct Metadata {
    layout: Layout,
    services: Services,
    databases: Databases,
    /// Whether the plane's own server was running before.
    was_up: bool,
}

impl Metadata {
    /// The databases of the plane with these options; nothing is started.
    pub async fn open(options: &Options, services: Services) -> io::Result<Self> {
        let options = options.clone();
        blocking(move || {
            let layout = Layout::make(&options.directory)?;
            let databases = databases(&options, &services, &layout, Timing::default());
            let was_up = databases.cluster.is_running();
            Ok(Self { layout, services, databases, was_up })
        })
        .await
    }

    /// The databases of an open plane.
    pub(super) fn of_plane(plane: &Plane) -> Self {
        Self {
            layout: plane.layout.clone(),
            services: plane.services.clone(),
            databases: plane.databases.clone(),
            was_up: true,
        }
    }

    /// The existing environments.
    pub async fn environments(&self) -> io::Result<Vec<DeploymentId>> {
        let layout = self.layout.clone();
        blocking(move || layout.known()).await
    }

    /// Dumps the database of an environment to a new file, as a consistent snapshot; returns whether it has one. The
    /// environment may be running.
    pub async fn dump(&self, id: DeploymentId, into: &Path) -> Result<bool, Reason> {
        let (place, state) = self.find(id).await?;
        let what = UserText::filled("the metadata database of {} cannot be saved", &[&id]);
        let fail = |error: CommandError| Reason::new(what.clone(), error);
        if state.migrated_for.is_none() {
            return Ok(false);
        }
        match self.databases.of(&state).await? {
            Location::File => {
                let mut copy = Command::new(self.python(&state));
                copy.arg("-c").arg(COPY).arg(place.database_file()).arg(into).env_clear().kill_on_drop(true);
                run(copy, |_| {}).await.map_err(fail)?;
            }
            Location::Server { admin, .. } => {
                let mut dump =
                    self.client(&state, "pg_dump").await.map_err(|why| why.within(what.clone()))?;
                dump.args(["--format", "custom", "--no-owner", "--no-acl", "--file"]).arg(into);
                connect(&mut dump, &admin, &name_of(&state.namespace));
                run(dump, |_| {}).await.map_err(fail)?;
            }
        }
        let into = into.to_owned();
        let closed = blocking(move || fs::set_permissions(into, fs::Permissions::from_mode(0o600))).await;
        closed.map_err(|error| fail(error.into()))?;
        Ok(true)
    }

    /// Recreates the database of an environment from such a file. The environment must not be running, and its saved
    /// state (`state.json`) must exist.
    pub async fn restore(&self, id: DeploymentId, from: &Path) -> Result<(), Reason> {
        let (place, state) = self.find(id).await?;
        let what = UserText::filled("the metadata database of {} cannot be restored", &[&id]);
        let fail = |error: CommandError| Reason::new(what.clone(), error);
        match self.databases.of(&state).await? {
            Location::File => {
                let (from, directory) = (from.to_owned(), place.database());
                let put = blocking_exclusive(&directory, move || put(&from, &place)).await;
                put.map_err(|error| Reason::of_io(what, &error))
            }
            Location::Server { admin, connections } => {
                let name = name_of(&state.namespace);
                let password = (self.services.keys)(id, "database");
                self.make_empty(&state, &admin, &name, &password, connections)
                    .await
                    .map_err(|why| why.within(what.clone()))?;
                let mut restore =
                    self.client(&state, "pg_restore").await.map_err(|why| why.within(what.clone()))?;
                restore.args([
                    "--no-owner",
                    "--no-acl",
                    "--exit-on-error",
                    "--single-transaction",
                    "--role",
                    &name,
                ]);
                connect(&mut restore, &admin, &name);
                restore.arg(from);
                run(restore, |_| {}).await.map_err(fail)
            }
        }
    }

    /// Stops the plane's own server if it was started only for this.
    pub async fn close(self) {
        if self.was_up {
            self.databases.cluster.stop_supervising();
        } else {
            self.databases.cluster.stop_unless(async { false }).await;
        }
    }

    async fn find(&self, id: DeploymentId) -> Result<(Place, State), Reason> {
        let place = self.layout.environment(id);
        let path = place.state();
        let state = blocking(move || State::read(&path)).await;
        let state = state.map_err(|error| Reason::of_io("its saved state cannot be read", &error))?;
        let unknown = || UserText::filled("there is no environment {}", &[&id]);
        Ok((place, state.ok_or_else(unknown)?))
    }

    /// The interpreter of the runtime that an environment's database belongs to.
    fn python(&self, state: &State) -> std::path::PathBuf {
        let version = state.migrated_for.clone().unwrap_or_default();
        self.layout.runtimes().join(version).join("bin/python")
    }

    /// A PostgreSQL client program: of the cluster's own version, or the newest.
    async fn client(&self, state: &State, name: &'static str) -> Result<Command, Reason> {
        let program = match self.databases.kind_of(state) {
            Kind::Private => self.databases.cluster.programs().await?.program(name),
            _ => {
                let found = blocking(Programs::find).await;
                found.first().map_or_else(|| name.into(), |programs| programs.program(name))
            }
        };
        let mut command = Command::new(program);
        command.env_clear().env("PATH", "/usr/bin:/bin").env("LC_ALL", "C");
        command.stdin(Stdio::null()).kill_on_drop(true);
        Ok(command)
    }

    /// Creates an empty database and its role; an existing database is dropped.
    async fn make_empty(
        &self,
        state: &State,
        admin: &Secret,
        name: &str,
        password: &Secret,
        connections: Option<u32>,
    ) -> Result<(), Reason> {
        let is_plain =
            |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-=".contains(&byte));
        let password = password.reveal();
        if !is_plain(name) || !is_plain(password) {
            return Err("its name or password contains unsupported characters".into());
        }
        let most = connections.map_or(-1, u32::cast_signed);
        let script = format!(
            "DROP DATABASE IF EXISTS \"{name}\" WITH (FORCE);\n\
             SELECT 'CREATE ROLE \"{name}\"' WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{name}') \\gexec\n\
             ALTER ROLE \"{name}\" LOGIN PASSWORD '{password}' CONNECTION LIMIT {most};\n\
             CREATE DATABASE \"{name}\" OWNER \"{name}\" TEMPLATE template0 ENCODING 'UTF8';\n\
             REVOKE ALL ON DATABASE \"{name}\" FROM PUBLIC;\n"
        );
        self.run_sql(state, admin, "postgres", &script).await?;
        let script = format!("ALTER SCHEMA public OWNER TO \"{name}\";\n");
        self.run_sql(state, admin, name, &script).await
    }

    /// Runs statements, which do not appear on a command line.
    async fn run_sql(&self, state: &State, admin: &Secret, name: &str, script: &str) -> Result<(), Reason> {
        let fail = |error: CommandError| Reason::new("the server cannot create it", error);
        let mut psql = self.client(state, "psql").await?;
        psql.args(["--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1"]);
        connect(&mut psql, admin, name);
        psql.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = psql.spawn().map_err(|error| fail(error.into()))?;
        if let Some(mut input) = child.stdin.take() {
            input.write_all(script.as_bytes()).await.map_err(|error| fail(error.into()))?;
        }
        let output = child.wait_with_output().await.map_err(|error| fail(error.into()))?;
        let said = String::from_utf8_lossy(&output.stderr);
        if output.status.success() {
            return Ok(());
        }
        let (said, status) = (said.trim().chars().take(300).collect(), output.status);
        Err(fail(CommandError::Failed { said, status }))
    }
}

/// Sets the connection of a client. The password is not on the command line.
fn connect(command: &mut Command, admin: &Secret, name: &str) {
    let (url, password) = server_url::without_password(&server_url::of_database(admin, name));
    command.arg("--dbname").arg(url);
    if let Some(password) = password {
        command.env("PGPASSWORD", password.reveal());
    }
}

/// Atomically moves the file of a SQLite database into place.
fn put(from: &Path, place: &Place) -> std::io::Result<()> {
    let file = place.database_file();
    fs::create_dir_all(place.database())?;
    let draft = file.with_extension("draft");
    fs::copy(from, &draft)?;
    fs::set_permissions(&draft, fs::Permissions::from_mode(0o600))?;
    let owner = fs::metadata(place.database())?;
    chown(&draft, Some(owner.uid()), Some(owner.gid()))?;
    // The old database's write-ahead log must not be applied to the new file.
    for left in ["airflow.db-wal", "airflow.db-shm", "airflow.db-journal"] {
        match fs::remove_file(place.database().join(left)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    rename_whole(&draft, &file)
}

#[cfg(test)]
mod tests;
