//! Attacks of an author on the database server: with the rights of its own role, which owns its own database.

use std::io::{Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;

use podium_domain::options::Version;
use tempfile::TempDir;

use super::*;
use crate::local::database::Database;
use crate::local::isolation::Isolation;
use crate::local::postgres::Cluster;
use crate::local::postgres::tests::{find_pid, host, socket_of};
use crate::local::runtimes::Runtime;
use crate::local::tests::fresh_id;

const NAMESPACE: &str = "calm-river-1234";
const ROLE: &str = "podium_calm_river_1234";

/// Gives its role every right if whoever runs it has them, in whichever role that is.
const PLANT: &str = "
CREATE SCHEMA trap;
CREATE FUNCTION trap.spring() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
  PERFORM pg_catalog.set_config('role', 'none', false);
  IF (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = session_user) THEN
    ALTER ROLE podium_calm_river_1234 SUPERUSER;
  END IF;
  RETURN true;
EXCEPTION WHEN OTHERS THEN RETURN true; END $$;
CREATE FUNCTION trap.format(text, regclass) RETURNS text LANGUAGE sql AS 'SELECT ''SELECT trap.spring()''';
CREATE FUNCTION trap.format(text, regtype) RETURNS text LANGUAGE sql AS 'SELECT ''SELECT trap.spring()''';
CREATE FUNCTION trap.pounce() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM trap.spring(); RETURN NEW; END $$;
CREATE TABLE public.bait (value int CHECK (trap.spring()));
INSERT INTO public.bait VALUES (42);
CREATE TRIGGER pounce BEFORE INSERT ON public.bait FOR EACH ROW EXECUTE FUNCTION trap.pounce();
ALTER TABLE public.bait ENABLE ALWAYS TRIGGER pounce;
CREATE TABLE public.hidden (value int);
INSERT INTO public.hidden VALUES (1);
ALTER TABLE public.hidden ENABLE ROW LEVEL SECURITY;
CREATE POLICY spring ON public.hidden USING (trap.spring());
CREATE MATERIALIZED VIEW public.remembered AS SELECT trap.spring() AS sprung;
CREATE INDEX sprung ON public.bait ((value + 1)) WHERE value > 0;
ALTER DATABASE podium_calm_river_1234 SET search_path = trap, pg_catalog;
ALTER ROLE podium_calm_river_1234 SET search_path = trap, pg_catalog;
ALTER ROLE podium_calm_river_1234 PASSWORD 'mine now';
";

fn state() -> State {
    State {
        namespace: NAMESPACE.into(),
        server_runtime: Some("3.3.2".into()),
        migrated_for: Some("3.3.2".into()),
        is_private: true,
        ..State::default()
    }
}

/// A plane with its own database server, and one environment.
struct Attacked {
    _directory: TempDir,
    metadata: Metadata,
    id: DeploymentId,
    admin: Secret,
    psql: PathBuf,
}

impl Attacked {
    async fn start(id: DeploymentId) -> Self {
        let (directory, _) = host();
        let metadata = Metadata::open(&options(directory.path()), keys()).await.unwrap();
        remember(&metadata, id, &state());
        fs::create_dir_all(metadata.layout.environment(id).temporary()).unwrap();
        let Location::Server { admin, .. } = metadata.databases.of(&state()).await.unwrap() else { panic!() };
        let psql = metadata.databases.cluster.programs().await.unwrap().program("psql");
        Self { _directory: directory, metadata, id, admin, psql }
    }

    fn cluster(&self) -> &Arc<Cluster> {
        &self.metadata.databases.cluster
    }

    fn password(&self) -> Secret {
        (self.metadata.keys)(self.id, "database")
    }

    /// What a statement answers, or why there is no answer.
    fn ask(&self, url: &str, password: &str, statement: &str) -> Result<String, String> {
        let asked = std::process::Command::new(&self.psql)
            .args(["--no-psqlrc", "-qtA", "--set", "ON_ERROR_STOP=1", "-d", url, "-c", statement])
            .env("PGPASSWORD", password)
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        if asked.status.success() { Ok(text(&asked.stdout)) } else { Err(text(&asked.stderr)) }
    }

    /// As the environment's role, in any database.
    fn as_author(&self, database: &str, statement: &str) -> Result<String, String> {
        let socket = socket_of(self.cluster());
        let url = format!("postgresql://{ROLE}@/{database}?host={}", socket.display());
        self.ask(&url, self.password().reveal(), statement)
    }

    fn as_admin(&self, statement: &str) -> Result<String, String> {
        self.ask(self.admin.reveal(), "", statement)
    }

    fn assert_unharmed(&self, when: &str) {
        let supers = self.as_admin("COPY (SELECT rolname FROM pg_roles WHERE rolsuper) TO STDOUT").unwrap();
        assert_eq!(supers, "podium", "{when}: the author has the rights of the server");
    }

    /// A runtime whose driver is psql, and whose migration creates a table.
    fn runtime(&self) -> Runtime {
        let directory = self.metadata.layout.runtimes().join("3.3.2");
        let bin = directory.join("bin");
        fs::create_dir_all(&bin).unwrap();
        fs::write(bin.join("psycopg2.py"), include_str!("../../tests/fake_psycopg2.py")).unwrap();
        let path = format!("{}:/usr/bin:/bin", self.psql.parent().unwrap().display());
        for (name, text) in [
            ("python", format!("PATH={path} PYTHONPATH='{}' exec python3 \"$@\"", bin.display())),
            (
                "airflow",
                format!(
                    "PATH={path} exec psql -d \"$AIRFLOW__DATABASE__SQL_ALCHEMY_CONN\" -c 'CREATE TABLE dag (id serial)'"
                ),
            ),
        ] {
            fs::write(bin.join(name), format!("#!/bin/sh\n{text}\n")).unwrap();
            fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).unwrap();
        }
        let support = self.metadata.layout.support();
        fs::write(
            support.join("podium_database.py"),
            podium_airflow::support::text("podium_database.py").unwrap(),
        )
        .unwrap();
        Runtime::at("3.3.2".parse::<Version>().unwrap(), directory)
    }

    /// Creates the environment's database from the template of a runtime.
    async fn create(&self) -> Result<(), Reason> {
        self.create_for(NAMESPACE).await
    }

    async fn create_for(&self, namespace: &str) -> Result<(), Reason> {
        let (place, support) = (self.metadata.layout.environment(self.id), self.metadata.layout.support());
        let at = self.metadata.databases.of(&state()).await.unwrap();
        let password = self.password();
        let database = Database { at, relay: None, place: &place, namespace, password, support: &support };
        database.make(&self.runtime(), &Isolation::NONE).await
    }

    async fn drop_database(&self) -> Result<(), Reason> {
        let (place, support) = (self.metadata.layout.environment(self.id), self.metadata.layout.support());
        let at = self.metadata.databases.of(&state()).await.unwrap();
        let password = self.password();
        let database =
            Database { at, relay: None, place: &place, namespace: NAMESPACE, password, support: &support };
        database.drop(&self.runtime()).await
    }

    /// Connects as the environment's role and stays.
    fn hold(&self, database: &str) -> Holding {
        let socket = socket_of(self.cluster());
        let mut child = std::process::Command::new(&self.psql)
            .args(["--no-psqlrc", "-qtA", "-U", ROLE, "-d", database, "-h"])
            .arg(socket)
            .env("PGPASSWORD", self.password().reveal())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.as_mut().unwrap().write_all(b"SELECT 'here';\n").unwrap();
        let mut said = [0; 4];
        child.stdout.as_mut().unwrap().read_exact(&mut said).unwrap();
        assert_eq!(&said, b"here");
        Holding(child)
    }
}

impl Drop for Attacked {
    /// Of a failed test, too.
    fn drop(&mut self) {
        self.cluster().stop_supervising();
        let socket = socket_of(self.cluster());
        if let Some(pid) = find_pid(self.cluster()).and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::QUIT);
        }
        let _ = fs::remove_dir_all(socket);
    }
}

/// A connection that stays open.
struct Holding(std::process::Child);

impl Drop for Holding {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn a_backup_and_its_restore_run_nothing_of_an_author_with_the_rights_of_the_server() {
    let id = fresh_id();
    let (here, there) = (Attacked::start(id).await, Attacked::start(id).await);
    here.create().await.unwrap();
    assert_eq!(here.as_author(ROLE, PLANT), Ok(String::new()));
    let dump = here._directory.path().join("dump");
    assert_eq!(here.metadata.dump(id, &dump).await, Ok(true));
    here.assert_unharmed("dump");
    for plane in [&there, &here] {
        plane.metadata.restore(id, &dump).await.unwrap();
        plane.assert_unharmed("restore");
        assert_eq!(plane.as_author(ROLE, "TABLE public.bait").as_deref(), Ok("42"));
        assert_eq!(plane.as_author(ROLE, "TABLE public.dag").as_deref(), Ok(""));
        assert_eq!(plane.as_author(ROLE, "ALTER TABLE public.bait ADD COLUMN more int").as_deref(), Ok(""));
    }
}

#[tokio::test]
async fn creating_a_database_again_runs_nothing_of_its_author() {
    let plane = Attacked::start(fresh_id()).await;
    plane.create().await.unwrap();
    assert_eq!(plane.as_author(ROLE, PLANT), Ok(String::new()));
    // As where the control plane was interrupted before it had saved that the database was there.
    plane.create().await.unwrap();
    plane.assert_unharmed("create");
    assert_eq!(plane.as_author(ROLE, "TABLE public.bait").as_deref(), Ok("42"), "it is as it was");
}

#[tokio::test]
async fn servers_that_make_the_same_template_wait_for_each_other() {
    let plane = Attacked::start(fresh_id()).await;
    let runtime = plane.runtime();
    let draft = database_url::of_database(&plane.admin, "podium_template_3_3_2-draft");
    let make = |_| {
        std::process::Command::new(runtime.program("python"))
            .arg(plane.metadata.layout.support().join("podium_database.py"))
            .arg("template")
            .arg(runtime.program("airflow"))
            .env("ADMIN_URL", plane.admin.reveal())
            .env("TEMPLATE", "podium_template_3_3_2")
            .env("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", draft.as_str())
            .spawn()
            .unwrap()
    };
    for mut server in (0..4).map(make).collect::<Vec<_>>() {
        assert!(server.wait().unwrap().success());
    }
    plane.create().await.unwrap();
    assert_eq!(plane.as_author(ROLE, "TABLE public.dag").as_deref(), Ok(""), "it was migrated");
}

#[tokio::test]
async fn an_environment_connects_to_no_database_but_its_own() {
    let plane = Attacked::start(fresh_id()).await;
    plane.create().await.unwrap();
    for database in ["postgres", "template0", "template1", "podium_template_3_3_2"] {
        let said = plane.as_author(database, "SELECT 1").unwrap_err();
        let is_refused =
            said.contains("permission denied") || said.contains("not currently accepting connections");
        assert!(is_refused, "{database}: {said}");
    }
    assert_eq!(plane.as_author(ROLE, "SELECT 1").as_deref(), Ok("1"));
}

#[tokio::test]
async fn whoever_holds_a_template_of_an_earlier_version_open_keeps_nobody_from_a_database() {
    let plane = Attacked::start(fresh_id()).await;
    plane.create().await.unwrap();
    let earlier = "ALTER DATABASE podium_template_3_3_2 ALLOW_CONNECTIONS true";
    plane.as_admin(earlier).unwrap();
    let open = "GRANT CONNECT ON DATABASE podium_template_3_3_2, postgres, template1 TO PUBLIC";
    plane.as_admin(open).unwrap();
    let held = ["podium_template_3_3_2", "postgres", "template1"].map(|database| plane.hold(database));
    plane.create_for("other-river-1234").await.unwrap();
    // The next start closes them, too.
    plane.cluster().stop_supervising();
    plane.cluster().ensure().await.unwrap();
    for database in ["podium_template_3_3_2", "postgres", "template1"] {
        plane.as_author(database, "SELECT 1").unwrap_err();
    }
    let left = "COPY (SELECT FROM pg_stat_activity WHERE usename LIKE 'podium\\_%') TO STDOUT";
    assert_eq!(plane.as_admin(left).as_deref(), Ok(""));
    drop(held);
}

#[tokio::test]
async fn a_role_that_left_something_elsewhere_does_not_keep_its_environment_from_being_removed() {
    let plane = Attacked::start(fresh_id()).await;
    plane.create().await.unwrap();
    plane.create_for("other-river-1234").await.unwrap();
    let grant = format!(
        "SET ROLE podium_other_river_1234; GRANT CONNECT ON DATABASE podium_other_river_1234 TO {ROLE}"
    );
    plane.as_admin(&grant).unwrap();
    plane.as_author("podium_other_river_1234", "SELECT lo_create(4242)").unwrap();
    plane.drop_database().await.unwrap();
    plane.as_author("podium_other_river_1234", "SELECT 1").unwrap_err();
}

#[tokio::test]
async fn a_user_of_an_environment_reaches_the_server_only_through_its_relay() {
    let plane = Attacked::start(fresh_id()).await;
    plane.create().await.unwrap();
    if !rustix::process::geteuid().is_root() {
        // They are the same user.
        return;
    }
    let asked = std::process::Command::new(&plane.psql)
        .args(["--no-psqlrc", "-qtA", "-U", ROLE, "-d", ROLE, "-c", "SELECT 1", "-h"])
        .arg(socket_of(plane.cluster()))
        .env("PGPASSWORD", plane.password().reveal())
        .uid(2_900_000_100)
        .gid(2_900_000_100)
        .current_dir("/")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&asked.stderr).into_owned();
    assert!(said.contains("Permission denied"), "{said}");
    assert_eq!(plane.as_author(ROLE, "SELECT 1").as_deref(), Ok("1"), "the control plane does");
}
