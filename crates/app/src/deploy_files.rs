//! Files of deploys, read from the archive that was uploaded.
//!
//! Reading an archive to its end takes a while, so few are read at once, and what was read is remembered: an archive
//! never changes.

use std::sync::Arc;

use podium_api::deploy_files::{self as api, DeployFile, DeployFiles, MOST_FILES};
use podium_api::{Id, Many, UploadId, hex};
use podium_domain::Refusal;
use podium_objects::Listed;
use podium_store::deploys::{self, UploadRow};
use podium_store::{InScope, Scope};
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::cx::{Call, Cx};
use crate::deploys::proven;
use crate::error::{Error, Result};
use crate::shared_capacity::SharedCapacity;

/// How many archives are read at once; further ones are refused and can be retried.
const MOST_READING: usize = 4;
/// How many bytes of lists are remembered, and how many lists that is.
const MEMORY: u64 = 32 << 20;
const TYPICAL: usize = 64;

/// The lists of files that were asked for lately.
pub(crate) struct FileLists {
    known: Cache<UploadId, Arc<Listed>, Bytes>,
    reading: SharedCapacity<Id>,
}

impl Default for FileLists {
    fn default() -> Self {
        let known = Cache::with_weighter(TYPICAL, MEMORY, Bytes);
        Self { known, reading: SharedCapacity::new(MOST_READING) }
    }
}

#[derive(Clone)]
struct Bytes;

impl Weighter<UploadId, Arc<Listed>> for Bytes {
    fn weight(&self, _: &UploadId, list: &Arc<Listed>) -> u64 {
        list.files.iter().map(|file| file.path.len() as u64 + 96).sum::<u64>() + 256
    }
}

/// Lists the files of the archive that a deploy has brought into effect, or kept.
pub async fn list(cx: Cx<Scope>, call: Call<api::List>) -> Result<Many<DeployFiles>> {
    let deploy_id = call.path.deploy_id;
    let found = cx
        .read(move |cx, conn| {
            let ((deployment, _), (_, deploy)) = proven(conn, cx.scope(), &call.path)?;
            let Some(version) = deploy.details.outcome.and_then(|outcome| outcome.dag_version) else {
                return Ok(None);
            };
            let upload = deploys::upload_in(conn, cx.scope(), deployment, &version)?;
            upload.ok_or_else(gone).map(Some)
        })
        .await?;
    let listed = match found {
        None => Arc::default(),
        Some(upload) => listed(&cx, upload).await?,
    };
    let files = listed.files.iter().map(|file| DeployFile {
        path: file.path.clone(),
        size: file.size,
        sha256: hex(&file.sha256),
    });
    Ok(Many(DeployFiles { deploy_id, files: files.collect(), total_count: listed.total }))
}

async fn listed(cx: &Cx<Scope>, upload: InScope<UploadRow>) -> Result<Arc<Listed>> {
    let (app, id) = (cx.app(), upload.get().id);
    let lists = &app.file_lists;
    if let Some(known) = lists.known.get(&id) {
        return Ok(known);
    }
    let keys = [cx.organization_id().id(), cx.subject_id().id()];
    let permit = lists.reading.take(&keys).ok_or(Error::TooMany { retry_after: 1 })?;
    let app = app.clone();
    // What was read is remembered, also if the caller has left meanwhile.
    let reading = tokio::spawn(async move {
        let read = app.files_of(&upload, MOST_FILES, permit).await.map_err(|error| match error {
            podium_objects::Error::Refused(why) => Error::from(Refusal::Conflict(format!(
                "The archive of the deploy cannot be read any more ({why}): deploy again to list its files."
            ))),
            podium_objects::Error::Store(error) => {
                Error::Internal(format!("the object store failed: {error}"))
            }
        })?;
        let listed = Arc::new(read.ok_or_else(gone)?);
        app.file_lists.known.insert(id, Arc::clone(&listed));
        Ok(listed)
    });
    reading.await.map_err(|error| Error::Internal(format!("a list of files was not made: {error}")))?
}

fn gone() -> Error {
    Refusal::Gone("The archive of the deploy is no longer stored: deploy again to list its files.".into())
        .into()
}
