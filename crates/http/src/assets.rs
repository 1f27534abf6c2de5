//! Content that never changes while the server runs: the OpenAPI document, the API reference and its script, and
//! static pages. It is made and compressed once, on first use, and then served from the same memory.

use std::sync::OnceLock;

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, ETAG, IF_NONE_MATCH, VARY};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use podium_api::openapi::Document;
use tokio::sync::OnceCell;
use xxhash_rust::xxh3::xxh3_128;

use crate::body::{Body, whole};
use crate::compress::{Accepted, Coding, VARIES};
use crate::pages::{self, Page};
use crate::respond::{StaticBody, names};

/// What never changes while the server runs: pages, each made when it is asked for first.
pub(crate) struct Assets {
    api_url: String,
    made: [OnceLock<Asset>; 5],
}

impl Assets {
    pub(crate) fn new(api_url: String) -> Self {
        Self { api_url, made: [const { OnceLock::new() }; 5] }
    }

    /// A page, unless it changes.
    pub(crate) fn of(&self, page: Page) -> Option<&Asset> {
        let (place, make): (usize, fn() -> Response<Body>) = match page {
            Page::OpenApi => return Some(self.openapi()),
            Page::Docs => (1, pages::docs),
            Page::DocsScript => (2, pages::docs_script),
            Page::AuthTypes => (3, pages::auth_types),
            Page::AcceptInvite => (4, pages::accept_invite),
            _ => return None,
        };
        Some(self.made[place].get_or_init(|| Asset::of(make())))
    }

    /// The OpenAPI document.
    pub(crate) fn openapi(&self) -> &Asset {
        let document = || Document::collect().to_json(&self.api_url).to_string();
        self.made[0].get_or_init(|| Asset::of(pages::json(Bytes::from(document()))))
    }
}

/// Bytes with their headers, plain and compressed.
pub(crate) struct Asset {
    headers: HeaderMap,
    pub(crate) plain: Bytes,
    hash: u128,
    gzip: OnceCell<Option<Bytes>>,
    zstd: OnceCell<Option<Bytes>>,
}

impl Asset {
    fn of(response: Response<Body>) -> Self {
        let (mut parts, body) = response.into_parts();
        let plain = match body {
            Body::Whole(bytes) => bytes,
            Body::Streamed(_) => Bytes::new(),
        };
        parts.headers.insert(VARY, VARIES);
        let hash = xxh3_128(&plain);
        Self { headers: parts.headers, plain, hash, gzip: OnceCell::new(), zstd: OnceCell::new() }
    }

    pub(crate) async fn answer(&self, asked: &HeaderMap) -> Response<Body> {
        let coding = Accepted::of(asked).and_then(Accepted::whole);
        let encoded = match coding {
            Some(coding) => self.encoded(coding).await.map(|bytes| (bytes, coding)),
            None => None,
        };
        // Each form has a tag of its own: a strong one promises the same bytes.
        let (bytes, coding, form) = match encoded {
            Some((bytes, coding)) => (bytes, Some(coding), coding.name()),
            None => (self.plain.clone(), None, "plain"),
        };
        let tag = HeaderValue::from_str(&format!("\"{:032x}-{form}\"", self.hash)).ok();
        let known = asked.get(IF_NONE_MATCH);
        let is_known = known.zip(tag.as_ref()).is_some_and(|(known, tag)| names(known, tag));
        let mut response = Response::new(whole(if is_known { Bytes::new() } else { bytes }));
        response.headers_mut().clone_from(&self.headers);
        response.headers_mut().extend(tag.map(|tag| (ETAG, tag)));
        if is_known {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
        } else if let Some(coding) = coding {
            response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static(coding.name()));
        }
        response.extensions_mut().insert(StaticBody);
        response
    }

    async fn encoded(&self, coding: Coding) -> Option<Bytes> {
        let cell = match coding {
            Coding::Gzip => &self.gzip,
            Coding::Zstd => &self.zstd,
        };
        let plain = self.plain.clone();
        let encode = || async move {
            let encoded = tokio::task::spawn_blocking(move || coding.encode_well(&plain)).await;
            encoded.ok().flatten().map(Bytes::from)
        };
        cell.get_or_init(encode).await.clone()
    }
}
