//! Measures the log store: `cargo xtask bench --logs` runs it, part by part, each in a process of its own.

#![expect(clippy::print_stdout, reason = "what it prints is read by the benchmark")]

mod lines;

use std::error::Error;
use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lines::{Lines, RARE, SPAN, START};
use podium_api::enums::LogSource;
use podium_api::{DeploymentId, Id, SearchId, SubjectId, Timestamp};
use podium_logs::{Line, LogStore, Page, Query, Search, Snapshot};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

const BATCH: usize = 2_000;
const RETENTION: Duration = Duration::from_hours(15 * 24);
const DEPLOYMENTS: u64 = 10_000;

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    match arguments[..] {
        ["plain", directory, total] => plain(Path::new(directory), total.parse()?)?,
        ["ingest", directory, total] => runtime.block_on(ingest(directory, total.parse()?))?,
        ["search", directory, total] => runtime.block_on(search(directory, total.parse()?))?,
        ["count", directory] => runtime.block_on(count(directory))?,
        ["many", directory] => runtime.block_on(many(directory))?,
        _ => return Err("measure plain|ingest|search|count|many DIRECTORY [LINES]".into()),
    }
    println!("peak_memory_mb {}", peak_memory()? / 1024);
    Ok(())
}

fn deployment() -> DeploymentId {
    DeploymentId::from_raw(Id::from_parts(0, 0, 1))
}

/// Writes the lines as plain files, one for each hour.
fn plain(directory: &Path, total: u64) -> Outcome {
    fs::create_dir_all(directory)?;
    let mut open: Option<(i64, BufWriter<File>)> = None;
    let mut bytes = 0;
    for line in Lines::new(deployment(), total) {
        let hour = line.timestamp.millis() / 3_600_000;
        if open.as_ref().is_none_or(|(known, _)| *known < hour) {
            let file = File::create(directory.join(format!("{hour}.log")))?;
            open = Some((hour, BufWriter::with_capacity(1 << 20, file)));
        }
        if let Some((_, file)) = &mut open {
            let text = format!("{} {} {}\n", line.timestamp, line.source.as_str(), line.text);
            file.write_all(text.as_bytes())?;
            bytes += text.len();
        }
    }
    println!("plain_bytes {bytes}");
    Ok(())
}

/// Appends all lines, and says what that took.
async fn ingest(directory: &str, total: u64) -> Outcome {
    let store = LogStore::open(directory, RETENTION)?;
    let mut lines = Lines::new(deployment(), total);
    let mut making = Duration::ZERO;
    let started = Instant::now();
    let mut bytes = 0;
    loop {
        let making_one = Instant::now();
        let batch: Vec<Line> = lines.by_ref().take(BATCH).collect();
        making += making_one.elapsed();
        if batch.is_empty() {
            break;
        }
        bytes += batch.iter().map(|line| line.text.len() as u64).sum::<u64>();
        store.append(batch).await?;
    }
    store.flush().await?;
    println!("wall_seconds {:.3}", started.elapsed().as_secs_f64());
    println!("making_seconds {:.3}", making.as_secs_f64());
    println!("engine_cpu_seconds {:.3}", engine_seconds()?);
    println!("text_bytes {bytes}");
    println!("stored_bytes {}", size(Path::new(directory))?);
    println!("files {}", fs::read_dir(Path::new(directory).join(deployment().as_str()))?.count());
    Ok(())
}

/// A few lines of many deployments, in rounds.
async fn many(directory: &str) -> Outcome {
    let store = Arc::new(LogStore::open(directory, RETENTION)?);
    let started = Instant::now();
    let rounds = 12;
    for round in 0..rounds {
        for some in 0..DEPLOYMENTS / 100 {
            let moment = Timestamp::from_millis(START) + Duration::from_secs(round * 60);
            let made = (0..100).flat_map(|one| {
                let id = DeploymentId::from_raw(Id::from_parts(0, 0, some * 100 + one + 1));
                Lines::new(id, 4).map(move |line| Line { timestamp: moment, ..line })
            });
            store.append(made.collect()).await?;
        }
    }
    println!("append_seconds {:.3}", started.elapsed().as_secs_f64());
    store.flush().await?;
    println!("wall_seconds {:.3}", started.elapsed().as_secs_f64());
    println!("engine_cpu_seconds {:.3}", engine_seconds()?);
    println!("lines {}", DEPLOYMENTS * rounds * 4);
    println!("open_files {}", fs::read_dir("/proc/self/fd")?.count());
    Ok(())
}

fn asked(text: &str) -> Search {
    Search {
        deployment_id: deployment(),
        window: Timestamp::from_millis(START - 1000)..Timestamp::from_millis(START + SPAN),
        sources: LogSource::ALL.to_vec(),
        query: Query::parse(text),
        max_results: 10_000,
    }
}

/// Searches, each several times; the best time counts.
async fn search(directory: &str, total: u64) -> Outcome {
    let opening = Instant::now();
    let store = LogStore::open(directory, RETENTION)?;
    println!("open_ms {:.2}", opening.elapsed().as_secs_f64() * 1000.0);
    let mut lines = Lines::new(deployment(), total);
    lines.by_ref().take(total as usize / 3).for_each(drop);
    let task_id = lines.task_id().to_owned();
    println!("task_id {task_id}");
    let part = &RARE[3..RARE.len() - 2];
    let searches = [
        ("rare_word", RARE.to_owned(), 100, 10),
        ("unique_id", task_id, 100, 10),
        ("absent_word", "nosuchwordanywhere".to_owned(), 100, 10),
        ("beginning", format!("{}*", &RARE[..10]), 100, 10),
        ("common_word", "info".to_owned(), 100, 10),
        ("two_words", "operationalerror refused".to_owned(), 100, 10),
        ("everything_newest", String::new(), 100, 10),
        ("substring", format!("\"{part}\""), 100, 10),
    ];
    for (name, text, limit, times) in searches {
        let mut best = f64::MAX;
        let mut hits = 0;
        let before = processor_ms()?;
        for _ in 0..times {
            let started = Instant::now();
            let snapshot = begin(&store, &text);
            hits = store.page(snapshot, Page { offset: 0, limit }).await?.len();
            best = best.min(started.elapsed().as_secs_f64() * 1000.0);
        }
        println!("{name} {best:.3} {hits} {:.1}", (processor_ms()? - before) / f64::from(times));
    }
    let snapshot = begin(&store, "info");
    let mut offset = 0;
    let mut best = f64::MAX;
    for page in 0..50 {
        let started = Instant::now();
        offset += store.page(Arc::clone(&snapshot), Page { offset, limit: 100 }).await?.len() as u64;
        if page > 0 {
            best = best.min(started.elapsed().as_secs_f64() * 1000.0);
        }
    }
    println!("next_page {best:.3} {offset}");
    Ok(())
}

/// Counts over time, each several times; the best time counts.
async fn count(directory: &str) -> Outcome {
    let store = LogStore::open(directory, RETENTION)?;
    let one = vec![LogSource::Worker];
    let counts = [
        ("count_everything", asked("")),
        ("count_one_source", Search { sources: one, ..asked("") }),
        ("count_common_word", asked("info")),
        ("count_rare_word", asked(RARE)),
    ];
    for (name, search) in counts {
        let mut best = f64::MAX;
        let (mut lines, mut is_cut) = (0, false);
        for _ in 0..5 {
            let started = Instant::now();
            let counts = store.count(search.clone(), 60).await?;
            best = best.min(started.elapsed().as_secs_f64() * 1000.0);
            lines = counts.buckets.iter().flatten().sum();
            is_cut = counts.complete_from.is_some();
        }
        println!("{name} {best:.3} {lines} {}", if is_cut { "cut" } else { "whole" });
    }
    Ok(())
}

fn begin(store: &LogStore, text: &str) -> Arc<Snapshot> {
    let (id, now) = (Id::from_parts(0, 0, 2), Timestamp::from_millis(START));
    store.snapshot(SearchId::from_raw(id), SubjectId::from_raw(id), asked(text), now)
}

fn size(path: &Path) -> Outcome<u64> {
    let mut total = 0;
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        total += if metadata.is_dir() { size(&entry.path())? } else { metadata.len() };
    }
    Ok(total)
}

/// Processor time of the store's own threads.
fn engine_seconds() -> Outcome<f64> {
    let mut ticks = 0.0;
    for task in fs::read_dir("/proc/self/task")? {
        let stat = fs::read_to_string(task?.path().join("stat"))?;
        let Some((head, rest)) = stat.rsplit_once(") ") else { continue };
        if head.ends_with("(logs") || head.ends_with("(log segments") {
            let fields: Vec<f64> =
                rest.split(' ').skip(11).take(2).filter_map(|field| field.parse().ok()).collect();
            ticks += fields.iter().sum::<f64>();
        }
    }
    Ok(ticks / 100.0)
}

/// Processor time of the whole process, threads that have ended included.
fn processor_ms() -> Outcome<f64> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let rest = stat.rsplit_once(") ").map(|(_, rest)| rest).unwrap_or_default();
    let fields = rest.split(' ').skip(11).take(2).filter_map(|field| field.parse::<f64>().ok());
    Ok(fields.sum::<f64>() * 10.0)
}

fn peak_memory() -> Outcome<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}
