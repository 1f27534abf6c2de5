//! Schemathesis against the served program: random calls of every operation, good and bad.
//!
//! It must find no server error, and no status, content type or body that the document does not declare. The server
//! runs on the embedded default, on a free port, with its own data directory.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use crate::outcome::{Outcome, While};
use crate::probe::status;
use crate::python;
use crate::server_process::Served;
use crate::workspace::{cargo, must, root, scratch};

const CHECKS: &str =
    "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance";

/// The calls in this list end the session of the token in use, and everything after them would be answered 401.
const ENDS_THE_SESSION: &[&str] = &["SignOut", "RenewSession", "EndSession"];

/// Builds the program and runs this part of the tests.
pub(crate) fn alone() -> Outcome {
    must(&mut cargo(&["build", "--workspace", "--bins"]))?;
    let scratch = scratch()?;
    let tools = python::tools(&scratch)?;
    validate(&tools)?;
    run(&tools, &scratch, None)
}

/// Checks that the committed document is valid OpenAPI.
pub(crate) fn validate(tools: &Path) -> Outcome {
    let document = root().join("contract/openapi.json");
    must(Command::new(tools.join("openapi-spec-validator")).arg(document))
}

/// Serves the debug program and runs Schemathesis against it; its output goes to a file if one is given.
pub(crate) fn run(tools: &Path, scratch: &Path, log: Option<&Path>) -> Outcome {
    let server = Served::start("serve", scratch, "")?;
    fs::write(scratch.join("schemathesis.toml"), CONFIGURATION).doing("configuring Schemathesis")?;
    let mut calls = calls(tools, scratch, server.port, &server.token);
    if let Some(log) = log {
        let file = File::create(log).doing(&format!("making {}", log.display()))?;
        calls.stderr(file.try_clone().doing("sharing a file")?).stdout(file);
    }
    server.must(&mut calls)?;
    match status(server.port, "/v1/users/self", &server.token) {
        Ok(200) => server.stop(),
        other => Err(format!("the owner's token died on the way ({other:?}): later calls proved nothing")),
    }
}

/// Rules guessed from the words of our refusals contradict the document's in the end, and then nothing can be made up.
const CONFIGURATION: &str = "[phases.fuzzing]\nerror-feedback.enabled = false\n";

/// The command that makes the calls. The document is the served one, so its base URL is the one that counts.
fn calls(tools: &Path, scratch: &Path, port: u16, token: &str) -> Command {
    let mut command = Command::new(tools.join("schemathesis"));
    command.current_dir(scratch);
    command.args(["run", &format!("http://127.0.0.1:{port}/openapi.json")]);
    command.args(["--header", &format!("Authorization: Bearer {token}"), "--checks", CHECKS]);
    command.args(["--phases", "examples,coverage,fuzzing,stateful", "--max-examples", "15", "--seed", "1"]);
    // One worker: parsing in threads fails now and then in Python before 3.11.8 (python/cpython#106905), and one worker
    // makes the same calls in the same order every time.
    command.args(["--workers", "1", "--request-timeout", "10", "--continue-on-failure"]);
    command.args(["--generation-database", "none", "--warnings", "off", "--no-color"]);
    // It goes on until the caller has enough.
    command.args(["--exclude-operation-id", "FollowDeploymentLogs"]);
    for operation in ENDS_THE_SESSION {
        command.args(["--exclude-operation-id", operation]);
    }
    for proxy in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"] {
        command.env_remove(proxy);
    }
    command
}
