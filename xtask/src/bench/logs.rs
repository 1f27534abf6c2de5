//! The log store against plain files: the same lines, searched with ripgrep.
//!
//! Each part runs in a process of its own, so that peak memory is that of the part. Processor time stands next to time
//! on the clock: on a busy machine only the former says something.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use crate::outcome::{Outcome, While};
use crate::system::{directory_of, install};
use crate::workspace::{cargo, must, scratch, target};

const LINES: u64 = 10_000_000;
/// How often a search of plain files is repeated; the best time counts.
const TIMES: usize = 3;

/// What a part printed: names, each with its values.
type Values = HashMap<String, Vec<String>>;

/// Runs the benchmark of the log store.
pub(crate) fn run(options: &[&str]) -> Outcome {
    let lines = match options {
        [] => LINES,
        ["--lines", number] => number.parse().doing("--lines")?,
        _ => return Err("usage: cargo xtask bench --logs [--lines NUMBER]".into()),
    };
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
    if directory_of("rg", &[]).is_none()
        && let Err(advice) = install("ripgrep", &["ripgrep"])
    {
        println!("no comparison with plain files: {advice}");
        return searches(&found, None);
    }
    measure(&["plain", &place("plain"), &count])?;
    let searched = searches(&found, Some(&directory.join("plain")));
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

/// Searches of the store, next to the same ones of plain files.
fn searches(found: &Values, plain: Option<&Path>) -> Outcome {
    println!("{:<34}{:>12}{:>8}{:>14}{:>10}", "search, warm", "podium ms", "hits", "ripgrep ms", "ratio");
    let id = text(found, "task_id", 0)?;
    for (name, shown, arguments) in [
        ("rare_word", "a rare word", vec!["-w", "heartbeatlost"]),
        ("unique_id", "an id", vec!["-w", &id]),
        ("absent_word", "a word that no line has", vec!["-w", "nosuchwordanywhere"]),
        ("beginning", "a beginning", vec!["heartbeatl"]),
        ("common_word", "a common word, newest 100", vec!["-w", "info"]),
        ("two_words", "two words, newest 100", vec!["-w", "operationalerror"]),
        ("next_page", "the next page of it", vec!["-w", "info"]),
        ("substring", "a part of a word, over everything", vec!["rtbeatlo"]),
    ] {
        let (ours, hits) = (number(found, name)?, text(found, name, 1)?);
        let theirs = plain.map(|directory| ripgrep(directory, &arguments)).transpose()?;
        let theirs = theirs.map(|took| format!("{took:>14.1}{:>10.1}", took / ours)).unwrap_or_default();
        println!("{shown:<34}{ours:>12.2}{hits:>8}{theirs}");
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
