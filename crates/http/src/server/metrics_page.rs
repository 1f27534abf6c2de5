//! The metrics page, and who may read it.

use std::net::IpAddr;

use http::Response;
use http::request::Parts;
use podium_app::front_door;
use podium_app::meters::Audience;

use super::Server;
use crate::body::{self, Body};
use crate::errors::Failure;
use crate::incoming::Incoming;
use crate::peer::Peer;
use crate::{metrics, pages};

impl Server {
    pub(super) async fn metrics_page(
        &self,
        parts: &Parts,
        (address, peer): (IpAddr, &Peer),
        request_id: &str,
    ) -> Response<Body> {
        let shared = &self.0;
        let audience = match self.may_read_metrics(parts, address, peer).await {
            Ok(audience) => audience,
            Err(failure) => return failure.into_response(request_id),
        };
        let meters = shared.routes.iter().map(|route| (route.endpoint.id, &route.meter));
        let others =
            [(podium_api::uploads::ID, &shared.uploads), (front_door::OPERATION_ID, &shared.forwarded)];
        let meters = meters.chain(others);
        let requests = metrics::render(meters, &shared.connections)
            + &metrics::front_door(shared.front_door.refused())
            + &metrics::panics(shared.panics.count());
        let others = async {
            let shown = shared.app.deployments_shown(audience).await?;
            let vitals = if shown.is_empty() { Vec::new() } else { shared.front_door.vitals().await };
            let deployments = metrics::deployments(&shown, &vitals, shared.app.world.now());
            Ok::<_, podium_app::Error>(shared.app.meter_page().await? + &deployments)
        };
        match others.await {
            Ok(others) => pages::text(requests + &others),
            Err(error) => {
                // Metrics matter most when the database is unavailable.
                tracing::warn!(%error, "some metrics cannot be read");
                pages::text(requests)
            }
        }
    }

    /// Metrics are for callers on this machine, except its environments, and for callers with a token: for those,
    /// of the deployments that they may see.
    async fn may_read_metrics(
        &self,
        parts: &Parts,
        address: IpAddr,
        peer: &Peer,
    ) -> Result<Audience, Failure> {
        let is_here = address.to_canonical().is_loopback();
        if is_here && !self.0.front_door.is_of_an_environment(peer).await {
            return Ok(Audience::Machine);
        }
        let app = self.0.app.clone();
        let incoming =
            Incoming::new(app.clone(), parts.clone(), Vec::new(), address, String::new(), body::empty());
        let bearer = incoming.bearer()?;
        let authority = app.authority(bearer, None, incoming.now).await?;
        let Some(organization_id) = authority.credential.organization_id.or(authority.home) else {
            return Ok(Audience::Nobody);
        };
        let authority = app.authority(bearer, Some(organization_id), incoming.now).await?;
        Ok(match &authority.member {
            Some(member) if member.admit_address(address).is_ok() => {
                Audience::Caller(member.membership.scope(), member.grants().visible_deployments())
            }
            _ => Audience::Nobody,
        })
    }
}
