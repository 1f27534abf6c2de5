//! Damaged files under the log store: it answers with an error or a part of the lines, never with a wrong line, and never
//! falls over. `cargo fuzz run logs`.
//!
//! The first byte chooses a file of a small store, the next four a place in it, and the rest is written there.

#![no_main]

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, OnceLock};
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use podium_api::enums::LogSource;
use podium_api::{Id, Timestamp, TypedId};
use podium_logs::{Line, LogStore, Page, Query, Search};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

const START: i64 = 1_800_000_000_000;
const LINES: i64 = 200;
const RETENTION: Duration = Duration::from_secs(15 * 86_400);

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Builder::new_current_thread().build().expect("a runtime"));

fuzz_target!(|data: &[u8]| {
    let [which, a, b, c, d, patch @ ..] = data else { return };
    let files = files();
    let directory = TempDir::new().expect("a directory");
    for (index, (path, bytes)) in files.iter().enumerate() {
        let mut bytes = bytes.clone();
        if index == usize::from(*which) % files.len() && !bytes.is_empty() {
            let at = u32::from_le_bytes([*a, *b, *c, *d]) as usize % bytes.len();
            let end = (at + patch.len()).min(bytes.len());
            bytes.splice(at..end, patch.iter().copied());
        }
        let path = directory.path().join(path);
        fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        fs::write(path, bytes).expect("a file");
    }
    let Ok(store) = LogStore::open(directory.path(), RETENTION) else { return };
    for text in ["", "common", "unique17", "uniq*", "\"7 com\""] {
        let search = Search {
            deployment_id: id(),
            window: Timestamp::from_millis(0)..Timestamp::from_millis(START * 2),
            sources: LogSource::ALL.to_vec(),
            query: Query::parse(text),
            max_results: 1000,
        };
        let snapshot = store.snapshot(id(), id(), search, Timestamp::from_millis(START));
        let page = RUNTIME.block_on(store.page(snapshot, Page { offset: 0, limit: 1000 }));
        let mut seen = HashSet::new();
        for entry in page.unwrap_or_default() {
            let number = entry.timestamp.millis() - START;
            assert_eq!(entry.text, said(number));
            assert!(seen.insert(number), "{number} twice");
        }
    }
});

fn id<I: TypedId>() -> I {
    I::from_raw(Id::from_parts(0, 0, 1))
}

fn said(number: i64) -> String {
    format!("unique{number} common")
}

/// The files of a store with lines in segments and in the journal.
fn files() -> &'static [(PathBuf, Vec<u8>)] {
    static FILES: OnceLock<Vec<(PathBuf, Vec<u8>)>> = OnceLock::new();
    FILES.get_or_init(|| {
        let directory = TempDir::new().expect("a directory");
        let store = LogStore::open(directory.path(), RETENTION).expect("a store");
        for number in 0..LINES {
            let timestamp = Timestamp::from_millis(START + number);
            let line = Line { deployment_id: id(), source: LogSource::Worker, timestamp, text: said(number) };
            RUNTIME.block_on(store.append(vec![line])).expect("lines are added");
            if number % 37 == 0 {
                RUNTIME.block_on(store.flush()).expect("lines are settled");
            }
        }
        drop(store);
        let mut found = Vec::new();
        collect(directory.path(), directory.path(), &mut found);
        found.sort();
        found
    })
}

fn collect(root: &Path, directory: &Path, found: &mut Vec<(PathBuf, Vec<u8>)>) {
    for entry in fs::read_dir(directory).expect("a directory").flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(root, &path, found);
        } else {
            let relative = path.strip_prefix(root).expect("below the root").to_owned();
            found.push((relative, fs::read(&path).expect("a file")));
        }
    }
}
