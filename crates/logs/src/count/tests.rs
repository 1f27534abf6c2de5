//! A count agrees with counting every line, however lines are stored.

use std::ops::Range;
use std::time::Duration;

use podium_api::deployment_logs::LogLevel;
use podium_api::enums::LogSource;
use podium_api::{DeploymentId, Id};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use tempfile::TempDir;

use super::*;
use crate::{Line, LogStore, Query};

const START: i64 = 1_800_000_000_000;
const TEXTS: [&str; 5] =
    ["INFO - all is well", "ERROR - it failed", "a WARNING", "Traceback (most recent)", "it failed again"];

fn open(directory: &TempDir) -> LogStore {
    LogStore::open(directory.path(), Duration::from_hours(15 * 24)).unwrap()
}

fn line(millis: i64, source: LogSource, text: &str) -> Line {
    let deployment_id = DeploymentId::from_raw(Id::from_parts(0, 0, 1));
    Line { deployment_id, source, timestamp: Timestamp::from_millis(millis), text: text.to_owned() }
}

fn search(window: Range<i64>, sources: &[LogSource], text: &str) -> Search {
    Search {
        deployment_id: DeploymentId::from_raw(Id::from_parts(0, 0, 1)),
        window: Timestamp::from_millis(window.start)..Timestamp::from_millis(window.end),
        sources: sources.to_vec(),
        query: Query::parse(text),
        max_results: 1,
    }
}

fn expected(lines: &[Line], search: &Search, buckets: usize) -> Vec<[u64; LEVELS]> {
    let mut counts = vec![[0; LEVELS]; buckets];
    let (start, end) = (search.window.start.millis(), search.window.end.millis());
    for line in lines {
        let is_found = search.window.contains(&line.timestamp)
            && search.sources.contains(&line.source)
            && search.query.matches(&line.text);
        if is_found {
            let at = (line.timestamp.millis() - start) * buckets as i64 / (end - start);
            counts[at as usize][LogLevel::of(&line.text) as usize] += 1;
        }
    }
    counts
}

type Drawn = (i64, usize, usize, usize);

fn lines_of(drawn: &[Drawn]) -> Vec<Line> {
    let draw = |(at, source, text, _): &Drawn| line(START + at, LogSource::ALL[*source], TEXTS[*text]);
    drawn.iter().map(draw).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_count_is_what_counting_every_line_gives(
        drawn in vec((0..3 * 3_600_000i64, 0..LogSource::ALL.len(), 0..TEXTS.len(), 0..20usize), 0..150),
        (from, length, buckets) in (-600_000..7_200_000i64, 1..14_400_000i64, 1..40usize),
        text in select(vec!["", "failed", "\"is w\"", "fail* again", "nowhere"]),
        some in vec(select(LogSource::ALL), 1..6),
    ) {
        let lines = lines_of(&drawn);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let directory = TempDir::new().unwrap();
        let store = open(&directory);
        let counts = runtime.block_on(async {
            for (line, (.., flushes)) in lines.iter().zip(&drawn) {
                store.append(vec![line.clone()]).await.unwrap();
                if *flushes == 0 {
                    store.flush().await.unwrap();
                }
            }
            let asked = search(START + from..START + from + length, &some, text);
            let counts = store.count(asked.clone(), buckets).await.unwrap();
            (counts, expected(&lines, &asked, buckets))
        });
        prop_assert_eq!(counts.0, Counts { buckets: counts.1, complete_from: None });
    }
}

/// An hour with many blocks, the last of which is in memory.
async fn busy(directory: &TempDir) -> (LogStore, Vec<Line>) {
    let store = open(directory);
    let long = "x".repeat(1000);
    let make = |at: i64| {
        let source = LogSource::ALL[at as usize % LogSource::ALL.len()];
        line(START + at * 100, source, &format!("{long} {} {at}", TEXTS[at as usize % TEXTS.len()]))
    };
    let lines: Vec<Line> = (0..10_000).map(make).collect();
    store.append(lines[..9900].to_vec()).await.unwrap();
    store.flush().await.unwrap();
    store.append(lines[9900..].to_vec()).await.unwrap();
    (store, lines)
}

#[tokio::test]
async fn blocks_within_a_bucket_are_counted_without_reading_them() {
    let directory = TempDir::new().unwrap();
    let (store, lines) = busy(&directory).await;
    let asked = search(START..START + 1_000_000, &[LogSource::Worker, LogSource::Scheduler], "");
    // Of about 40 blocks, those in memory and at the borders of the four buckets may be read.
    let counts = count_within(&store.shared, &asked, 4, 60 + 8 * READING).unwrap();
    assert_eq!(counts, Counts { buckets: expected(&lines, &asked, 4), complete_from: None });
    let asked = search(START..START + 1_000_000, LogSource::ALL, "failed");
    assert!(count_within(&store.shared, &asked, 4, 60 + 8 * READING).unwrap().complete_from.is_some());
}

#[tokio::test]
async fn a_count_that_is_cut_is_complete_from_the_moment_that_it_names() {
    let directory = TempDir::new().unwrap();
    let (store, lines) = busy(&directory).await;
    for text in ["", "failed"] {
        let asked = search(START..START + 1_000_000, LogSource::ALL, text);
        let all = expected(&lines, &asked, 1000);
        let mut earlier = i64::MAX;
        for blocks in 2..10 {
            let counts = count_within(&store.shared, &asked, 1000, 60 + blocks * READING).unwrap();
            let from = counts.complete_from.expect("it is cut").millis();
            assert!(from < earlier, "{from} is not before {earlier}");
            earlier = from;
            let first_whole = ((from - START) as usize).div_ceil(1000);
            assert_eq!(counts.buckets[first_whole..], all[first_whole..]);
        }
    }
    let none = count_within(&store.shared, &search(START..START + 1_000_000, LogSource::ALL, ""), 10, 1);
    let newest = Timestamp::from_millis(START + 9999 * 100 + 1);
    assert_eq!(none.unwrap().complete_from, Some(newest), "not even headers may be read");
}

#[tokio::test]
async fn lines_of_a_closed_store_are_none() {
    let counts = LogStore::closed().count(search(0..10, LogSource::ALL, ""), 3).await.unwrap();
    assert_eq!(counts, Counts { buckets: vec![[0; LEVELS]; 3], complete_from: None });
}
