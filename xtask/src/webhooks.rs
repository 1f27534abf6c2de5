//! Webhooks of the served program, received and verified by the published library of Standard Webhooks.

use std::path::Path;
use std::process::Command;

use crate::outcome::Outcome;
use crate::python;
use crate::server_process::Served;
use crate::workspace::{cargo, must, root, scratch};

/// Builds the program and runs this part of the tests.
pub(crate) fn alone() -> Outcome {
    must(&mut cargo(&["build", "--workspace", "--bins"]))?;
    let scratch = scratch()?;
    run(&python::tools(&scratch)?, &scratch)
}

/// Serves the debug program and receives its events.
pub(crate) fn run(tools: &Path, scratch: &Path) -> Outcome {
    let server = Served::start("webhooks", scratch, "--webhook-allow 127.0.0.1/32")?;
    let mut receiver = Command::new(tools.join("python"));
    receiver.arg(root().join("xtask/python/receive_webhooks.py"));
    receiver.args([&format!("http://127.0.0.1:{}", server.port), &server.token]);
    server.must(&mut receiver)?;
    server.stop()
}
