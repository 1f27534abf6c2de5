//! The location of an installation: shared by every command that opens one.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use clap::builder::{PathBufValueParser, TypedValueParser};
use podium_app::secrets::Secrets;
use podium_app::world::World;
use podium_app::{App, Config, Started};
use podium_db::{Db, Target};
use podium_store::System;

use crate::data_dir::{DATABASE, DataDir, LOGS, OBJECTS};
use crate::failure::Failure;

/// A path, made absolute: programs with another working directory are told it, too.
pub(crate) fn absolute() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(std::path::absolute)
}

/// The location of an installation.
#[derive(Args)]
pub(crate) struct Installation {
    /// Directory for the database, keys and files.
    #[arg(long, env = "PODIUM_DATA_DIR", default_value = "./podium-data", value_parser = absolute())]
    pub(crate) data_dir: PathBuf,
    /// Directory for uploaded archives; the default is below the data directory. Several nodes share one.
    #[arg(long, env = "PODIUM_OBJECTS_DIR", value_parser = absolute())]
    pub(crate) objects_dir: Option<PathBuf>,
    /// Database, such as postgres://user@host/podium; the default is SQLite in the data directory.
    #[arg(long, env = "PODIUM_DATABASE_URL", hide_env_values = true)]
    pub(crate) database_url: Option<String>,
    /// Key of the secrets at rest: 32 bytes in base64. The default is a file in the data directory.
    #[arg(long, env = "PODIUM_SECRET_KEY", hide_env_values = true, hide = true)]
    pub(crate) secret_key: Option<String>,
}

impl Installation {
    /// Opens the installation to serve it, creating it if needed; then it prints where the owner's token is.
    pub(crate) async fn open(&self, mut config: Config) -> Result<Started, Failure> {
        config.logs = Some(self.data_dir.join(LOGS));
        self.start(config).await
    }

    async fn start(&self, mut config: Config) -> Result<Started, Failure> {
        let world = Arc::new(World::machine());
        let data_dir = DataDir::open(&self.data_dir)?;
        config.files = self.objects_dir();
        data_dir.refuse_unfinished()?;
        let target = self.target();
        if let Target::Sqlite(path) = &target
            && data_dir.was_used()
        {
            config.is_known = true;
            // Before it is opened, which would create an empty one.
            if std::fs::metadata(path).map_or(0, |file| file.len()) == 0 {
                return Err(App::lost_database(&path.display().to_string()).into());
            }
        }
        let key = match (&self.secret_key, &target) {
            (Some(key), _) => key.clone(),
            (None, Target::Sqlite(_)) => data_dir.secret_key(&world)?,
            (None, Target::Postgres(_)) => {
                return Err("with PostgreSQL set PODIUM_SECRET_KEY to 32 random bytes in base64, the same for every replica \
                            (for example: openssl rand -base64 32)"
                    .into());
            }
        };
        let secrets = Secrets::from_text(&key)?;
        let started = App::start(target, config, secrets, world).await?;
        if let Some(token) = &started.owner_token {
            let path = data_dir.keep_owner_token(token)?;
            let Config { public_url, owner_email, .. } = &started.app.config;
            // Never the token itself: this output may end up in system logs.
            eprintln!("The owner's token is kept in {}.", path.display());
            eprintln!(
                "To use a browser, sign in at {public_url}/sign-in with that token, or as {owner_email} with a password that `podium owner-password` sets."
            );
        }
        Ok(started)
    }

    /// Stores another token of the owner in the data directory, and prints it.
    pub(crate) fn show_owner_token(&self, token: &str) -> Result<(), Failure> {
        let path = DataDir::open(&self.data_dir)?.keep_owner_token(token)?;
        eprintln!("The owner's token, shown once and kept in {}:\n{token}", path.display());
        Ok(())
    }

    pub(crate) fn secrets(&self) -> Result<Secrets, Failure> {
        let key = match &self.secret_key {
            Some(key) => key.clone(),
            None => crate::data_dir::existing_key(&self.data_dir)?,
        };
        Ok(Secrets::from_text(&key)?)
    }

    /// Opens an existing installation for a command. The logs are left to the server.
    pub(crate) async fn open_existing(&self, config: Config) -> Result<Started, Failure> {
        self.must_exist()?;
        self.start(config).await
    }

    /// Opens the database of an installation for reading, even while its server is running.
    #[expect(clippy::disallowed_methods, reason = "a command of the operator is the system")]
    pub(crate) async fn view(&self) -> Result<(Db, System), Failure> {
        self.must_exist()?;
        Ok(podium_store::view(self.target()).await?)
    }

    pub(crate) fn must_exist(&self) -> Result<(), Failure> {
        match self.target() {
            Target::Sqlite(path) if !path.exists() => {
                let directory = self.data_dir.display();
                Err(format!("there is no installation in {directory}: give its --data-dir or --database-url")
                    .into())
            }
            _ => Ok(()),
        }
    }

    /// Where uploaded archives are stored.
    pub(crate) fn objects_dir(&self) -> PathBuf {
        self.objects_dir.clone().unwrap_or_else(|| self.data_dir.join(OBJECTS))
    }

    /// The id of this machine among the nodes of the installation.
    pub(crate) fn node_id(&self, world: &World) -> Result<podium_api::NodeId, Failure> {
        DataDir::open(&self.data_dir)?.node_id(world)
    }

    pub(crate) fn is_embedded(&self) -> bool {
        matches!(self.target(), Target::Sqlite(_))
    }

    fn target(&self) -> Target {
        match &self.database_url {
            Some(url) => Target::parse(url),
            None => Target::Sqlite(self.data_dir.join(DATABASE)),
        }
    }
}
