//! Uploads of archives: to a signed URL, so without a token.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use podium_api::uploads::VERSION_HEADER;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE};

use crate::retry::Verdict;
use crate::{Attempt, Client, Error, Result};

/// How much is read at a time.
const CHUNK: u64 = 64 << 10;
/// How long an upload may take, whatever its size.
const LEAST_TIME: Duration = Duration::from_mins(5);

/// Is told how many bytes were handed to the connection so far.
pub type Progress = Arc<dyn Fn(u64) + Send + Sync>;

impl Client {
    /// Uploads a file, again where that is safe, and gives the version that the server made of it.
    pub async fn upload(&self, url: &str, file: &Path, progress: &Progress) -> Result<String> {
        let parsed = url::Url::parse(url)
            .map_err(|error| Error::Unexpected(format!("the upload URL is not one: {error}")))?;
        let parsed = self.reached(parsed);
        let mut tries = 0;
        loop {
            tries += 1;
            let used = self.socket_key();
            match self.upload_once(&parsed, file, progress).await {
                Ok(version) => return Ok(version),
                Err(error) if tries == 1 && self.has_new_key(&error, used.as_deref()) => {}
                Err(error) => match self.settings.retry.verdict(&error, true, tries) {
                    Verdict::GiveUp => return Err(error.into_error()),
                    Verdict::Again(delay) => tokio::time::sleep(delay).await,
                },
            }
        }
    }

    /// The URL as this client reaches it: on a socket there is no encryption, and no other host.
    fn reached(&self, url: url::Url) -> url::Url {
        if self.settings.socket.is_none() {
            return url;
        }
        let mut reached = self.base.clone();
        reached.set_path(url.path());
        reached.set_query(url.query());
        reached
    }

    async fn upload_once(&self, url: &url::Url, file: &Path, progress: &Progress) -> Result<String, Attempt> {
        let unreadable = |error| Error::Invalid(format!("{} cannot be read: {error}", file.display()));
        let opened = File::open(file).map_err(unreadable)?;
        let length = opened.metadata().map_err(unreadable)?.len();
        progress(0);
        let body = Archive { file: opened, left: length, length, progress: Arc::clone(progress) };
        let mut request = self
            .http
            .put(url.clone())
            .timeout(LEAST_TIME + Duration::from_secs(length / CHUNK))
            .header(CONTENT_TYPE, "application/gzip")
            .body(reqwest::Body::wrap(body));
        if self.settings.socket.is_some()
            && let Some(value) = self.authorization().map_err(Attempt::from)?
        {
            request = request.header(AUTHORIZATION, value);
        }
        let response = self.perform(request, "PUT", url.path()).await?;
        let version = response.headers().get(VERSION_HEADER).and_then(|value| value.to_str().ok());
        Ok(version.map(str::to_owned).ok_or_else(|| Error::Unexpected("the upload has no version".into()))?)
    }
}

/// A file that is being sent.
struct Archive {
    file: File,
    left: u64,
    length: u64,
    progress: Progress,
}

impl Body for Archive {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let mut chunk = vec![0; usize::try_from(self.left.min(CHUNK)).unwrap_or_default()];
        if let Err(error) = self.file.read_exact(&mut chunk) {
            return Poll::Ready(Some(Err(error)));
        }
        self.left -= chunk.len() as u64;
        (self.progress)(self.length - self.left);
        Poll::Ready(Some(Ok(Frame::data(chunk.into()))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
