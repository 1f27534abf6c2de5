//! Pages for people, and answers for probes.

use std::net::IpAddr;
use std::sync::atomic::Ordering;

use http::request::Parts;
use http::{Method, Response};
use podium_app::front_door;

use super::{Server, method_not_allowed};
use crate::body::{self, Body};
use crate::errors::Failure;
use crate::incoming::Incoming;
use crate::metrics;
use crate::pages::{self, Page};

impl Server {
    pub(super) async fn page(
        &self,
        page: Page,
        parts: &Parts,
        address: IpAddr,
        request_id: &str,
    ) -> Response<Body> {
        if parts.method != Method::GET {
            return method_not_allowed("GET", request_id);
        }
        let shared = &self.0;
        match page {
            Page::OpenApi => pages::json(shared.openapi.clone()),
            Page::Keys => pages::json(shared.app.keys.load().jwks().to_string()),
            Page::Alive => pages::json(r#"{"status":"ok"}"#),
            Page::Ready => match shared.app.ready().await {
                Ok(()) => pages::json(r#"{"status":"ready"}"#),
                Err(error) => Failure::from(error).into_response(request_id),
            },
            Page::Metrics => {
                if let Err(failure) = self.may_read_metrics(parts, address).await {
                    return failure.into_response(request_id);
                }
                let meters = shared.routes.iter().map(|route| (route.spec.id, &route.meter));
                let others =
                    [(podium_api::uploads::ID, &shared.uploads), (front_door::OPERATION, &shared.passages)];
                let meters = meters.chain(others);
                let requests = metrics::render(meters, shared.open_connections.load(Ordering::Relaxed));
                match shared.app.meter_page().await {
                    Ok(others) => pages::text(requests + &others),
                    Err(error) => {
                        // Numbers are wanted most when the database is away.
                        tracing::warn!(%error, "some numbers cannot be read");
                        pages::text(requests)
                    }
                }
            }
            Page::Docs => pages::docs(),
            Page::DocsScript => pages::docs_script(),
            Page::AcceptInvite => pages::accept_invite(),
            Page::Home => pages::redirect("/docs"),
        }
    }

    /// Numbers are for this machine, and for those with a token.
    async fn may_read_metrics(&self, parts: &Parts, address: IpAddr) -> Result<(), Failure> {
        if address.to_canonical().is_loopback() {
            return Ok(());
        }
        let app = self.0.app.clone();
        let incoming =
            Incoming::new(app.clone(), parts.clone(), Vec::new(), address, String::new(), body::nothing());
        app.authority(incoming.bearer()?, None, incoming.now).await?;
        Ok(())
    }
}
