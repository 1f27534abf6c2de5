//! `podium backup`: backs up an embedded installation to one file, even while its server is running.
//!
//! The order matters. Log offsets of environments are copied before the log store, so that nothing is lost between the
//! two; the database is copied before the archives that it refers to. Databases are copied as consistent snapshots.

pub(crate) mod archive;
mod tree;

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use podium_api::DeploymentId;
use podium_app::world::World;
use podium_dataplane::local::{AirflowDatabase, BackupContents, Metadata, Options};

use self::archive::{Checksums, MANIFEST, Manifest, Writer};
use self::tree::Tree;
use crate::data_dir::{DATABASE, LOCAL, LOGS, NODE_ID, OBJECTS, OWNER_TOKEN, SECRET_KEY, SIMULATED};
use crate::failure::Failure;
use crate::settings::Installation;

const EXAMPLES: &str = "\
Examples:
  podium backup /backups/podium-monday --data-dir ./podium-data
  podium restore /backups/podium-monday --data-dir ./restored";

/// Write a backup of an embedded installation to one file.
///
/// The server may keep running. The file contains the database, keys, uploaded archives, logs and the environments on
/// this machine with their metadata databases: anyone who can read it can read every secret. Runtimes are not included;
/// they are installed again. With PostgreSQL, back up the database with its own tools and copy the objects directory.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Backup {
    /// The file to write; it must not exist.
    file: PathBuf,
    #[command(flatten)]
    installation: Installation,
}

impl Backup {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        if !self.installation.is_embedded() {
            return Err(
                "this installation uses PostgreSQL: back up the database with its own tools (pg_dump), keep PODIUM_SECRET_KEY, and copy the objects directory"
                    .into(),
            );
        }
        self.installation.must_exist()?;
        if self.file.exists() {
            return Err(format!("{} already exists: name a file that does not", self.file.display()).into());
        }
        // All files created here contain secrets.
        rustix::process::umask(rustix::fs::Mode::from_bits_truncate(0o077));
        let partial = self.file.with_added_extension("partial");
        let contents = backup_contents(&self.installation.data_dir.join(LOCAL))?;
        let dumps: Vec<Dump> = contents.dumps.iter().map(|(id, to)| Dump::of(&self.file, *id, to)).collect();
        let written = self.dump(&dumps).await.and_then(|()| self.write(&partial, &contents, &dumps));
        dumps.iter().for_each(|dump| _ = fs::remove_file(&dump.draft));
        let written = written.and_then(|told| {
            // The new name is durable once its directory is synced.
            let directory = self.file.parent().filter(|parent| !parent.as_os_str().is_empty());
            let named = fs::rename(&partial, &self.file)
                .and_then(|()| fs::File::open(directory.unwrap_or(Path::new(".")))?.sync_all());
            named.map_err(|error| format!("{} cannot be written: {error}", self.file.display()))?;
            Ok(told)
        });
        match written {
            Ok(checksums) => {
                let (files, bytes) = (checksums.files.len(), checksums.bytes());
                eprintln!(
                    "{} contains {files} files, {bytes} bytes. It includes the keys: keep it safe.",
                    self.file.display()
                );
                Ok(())
            }
            Err(error) => {
                let _ = fs::remove_file(&partial);
                Err(format!("no backup was made: {error}").into())
            }
        }
    }

    /// Writes the metadata databases that are on the installation's own server to files.
    async fn dump(&self, dumps: &[Dump]) -> Result<(), Failure> {
        if dumps.is_empty() {
            return Ok(());
        }
        let keys = podium_reconcile::keys(self.installation.secrets()?);
        let options = Options {
            directory: self.installation.data_dir.join(LOCAL),
            database: AirflowDatabase::Private,
            ..Options::default()
        };
        let metadata = Metadata::open(&options, keys).await?;
        let mut dumped = Ok(());
        for dump in dumps {
            let _ = fs::remove_file(&dump.draft);
            dumped = metadata.dump(dump.id, &dump.draft).await.map(drop);
            if dumped.is_err() {
                break;
            }
        }
        metadata.close().await;
        Ok(dumped?)
    }

    fn write(&self, path: &Path, contents: &BackupContents, dumps: &[Dump]) -> Result<Checksums, Failure> {
        let data_dir = &self.installation.data_dir;
        let fail = |what: &str| {
            let what = what.to_owned();
            move |error: std::io::Error| format!("{what}: {error}")
        };
        let mut writer = Writer::create(path).map_err(fail("the file cannot be written"))?;
        let manifest = Manifest::new(World::machine().now());
        writer.bytes(MANIFEST, &manifest.to_json(), 0o600).map_err(fail(MANIFEST))?;
        let local = data_dir.join(LOCAL);
        let mut offsets = Vec::new();
        for path in &contents.offsets {
            if let Ok(bytes) = fs::read(path) {
                offsets.push((path.clone(), bytes));
            }
        }
        self.copy_database(&mut writer, &data_dir.join(DATABASE), Path::new(DATABASE))?;
        self.write_keys(&mut writer)?;
        let logs = Tree::new(&data_dir.join(LOGS)).without(&[data_dir.join(LOGS).join("lock")]);
        logs.write_moving(&mut writer, Path::new(LOGS)).map_err(fail("the log store"))?;
        let objects = self.installation.objects_dir();
        let tree = Tree::new(&objects).without(&[objects.join(".drafts")]);
        tree.write(&mut writer, Path::new(OBJECTS)).map_err(fail("uploaded archives"))?;
        let simulated = Tree::new(&data_dir.join(SIMULATED));
        simulated.write(&mut writer, Path::new(SIMULATED)).map_err(fail("the simulated data plane"))?;
        let mut excluded = contents.excluded.clone();
        excluded.extend(contents.offsets.iter().cloned());
        for database in &contents.databases {
            let beside = |ending| database.with_added_extension(ending);
            excluded.push(database.clone());
            excluded.extend(["db-wal", "db-shm", "db-journal"].map(|ending| database.with_extension(ending)));
            excluded.push(beside("lock"));
        }
        excluded.extend(later(&local, contents));
        let tree = Tree::new(&local).without(&excluded).of_others();
        tree.write(&mut writer, Path::new(LOCAL)).map_err(fail("the environments"))?;
        let inside =
            |path: &Path| path.strip_prefix(data_dir).map(Path::to_owned).map_err(|error| error.to_string());
        for (path, bytes) in offsets {
            writer.bytes(&inside(&path)?, &bytes, 0o600).map_err(fail("log offsets"))?;
        }
        for (path, bytes) in &contents.states {
            writer.bytes(&inside(path)?, bytes, 0o600).map_err(fail("the state of an environment"))?;
        }
        for database in &contents.databases {
            self.copy_database(&mut writer, database, &inside(database)?)?;
        }
        // A database that was never migrated has no dump.
        for dump in dumps.iter().filter(|dump| dump.draft.exists()) {
            writer.file(&dump.draft, &inside(&dump.to)?).map_err(fail("a metadata database"))?;
        }
        for id in &contents.on_external_server {
            eprintln!(
                "The metadata database of deployment {id} is on the server that --airflow-database names: back it up with that server's tools."
            );
        }
        Ok(writer.finish().map_err(fail("the file cannot be written"))?)
    }

    /// Copies a consistent snapshot of a SQLite database.
    fn copy_database(&self, writer: &mut Writer, from: &Path, name: &Path) -> Result<(), Failure> {
        let draft = tempfile_beside(&self.file, name);
        let _ = fs::remove_file(&draft);
        let copied = podium_db::copy_database(from, &draft)
            .map_err(|error| error.to_string())
            .and_then(|()| writer.file(&draft, name).map_err(|error| error.to_string()));
        let _ = fs::remove_file(&draft);
        Ok(copied.map_err(|error| format!("the database {} cannot be copied: {error}", from.display()))?)
    }

    fn write_keys(&self, writer: &mut Writer) -> Result<(), Failure> {
        for name in [SECRET_KEY, OWNER_TOKEN, NODE_ID] {
            let path = self.installation.data_dir.join(name);
            let bytes = match (fs::read(&path), &self.installation.secret_key) {
                (Ok(bytes), _) => bytes,
                // The configured key is the key of this installation.
                (Err(_), Some(key)) if name == SECRET_KEY => key.clone().into_bytes(),
                (Err(error), _) if name == SECRET_KEY => {
                    return Err(format!(
                        "the key {} cannot be read, and PODIUM_SECRET_KEY is not set: {error}",
                        path.display()
                    )
                    .into());
                }
                (Err(_), _) => continue,
            };
            writer.bytes(name, &bytes, 0o600)?;
        }
        Ok(())
    }
}

/// Environments that were created after the backup contents were determined.
fn later(local: &Path, contents: &BackupContents) -> Vec<PathBuf> {
    let known: Vec<&Path> = contents.states.iter().filter_map(|(path, _)| path.parent()).collect();
    let now = fs::read_dir(local.join("environments")).into_iter().flatten().flatten();
    now.map(|entry| entry.path()).filter(|path| !known.contains(&path.as_path())).collect()
}

/// A metadata database on the installation's own server.
struct Dump {
    id: DeploymentId,
    /// Where it is written at first, next to the backup.
    draft: PathBuf,
    to: PathBuf,
}

impl Dump {
    fn of(file: &Path, id: DeploymentId, to: &Path) -> Self {
        Self { id, draft: tempfile_beside(file, Path::new(id.as_str())), to: to.to_owned() }
    }
}

/// A file name next to the backup for a temporary copy.
fn tempfile_beside(file: &Path, name: &Path) -> PathBuf {
    let plain: String = name.to_string_lossy().replace('/', "-");
    file.with_added_extension(format!("{plain}.draft"))
}

fn backup_contents(local: &Path) -> Result<BackupContents, Failure> {
    Ok(podium_dataplane::local::backup_contents(local)
        .map_err(|error| format!("the environments: {error}"))?)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn an_environment_is_backed_up_in_its_state_at_the_start_of_the_backup() {
        let directory = tempfile::tempdir().unwrap();
        let data_dir = directory.path().join("data");
        let at = |name: &str| data_dir.join(LOCAL).join("environments").join(name);
        let (known, later) = (at("cknown0000000000000000001"), at("clater0000000000000000001"));
        let remember = |environment: &Path, generation: u32| {
            fs::create_dir_all(environment.join("user")).unwrap();
            fs::write(environment.join("state.json"), format!("{{\"generation\":{generation}}}")).unwrap();
        };
        remember(&known, 1);
        fs::write(data_dir.join(DATABASE), "").unwrap();
        let found = backup_contents(&data_dir.join(LOCAL)).unwrap();
        // Everything goes on while a backup is written.
        remember(&known, 2);
        remember(&later, 1);
        fs::write(known.join("user/written"), "meanwhile").unwrap();
        let secret_key = Some("a key of this test".into());
        let installation = Installation { data_dir, objects_dir: None, database_url: None, secret_key };
        let backup = Backup { file: directory.path().join("file"), installation };
        backup.write(&backup.file, &found, &[]).unwrap();
        let file = zstd::Decoder::new(fs::File::open(&backup.file).unwrap()).unwrap();
        let mut held = std::collections::BTreeMap::new();
        for entry in tar::Archive::new(file).entries().unwrap() {
            let mut entry = entry.unwrap();
            let (name, mut text) = (entry.path().unwrap().display().to_string(), Vec::new());
            entry.read_to_end(&mut text).unwrap();
            held.insert(name, text);
        }
        let below = "local/environments/cknown0000000000000000001";
        assert_eq!(held[&format!("{below}/state.json")], b"{\"generation\":1}");
        assert_eq!(held[&format!("{below}/user/written")], b"meanwhile");
        assert!(!held.keys().any(|name| name.contains("clater")), "{:?}", held.keys());
    }
}
