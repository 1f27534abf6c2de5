//! A real server, started, killed, taken over and stopped.

use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use super::*;
use crate::blocking::allow_blocking;
use crate::local::timing::Timing;

/// In more of a hurry than people.
pub(crate) fn hurried() -> Timing {
    let millis = Duration::from_millis;
    Timing {
        steady_poll: millis(200),
        first_pause: millis(50),
        longest_pause: millis(200),
        ..Timing::default()
    }
}

/// A directory that a server under another user can reach, and that user.
pub(crate) fn host() -> (tempfile::TempDir, Option<u32>) {
    assert!(!allow_blocking(Programs::find).is_empty(), "these tests need a PostgreSQL server");
    let directory = tempfile::Builder::new().prefix("pg").tempdir_in("/tmp").unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o711)).unwrap();
    (directory, rustix::process::geteuid().is_root().then_some(2_900_000_001))
}

pub(crate) fn socket_of(cluster: &Cluster) -> PathBuf {
    allow_blocking(|| cluster.socket_directory()).unwrap()
}

fn cluster(directory: &Path, user: Option<u32>) -> Arc<Cluster> {
    Cluster::new(directory.join("postgres"), user, Secret::new("secret-of-the-admin".into()), hurried())
}

/// What a statement answers, with a password.
fn ask(cluster: &Cluster, password: &str, statement: &str) -> Result<String, String> {
    let socket = socket_of(cluster);
    let programs = allow_blocking(|| programs_for(&cluster.data())).unwrap();
    let asked = std::process::Command::new(programs.program("psql"))
        .args(["--no-psqlrc", "-qtA", "-U", ADMIN, "-d", "postgres", "-c", statement, "-h"])
        .arg(socket)
        .env("PGPASSWORD", password)
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if asked.status.success() { Ok(text(&asked.stdout)) } else { Err(text(&asked.stderr)) }
}

fn pid(cluster: &Cluster) -> i32 {
    find_pid(cluster).expect("it runs")
}

pub(crate) fn find_pid(cluster: &Cluster) -> Option<i32> {
    allow_blocking(|| cluster.running()).map(|process| process.identity.pid)
}

async fn eventually(what: impl Fn() -> bool) {
    let waited = async {
        while !what() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), waited).await.expect("it comes true");
}

/// Stops the server and clears its socket away.
async fn end(cluster: &Arc<Cluster>) {
    let socket = socket_of(cluster);
    cluster.stop_unless(async { false }).await;
    assert!(allow_blocking(|| cluster.running()).is_none());
    fs::remove_dir_all(socket).unwrap();
}

#[tokio::test]
async fn an_own_server_is_private_and_is_taken_over_by_the_next_start() {
    let (directory, user) = host();
    let first = cluster(directory.path(), user);
    assert_eq!(first.failure(), None);
    first.ensure().await.unwrap();
    let before = pid(&first);
    let owner = fs::metadata(format!("/proc/{before}")).unwrap().uid();
    assert_ne!(owner, 0, "it never runs as root");
    assert_eq!(owner, user.unwrap_or_else(|| rustix::process::geteuid().as_raw()));
    let ask_it = |statement: &str| ask(&first, "secret-of-the-admin", statement);
    assert_eq!(ask_it("SHOW listen_addresses").as_deref(), Ok(""));
    assert_eq!(ask_it("SHOW fsync").as_deref(), Ok("on"));
    assert_eq!(ask_it("SHOW max_connections").as_deref(), Ok("800"));
    let wrong = ask(&first, "a guess", "SELECT 1").unwrap_err();
    assert!(wrong.contains("password authentication failed"), "{wrong}");
    ask_it("CREATE TABLE kept (name text); INSERT INTO kept VALUES ('here')").unwrap();
    let mode = fs::metadata(first.data()).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o700);
    assert!(!first.directory.join("password").exists(), "the password is in no file");

    first.stop_supervising();
    let second = cluster(directory.path(), user);
    second.ensure().await.unwrap();
    assert_eq!(pid(&second), before, "nothing was interrupted");
    assert_eq!(ask(&second, "secret-of-the-admin", "TABLE kept").as_deref(), Ok("here"));
    second.stop_unless(async { true }).await;
    assert_eq!(pid(&second), before, "somebody needs it");
    end(&second).await;
}

#[tokio::test]
async fn a_server_is_restarted_when_it_exits_or_loses_its_socket() {
    let (directory, user) = host();
    let cluster = cluster(directory.path(), user);
    cluster.ensure().await.unwrap();
    let before = pid(&cluster);
    allow_blocking(|| cluster.running()).unwrap().kill().await;
    let is_another = || allow_blocking(|| cluster.running()).is_some_and(|now| now.identity.pid != before);
    eventually(|| is_another() && allow_blocking(|| cluster.is_ready())).await;
    cluster.ensure().await.unwrap();
    let before = pid(&cluster);
    let socket = socket_of(&cluster);
    fs::remove_dir_all(&socket).unwrap();
    let is_another = || allow_blocking(|| cluster.running()).is_some_and(|now| now.identity.pid != before);
    eventually(|| is_another() && has_socket(&socket)).await;
    eventually(|| ask(&cluster, "secret-of-the-admin", "SELECT 1").is_ok()).await;
    end(&cluster).await;
}

#[tokio::test]
async fn the_reason_why_a_server_does_not_start_is_reported() {
    let (directory, user) = host();
    let cluster = cluster(directory.path(), user);
    fs::create_dir_all(cluster.data()).unwrap();
    fs::write(cluster.data().join("PG_VERSION"), "9\n").unwrap();
    let why = cluster.ensure().await.unwrap_err();
    assert!(why.user_text().as_str().contains("install postgresql-9"), "{why}");
    assert_eq!(cluster.failure(), Some(why));
    cluster.stop_supervising();
}

#[tokio::test]
async fn a_reused_pid_does_not_prevent_a_start() {
    let (directory, user) = host();
    let cluster = cluster(directory.path(), user);
    cluster.ensure().await.unwrap();
    cluster.stop_unless(async { false }).await;
    // As after a reboot: the file is there, and its number is another process's.
    let mut other = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
    fs::write(cluster.data().join("postmaster.pid"), format!("{}\n", other.id())).unwrap();
    cluster.ensure().await.unwrap();
    assert_eq!(other.try_wait().unwrap(), None, "it is let be");
    other.kill().unwrap();
    other.wait().unwrap();
    end(&cluster).await;
}
