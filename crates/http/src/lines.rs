//! Streams of lines, sent as they are read.

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response};
use podium_api::Lines;
use podium_api::text::escaped_json_bytes;
use podium_app::organizations::AuditExport;

use crate::bind::Env;
use crate::body;
use crate::errors::Failure;
use crate::respond::{ReplyOutput, WriteReply};

impl WriteReply for Lines {
    type Value = AuditExport;

    async fn write(mut export: AuditExport, _: &Env) -> Result<ReplyOutput, Failure> {
        // The first lines are read before the status is sent: whatever can be refused is refused properly.
        let first = export.next().await.transpose()?;
        let rest = stream::unfold(export, |mut export| async {
            let next = export.next().await?;
            Some((next.map(written).map_err(body::BodyError::new), export))
        });
        let first = stream::iter(first.map(|lines| Ok(written(lines))));
        let mut response = Response::new(body::stream(first.chain(rest)));
        let media = HeaderValue::from_static("application/octet-stream");
        response.headers_mut().insert(CONTENT_TYPE, media);
        Ok(ReplyOutput::Streamed(response))
    }
}

/// Lines of JSON as they are sent.
fn written(lines: Vec<u8>) -> Bytes {
    escaped_json_bytes(lines).into()
}
