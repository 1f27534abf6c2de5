//! The server of `podium dev`: this program as a child that serves on a free port, with data in a directory of the user's.

use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use podium_api::users;
use podium_client::{Call, Client};
use podium_server::OWNER_TOKEN;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::client::commands::{Exit, Failed, Outcome, pause};

/// How long the server may take to start, and to stop.
const PATIENCE: Duration = Duration::from_secs(90);
const READY: &str = "Podium is ready at ";

pub(super) struct Server {
    directory: PathBuf,
    known: Known,
    child: Option<Child>,
}

/// What is known about a server that was started, also by the next `podium dev`.
#[derive(Clone, Serialize, Deserialize)]
struct Known {
    url: String,
    pid: i32,
}

impl Server {
    /// Finds the server that an earlier `podium dev` has left, or starts one.
    pub(super) async fn start(directory: Option<PathBuf>) -> Outcome<Self> {
        let directory = directory.map_or_else(state_directory, Ok)?;
        DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
        if let Some(known) = Known::read(&directory).await {
            eprintln!("Podium is still running at {} (data in {}).", known.url, directory.display());
            return Ok(Self { directory, known, child: None });
        }
        let log = directory.join("server.log");
        let written = File::create(&log)?;
        let mut command = Command::new(std::env::current_exe()?);
        // The settings of another server are not those of this one.
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("PODIUM_")) {
            if name != "PODIUM_DATA_PLANE" {
                command.env_remove(name);
            }
        }
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(directory.join("data"))
            .stdin(Stdio::null())
            .stdout(written.try_clone()?)
            .stderr(written)
            // Ctrl-C is for this program, which then stops the server in good order.
            .process_group(0);
        let mut child = command.spawn()?;
        let url = ready(&mut child, &log).await?;
        let known = Known { url, pid: i32::try_from(child.id()).unwrap_or_default() };
        fs::write(Known::file(&directory), serde_json::to_vec(&known).map_err(std::io::Error::from)?)?;
        eprintln!("Podium is running at {} (data in {}).", known.url, directory.display());
        Ok(Self { directory, known, child: Some(child) })
    }

    pub(super) fn url(&self) -> &str {
        &self.known.url
    }

    pub(super) fn token(&self) -> Outcome<String> {
        token(&self.directory)
    }

    pub(super) async fn stop(mut self) -> Outcome {
        let Some(pid) = Pid::from_raw(self.known.pid) else { return Ok(()) };
        let _ = kill_process(pid, Signal::TERM);
        let (deadline, mut round) = (Instant::now() + PATIENCE, 0);
        loop {
            let is_over = match &mut self.child {
                Some(child) => child.try_wait()?.is_some(),
                None => test_kill_process(pid).is_err(),
            };
            if is_over {
                let _ = fs::remove_file(Known::file(&self.directory));
                eprintln!("Stopped.");
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(Failed::because(format!(
                    "the server (process {}) does not stop",
                    self.known.pid
                )));
            }
            pause(&mut round).await;
        }
    }
}

impl Known {
    fn file(directory: &Path) -> PathBuf {
        directory.join("server.json")
    }

    /// The server that is recorded, if it answers to the token of this directory.
    async fn read(directory: &Path) -> Option<Self> {
        let known: Self = serde_json::from_slice(&fs::read(Self::file(directory)).ok()?).ok()?;
        if !known.serves(directory) {
            let _ = fs::remove_file(Self::file(directory));
            return None;
        }
        let client = Client::new(&known.url, Some(token(directory).ok()?)).ok()?;
        client.send::<Value>(Call::to::<users::GetSelf>(&())).await.is_ok().then_some(known)
    }

    /// Whether its process still is a server of this directory, of the same user. Somebody else may have got its port since,
    /// and must not be sent the token.
    fn serves(&self, directory: &Path) -> bool {
        let process = PathBuf::from(format!("/proc/{}", self.pid));
        let is_own = fs::metadata(&process).is_ok_and(|of| of.uid() == rustix::process::getuid().as_raw());
        let data = directory.join("data");
        let line = fs::read(process.join("cmdline")).unwrap_or_default();
        is_own && line.split(|byte| *byte == 0).any(|word| word == data.as_os_str().as_encoded_bytes())
    }
}

/// Where the data of the server is: in the user's state directory.
fn state_directory() -> Outcome<PathBuf> {
    use etcetera::BaseStrategy as _;
    let base = etcetera::choose_base_strategy().map_err(|error| {
        Failed::because(format!("there is no home directory: {error}")).hint("Use --dev-dir.")
    })?;
    let state = base.state_dir().unwrap_or_else(|| base.data_dir());
    Ok(state.join(Path::new("podium/dev")))
}

fn token(directory: &Path) -> Outcome<String> {
    Ok(fs::read_to_string(directory.join("data").join(OWNER_TOKEN))?.trim().to_owned())
}

/// Waits until a server says that it is ready, and where.
async fn ready(child: &mut Child, log: &Path) -> Outcome<String> {
    let (deadline, mut round) = (Instant::now() + PATIENCE, 0);
    loop {
        let said = fs::read_to_string(log).unwrap_or_default();
        let ended = child.try_wait()?;
        if let Some(url) = said.lines().find_map(|line| line.strip_prefix(READY)) {
            return Ok(url.trim().to_owned());
        }
        if ended.is_some() || Instant::now() > deadline {
            let _ = child.kill();
            let last: Vec<String> = said.lines().rev().take(5).map(str::to_owned).collect();
            return Err(Failed::new(Exit::Failed, "the server did not start")
                .details(last.into_iter().rev())
                .hint(format!("Full output: {}", log.display())));
        }
        pause(&mut round).await;
    }
}
