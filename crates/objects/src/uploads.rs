//! Uploads: bytes arrive on an async task, and are checked and written on the blocking pool.
//!
//! An upload occupies no thread while it waits for its sender: data is handed over in batches. Dropping it at any point
//! leaves nothing, and a stored object is deleted again unless its owner confirms it.

#[cfg(test)]
mod tests;

use std::future::Future;
use std::io::{Read as _, Write as _};
use std::sync::Arc;

use aws_lc_rs::digest;
use podium_api::{DeployId, DeploymentId};
use tokio::task::spawn_blocking;

use crate::archive::Limits;
use crate::archive::{Checker, Contents, Listed};
use crate::blocks::{BlockId, BlockList, MOST_BLOCKS, Staging};
use crate::error::{Error, Refused, Result};
use crate::key::Key;
use crate::store::{Draft, ObjectStore, Reader};

/// How many bytes are buffered before they are handed to a thread.
const BATCH: usize = 256 * 1024;

/// Receives, reads and deletes archives.
#[derive(Clone)]
pub struct Uploads {
    store: Arc<dyn ObjectStore>,
    limits: Limits,
}

impl Uploads {
    pub fn new(store: Arc<dyn ObjectStore>, limits: Limits) -> Self {
        Self { store, limits }
    }

    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Starts to receive an archive of at most this many bytes.
    pub fn receive(&self, key: Key, most: u64) -> Upload {
        let limits = Limits { bytes: most.min(self.limits.bytes), ..self.limits };
        Upload::new(Arc::clone(&self.store), key, Check::Archive(Box::new(Checker::new(limits))))
    }

    /// Starts to receive one block of an archive of at most this many bytes.
    pub fn receive_block(&self, staging: &Staging, id: &BlockId, most: u64) -> Upload {
        let most = most.min(self.limits.bytes);
        let check = Check::Block { staging: staging.clone(), most, bytes: 0 };
        Upload::new(Arc::clone(&self.store), staging.block(id), check)
    }

    /// Assembles staged blocks into an archive, checked like one that arrives in one piece.
    pub async fn assemble(
        &self,
        staging: &Staging,
        list: &BlockList,
        key: Key,
        most: u64,
    ) -> Result<StoredObject> {
        let (store, prefix) = (Arc::clone(&self.store), staging.0.clone());
        let staged = blocking(move || Ok(store.list(&prefix)?)).await?;
        for id in &list.0 {
            let key = staging.block(id);
            if !staged.iter().any(|(word, _)| key.as_str().ends_with(&format!("/{word}"))) {
                return Err(Refused::UnknownBlock(id.printable()).into());
            }
        }
        let assembled = async {
            let mut upload = self.receive(key, most);
            for id in &list.0 {
                let (store, key, id) = (Arc::clone(&self.store), staging.block(id), id.printable());
                let copied = upload.step(move |work| {
                    let block = store.open(&key)?.ok_or(Refused::UnknownBlock(id))?;
                    in_batches(block, |bytes| work.write(bytes))
                });
                copied.await?;
            }
            upload.finish().await
        };
        let archive = assembled.await;
        // The blocks are discarded in any case: nothing of an invalid archive is kept.
        if !matches!(archive, Err(Error::Store(_))) {
            self.discard(staging).await?;
        }
        archive
    }

    /// Whether any block is staged for an archive.
    pub async fn is_staged(&self, staging: &Staging) -> Result<bool> {
        let (store, prefix) = (Arc::clone(&self.store), staging.0.clone());
        blocking(move || Ok(!store.list(&prefix)?.is_empty())).await
    }

    /// Removes the blocks that are staged for an archive.
    pub async fn discard(&self, staging: &Staging) -> Result<()> {
        self.delete_under(staging.0.clone()).await
    }

    /// Removes everything that is staged for a deploy.
    pub async fn discard_all_of(&self, deployment_id: DeploymentId, deploy_id: DeployId) -> Result<()> {
        self.delete_under(Key::of_staging(deployment_id, deploy_id)).await
    }

    /// Opens an object to be read on the blocking pool; `None` if there is none.
    pub async fn open(&self, key: Key) -> Result<Option<Reader>> {
        let store = Arc::clone(&self.store);
        blocking(move || Ok(store.open(&key)?)).await
    }

    /// Lists at most this many files of an archive; `None` if it is not stored. The guard is dropped when the archive has
    /// been read, also if nobody waits for that any more.
    pub async fn files(&self, key: Key, most: usize, guard: impl Send + 'static) -> Result<Option<Listed>> {
        let (store, limits) = (Arc::clone(&self.store), self.limits);
        blocking(move || {
            let _guard = guard;
            let Some(archive) = store.open(&key)? else { return Ok(None) };
            let mut checker = Checker::listing(limits);
            in_batches(archive, |bytes| Ok(checker.push(bytes)?))?;
            Ok(Some(checker.finish_listing(most)?))
        })
        .await
    }

    /// Removes the object with this key and every object below it.
    pub async fn delete_under(&self, prefix: Key) -> Result<()> {
        let store = Arc::clone(&self.store);
        blocking(move || Ok(store.delete_under(&prefix)?)).await
    }
}

/// An upload in progress.
#[must_use = "a dropped upload leaves nothing"]
pub struct Upload {
    work: Option<Box<Work>>,
    waiting: Vec<u8>,
}

struct Work {
    store: Arc<dyn ObjectStore>,
    key: Key,
    check: Check,
    draft: Option<Box<dyn Draft>>,
    sha256: digest::Context,
}

enum Check {
    Archive(Box<Checker>),
    Block { staging: Staging, most: u64, bytes: u64 },
}

impl Upload {
    fn new(store: Arc<dyn ObjectStore>, key: Key, check: Check) -> Self {
        let sha256 = digest::Context::new(&digest::SHA256);
        let work = Work { store, key, check, draft: None, sha256 };
        Self { work: Some(Box::new(work)), waiting: Vec::new() }
    }

    /// Takes the next bytes. After an error it must not be used any more.
    pub async fn push(&mut self, bytes: &[u8]) -> Result<()> {
        self.waiting.extend_from_slice(bytes);
        if self.waiting.len() < BATCH { Ok(()) } else { self.hand_over().await }
    }

    /// Stores the upload if the whole of it is valid.
    pub async fn finish(mut self) -> Result<StoredObject> {
        self.hand_over().await?;
        let work = self.work.take().ok_or_else(ended)?;
        blocking(move || work.finish()).await
    }

    async fn hand_over(&mut self) -> Result<()> {
        let batch = std::mem::take(&mut self.waiting);
        let mut batch = self
            .step(move |work| {
                work.write(&batch)?;
                Ok(batch)
            })
            .await?;
        batch.clear();
        self.waiting = batch;
        Ok(())
    }

    /// Runs a part of the work on the blocking pool. After an error, or if this is dropped, the upload is over.
    fn step<T: Send + 'static>(
        &mut self,
        part: impl FnOnce(&mut Work) -> Result<T> + Send + 'static,
    ) -> impl Future<Output = Result<T>> + Send {
        let work = self.work.take();
        async move {
            let Some(mut work) = work else { return Err(ended()) };
            let (work, done) = blocking(move || {
                let done = part(&mut work)?;
                Ok((work, done))
            })
            .await?;
            self.work = Some(work);
            Ok(done)
        }
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        let work = self.work.take();
        if work.as_ref().is_some_and(|work| work.draft.is_some()) {
            spawn_blocking_detached(move || drop(work));
        }
    }
}

impl Work {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        match &mut self.check {
            Check::Archive(checker) => checker.push(bytes)?,
            Check::Block { most, bytes: so_far, .. } => {
                *so_far += bytes.len() as u64;
                if *so_far > *most {
                    return Err(Refused::TooLarge(*most).into());
                }
            }
        }
        self.sha256.update(bytes);
        let draft = match &mut self.draft {
            Some(draft) => draft,
            none => none.insert(self.store.draft()?),
        };
        Ok(draft.write_all(bytes)?)
    }

    fn finish(mut self) -> Result<StoredObject> {
        // An empty upload has no draft yet.
        self.write(&[])?;
        let Self { store, key, check, draft, sha256 } = self;
        let draft = draft.ok_or_else(ended)?;
        let (contents, block) = match check {
            Check::Archive(checker) => (checker.finish()?, None),
            Check::Block { staging, most, bytes } => {
                (Contents { bytes, unpacked: bytes, entries: 0 }, Some((staging, most)))
            }
        };
        draft.commit(&key)?;
        let sha256 = podium_api::hex(sha256.finish().as_ref());
        let removal = Removal { store: Arc::clone(&store), key: key.clone(), is_off: false };
        let kept = StoredObject { key, contents, sha256, removal: Some(removal) };
        if let Some((staging, most)) = block {
            all_blocks_fit(&*store, &staging, most)?;
        }
        Ok(kept)
    }
}

/// Checked after the block is stored, so that concurrent blocks are counted together.
fn all_blocks_fit(store: &dyn ObjectStore, staging: &Staging, most: u64) -> Result<()> {
    let staged = store.list(&staging.0)?;
    if staged.len() > MOST_BLOCKS {
        return Err(Refused::TooManyBlocks(MOST_BLOCKS).into());
    }
    let total: u64 = staged.iter().map(|(_, size)| size).sum();
    if total > most { Err(Refused::TooLarge(most).into()) } else { Ok(()) }
}

/// A valid object in the store. Dropping it deletes it again unless it is confirmed.
#[must_use = "a stored object is deleted again unless it is confirmed"]
pub struct StoredObject {
    pub key: Key,
    pub contents: Contents,
    /// The SHA-256 of its bytes as they were sent, in lower-case hexadecimal.
    pub sha256: String,
    removal: Option<Removal>,
}

impl StoredObject {
    /// Confirms the object, so that it stays.
    pub fn confirm(mut self) {
        if let Some(removal) = &mut self.removal {
            removal.is_off = true;
        }
    }

    pub async fn discard(mut self) -> Result<()> {
        let removal = self.removal.take();
        blocking(move || {
            drop(removal);
            Ok(())
        })
        .await
    }
}

impl Drop for StoredObject {
    fn drop(&mut self) {
        let removal = self.removal.take();
        if removal.as_ref().is_some_and(|removal| !removal.is_off) {
            spawn_blocking_detached(move || drop(removal));
        }
    }
}

/// Deletes an object on drop, even when the runtime is shutting down.
struct Removal {
    store: Arc<dyn ObjectStore>,
    key: Key,
    is_off: bool,
}

impl Drop for Removal {
    fn drop(&mut self) {
        if !self.is_off
            && let Err(error) = self.store.delete_under(&self.key)
        {
            tracing::warn!(%error, key = %self.key, "an unreferenced object could not be removed");
        }
    }
}

/// Reads all of an object.
fn in_batches(mut object: Reader, mut each: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
    let mut buffer = vec![0; BATCH];
    loop {
        match object.read(&mut buffer)? {
            0 => return Ok(()),
            count => each(&buffer[..count])?,
        }
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    spawn_blocking(work).await.unwrap_or_else(|error| Err(std::io::Error::other(error).into()))
}

/// The same without waiting; without a runtime it runs on the current thread.
fn spawn_blocking_detached(work: impl FnOnce() + Send + 'static) {
    match tokio::runtime::Handle::try_current() {
        Ok(runtime) => drop(runtime.spawn_blocking(work)),
        Err(_) => work(),
    }
}

fn ended() -> Error {
    std::io::Error::other("an upload was continued after its end").into()
}
