//! Pages for browsers, and responses to probes.

use std::net::IpAddr;

use http::request::Parts;
use http::{Method, Response, StatusCode};
use podium_domain::pictures;

use super::{Server, method_not_allowed};
use crate::body::Body;
use crate::errors::Failure;
use crate::pages::{self, Page};
use crate::peer::Peer;

impl Server {
    pub(super) async fn page(
        &self,
        page: Page,
        parts: &Parts,
        (address, peer): (IpAddr, &Peer),
        request_id: &str,
    ) -> Response<Body> {
        if parts.method != Method::GET {
            return method_not_allowed("GET", request_id);
        }
        let shared = &self.0;
        if let Some(asset) = shared.assets.of(page) {
            return asset.answer(&parts.headers).await;
        }
        match page {
            Page::Keys => pages::json(shared.app.keys.load().jwks().to_string()),
            Page::Alive => pages::json(r#"{"status":"ok"}"#),
            Page::Ready => match shared.app.ready().await {
                Ok(()) => pages::json(r#"{"status":"ready"}"#),
                Err(error) => Failure::from(error).into_response(request_id),
            },
            Page::Metrics => self.metrics_page(parts, (address, peer), request_id).await,
            Page::Picture => match pictures::drawn(parts.uri.path()) {
                Some(svg) => pages::picture(svg),
                None => {
                    let message = "There is no such picture: pictures show one or two letters.";
                    Failure::new(StatusCode::NOT_FOUND, message).into_response(request_id)
                }
            },
            // The others do not change.
            Page::Home
            | Page::OpenApi
            | Page::Docs
            | Page::DocsScript
            | Page::AuthTypes
            | Page::AcceptInvite => pages::redirect(podium_console::ROOT),
        }
    }
}
