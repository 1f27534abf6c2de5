//! The benchmark: the release program and a bare handler that returns the same bytes, driven by the same load tool
//! in the same run. What it prints are ratios; times of one machine say nothing about another.

pub(crate) mod cli;
mod client;
mod creates;
mod deployments;
mod events;
mod fresh;
mod instructions;
pub(crate) mod logs;
pub(crate) mod postgres;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::outcome::{Outcome, While};
use crate::probe::{get, status};
use crate::server_process::{self, ServerProcess};
use crate::system::{free_port, need};
use crate::workspace::{cargo, must, scratch, target};

const SECONDS: &str = "5s";
const CONNECTIONS: &str = "64";
const WRITERS: &str = "256";
const LISTED: u64 = 100_000;
const LARGE: u64 = 1_000_000;

/// Requests a second, and what the load tool said of latency.
struct Measured {
    rate: f64,
    latency: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// Reads during commits, durable creates, identity, and then deployments.
    All,
    /// Reads during commits only.
    Fresh,
    Instructions,
    Creates,
    Deployments,
    /// The cost of operations and events only.
    Events,
    /// The start on a database of a million rows, too.
    Million,
}

/// Sees to it that there is a load tool, and something to measure.
fn build(is_release: bool) -> Outcome {
    need("wrk", "the load tool wrk", &["wrk"])?;
    let mode: &[&str] = if is_release { &["--release"] } else { &[] };
    must(&mut cargo(&[&["build", "--package", "podium-cli"], mode].concat()))
}

pub(crate) fn run(what: What) -> Outcome {
    build(true)?;
    must(&mut cargo(&["build", "--release", "--package", "xtask", "--example", "bare"]))?;
    if what == What::Instructions {
        return instructions::run();
    }
    if what == What::Events {
        return Bench::start()?.events();
    }
    if matches!(what, What::All | What::Fresh) {
        Bench::start()?.fresh_reads()?;
    }
    if matches!(what, What::All | What::Creates) {
        Bench::start()?.durable_creates()?;
    }
    if matches!(what, What::Fresh | What::Creates) {
        return Ok(());
    }
    if what != What::Deployments {
        identity(what == What::Million)?;
    }
    let bench = Bench::start()?;
    println!("idle memory: {} MB", bench.memory()?);
    bench.deployments()
}

fn identity(million: bool) -> Outcome {
    let bench = Bench::start()?;
    println!("idle memory: {} MB", bench.memory()?);
    bench.creates()?;
    bench.seed(LISTED)?;
    let organization = bench.root();
    let workspace = bench.first("workspaces")?;
    heading();
    for (name, path) in [
        ("GET /users/self", "/v1/users/self".to_owned()),
        ("GET one workspace", format!("{organization}/workspaces/{workspace}")),
        ("list 20 of 100,000 workspaces", format!("{organization}/workspaces?limit=20")),
    ] {
        bench.read(name, &path)?;
    }
    let first = bench.fresh(&format!("{organization}/workspaces?limit=20&offset=0"))?;
    let last = bench.fresh(&format!("{organization}/workspaces?limit=20&offset={}", LISTED - 20))?;
    println!("page 5,000 costs {:.2} times page 1, each read anew", first.rate / last.rate);
    println!("memory after load: {} MB", bench.memory()?);
    if million {
        bench.seed(LARGE)?;
        bench.restart()?;
    }
    Ok(())
}

fn heading() {
    println!("{:<34}{:>12}{:>12}{:>8}{:>14}   latency", "read", "podium/s", "bare/s", "ratio", "read anew");
}

struct Bench {
    server: ServerProcess,
    program: PathBuf,
    directory: PathBuf,
    port: u16,
    token: String,
    organization: String,
}

impl Bench {
    fn start() -> Outcome<Self> {
        Self::start_on(None)
    }

    /// Starts the server, on another database than its own.
    fn start_on(database: Option<&str>) -> Outcome<Self> {
        Self::start_program(&target()?.join("release/podium"), database)
    }

    /// Starts another build of the server.
    fn start_program(program: &Path, database: Option<&str>) -> Outcome<Self> {
        let program = program.to_owned();
        let directory = scratch()?.join("bench");
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).doing("making a directory")?;
        let port = free_port()?;
        let server = serve(&[], &program, &directory, port, database)?;
        let token =
            fs::read_to_string(directory.join("data/owner-token")).doing("reading the owner's token")?;
        let found: Value = serde_json::from_str(&get(port, "/v1/users/self", &token).doing("the owner")?)
            .doing("the owner")?;
        let organization = found["organizationId"].as_str().unwrap_or_default().to_owned();
        Ok(Self { server, program, directory, port, token, organization })
    }

    /// Resident memory of the server, in megabytes.
    fn memory(&self) -> Outcome<u64> {
        let status =
            fs::read_to_string(format!("/proc/{}/status", self.server.server()?)).doing("reading /proc")?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
        let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().doing("VmRSS")?;
        Ok(kilobytes / 1024)
    }

    fn total(&self, kind: &str) -> Outcome<u64> {
        self.json(&format!("/{kind}?limit=0"))?["totalCount"].as_u64().ok_or("a list has no total".into())
    }

    /// Durable creates, against the bare handler that reads the same body and answers with the same bytes.
    fn creates(&self) -> Outcome {
        let path = format!("{}/workspaces", self.root());
        let before = self.total("workspaces")?;
        let script = self.workspaces_script()?;
        let ours = wrk(self.port, &path, &self.token, WRITERS, SECONDS, Some(&script))?;
        let created = self.total("workspaces")? - before;
        let answer = get(self.port, &format!("{path}/{}", self.first("workspaces")?), &self.token)
            .doing("a workspace")?;
        let bare = self.bare(&answer, |port| wrk(port, &path, "", WRITERS, SECONDS, Some(&script)))?;
        let (rate, ratio) = (ours.rate, ours.rate / bare.rate);
        println!(
            "create workspace, durable: {rate:.0}/s ({created} created), {ratio:.2} of the bare handler; {}",
            ours.latency
        );
        Ok(())
    }

    /// Creates workspaces until there are so many.
    fn seed(&self, rows: u64) -> Outcome {
        let path = format!("{}/workspaces", self.root());
        while self.total("workspaces")? < rows {
            println!("creating workspaces: {} of {rows}", self.total("workspaces")?);
            wrk(self.port, &path, &self.token, WRITERS, SECONDS, Some(&self.workspaces_script()?))?;
        }
        Ok(())
    }

    /// Names are unique over threads and runs.
    fn workspaces_script(&self) -> Outcome<PathBuf> {
        self.create_script(self.total("workspaces")?, r#","description":"made by the benchmark""#)
    }

    /// The same read with another URL each time, so that no cache helps.
    fn fresh(&self, path: &str) -> Outcome<Measured> {
        let script = self.directory.join("fresh.lua");
        let text = format!(
            "count = 0\nfunction request() count = count + 1; return wrk.format('GET', '{}' .. count) end\n",
            unlike(path, "")
        );
        fs::write(&script, text).doing("writing a script")?;
        wrk(self.port, path, &self.token, CONNECTIONS, SECONDS, Some(&script))
    }

    fn load(&self, path: &str) -> Outcome<Measured> {
        wrk(self.port, path, &self.token, CONNECTIONS, SECONDS, None)
    }

    fn read(&self, name: &str, path: &str) -> Outcome {
        let answer = get(self.port, path, &self.token).doing(path)?;
        let ours = self.load(path)?;
        let bare = self.bare(&answer, |port| wrk(port, path, &self.token, CONNECTIONS, SECONDS, None))?;
        let anew = self.fresh(path)?.rate / bare.rate;
        let (rate, base, latency) = (ours.rate, bare.rate, ours.latency);
        println!("{name:<34}{rate:>12.0}{base:>12.0}{:>8.2}{anew:>14.2}   {latency}", rate / base);
        Ok(())
    }

    fn bare<T>(&self, answer: &str, measure: impl FnOnce(u16) -> Outcome<T>) -> Outcome<T> {
        self.bare_below(&[], answer, |_, port| measure(port))
    }

    /// The same where the handler is started by another command.
    fn bare_below<T>(
        &self,
        command: &[String],
        answer: &str,
        measure: impl FnOnce(&ServerProcess, u16) -> Outcome<T>,
    ) -> Outcome<T> {
        let file = self.directory.join("answer.json");
        fs::write(&file, answer).doing("writing the answer")?;
        let port = free_port()?;
        let program = target()?.join("release/examples/bare").display().to_string();
        let (number, file) = (port.to_string(), file.display().to_string());
        let line = command.iter().map(String::as_str).chain([program.as_str(), &number, &file]);
        let line: Vec<&str> = line.collect();
        let own = server_process::directory("bare", None)?;
        let mut server = ServerProcess::start(&line, &own, None, scratch()?.join("bare.log"), "TERM")?;
        server.wait_until(Duration::from_secs(60), || status(port, "/", "").is_ok())?;
        let measured = measure(&server, port);
        server.stop()?;
        measured
    }

    /// How long a start takes on what is there now.
    fn restart(self) -> Outcome {
        let rows = self.total("workspaces")?;
        self.server.stop()?;
        let started = Instant::now();
        let _server = serve(&[], &self.program, &self.directory, self.port, None)?;
        println!("ready {} ms after the start, with {rows} workspaces", started.elapsed().as_millis());
        Ok(())
    }
}

/// The path, with a query that no other request has.
fn unlike(path: &str, number: impl std::fmt::Display) -> String {
    let glue = if path.contains('?') { '&' } else { '?' };
    format!("{path}{glue}unlike={number}")
}

/// Starts the server, by another command if one is given.
fn serve(
    command: &[String],
    program: &Path,
    directory: &Path,
    port: u16,
    database: Option<&str>,
) -> Outcome<ServerProcess> {
    let program = program.display().to_string();
    let told = format!("--data-dir {}/data --max-connections-per-address 2000", directory.display());
    let mut line = match database {
        Some(_) => vec!["env", postgres::SECRET_KEY],
        None => Vec::new(),
    };
    let serve = server_process::podium(&program, port, &told);
    line.extend(command.iter().map(String::as_str).chain(serve.iter().map(String::as_str)));
    if let Some(url) = database {
        line.extend(["--database-url", url, "--rate-limits", "off"]);
    }
    let own = server_process::directory("bench", None)?;
    let mut server = ServerProcess::start(&line, &own, None, scratch()?.join("bench.log"), "TERM")?;
    server.wait_until(Duration::from_secs(120), || status(port, "/readyz", "").is_ok_and(|s| s == 200))?;
    Ok(server)
}

/// Runs the load tool and reads what it prints.
fn wrk(
    port: u16,
    path: &str,
    token: &str,
    connections: &str,
    seconds: &str,
    script: Option<&Path>,
) -> Outcome<Measured> {
    let mut command = Command::new("wrk");
    command.args(["--threads", "1", "--connections", connections, "--duration", seconds, "--latency"]);
    command.args(["--header", &format!("Authorization: Bearer {token}")]);
    if let Some(script) = script {
        command.arg("--script").arg(script);
    }
    let output = command.arg(format!("http://127.0.0.1:{port}{path}")).output().doing("wrk")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if text.contains("Non-2xx") || text.contains("Socket errors") {
        return Err(format!("the load was not answered as it should be:\n{text}"));
    }
    let after = |label: &str| {
        text.lines().find_map(|line| line.trim().strip_prefix(label).map(|rest| rest.trim().to_owned()))
    };
    let rate =
        after("Requests/sec:").and_then(|rate| rate.parse().ok()).ok_or(format!("wrk said:\n{text}"))?;
    let latency =
        format!("p50 {}, p99 {}", after("50%").unwrap_or_default(), after("99%").unwrap_or_default());
    Ok(Measured { rate, latency })
}
