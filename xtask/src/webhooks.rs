//! Webhooks of the served program, received and verified by the published library of Standard Webhooks.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::outcome::{Outcome, While};
use crate::probe::status;
use crate::python;
use crate::server_process::{self, ServerProcess};
use crate::system::free_port;
use crate::workspace::{cargo, must, root, scratch, target};

/// Builds the program and runs this part of the tests.
pub(crate) fn alone() -> Outcome {
    must(&mut cargo(&["build", "--workspace", "--bins"]))?;
    let scratch = scratch()?;
    run(&python::tools(&scratch)?, &scratch)
}

/// Serves the debug program and receives its events.
pub(crate) fn run(tools: &Path, scratch: &Path) -> Outcome {
    let program = target()?.join("debug/podium").display().to_string();
    let directory = server_process::directory("webhooks", None)?;
    let data = directory.join("data");
    let port = free_port()?;
    let told = format!("--data-dir {} --webhook-allow 127.0.0.1/32", data.display());
    let line = server_process::podium(&program, port, &told);
    let mut server = ServerProcess::start(&line, &directory, None, scratch.join("webhooks.log"), "TERM")?;
    server.wait_until(Duration::from_secs(30), || status(port, "/readyz", "").is_ok_and(|s| s == 200))?;
    let token = fs::read_to_string(data.join("owner-token")).doing("reading the owner's token")?;
    let mut receiver = Command::new(tools.join("python"));
    receiver.arg(root().join("xtask/python/receive_webhooks.py"));
    receiver.args([&format!("http://127.0.0.1:{port}"), token.trim()]);
    must(&mut receiver).map_err(|e| format!("{e}\n{}", server.log_tail()))?;
    let ended = server.stop()?;
    if ended.success() { Ok(()) } else { Err(format!("the server did not stop cleanly on SIGTERM: {ended}")) }
}
