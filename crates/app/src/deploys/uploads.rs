//! Uploads: a URL that carries its own permission, and the data received under it.
//!
//! Callers do not authenticate here. The signature covers the deploy, the kind, the expiry and the size, so no part of
//! a URL can be changed; and the deploy must still be waiting to be finalized, both before the upload and when it is
//! complete.

use std::sync::atomic::Ordering;

use podium_api::enums::UploadKind;
use podium_api::openapi::PREFIX;
use podium_api::uploads::PATH;
use podium_api::{DeployId, Id, Timestamp, UploadId};
use podium_db::Tx;
use podium_domain::{Refusal, deploys as rules};
use podium_objects::{BlockId, BlockList, Key, Refused, Staging, StoredObject, Upload};
use podium_store::deploys::{self, DeployRow, NewUpload};
use podium_store::{System, staged_blocks};

use crate::App;
use crate::error::{Error, Result};
use crate::meters::page::Page;
use crate::shared_capacity::CapacityPermit;

crate::system::acts_for_the_system!();
crate::system::reaches_rows!();

const PURPOSE: &str = "upload";
/// The largest list of blocks that is read: more than the most blocks with the longest ids.
const LONGEST_LIST: usize = 512 * 1024;
/// After this many bytes the free disk space is checked again.
const LOOK_EVERY: u64 = 1 << 20;

/// The signed content of an upload URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    pub deploy_id: DeployId,
    pub kind: UploadKind,
    /// When the URL ends, in seconds since the epoch.
    pub expires: i64,
    /// The most bytes that are received.
    pub limit: u64,
    /// Proof that the URL was made here.
    pub signature: String,
}

impl Ticket {
    fn text(&self) -> String {
        let Self { deploy_id, kind, expires, limit, .. } = self;
        format!("{deploy_id}\n{kind}\n{expires}\n{limit}")
    }

    /// What a URL that was not made here is answered with.
    pub fn forged() -> Error {
        let message =
            "This is not an upload URL of this server: use the one returned when the deploy was created.";
        Refusal::Forbidden(message.into()).into()
    }

    fn check(&self, app: &App, now: Timestamp) -> Result<()> {
        if !app.secrets.verify(PURPOSE, &self.text(), &self.signature) {
            return Err(Self::forged());
        }
        if self.expires.saturating_mul(1000) <= now.millis() {
            return Err(
                Refusal::Forbidden("This upload URL has expired: create another deploy.".into()).into()
            );
        }
        Ok(())
    }
}

/// The URLs that a new deploy is uploaded to: of its DAGs, and of its bundle.
pub(super) fn urls(app: &App, row: &DeployRow) -> (Option<String>, Option<String>) {
    let url = |wanted: UploadKind| {
        let kind = rules::upload_of(row.kind, row.details.is_dag_deploy_enabled)?;
        (kind == wanted).then(|| url(app, row, kind))
    };
    (url(UploadKind::Dags), url(UploadKind::Bundle))
}

fn url(app: &App, row: &DeployRow, kind: UploadKind) -> String {
    let expires = rules::expires_at(row.stamp.created_at).millis().div_euclid(1000);
    let limit = app.config.upload_limit;
    let ticket = Ticket { deploy_id: row.id, kind, expires, limit, signature: String::new() };
    let signature = app.secrets.sign(PURPOSE, &ticket.text());
    let path = PATH.replace("{deployId}", row.id.as_str());
    let base = &app.config.public_url;
    format!("{base}{PREFIX}{path}?kind={kind}&expires={expires}&limit={limit}&signature={signature}")
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    Whole,
    Block(String),
    List,
}

/// An upload in progress. If it is dropped, nothing is left.
pub struct Receiving {
    app: App,
    deploy: DeployRow,
    kind: UploadKind,
    limit: u64,
    sink: Sink,
    /// Bytes received since the last check of the disk.
    unseen: u64,
    _permit: CapacityPermit<Id>,
}

enum Sink {
    Archive { upload: Upload, version: UploadId },
    Block { upload: Upload, block: BlockId },
    List(Vec<u8>),
}

impl App {
    /// Starts receiving an upload; `announced` is the length that the sender declared.
    pub async fn receive(&self, ticket: &Ticket, part: Part, announced: Option<u64>) -> Result<Receiving> {
        ticket.check(self, self.world.now())?;
        self.require_disk_space_for(announced.unwrap_or(0).min(ticket.limit)).await?;
        let deploy = waiting(self, ticket.deploy_id).await?;
        // The holder of the URL acts for the creator of the deploy.
        let keys = [deploy.organization_id.id(), deploy.stamp.created_by.id.id(), deploy.id.id()];
        let share = self.uploading.take(&keys).ok_or_else(|| {
            self.uploads_refused.fetch_add(1, Ordering::Relaxed);
            Error::TooMany { retry_after: 1 }
        })?;
        if announced.is_some_and(|bytes| bytes > ticket.limit) {
            return Err(refused(Refused::TooLarge(ticket.limit).into()));
        }
        let (kind, limit) = (ticket.kind, ticket.limit);
        let staging = staging(&deploy, kind);
        let sink = match part {
            Part::Whole => {
                let version = self.world.id();
                let key = Key::of_upload(deploy.deployment_id, deploy.id, version);
                Sink::Archive { upload: self.objects(&system(self)).receive(key, limit), version }
            }
            Part::Block(block) => {
                let block = BlockId::parse(&block).map_err(|error| refused(error.into()))?;
                Sink::Block {
                    upload: self.objects(&system(self)).receive_block(&staging, &block, limit),
                    block,
                }
            }
            Part::List => Sink::List(Vec::new()),
        };
        Ok(Receiving { app: self.clone(), deploy, kind, limit, sink, unseen: 0, _permit: share })
    }
}

impl Receiving {
    pub async fn push(&mut self, bytes: &[u8]) -> Result<()> {
        self.unseen += bytes.len() as u64;
        if self.unseen >= LOOK_EVERY {
            self.unseen = 0;
            self.app.require_disk_space().await?;
        }
        match &mut self.sink {
            Sink::Archive { upload, .. } | Sink::Block { upload, .. } => {
                upload.push(bytes).await.map_err(refused)
            }
            Sink::List(list) if list.len() + bytes.len() > LONGEST_LIST => {
                Err(refused(Refused::BlockList.into()))
            }
            Sink::List(list) => {
                list.extend_from_slice(bytes);
                Ok(())
            }
        }
    }

    /// Stores the upload; returns the version of an archive, `None` for a block.
    pub async fn finish(self) -> Result<Option<UploadId>> {
        let Self { app, deploy, kind, limit, sink, .. } = self;
        let (kept, version) = match sink {
            Sink::Block { upload, block } => {
                let kept = upload.finish().await.map_err(refused)?;
                return stage(&app, deploy.id, kind, &block, limit, kept).await.map(|()| None);
            }
            Sink::Archive { upload, version } => (upload.finish().await.map_err(refused)?, version),
            Sink::List(list) => {
                let list = std::str::from_utf8(&list).map_err(|_| Refused::BlockList);
                let list = list.and_then(BlockList::parse).map_err(|error| refused(error.into()))?;
                let version = app.world.id();
                let key = Key::of_upload(deploy.deployment_id, deploy.id, version);
                let staging = staging(&deploy, kind);
                let assembled = app.objects(&system(&app)).assemble(&staging, &list, key, limit).await;
                if !app.objects(&system(&app)).is_staged(&staging).await.map_err(refused)? {
                    let (system, id) = (system(&app), deploy.id);
                    let forgotten = db(&app)
                        .write(None, move |tx| staged_blocks::forget_archive(tx, &system, id, kind))
                        .await;
                    forgotten.map_err(Error::from)?;
                }
                (assembled.map_err(refused)?, version)
            }
        };
        record(&app, deploy.id, kind, version, limit, kept).await?;
        Ok(Some(version))
    }
}

/// Writes how many uploads there was no room for.
pub(crate) fn measure_uploads(app: &App, page: &mut Page) {
    let name = "podium_uploads_refused_total";
    page.counter(name, "Uploads refused because their sender already had its share of concurrent uploads.");
    page.line(name, &[], app.uploads_refused.load(Ordering::Relaxed));
}

/// Records a stored block, unless its deploy accepts no more or too much is pending; then it is removed again.
async fn stage(
    app: &App,
    deploy_id: DeployId,
    kind: UploadKind,
    block: &BlockId,
    limit: u64,
    kept: StoredObject,
) -> Result<()> {
    let (now, block, bytes) = (app.world.now(), block.to_hex(), kept.contents.bytes);
    let system = system(app);
    let staged = db(app).write(None, move |tx| {
        let row = still_waits(deploys::lock(tx, &system, deploy_id)?, 0, now)?;
        staged_blocks::put(tx, &system, &row, kind, &block, bytes)?;
        may_wait(tx, &system, &row, limit)
    });
    settle(staged.await, kept).await
}

/// Refuses what would make too much wait to be finalized.
fn may_wait(tx: &Tx, system: &System, row: &DeployRow, limit: u64) -> Result<()> {
    staged_blocks::pending(tx, system, row)?.too_much(limit).map_or(Ok(()), |why| Err(Error::TooMuch(why)))
}

/// Keeps an object that was recorded, and removes one that was not.
async fn settle(known: Result<()>, kept: StoredObject) -> Result<()> {
    match &known {
        Ok(()) => kept.confirm(),
        Err(_) => kept.discard().await.map_err(refused)?,
    }
    known
}

/// Records a stored archive, unless its deploy accepts no more uploads; then it is removed again.
async fn record(
    app: &App,
    deploy_id: DeployId,
    kind: UploadKind,
    version: UploadId,
    limit: u64,
    kept: StoredObject,
) -> Result<()> {
    let now = app.world.now();
    let contents = kept.contents;
    let upload = NewUpload {
        id: version,
        kind,
        sizes: [contents.bytes, contents.unpacked, contents.entries],
        sha256: kept.sha256.clone(),
        object_key: kept.key.to_string(),
        created_at: now,
    };
    let system = system(app);
    let recorded = db(app).write(None, move |tx| {
        let row = deploys::lock(tx, &system, deploy_id)?;
        let uploads = match &row {
            Some(row) => deploys::uploads(tx, &system.scope(row.organization_id), deploy_id)?.len(),
            None => 0,
        };
        let row = still_waits(row, uploads, now)?;
        deploys::insert_upload(tx, &system, &row, &upload)?;
        may_wait(tx, &system, &row, limit)
    });
    settle(recorded.await, kept).await
}

async fn waiting(app: &App, id: DeployId) -> Result<DeployRow> {
    let system = system(app);
    let found = db(app).read(None, move |conn| deploys::state(conn, &system, id)).await?;
    still_waits(found, 0, app.world.now())
}

/// The deploy, unless it takes no uploads any more.
fn still_waits(found: Option<DeployRow>, uploads: usize, now: Timestamp) -> Result<DeployRow> {
    let status = found.as_ref().map(|row| rules::status(row.status, row.stamp.created_at, now));
    rules::may_upload(status, uploads)?;
    found.ok_or_else(|| Refusal::not_found("deploy").into())
}

fn staging(deploy: &DeployRow, kind: UploadKind) -> Staging {
    Staging::new(deploy.deployment_id, deploy.id, kind.as_str())
}

fn refused(error: podium_objects::Error) -> Error {
    match error {
        podium_objects::Error::Refused(refused) => {
            Refusal::invalid(format!("The archive was refused: {refused}.")).into()
        }
        podium_objects::Error::Store(error) => Error::Internal(format!("the object store failed: {error}")),
    }
}
