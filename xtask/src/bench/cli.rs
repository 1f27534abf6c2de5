//! The command line: how long it takes to start, and how much memory a long list needs.

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use super::Bench;
use crate::outcome::{Outcome, While};
use crate::workspace::target;

const LISTED: u64 = 10_000;
/// How much memory the list may take, in kilobytes.
const MOST_MEMORY: u64 = 60 << 10;
/// How long the program should take to start, in milliseconds; a busy machine takes longer.
const START: f64 = 20.0;
const STARTS: usize = 50;

/// Measures the command line against a server with many things in it; with the build for developers if that is wanted.
pub(crate) fn run(options: &[&str]) -> Outcome {
    let build = match options {
        [] => "release",
        ["--debug"] => "debug",
        other => return Err(format!("`bench --cli` takes --debug, not `{}`", other.join(" "))),
    };
    super::build(build == "release")?;
    let program = target()?.join(build).join("podium");
    starts(&program)?;
    let bench = Bench::start_program(&program, None)?;
    bench.seed(LISTED)?;
    for format in ["table", "wide", "json", "yaml", "jsonl", "name"] {
        bench.lists(&program, format)?;
    }
    Ok(())
}

/// How long it takes until the program has ended that only says how it is used.
fn starts(program: &Path) -> Outcome {
    let mut times = Vec::new();
    for _ in 0..STARTS {
        let began = Instant::now();
        let status =
            Command::new(program).arg("--help").stdout(Stdio::null()).status().doing("podium --help")?;
        times.push(began.elapsed().as_secs_f64() * 1_000.0);
        if !status.success() {
            return Err(format!("podium --help: {status}"));
        }
    }
    times.sort_by(f64::total_cmp);
    let (best, middle) = (times[0], times[STARTS / 2]);
    println!("podium --help: {middle:.1} ms (best {best:.1} ms) of {START} ms");
    Ok(())
}

impl Bench {
    /// Lists everything in a format.
    fn lists(&self, program: &Path, format: &str) -> Outcome {
        let mut command = Command::new(program);
        command.args(["workspace", "list", "--output", format]).stdout(Stdio::piped());
        command.env("PODIUM_URL", format!("http://127.0.0.1:{}", self.port)).env("PODIUM_TOKEN", &self.token);
        command.env("PODIUM_CONFIG_DIR", self.directory.join("settings"));
        let began = Instant::now();
        let mut child = command.spawn().doing("podium workspace list")?;
        let mut out = child.stdout.take().ok_or("its output is not piped")?;
        let (mut first, mut lines, mut peak, mut bytes) = (None, 0, 0, vec![0; 16 << 10]);
        loop {
            let count = out.read(&mut bytes).doing("reading a list")?;
            peak = peak.max(memory(&child));
            if count == 0 {
                break;
            }
            first = first.or_else(|| Some(began.elapsed()));
            lines += bytes[..count].iter().filter(|byte| **byte == b'\n').count();
        }
        let status = child.wait().doing("podium workspace list")?;
        let (first, all) = (first.unwrap_or_default().as_millis(), began.elapsed().as_millis());
        println!(
            "podium workspace list --output {format}: {lines} lines, the first after {first} ms, all after {all} ms, \
             {} MB of {} MB",
            peak >> 10,
            MOST_MEMORY >> 10
        );
        match status.success() && peak > 0 && peak <= MOST_MEMORY {
            true => Ok(()),
            false => Err(format!("a list takes {peak} kB of memory, of {MOST_MEMORY} kB: {status}")),
        }
    }
}

/// The most memory that a process has had, in kilobytes; nothing once it has ended.
fn memory(child: &Child) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}
