//! The engine from outside: what was appended is found, in order, once, whatever happened in between.

use podium_api::{Id, TypedId};
use std::fs;
use std::ops::Range;
use std::path::Path;

use podium_api::enums::LogSource;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use tempfile::TempDir;

use super::*;
use crate::Query;

#[path = "damage.rs"]
mod damage;
#[path = "followers.rs"]
mod followers;
#[path = "opening.rs"]
mod opening;

const DAY: i64 = 86_400_000;
const START: i64 = 1_800_000_000_000;
const RETENTION: Duration = Duration::from_hours(15 * 24);

fn id<I: TypedId>(number: u64) -> I {
    I::from_raw(Id::from_parts(0, 0, number))
}

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn line(millis: i64, text: &str) -> Line {
    Line { deployment_id: id(1), source: LogSource::Worker, timestamp: at(millis), text: text.to_owned() }
}

fn search(window: Range<i64>, text: &str) -> Search {
    Search {
        deployment_id: id(1),
        window: at(window.start)..at(window.end),
        sources: LogSource::ALL.to_vec(),
        query: Query::parse(text),
        max_results: 10_000,
    }
}

const ALWAYS: Range<i64> = 0..START * 2;
/// Where the first lines go.
const FIRST_JOURNAL: &str = "journal/0000000000000001.journal";
const FIRST: Page = Page { offset: 0, limit: 500 };

fn open(directory: &Path) -> LogStore {
    LogStore::open(directory, RETENTION).unwrap()
}

async fn texts(store: &LogStore, search: Search, page: Page) -> Vec<String> {
    let snapshot = store.snapshot(id(900), id(800), search, at(START));
    let entries = store.page(snapshot, page).await.unwrap();
    entries.into_iter().map(|entry| entry.text).collect()
}

async fn all(store: &LogStore) -> Vec<String> {
    texts(store, search(ALWAYS, ""), FIRST).await
}

#[tokio::test]
async fn lines_are_found_newest_first_even_after_a_restart() {
    let directory = TempDir::new().unwrap();
    let store = open(directory.path());
    store.append(vec![line(START, "a"), line(START + DAY, "b")]).await.unwrap();
    store.append(vec![line(START, "same moment, written later"), line(START - DAY, "c")]).await.unwrap();
    let expected = ["b", "same moment, written later", "a", "c"];
    assert_eq!(all(&store).await, expected);
    drop(store);
    let store = open(directory.path());
    assert_eq!(all(&store).await, expected);
    store.append(vec![line(START + 1, "d")]).await.unwrap();
    assert_eq!(all(&store).await, ["b", "d", "same moment, written later", "a", "c"]);
    assert_eq!(texts(&store, search(START..START + 1, ""), FIRST).await, ["same moment, written later", "a"]);
    assert_eq!(texts(&store, search(ALWAYS, "LATER"), FIRST).await, ["same moment, written later"]);
    let none = Search { sources: vec![LogSource::Scheduler], ..search(ALWAYS, "") };
    assert_eq!(texts(&store, none, FIRST).await, [] as [&str; 0]);
    let elsewhere = Search { deployment_id: id(2), ..search(ALWAYS, "") };
    assert_eq!(texts(&store, elsewhere, FIRST).await, [] as [&str; 0]);
}

/// A store whose journal holds these bytes.
fn journal_of(bytes: &[u8]) -> TempDir {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join(FIRST_JOURNAL);
    fs::create_dir(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
    directory
}

#[tokio::test]
async fn a_torn_journal_frame_is_skipped_and_nothing_after_it_is_lost() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join(FIRST_JOURNAL);
    let store = open(directory.path());
    store.append(vec![line(START, "kept")]).await.unwrap();
    let whole = fs::read(&path).unwrap();
    store.append(vec![line(START + 1, "torn")]).await.unwrap();
    let longer = fs::read(&path).unwrap();
    for cut in whole.len() + 1..longer.len() {
        let directory = journal_of(&longer[..cut]);
        let store = open(directory.path());
        assert_eq!(all(&store).await, ["kept"], "cut at {cut}");
        store.append(vec![line(START + 2, "next")]).await.unwrap();
        assert_eq!(all(&store).await, ["next", "kept"], "cut at {cut}");
        drop(store);
        assert_eq!(all(&open(directory.path())).await, ["next", "kept"], "cut at {cut}");
    }
}

#[tokio::test]
async fn damage_in_the_middle_costs_only_what_is_damaged() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join(FIRST_JOURNAL);
    let store = open(directory.path());
    let mut lengths = Vec::new();
    for number in 0..5 {
        store.append(vec![line(START + number, &number.to_string())]).await.unwrap();
        lengths.push(fs::metadata(&path).unwrap().len() as usize);
    }
    let mut bytes = fs::read(&path).unwrap();
    bytes[lengths[1]..lengths[2]].fill(0);
    for more in [0, 1_000_000] {
        bytes.resize(bytes.len() + more, 0);
        let directory = journal_of(&bytes);
        assert_eq!(all(&open(directory.path())).await, ["4", "3", "1", "0"]);
    }
}

#[tokio::test]
async fn the_journal_does_not_grow_with_every_start() {
    let directory = TempDir::new().unwrap();
    for number in 0..4 {
        let store = open(directory.path());
        store.append(vec![line(START + number, &number.to_string())]).await.unwrap();
        store.flush().await.unwrap();
        assert_eq!(fs::read_dir(directory.path().join("journal")).unwrap().count(), 0);
        store.append(vec![line(START + number, "more")]).await.unwrap();
    }
    assert_eq!(all(&open(directory.path())).await.len(), 8);
}

#[tokio::test]
async fn a_snapshot_sees_what_was_written_before_it_and_nothing_later() {
    let directory = TempDir::new().unwrap();
    let store = open(directory.path());
    store.append(vec![line(START, "a"), line(START + 10, "b")]).await.unwrap();
    let snapshot = store.snapshot(id(900), id(800), search(ALWAYS, ""), at(START));
    store.append(vec![line(START + 5, "c"), line(START + 20, "d"), line(START + DAY, "e")]).await.unwrap();
    let first = store.page(Arc::clone(&snapshot), Page { offset: 0, limit: 1 }).await.unwrap();
    let found = store.resume(snapshot.id, id(800), id(1), at(START)).unwrap();
    let second = store.page(found, Page { offset: 1, limit: 9 }).await.unwrap();
    let shown: Vec<String> = first.into_iter().chain(second).map(|entry| entry.text).collect();
    assert_eq!(shown, ["b", "a"]);
    assert!(store.resume(snapshot.id, id(801), id(1), at(START)).is_none());
    assert_eq!(all(&store).await, ["e", "d", "b", "c", "a"]);
}

#[tokio::test]
async fn whole_days_are_deleted_after_the_retention_period() {
    let directory = TempDir::new().unwrap();
    let store = open(directory.path());
    let midnight = START - START % DAY;
    store.append(vec![line(midnight - 1, "old"), line(midnight, "new")]).await.unwrap();
    store.expire(at(midnight - 1) + RETENTION).await.unwrap();
    assert_eq!(all(&store).await, ["new", "old"]);
    let snapshot = store.snapshot(id(900), id(800), search(ALWAYS, ""), at(START));
    store.expire(at(midnight) + RETENTION).await.unwrap();
    assert_eq!(all(&store).await, ["new"]);
    let left = store.page(snapshot, FIRST).await.unwrap();
    assert_eq!(left.len(), 1, "an earlier search does not stumble over it");
    store.append(vec![line(midnight - 1, "late")]).await.unwrap();
    store.flush().await.unwrap();
    assert_eq!(all(&store).await, ["new", "late"]);
    fs::write(directory.path().join(id::<DeploymentId>(1).as_str()).join("2027-01-14T23.unfinished"), "half")
        .unwrap();
    store.expire(at(midnight + DAY) + RETENTION).await.unwrap();
    assert!(!directory.path().join(id::<DeploymentId>(1).as_str()).exists());
}

#[tokio::test]
async fn deleting_a_deployment_leaves_the_others() {
    let directory = TempDir::new().unwrap();
    let store = open(directory.path());
    let other = Line { deployment_id: id(2), ..line(START, "other") };
    store.append(vec![line(START, "mine"), other]).await.unwrap();
    store.remove(id(1)).await.unwrap();
    store.remove(id(3)).await.unwrap();
    assert_eq!(all(&store).await, [] as [&str; 0]);
    let elsewhere = Search { deployment_id: id(2), ..search(ALWAYS, "") };
    assert_eq!(texts(&store, elsewhere, FIRST).await, ["other"]);
    store.append(vec![line(START, "again")]).await.unwrap();
    assert_eq!(all(&store).await, ["again"]);
}

#[tokio::test]
async fn many_hours_are_written_at_once() {
    let directory = TempDir::new().unwrap();
    let store = open(directory.path());
    for round in 0..2 {
        let lines = (0..100).map(|day| line(START + day * DAY + round, &format!("{round}"))).collect();
        store.append(lines).await.unwrap();
    }
    let shown = all(&store).await;
    assert_eq!(shown.len(), 200);
    assert_eq!(shown[..4], ["1", "0", "1", "0"]);
}

#[tokio::test]
async fn results_end_at_the_requested_maximum() {
    let directory = TempDir::new().unwrap();
    let store = open(directory.path());
    store.append((0..50).map(|number| line(START + number, &number.to_string())).collect()).await.unwrap();
    let capped = Search { max_results: 10, ..search(ALWAYS, "") };
    assert_eq!(texts(&store, capped.clone(), Page { offset: 8, limit: 5 }).await, ["41", "40"]);
    assert_eq!(texts(&store, capped, Page { offset: 10, limit: 5 }).await, [] as [&str; 0]);
    let page = Page { offset: u64::MAX, limit: u64::MAX };
    assert_eq!(texts(&store, search(ALWAYS, ""), page).await, [] as [&str; 0]);
}

#[tokio::test]
async fn concurrent_batches_are_all_written() {
    let directory = TempDir::new().unwrap();
    let store = Arc::new(open(directory.path()));
    let tasks: Vec<_> = (0..400)
        .map(|number| {
            let store = Arc::clone(&store);
            tokio::spawn(async move { store.append(vec![line(START + number, "x")]).await })
        })
        .collect();
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    assert_eq!(all(&store).await.len(), 400);
}

#[tokio::test]
async fn the_next_page_starts_where_the_last_one_ended() {
    let directory = TempDir::new().unwrap();
    let store = open(directory.path());
    store
        .append((0..50).map(|number| line(START + number / 7, &number.to_string())).collect())
        .await
        .unwrap();
    let snapshot = store.snapshot(id(900), id(800), search(ALWAYS, ""), at(START));
    let mut shown = Vec::new();
    for round in 0..5 {
        let page = Page { offset: shown.len() as u64, limit: 10 };
        shown.extend(
            store.page(Arc::clone(&snapshot), page).await.unwrap().into_iter().map(|entry| entry.text),
        );
        store.append(vec![line(START, "later")]).await.unwrap();
        if round == 1 {
            store.flush().await.unwrap();
        }
    }
    let due: Vec<String> = (0..50).rev().map(|number: i32| number.to_string()).collect();
    assert_eq!(shown, due);
    let again = store.page(snapshot, Page { offset: 15, limit: 3 }).await.unwrap();
    assert_eq!(again.iter().map(|entry| entry.text.as_str()).collect::<Vec<_>>(), ["34", "33", "32"]);
}

#[tokio::test]
async fn merged_segments_contain_the_same_lines() {
    let directory = TempDir::new().unwrap();
    let store = open(directory.path());
    for number in 0..20 {
        store.append(vec![line(START + number, &format!("word{number} common"))]).await.unwrap();
        store.flush().await.unwrap();
    }
    let own = directory.path().join(id::<DeploymentId>(1).as_str());
    let count = || fs::read_dir(&own).unwrap().count();
    assert!(count() < 20, "{}", count());
    assert_eq!(texts(&store, search(ALWAYS, "word7"), FIRST).await, ["word7 common"]);
    assert_eq!(texts(&store, search(ALWAYS, "common"), FIRST).await.len(), 20);
    store.expire(at(START + 2 * DAY)).await.unwrap();
    store.flush().await.unwrap();
    drop(store);
    let store = open(directory.path());
    assert_eq!(all(&store).await.len(), 20);
    assert_eq!(texts(&store, search(ALWAYS, "word19"), FIRST).await, ["word19 common"]);
}

#[tokio::test]
async fn removed_lines_stay_removed_after_a_restart() {
    let directory = TempDir::new().unwrap();
    let store = open(directory.path());
    store.append(vec![line(START, "in a segment")]).await.unwrap();
    store.flush().await.unwrap();
    store.append(vec![line(START, "in the journal")]).await.unwrap();
    store.remove(id(1)).await.unwrap();
    store.append(vec![line(START, "new")]).await.unwrap();
    drop(store);
    assert_eq!(all(&open(directory.path())).await, ["new"]);
}

#[tokio::test]
async fn a_lost_number_file_is_rebuilt_from_segments() {
    let directory = TempDir::new().unwrap();
    let store = open(directory.path());
    store.append(vec![line(START, "a")]).await.unwrap();
    store.flush().await.unwrap();
    drop(store);
    fs::write(directory.path().join("stretch"), "not a number").unwrap();
    let store = open(directory.path());
    store.append(vec![line(START, "b")]).await.unwrap();
    assert_eq!(all(&store).await, ["b", "a"]);
}

#[tokio::test]
async fn a_batch_that_is_sent_again_is_not_added_again() {
    let directory = TempDir::new().unwrap();
    let mut store = open(directory.path());
    let batch = |sender: &str, sequence| Origin::new(id(1), sender, sequence);
    assert!(store.append_once(batch("a", 1), vec![line(START, "a1")]).await.unwrap());
    assert!(!store.append_once(batch("a", 1), vec![line(START, "a1")]).await.unwrap());
    assert!(store.append_once(batch("b", 1), vec![line(START, "b1")]).await.unwrap());
    for round in 0..3 {
        drop(store);
        store = open(directory.path());
        assert!(!store.append_once(batch("a", 1), vec![line(START, "a1")]).await.unwrap(), "{round}");
        store.flush().await.unwrap();
    }
    assert!(store.append_once(batch("a", 7), vec![line(START, "a7")]).await.unwrap());
    assert!(!store.append_once(batch("a", 6), vec![line(START, "a6")]).await.unwrap());
    let (first, second) = tokio::join!(
        store.append_once(batch("c", 1), vec![line(START, "c1")]),
        store.append_once(batch("c", 1), vec![line(START, "c1")]),
    );
    assert_ne!(first.unwrap(), second.unwrap());
    assert_eq!(all(&store).await, ["c1", "a7", "b1", "a1"]);
    store.remove(id(1)).await.unwrap();
    assert!(store.append_once(batch("a", 1), vec![line(START, "anew")]).await.unwrap());
    assert_eq!(all(&store).await, ["anew"]);
    let elsewhere = Line { deployment_id: id(2), ..line(START, "x") };
    assert!(store.append_once(batch("a", 2), vec![elsewhere]).await.is_err());
}

#[derive(Clone, Copy, Debug)]
enum Then {
    Nothing,
    Settle,
    Reopen,
}

/// A line by its moment (some share one, some are early or late, some on other days), component and word.
type Made = (i64, LogSource, &'static str);

fn lines() -> impl Strategy<Value = Vec<(Vec<Made>, Then)>> {
    let moment = prop_oneof![4 => 0..40i64, 1 => 0..3 * DAY];
    let words = &["alpha", "beta", "alpha beta", "alphabet", "ALPHA \u{212a}elvin", "\u{130}x alpha"][..];
    let one = (moment, select(LogSource::ALL), select(words));
    let then = prop_oneof![3 => Just(Then::Nothing), 2 => Just(Then::Settle), 1 => Just(Then::Reopen)];
    vec((vec(one, 0..6), then), 0..12)
}

const ASKED: &[&str] = &[
    "",
    "alpha",
    "alpha*",
    "\"a b\"",
    "beta gamma",
    "\" KELVIN\"",
    "\"pha kel\"",
    "\"i\u{307}X alp\"",
    "beta alpha",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    #[test]
    fn any_page_is_the_one_that_sorting_and_filtering_in_memory_gives(
        batches in lines(),
        text in select(ASKED),
        sources in vec(select(LogSource::ALL), 1..4),
        (start, length) in (0..DAY, 1..3 * DAY),
        (offset, limit, most) in (0..20u64, 1..30u64, 1..60u64),
    ) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        runtime.block_on(async {
            let directory = TempDir::new().unwrap();
            let mut store = open(directory.path());
            let mut written = Vec::new();
            for (batch, then) in batches {
                // Moments drift forward from batch to batch, as they do.
                let drift = written.len() as i64;
                let made: Vec<Line> = batch
                    .into_iter()
                    .map(|(moment, source, text)| Line { source, ..line(START + drift + moment, text) })
                    .collect();
                written.extend(made.clone());
                store.append(made).await.unwrap();
                match then {
                    Then::Nothing => {}
                    Then::Settle => store.flush().await.unwrap(),
                    Then::Reopen => {
                        drop(store);
                        store = open(directory.path());
                    }
                }
            }
            let search = Search {
                sources: sources.clone(),
                max_results: most,
                ..search(START + start..START + start + length, text)
            };
            let snapshot = store.snapshot(id(900), id(800), search.clone(), at(START));
            let page = store.page(Arc::clone(&snapshot), Page { offset, limit }).await.unwrap();
            let next = store.page(snapshot, Page { offset: offset + limit, limit }).await.unwrap();
            let mut due: Vec<Entry> = written
                .into_iter()
                .rev()
                .filter(|line| search.window.contains(&line.timestamp))
                .filter(|line| sources.contains(&line.source) && search.query.matches(&line.text))
                .map(|line| Entry { timestamp: line.timestamp, source: line.source, text: line.text })
                .collect();
            due.sort_by_key(|entry| std::cmp::Reverse(entry.timestamp));
            due.truncate(most as usize);
            let mut rest = due.into_iter().skip(offset as usize);
            let due: Vec<Entry> = rest.by_ref().take(limit as usize).collect();
            assert_eq!(page, due);
            assert_eq!(next, rest.take(limit as usize).collect::<Vec<_>>());
        });
    }
}
