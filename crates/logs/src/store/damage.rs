//! Damaged files under the whole store: an error or a part of the lines, never a wrong one, never one twice.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::OnceLock;

use super::*;
use crate::segment::damage;

const WRITTEN: i64 = 400;

/// Lines in segments of two hours, merged and not, and in the journal: the files of a store, by path.
fn written() -> &'static [(PathBuf, Vec<u8>)] {
    static WRITTEN_ONCE: OnceLock<Vec<(PathBuf, Vec<u8>)>> = OnceLock::new();
    WRITTEN_ONCE.get_or_init(|| {
        let directory = TempDir::new().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let store = open(directory.path());
            for number in 0..WRITTEN {
                let moment = START + number * 1000 + (number % 2) * 3_600_000;
                store.append(vec![line(moment, &format!("unique{number} common"))]).await.unwrap();
                if number % 37 == 0 {
                    store.flush().await.unwrap();
                }
            }
        });
        let files = files(directory.path()).into_iter();
        let relative = |path: &PathBuf| path.strip_prefix(directory.path()).unwrap().to_owned();
        files.map(|path| (relative(&path), fs::read(&path).unwrap())).collect()
    })
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn a_damaged_store_returns_no_wrong_lines(which in 0..100usize, done in vec(damage(), 1..4)) {
        let written = written();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let directory = TempDir::new().unwrap();
            let victim = which % written.len();
            for (index, (path, bytes)) in written.iter().enumerate() {
                let (path, mut bytes) = (directory.path().join(path), bytes.clone());
                for damage in done.iter().filter(|_| index == victim) {
                    if !bytes.is_empty() {
                        damage.to(&mut bytes);
                    }
                }
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, bytes).unwrap();
            }
            let Ok(store) = LogStore::open(directory.path(), RETENTION) else { return };
            for text in ["", "common", "unique17", "uniq*", "\"7 com\""] {
                let snapshot = store.snapshot(id(900), id(800), search(ALWAYS, text), at(START));
                let Ok(entries) = store.page(snapshot, Page { offset: 0, limit: 1000 }).await else { continue };
                let mut seen = HashSet::new();
                for entry in &entries {
                    let number: i64 = entry.text[6..].split(' ').next().unwrap().parse().unwrap();
                    assert_eq!(entry.text, format!("unique{number} common"));
                    assert_eq!(entry.timestamp, at(START + number * 1000 + (number % 2) * 3_600_000));
                    assert!(seen.insert(number), "{number} twice after {done:?} to {victim}");
                }
                assert!(entries.is_sorted_by(|left, right| left.timestamp >= right.timestamp));
            }
        });
    }
}
