//! Databases go to files and come back from them, elsewhere, too.

mod attacks;

use std::path::PathBuf;

use super::*;
use crate::local::AirflowDatabase;
use crate::local::postgres::tests::host;
use crate::local::tests::fresh_id;

fn keys() -> Keys {
    Arc::new(|id, purpose| Secret::new(format!("key-{purpose}-{id}")))
}

fn options(at: &Path) -> Options {
    let data = at.join("data");
    fs::create_dir_all(&data).unwrap();
    fs::set_permissions(&data, fs::Permissions::from_mode(0o711)).unwrap();
    Options { directory: data.join("local"), database: AirflowDatabase::Private, ..Options::default() }
}

fn remember(metadata: &Metadata, id: DeploymentId, state: &State) -> PathBuf {
    let place = metadata.layout.environment(id);
    fs::create_dir_all(&place.root).unwrap();
    crate::blocking::allow_blocking(|| state.write(&place.state())).unwrap();
    place.root
}

#[tokio::test]
async fn a_database_on_the_planes_own_server_is_dumped_and_restored_elsewhere() {
    let ((here, _), (there, _)) = (host(), host());
    let id = fresh_id();
    let state = State {
        namespace: "calm-river-1234".into(),
        server_runtime: Some("3.3.2".into()),
        migrated_for: Some("3.3.2".into()),
        is_private: true,
        ..State::default()
    };
    let metadata = Metadata::open(&options(here.path()), keys()).await.unwrap();
    remember(&metadata, id, &state);
    assert_eq!(metadata.environments().await.unwrap(), [id]);
    let Location::Server { admin, connections } = metadata.databases.of(&state).await.unwrap() else {
        panic!()
    };
    let role = metadata.role(id, &state, connections).unwrap();
    metadata.make_empty(&state, &admin, &role).await.unwrap();
    let Role { name, password, .. } = role;
    let made =
        format!("SET ROLE \"{name}\"; CREATE TABLE public.run (id int); INSERT INTO public.run VALUES (42);");
    metadata.run_sql(&state, &admin, &name, &made).await.unwrap();
    let dump = here.path().join("dump");
    assert_eq!(metadata.dump(id, &dump).await, Ok(true));
    assert_eq!(fs::metadata(&dump).unwrap().permissions().mode() & 0o777, 0o600);
    metadata.close().await;

    let metadata = Metadata::open(&options(there.path()), keys()).await.unwrap();
    assert!(!metadata.was_up);
    remember(&metadata, id, &state);
    // Twice: whatever is there is replaced.
    for _ in 0..2 {
        metadata.restore(id, &dump).await.unwrap();
    }
    let Location::Server { admin, .. } = metadata.databases.of(&state).await.unwrap() else { panic!() };
    // As the environment itself, which owns what came back.
    let socket = admin.reveal().rsplit_once("host=").unwrap().1.to_owned();
    let psql = metadata.databases.cluster.programs().await.unwrap().program("psql");
    let ask = |statement: &str| {
        let asked = std::process::Command::new(&psql)
            .args(["--no-psqlrc", "-qtA", "-U", &name, "-d", &name, "-h", &socket, "-c", statement])
            .env("PGPASSWORD", password.reveal())
            .output()
            .unwrap();
        String::from_utf8_lossy(&[asked.stdout, asked.stderr].concat()).trim().to_owned()
    };
    assert_eq!(ask("TABLE run"), "42");
    assert_eq!(ask("ALTER TABLE run ADD COLUMN more int"), "", "it owns the table");
    let role = |line: &&str| line.starts_with(&format!("{name}|"));
    let roles = ask("TABLE pg_roles");
    assert!(roles.lines().find(role).unwrap().contains("|150|"), "it has a bound on its connections");
    metadata.close().await;
    for plane in [&here, &there] {
        let data = fs::canonicalize(plane.path().join("data/local")).unwrap();
        let metadata = Metadata::open(&options(plane.path()), keys()).await.unwrap();
        assert!(!metadata.was_up, "{}: it was stopped again", data.display());
        metadata.databases.cluster.forget_socket();
    }
}

#[tokio::test]
async fn a_database_that_is_not_there_or_in_a_file_has_no_dump() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = options(directory.path());
    options.database = AirflowDatabase::Sqlite;
    let metadata = Metadata::open(&options, keys()).await.unwrap();
    let (id, dump) = (fresh_id(), directory.path().join("dump"));
    remember(&metadata, id, &State::default());
    assert_eq!(metadata.dump(id, &dump).await, Ok(false), "there is none yet");
    remember(&metadata, id, &State { migrated_for: Some("3.3.2".into()), ..State::default() });
    let why = metadata.dump(id, &dump).await.unwrap_err();
    assert!(why.user_text().as_str().contains("it is in a file"), "{why}");
    assert!(!dump.exists());
    metadata.close().await;
}
