//! Instructions of the hot paths, counted by callgrind. Unlike times they come out the same on a busy machine, so that a
//! small change shows. Those of the kernel are not among them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::client::Client;
use super::{Bench, serve, unlike};
use crate::outcome::{Outcome, While};
use crate::probe::get;
use crate::server_process::ServerProcess;
use crate::system::need;
use crate::workspace::{must, scratch};

const ROWS: usize = 500;
/// Requests before anything is counted: by then statements are prepared and caches filled.
const WARM: usize = 200;
const COUNTED: usize = 500;

pub(super) fn run() -> Outcome {
    need("valgrind", "the instruction counter valgrind", &["valgrind"])?;
    let directory = scratch()?.join("callgrind");
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).doing("making a directory")?;
    let mut bench = Bench::start()?;
    bench.fill(ROWS)?;
    bench.server.stop()?;
    let mut ours = Counter::new(directory.join("podium"));
    bench.server = serve(&ours.command(), &bench.program, &bench.directory, bench.port, None)?;
    bench.settled()?;
    println!("instructions of each request; callgrind_annotate reads the files in {}", directory.display());
    println!("{:<24}{:>12}{:>12}{:>12}{:>8}", "read", "fresh", "same URL", "bare", "ratio");
    for (number, (name, path)) in bench.reads()?.into_iter().enumerate() {
        let (server, to) = (&bench.server, (bench.port, bench.token.as_str()));
        let fresh = ours.count(server, to, |number| unlike(&path, number))?;
        let same = ours.count(server, to, |_| path.clone())?;
        let answer = get(bench.port, &path, &bench.token).doing(&path)?;
        let mut bare = Counter::new(directory.join(format!("bare-{number}")));
        let plain = bench.bare_below(&bare.command(), &answer, |server, port| {
            bare.count(server, (port, &bench.token), |_| path.clone())
        })?;
        println!("{name:<24}{fresh:>12}{same:>12}{plain:>12}{:>8.2}", plain as f64 / fresh as f64);
    }
    Ok(())
}

struct Counter {
    /// Where callgrind writes to, with the number of the count behind it.
    file: PathBuf,
    counts: usize,
}

impl Counter {
    fn new(file: PathBuf) -> Self {
        Self { file, counts: 0 }
    }

    /// What the server is started below.
    fn command(&self) -> Vec<String> {
        let file = format!("--callgrind-out-file={}", self.file.display());
        vec!["valgrind".into(), "--tool=callgrind".into(), "--instr-atstart=no".into(), file]
    }

    fn count(
        &mut self,
        server: &ServerProcess,
        (port, token): (u16, &str),
        path: impl Fn(usize) -> String,
    ) -> Outcome<u64> {
        let server = server.server()?;
        let mut client = Client::connect(port, token)?;
        let mut ask = |numbers: std::ops::Range<usize>| -> Outcome {
            numbers.into_iter().try_for_each(|number| client.get(&path(number)).map(drop))
        };
        ask(0..WARM)?;
        control(server, "--instr=on")?;
        control(server, "--zero")?;
        ask(WARM..WARM + COUNTED)?;
        control(server, "--dump")?;
        control(server, "--instr=off")?;
        self.counts += 1;
        let dump = self.file.with_extension(self.counts.to_string());
        Ok(total(&dump)? / COUNTED as u64)
    }
}

fn control(server: u32, what: &str) -> Outcome {
    must(
        Command::new("callgrind_control")
            .args([what, &server.to_string()])
            .stdout(std::process::Stdio::null()),
    )
}

fn total(dump: &Path) -> Outcome<u64> {
    let text = fs::read_to_string(dump).doing(&format!("reading {}", dump.display()))?;
    let total = text.lines().find_map(|line| line.strip_prefix("totals: "));
    total.and_then(|total| total.trim().parse().ok()).ok_or_else(|| "callgrind wrote no total".into())
}
