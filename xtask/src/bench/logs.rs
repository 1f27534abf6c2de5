//! The log store against plain files: the same lines, searched with ripgrep.
//!
//! Each part runs in its own process, so that peak memory is that of the part. CPU time is shown next to elapsed time:
//! on a busy machine only the former is meaningful.

mod against;

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use against::{Program, Running};

use crate::outcome::{Outcome, While};
use crate::system::need;
use crate::workspace::{cargo, must, scratch, target};

const LINES: u64 = 10_000_000;
/// How often a search of plain files is repeated; the best time counts.
const TIMES: usize = 3;

/// What a part printed: names, each with its values.
type Values = HashMap<String, Vec<String>>;

#[derive(Debug, PartialEq, Eq)]
struct Options<'a> {
    lines: u64,
    against: Option<Program<'a>>,
}

impl<'a> Options<'a> {
    /// Everything behind the path of another program is for that program.
    fn parse(arguments: &'a [&'a str]) -> Outcome<Self> {
        match arguments {
            [] => Ok(Self { lines: LINES, against: None }),
            ["--against", path, flags @ ..] => {
                Ok(Self { lines: LINES, against: Some(Program { path, flags }) })
            }
            ["--lines", number, rest @ ..] => {
                let lines = number.parse().doing("--lines")?;
                Ok(Self { lines, ..Self::parse(rest)? })
            }
            _ => Err("usage: cargo xtask bench --logs [--lines NUMBER] [--against PATH FLAGS…]".into()),
        }
    }
}

/// Runs the benchmark of the log store.
pub(crate) fn run(arguments: &[&str]) -> Outcome {
    let Options { lines, against } = Options::parse(arguments)?;
    against.iter().try_for_each(Program::check)?;
    must(&mut cargo(&["build", "--release", "--package", "podium-logs", "--example", "measure"]))?;
    let directory = scratch()?.join("bench-logs");
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).doing("making a directory")?;
    let place = |name: &str| directory.join(name).display().to_string();
    let count = lines.to_string();

    let taken = measure(&["ingest", &place("store"), &count])?;
    ingest(lines, &taken)?;
    let found = measure(&["search", &place("store"), &count])?;
    let many = measure(&["many", &place("many")])?;
    println!(
        "10,000 deployments, {} lines in batches: appended in {} s, in segments after {} s; {} s of processor, {} MB, {} open files",
        text(&many, "lines", 0)?,
        text(&many, "append_seconds", 0)?,
        text(&many, "wall_seconds", 0)?,
        text(&many, "engine_cpu_seconds", 0)?,
        text(&many, "peak_memory_mb", 0)?,
        text(&many, "open_files", 0)?,
    );
    println!("search: peak memory {} MB", text(&found, "peak_memory_mb", 0)?);
    if let Err(advice) = need("rg", "ripgrep", &["ripgrep"]) {
        println!("no comparison with plain files: {advice}");
        return searches(&found, None, None);
    }
    measure(&["plain", &place("plain"), &count])?;
    let plain = directory.join("plain");
    let other = against.map(|program| program.start()).transpose()?;
    if let Some(other) = &other {
        other.load(&plain, "heartbeatlost")?;
    }
    let searched = searches(&found, Some(&plain), other.as_ref());
    fs::remove_dir_all(&directory).doing("removing the lines")?;
    searched
}

fn ingest(lines: u64, taken: &Values) -> Outcome {
    let (wall, making) = (number(taken, "wall_seconds")?, number(taken, "making_seconds")?);
    let processor = number(taken, "engine_cpu_seconds")?;
    let (bytes, stored) = (number(taken, "text_bytes")?, number(taken, "stored_bytes")?);
    let lines_as_float = lines as f64;
    println!(
        "ingest of {lines} lines, {:.0} MB: {:.0} lines/s and {:.0} MB/s of processor time, {:.0} lines/s on the clock",
        bytes / 1e6,
        lines_as_float / processor,
        bytes / 1e6 / processor,
        lines_as_float / (wall - making)
    );
    println!(
        "stored in {:.0} MB and {} files: {:.1} times smaller; peak memory {} MB",
        stored / 1e6,
        text(taken, "files", 0)?,
        bytes / stored,
        text(taken, "peak_memory_mb", 0)?
    );
    Ok(())
}

/// Searches of the store, next to the same ones of plain files and of another database.
fn searches(found: &Values, plain: Option<&Path>, other: Option<&Running>) -> Outcome {
    println!(
        "{:<34}{:>12}{:>8}{:>14}{:>10}{}",
        "search, warm",
        "podium ms",
        "hits",
        "ripgrep ms",
        "ratio",
        if other.is_some() { "    the other ms    hits" } else { "" }
    );
    let id = text(found, "task_id", 0)?;
    let quoted = format!("i(\"{id}\")");
    for (name, shown, arguments, question) in [
        ("rare_word", "a rare word", vec!["-w", "heartbeatlost"], "i(heartbeatlost)"),
        ("unique_id", "an id", vec!["-w", &id], quoted.as_str()),
        ("absent_word", "a word that no line has", vec!["-w", "nosuchwordanywhere"], "i(nosuchwordanywhere)"),
        ("beginning", "a beginning", vec!["heartbeatl"], "i(heartbeatl*)"),
        ("common_word", "a common word, newest 100", vec!["-w", "info"], "i(info)"),
        (
            "two_words",
            "two words, newest 100",
            vec!["-w", "operationalerror"],
            "i(operationalerror) i(refused)",
        ),
        ("next_page", "the next page of it", vec!["-w", "info"], "i(info)"),
        ("substring", "a part of a word, over everything", vec!["rtbeatlo"], "~\"(?i)rtbeatlo\""),
    ] {
        let (ours, hits) = (number(found, name)?, text(found, name, 1)?);
        let theirs = plain.map(|directory| ripgrep(directory, &arguments)).transpose()?;
        let theirs = theirs.map(|took| format!("{took:>14.1}{:>10.1}", took / ours)).unwrap_or_default();
        let others = other.map(|other| other.ask(question)).transpose()?;
        let others = others.map(|(hits, took)| format!("{took:>16.2}{hits:>8}")).unwrap_or_default();
        println!("{shown:<34}{ours:>12.2}{hits:>8}{theirs}{others}");
    }
    println!("looking through everything takes {} ms of processor time", text(found, "substring", 2)?);
    Ok(())
}

/// How many milliseconds ripgrep takes for all lines, the newest hundred of which are kept.
fn ripgrep(directory: &Path, arguments: &[&str]) -> Outcome<f64> {
    let mut best = f64::MAX;
    for _ in 0..TIMES {
        let started = Instant::now();
        let search = "rg --no-config -I -i -F \"$@\" . | tail -n 100";
        let mut command = Command::new("sh");
        command.args(["-c", search, "sh"]).args(arguments).current_dir(directory);
        command.output().doing("ripgrep")?;
        best = best.min(started.elapsed().as_secs_f64() * 1000.0);
    }
    Ok(best)
}

/// Runs a part, and reads what it prints.
fn measure(arguments: &[&str]) -> Outcome<Values> {
    let program = target()?.join("release/examples/measure");
    let output = Command::new(program).args(arguments).output().doing("measuring")?;
    if !output.status.success() {
        return Err(format!("measuring: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let value = |line: &str| {
        let mut words = line.split(' ').map(str::to_owned);
        Some((words.next()?, words.collect()))
    };
    Ok(printed.lines().filter_map(value).collect())
}

fn text(values: &Values, name: &str, at: usize) -> Outcome<String> {
    let value = values.get(name).and_then(|values| values.get(at)).cloned();
    value.ok_or_else(|| format!("measuring printed no `{name}`"))
}

fn number(values: &Values, name: &str) -> Outcome<f64> {
    text(values, name, 0)?.parse().doing(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_the_rest_goes_to_the_other_program() {
        let (path, flags) = ("bin/other", &["-data=DIR", "--lines", "PORT"][..]);
        let other = Some(Program { path, flags });
        assert_eq!(Options::parse(&[]), Ok(Options { lines: LINES, against: None }));
        assert_eq!(Options::parse(&["--lines", "7"]), Ok(Options { lines: 7, against: None }));
        let all = ["--lines", "7", "--against", path, flags[0], flags[1], flags[2]];
        assert_eq!(Options::parse(&all), Ok(Options { lines: 7, against: other }));
        assert!(Options::parse(&["--lines", "many"]).unwrap_err().contains("--lines"));
        for wrong in [&["--against"][..], &["--lines"], &["--other"]] {
            assert!(Options::parse(wrong).unwrap_err().contains("usage"), "{wrong:?}");
        }
    }

    #[test]
    fn a_missing_program_is_reported_before_anything_is_built() {
        let error = run(&["--against", "/no/such/program", "DIR", "PORT"]).unwrap_err();
        assert!(error.contains("there is no program /no/such/program"), "{error}");
    }
}
