//! Uploads into a real directory.

use podium_api::{Id, TypedId};
use std::fs;
use std::path::{Path, PathBuf};

use super::*;
use crate::sample::{Archive, noise};
use crate::store::LocalDisk;

struct Place {
    directory: tempfile::TempDir,
    uploads: Uploads,
}

impl Place {
    fn new(limits: Limits) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let disk = LocalDisk::open(directory.path()).unwrap();
        Self { uploads: Uploads::new(Arc::new(disk), limits), directory }
    }

    /// Every file in the directory, the drafts too.
    fn files(&self) -> Vec<String> {
        fn walk(directory: &Path, found: &mut Vec<PathBuf>) {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() { walk(&path, found) } else { found.push(path) }
            }
        }
        let mut found = Vec::new();
        walk(self.directory.path(), &mut found);
        let relative =
            |path: PathBuf| path.strip_prefix(self.directory.path()).unwrap().display().to_string();
        let mut found: Vec<String> = found.into_iter().map(relative).collect();
        found.sort();
        found
    }

    /// Runs something to its end, and what it left for later too.
    fn run<T>(&self, work: impl AsyncFnOnce(&Uploads) -> T) -> T {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        runtime.block_on(work(&self.uploads))
    }
}

fn id<I: TypedId>(number: u32) -> I {
    I::from_raw(Id::from_parts(0, number, 0))
}

fn key() -> Key {
    Key::of_upload(id(1), id(2), id(3))
}

fn honest() -> Vec<u8> {
    Archive::new().file("dags/a.py", &noise(900_000)).symlink("dags/b.py", "a.py").gz()
}

const ALL: u64 = u64::MAX;

async fn send(mut upload: Upload, bytes: &[u8], pieces: usize) -> Result<StoredObject> {
    for piece in bytes.chunks(pieces) {
        upload.push(piece).await?;
    }
    upload.finish().await
}

fn refused<T>(result: Result<T>) -> Refused {
    match result {
        Err(Error::Refused(refused)) => refused,
        Err(Error::Store(error)) => panic!("{error}"),
        Ok(_) => panic!("it passed"),
    }
}

#[test]
fn a_valid_archive_is_stored() {
    let place = Place::new(Limits::default());
    let bytes = honest();
    let (contents, sha256) = place.run(async |uploads| {
        let kept = send(uploads.receive(key(), ALL), &bytes, 10_000).await.unwrap();
        let said = (kept.contents, kept.sha256.clone());
        kept.confirm();
        said
    });
    assert_eq!((contents.bytes, contents.entries), (bytes.len() as u64, 2));
    let digest = digest::digest(&digest::SHA256, &bytes);
    assert_eq!(sha256, podium_api::hex(digest.as_ref()));
    assert_eq!(place.files(), [key().to_string()]);
    let read = place.run(async |uploads| uploads.open(key()).await.unwrap().unwrap());
    assert!(std::io::Read::bytes(read).map(std::result::Result::unwrap).eq(bytes));
    place.run(async |uploads| uploads.delete_under(Key::of_deployment(id(1))).await.unwrap());
    assert_eq!(place.files(), [""; 0]);
    assert!(place.run(async |uploads| uploads.open(key()).await.unwrap()).is_none());
}

#[test]
fn files_of_a_stored_archive_are_listed_and_the_guard_is_given_back() {
    let place = Place::new(Limits::default());
    let guard = Arc::new(());
    place.run(async |uploads| {
        send(uploads.receive(key(), ALL), &honest(), 10_000).await.unwrap().confirm();
        let listed = uploads.files(key(), 10, Arc::clone(&guard)).await.unwrap().unwrap();
        assert_eq!(listed.total, listed.files.len() as u64);
        assert!(listed.total > 0);
        assert_eq!(Arc::strong_count(&guard), 1);
        // Nobody waits for this one.
        let mut left = Box::pin(uploads.files(key(), 10, Arc::clone(&guard)));
        let waker = std::task::Waker::noop();
        let _ = left.as_mut().poll(&mut std::task::Context::from_waker(waker));
        drop(left);
        uploads.delete_under(key()).await.unwrap();
        assert!(uploads.files(key(), 10, Arc::clone(&guard)).await.unwrap().is_none());
    });
    assert_eq!(Arc::strong_count(&guard), 1, "given back at the end of the work");
}

#[test]
fn a_bad_archive_leaves_nothing() {
    let place =
        Place::new(Limits { bytes: 1 << 20, unpacked: 1 << 20, entries: 10, path: 100, ..Limits::default() });
    let late = Archive::new().file("good", &[7; 700_000]).file("../bad", b"").gz();
    let bomb = Archive::new().file("zeros", &vec![0; 8 << 20]).gz();
    let cut = &honest()[..500_000];
    place.run(async |uploads| {
        assert!(matches!(
            refused(send(uploads.receive(key(), ALL), &late, 999).await),
            Refused::Entry { name, .. } if name == "../bad"
        ));
        assert_eq!(
            refused(send(uploads.receive(key(), ALL), &bomb, 999).await),
            Refused::UnpacksTooLarge(1 << 20)
        );
        assert_eq!(refused(send(uploads.receive(key(), ALL), cut, 999).await), Refused::BrokenGzip);
        assert_eq!(refused(send(uploads.receive(key(), ALL), b"", 1).await), Refused::NotGzip);
        assert_eq!(refused(send(uploads.receive(key(), 1000), cut, 999).await), Refused::TooLarge(1000));
    });
    assert_eq!(place.files(), [""; 0]);
}

#[test]
fn an_abandoned_upload_leaves_nothing() {
    let place = Place::new(Limits::default());
    let bytes = honest();
    place.run(async |uploads| {
        let mut upload = uploads.receive(key(), ALL);
        upload.push(&bytes[..400_000]).await.unwrap();
        drop(upload);
        let mut upload = uploads.receive(key(), ALL);
        upload.push(&bytes[..200_000]).await.unwrap();
        // Polled once, so that the batch is handed over, and never again.
        let pushed = upload.push(&bytes[200_000..]);
        tokio::select! { biased; _ = pushed => {}, () = std::future::ready(()) => {} }
        drop(upload);
        drop(send(uploads.receive(key(), ALL), &bytes, 50_000).await.unwrap());
    });
    assert_eq!(place.files(), [""; 0]);
}

#[test]
fn blocks_are_put_together_in_the_order_of_the_list() {
    let place = Place::new(Limits::default());
    let bytes = honest();
    let staging = Staging::new(id(1), id(2), "dags");
    let ids: Vec<BlockId> = ["YQ==", "YWE=", "YWFh"].iter().map(|id| BlockId::parse(id).unwrap()).collect();
    let list = BlockList(vec![ids[2].clone(), ids[0].clone(), ids[1].clone()]);
    let parts = [&bytes[300_000..600_000], &bytes[600_000..], &bytes[..300_000]];
    place.run(async |uploads| {
        let unknown = uploads.assemble(&staging, &list, key(), ALL).await;
        assert_eq!(refused(unknown), Refused::UnknownBlock("YWFh".into()));
        // The second time counts.
        send(uploads.receive_block(&staging, &ids[1], ALL), b"nonsense", 3).await.unwrap().confirm();
        for (id, part) in ids.iter().zip(parts) {
            send(uploads.receive_block(&staging, id, ALL), part, 10_000).await.unwrap().confirm();
        }
    });
    assert_eq!(place.files().len(), 3);
    place.run(async |uploads| {
        let kept = uploads.assemble(&staging, &list, key(), ALL).await.unwrap();
        assert_eq!(kept.contents.bytes, bytes.len() as u64);
        kept.confirm();
    });
    assert_eq!(place.files(), [key().to_string()]);
    assert_eq!(fs::read(place.directory.path().join(key().as_str())).unwrap(), bytes);
}

#[test]
fn blocks_of_a_bad_archive_leave_nothing() {
    let place = Place::new(Limits::default());
    let staging = Staging::new(id(1), id(2), "bundle");
    let block = BlockId::parse("YQ==").unwrap();
    place.run(async |uploads| {
        let bad = Archive::new().file("/etc/passwd", b"").gz();
        send(uploads.receive_block(&staging, &block, ALL), &bad, 100).await.unwrap().confirm();
        let list = BlockList(vec![block.clone()]);
        assert!(matches!(
            refused(uploads.assemble(&staging, &list, key(), ALL).await),
            Refused::Entry { .. }
        ));
        assert_eq!(
            refused(uploads.assemble(&staging, &BlockList(vec![]), key(), ALL).await),
            Refused::NotGzip
        );
        // Abandoned.
        drop(send(uploads.receive_block(&staging, &block, ALL), b"x", 1).await.unwrap());
    });
    assert_eq!(place.files(), [""; 0]);
}

#[test]
fn staged_blocks_are_bounded_together() {
    let place = Place::new(Limits { bytes: 100, ..Limits::default() });
    let staging = Staging::new(id(1), id(2), "dags");
    let block = |number: u8| BlockId(vec![number]);
    place.run(async |uploads| {
        for number in 0..4 {
            send(uploads.receive_block(&staging, &block(number), ALL), &[0; 25], 10).await.unwrap().confirm();
        }
        send(uploads.receive_block(&staging, &block(3), ALL), &[1; 25], 10).await.unwrap().confirm();
        let over = send(uploads.receive_block(&staging, &block(4), ALL), b"x", 10).await;
        assert_eq!(refused(over), Refused::TooLarge(100));
        let alone = send(uploads.receive_block(&staging, &block(4), 10), &[0; 25], 10).await;
        assert_eq!(refused(alone), Refused::TooLarge(10));
    });
    assert_eq!(place.files().len(), 4);
    place.run(async |uploads| uploads.discard_all_of(id(1), id(2)).await.unwrap());
    assert_eq!(place.files(), [""; 0]);
}

#[test]
fn the_number_of_blocks_is_limited() {
    let place = Place::new(Limits::default());
    let staging = Staging::new(id(1), id(2), "dags");
    let directory = place.directory.path().join(staging.0.as_str());
    fs::create_dir_all(&directory).unwrap();
    (0..MOST_BLOCKS).for_each(|number| fs::write(directory.join(format!("{number}")), "").unwrap());
    place.run(async |uploads| {
        let more = send(uploads.receive_block(&staging, &BlockId(vec![255]), ALL), b"x", 1).await;
        assert_eq!(refused(more), Refused::TooManyBlocks(MOST_BLOCKS));
    });
    assert_eq!(place.files().len(), MOST_BLOCKS);
}
