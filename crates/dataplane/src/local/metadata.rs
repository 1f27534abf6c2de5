//! Dumps and restores metadata databases on a server, for backups; those in files are copied as files.
//!
//! Both connect as the environment's own role: what an author has put into its database may run when it is dumped or
//! restored, and must gain nothing by that.
//!
//! Both work whether or not the control plane is running: the plane's own database server is started if needed, and
//! [`Metadata::close`] stops it again if it was not running before.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use podium_airflow::database_url;
use podium_api::DeploymentId;
use podium_domain::{Reason, UserText};

use super::command::{ADMINS, CommandError, client, connect, run, run_sql};
use super::database::{Databases, Kind, Location, draft_of, name_of};
use super::layout::Layout;
use super::options::Options;
use super::plane::{Plane, databases};
use super::postgres::Programs;
use super::state::State;
use super::timing::Timing;
use crate::blocking::blocking;
use crate::{Keys, Secret};

/// Why there is no dump of some databases.
const IN_FILE: &str = "it is in a file, which is copied as it is";
/// How long a dump waits for a table that its environment has locked, in milliseconds.
const LOCKED: &str = "60000";

/// The role of an environment, which owns its database.
struct Role {
    name: String,
    password: Secret,
    connections: Option<u32>,
}

impl Role {
    /// Sets the properties that it had when it was created; its environment may have changed the password.
    fn altered(&self) -> String {
        let (name, password) = (&self.name, self.password.reveal());
        let most = self.connections.map_or(-1, u32::cast_signed);
        format!("ALTER ROLE \"{name}\" LOGIN PASSWORD '{password}' CONNECTION LIMIT {most};\n")
    }

    /// Makes sure that it can connect to its database, which its environment may have prevented.
    fn opened(&self) -> String {
        let name = &self.name;
        format!(
            "{}ALTER DATABASE \"{name}\" ALLOW_CONNECTIONS true;\n\
             ALTER DATABASE \"{name}\" CONNECTION LIMIT -1;\n\
             GRANT CONNECT ON DATABASE \"{name}\" TO \"{name}\";\n",
            self.altered()
        )
    }
}

pub struct Metadata {
    layout: Layout,
    keys: Keys,
    databases: Databases,
    /// Whether the plane's own server was running before.
    was_up: bool,
}

impl Metadata {
    /// The databases of the plane with these options; nothing is started.
    pub async fn open(options: &Options, keys: Keys) -> io::Result<Self> {
        let mut options = options.clone();
        blocking(move || {
            let layout = Layout::make(&options.directory)?;
            layout.root.clone_into(&mut options.directory);
            let databases = databases(&options, &keys, &layout, Timing::default());
            let was_up = databases.cluster.is_running();
            Ok(Self { layout, keys, databases, was_up })
        })
        .await
    }

    pub(super) fn of_plane(plane: &Plane) -> Self {
        Self {
            layout: plane.layout.clone(),
            keys: Arc::clone(&plane.services.keys),
            databases: plane.databases.clone(),
            was_up: true,
        }
    }

    pub async fn environments(&self) -> io::Result<Vec<DeploymentId>> {
        let layout = self.layout.clone();
        blocking(move || layout.known()).await
    }

    /// Dumps the database of an environment to a new file, as a consistent snapshot; returns whether it has one. The
    /// environment may be running.
    pub async fn dump(&self, id: DeploymentId, into: &Path) -> Result<bool, Reason> {
        let state = self.find(id).await?;
        let what = UserText::filled("the metadata database of {} cannot be saved", &[&id]);
        let fail = |error: CommandError| Reason::new(what.clone(), error);
        if state.migrated_for.is_none() {
            return Ok(false);
        }
        match self.databases.of(&state).await? {
            Location::File => return Err(Reason::from(IN_FILE).within(what)),
            Location::Server { admin, connections } => {
                let within = |why: Reason| why.within(what.clone());
                let role = self.role(id, &state, connections).map_err(within)?;
                self.run_sql(&state, &admin, ADMINS, &role.opened()).await.map_err(within)?;
                let mut dump = client(&self.program(&state, "pg_dump").await.map_err(within)?);
                dump.args(["--format", "custom", "--no-owner", "--no-acl", "--lock-wait-timeout", LOCKED]);
                dump.arg("--file").arg(into);
                connect(&mut dump, &database_url::of_environment(&admin, &role.name, &role.password));
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
        let state = self.find(id).await?;
        let what = UserText::filled("the metadata database of {} cannot be restored", &[&id]);
        let fail = |error: CommandError| Reason::new(what.clone(), error);
        match self.databases.of(&state).await? {
            Location::File => Err(Reason::from(IN_FILE).within(what)),
            Location::Server { admin, connections } => {
                let within = |why: Reason| why.within(what.clone());
                let role = self.role(id, &state, connections).map_err(within)?;
                self.make_empty(&state, &admin, &role).await.map_err(within)?;
                let mut restore = client(&self.program(&state, "pg_restore").await.map_err(within)?);
                restore.args(["--no-owner", "--no-acl", "--exit-on-error", "--single-transaction"]);
                connect(&mut restore, &database_url::of_environment(&admin, &role.name, &role.password));
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

    async fn find(&self, id: DeploymentId) -> Result<State, Reason> {
        let path = self.layout.environment(id).state();
        let state = blocking(move || State::read(&path)).await;
        let state = state.map_err(|error| Reason::of_io("its saved state cannot be read", &error))?;
        let unknown = || UserText::filled("there is no environment {}", &[&id]);
        Ok(state.ok_or_else(unknown)?)
    }

    /// A PostgreSQL client program: of the cluster's own version, or the newest.
    async fn program(&self, state: &State, name: &'static str) -> Result<PathBuf, Reason> {
        Ok(match self.databases.kind_of(state) {
            Kind::Private => self.databases.cluster.programs().await?.program(name),
            _ => {
                let found = blocking(Programs::find).await;
                found.first().map_or_else(|| name.into(), |programs| programs.program(name))
            }
        })
    }

    fn role(&self, id: DeploymentId, state: &State, connections: Option<u32>) -> Result<Role, Reason> {
        let (name, password) = (name_of(&state.namespace), (self.keys)(id, "database"));
        let is_plain =
            |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-=".contains(&byte));
        if !is_plain(&name) || !is_plain(password.reveal()) {
            return Err("its name or password contains unsupported characters".into());
        }
        Ok(Role { name, password, connections })
    }

    /// Creates an empty database and its role; an existing database is dropped. It is closed to its owner until nothing
    /// is left to do in it with the administrator's rights.
    async fn make_empty(&self, state: &State, admin: &Secret, role: &Role) -> Result<(), Reason> {
        let (name, draft) = (&role.name, draft_of(&role.name));
        let begin = format!(
            "DROP DATABASE IF EXISTS \"{name}\" WITH (FORCE);\n\
             DROP DATABASE IF EXISTS \"{draft}\" WITH (FORCE);\n\
             SELECT 'CREATE ROLE \"{name}\"' WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{name}') \\gexec\n\
             {}\
             ALTER ROLE \"{name}\" RESET ALL;\n\
             CREATE DATABASE \"{draft}\" TEMPLATE template0 ENCODING 'UTF8' ALLOW_CONNECTIONS false;\n\
             REVOKE ALL ON DATABASE \"{draft}\" FROM PUBLIC;\n\
             ALTER DATABASE \"{draft}\" ALLOW_CONNECTIONS true;\n",
            role.altered()
        );
        self.run_sql(state, admin, ADMINS, &begin).await?;
        let inside = format!("ALTER SCHEMA public OWNER TO \"{name}\";\n");
        self.run_sql(state, admin, &draft, &inside).await?;
        let end = format!(
            "ALTER DATABASE \"{draft}\" RENAME TO \"{name}\";\nALTER DATABASE \"{name}\" OWNER TO \"{name}\";\n"
        );
        self.run_sql(state, admin, ADMINS, &end).await
    }

    async fn run_sql(&self, state: &State, admin: &Secret, name: &str, script: &str) -> Result<(), Reason> {
        let program = self.program(state, "psql").await?;
        let done = run_sql(&program, &database_url::of_database(admin, name), script).await;
        done.map_err(|error| Reason::new("the server cannot create it", error))
    }
}

#[cfg(test)]
mod tests;
