//! Runs statements on a PostgreSQL server as its administrator.
//!
//! Whoever owns a database decides what statements in it mean: with functions, triggers and settings. So these run only
//! in databases that no environment can connect to, and find nothing but what the server itself defines.

use std::path::Path;
use std::process::Stdio;

use podium_airflow::database_url;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use super::command::CommandError;

/// The longest output that is kept.
const LONGEST: usize = 300;

/// The administrator's own database.
pub(super) const ADMINS: &str = "postgres";

/// A client program with nothing of this process's environment variables.
pub(super) fn client(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("PATH", "/usr/bin:/bin").env("LC_ALL", "C");
    command.stdin(Stdio::null()).kill_on_drop(true);
    command
}

/// Sets the connection of a client. The password is not on the command line.
pub(super) fn connect(command: &mut Command, url: &str) {
    let (url, password) = database_url::without_password(url);
    command.arg("--dbname").arg(url);
    if let Some(password) = password {
        command.env("PGPASSWORD", password.reveal());
    }
}

/// Runs statements, which do not appear on a command line.
pub(super) async fn run_sql(psql: &Path, url: &str, script: &str) -> Result<(), CommandError> {
    let mut psql = client(psql);
    psql.args(["--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1"]);
    connect(&mut psql, url);
    psql.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = psql.spawn()?;
    if let Some(mut input) = child.stdin.take() {
        // A client that cannot connect reads nothing, and says why.
        let _ = input.write_all(format!("SET search_path = pg_catalog;\n{script}").as_bytes()).await;
    }
    let output = child.wait_with_output().await?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let (said, status) = (said.trim().chars().take(LONGEST).collect(), output.status);
    Err(CommandError::Failed { said, status })
}
