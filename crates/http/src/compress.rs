//! Compression: responses are compressed quickly as they are sent, static content is compressed once.
//!
//! A response that is complete is compressed completely, so that only its bytes wait for a slow reader. Large ones are
//! compressed off the request threads, a few at a time; when those are busy, a response is sent uncompressed.

use std::io::Write as _;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::StreamExt as _;
use futures_util::stream::try_unfold;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, VARY};
use http::{HeaderMap, HeaderValue, Response};
use http_body_util::BodyExt as _;
use tokio::sync::Semaphore;

use crate::body::{self, Body, BodyError, RequestBody};
use crate::respond::{Passthrough, StaticBody};
use crate::tls::blocking;

/// Smaller bodies are not compressed.
const SMALLEST: usize = 128;
/// Larger bodies are compressed off the request threads.
const INLINE: usize = 64 * 1024;
pub(crate) const VARIES: HeaderValue = HeaderValue::from_static("accept-encoding");

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coding {
    Gzip,
    Zstd,
}

impl Coding {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        }
    }

    fn encode(self, bytes: &[u8]) -> Option<Vec<u8>> {
        self.at(bytes, 1, 1)
    }

    /// Encodes bytes that are given again and again.
    pub(crate) fn encode_well(self, bytes: &[u8]) -> Option<Vec<u8>> {
        self.at(bytes, 9, 7)
    }

    fn at(self, bytes: &[u8], gzip: u32, zstd: i32) -> Option<Vec<u8>> {
        match self {
            Self::Gzip => {
                let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), Compression::new(gzip));
                encoder.write_all(bytes).ok()?;
                encoder.finish().ok()
            }
            Self::Zstd => zstd::bulk::compress(bytes, zstd).ok(),
        }
    }
}

/// What a client can decode, with its preferences in thousandths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Accepted {
    gzip: u16,
    zstd: u16,
}

impl Accepted {
    /// The encodings that a request accepts; `None` if it names none.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        if !headers.contains_key(ACCEPT_ENCODING) {
            return None;
        }
        let (mut accepted, mut others) = ([None, None], 0);
        let values = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
        for part in values.flat_map(|value| value.split(',')) {
            let (name, rest) = part.split_once(';').unwrap_or((part, ""));
            let weight = rest.split(';').find_map(|parameter| parameter.trim().strip_prefix("q="));
            let weight = weight.map_or(Some(1.0), |weight| weight.trim().parse::<f32>().ok());
            let weight = (weight.unwrap_or(0.0).clamp(0.0, 1.0) * 1000.0) as u16;
            match name.trim().to_ascii_lowercase().as_str() {
                "gzip" | "x-gzip" => accepted[0] = Some(weight),
                "zstd" => accepted[1] = Some(weight),
                "*" => others = weight,
                _ => {}
            }
        }
        let [gzip, zstd] = accepted.map(|weight| weight.unwrap_or(others));
        Some(Self { gzip, zstd })
    }

    /// The best for bytes that are there as a whole.
    pub(crate) fn whole(self) -> Option<Coding> {
        match self {
            Self { gzip: 0, zstd: 0 } => None,
            Self { gzip, zstd } if zstd >= gzip => Some(Coding::Zstd),
            _ => Some(Coding::Gzip),
        }
    }

    /// Whether a stream may be compressed: with gzip only, which takes little memory for each
    /// reader.
    fn streamed(self) -> bool {
        self.gzip > 0
    }
}

/// Compresses a response if it is worth it.
pub(crate) async fn compress(
    response: Response<Body>,
    accepted: Accepted,
    turns: &Semaphore,
) -> Response<Body> {
    if !is_compressible(&response) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    parts.headers.append(VARY, VARIES);
    let (body, coding) = match body {
        Body::Whole(bytes) => match accepted.whole() {
            Some(coding) => match encoded(bytes.clone(), coding, turns).await {
                Some(encoded) => (Body::Whole(encoded), Some(coding)),
                None => (Body::Whole(bytes), None),
            },
            None => (Body::Whole(bytes), None),
        },
        Body::Streamed(stream) if accepted.streamed() => (gzipped(stream), Some(Coding::Gzip)),
        streamed @ Body::Streamed(_) => (streamed, None),
    };
    if let Some(coding) = coding {
        parts.headers.remove(CONTENT_LENGTH);
        parts.headers.insert(CONTENT_ENCODING, HeaderValue::from_static(coding.name()));
    }
    Response::from_parts(parts, body)
}

fn is_compressible(response: &Response<Body>) -> bool {
    let (headers, extensions) = (response.headers(), response.extensions());
    let media = headers.get(CONTENT_TYPE).and_then(|media| media.to_str().ok()).unwrap_or_default();
    let is_large = match response.body() {
        Body::Whole(bytes) => bytes.len() >= SMALLEST,
        Body::Streamed(_) => true,
    };
    is_large
        && extensions.get::<Passthrough>().is_none()
        && extensions.get::<StaticBody>().is_none()
        && !headers.contains_key(CONTENT_ENCODING)
        && !headers.contains_key(CONTENT_RANGE)
        && !media.starts_with("image/")
        && !media.starts_with("text/event-stream")
}

async fn encoded(bytes: Bytes, coding: Coding, turns: &Semaphore) -> Option<Bytes> {
    if bytes.len() <= INLINE {
        return coding.encode(&bytes).map(Bytes::from);
    }
    let _turn = turns.try_acquire().ok()?;
    blocking(move || coding.encode(&bytes)).await.map(Bytes::from)
}

fn gzipped(stream: RequestBody) -> Body {
    let encoder = GzEncoder::new(Vec::new(), Compression::fast());
    body::stream(try_unfold((stream.into_data_stream(), Some(encoder)), |(mut stream, encoder)| async move {
        let Some(mut encoder) = encoder else { return Ok(None) };
        while let Some(bytes) = stream.next().await {
            encoder.write_all(&bytes?).map_err(BodyError::new)?;
            let ready = std::mem::take(encoder.get_mut());
            if !ready.is_empty() {
                return Ok(Some((ready.into(), (stream, Some(encoder)))));
            }
        }
        let last = encoder.finish().map_err(BodyError::new)?;
        Ok(Some((last.into(), (stream, None))))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_say_what_they_can_decode() {
        let accepted = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_ENCODING, value.parse().unwrap());
            Accepted::of(&headers).unwrap()
        };
        for (value, whole, streamed) in [
            ("gzip", Some(Coding::Gzip), true),
            ("gzip, deflate, br, zstd", Some(Coding::Zstd), true),
            ("zstd, gzip;q=0.5", Some(Coding::Zstd), true),
            ("zstd;q=0.2, GZIP; q=0.5", Some(Coding::Gzip), true),
            ("zstd", Some(Coding::Zstd), false),
            ("*", Some(Coding::Zstd), true),
            ("*, zstd;q=0", Some(Coding::Gzip), true),
            ("gzip;q=0, *;q=0", None, false),
            ("identity", None, false),
            ("br;q=x, gzip;q=x", None, false),
            ("", None, false),
        ] {
            assert_eq!((accepted(value).whole(), accepted(value).streamed()), (whole, streamed), "{value}");
        }
        assert_eq!(Accepted::of(&HeaderMap::new()), None);
    }
}
