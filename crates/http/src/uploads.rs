//! Uploads: bodies that are passed on while they arrive, and never held as a whole.
//!
//! The URL is the permission, so there is no token, no allowed address and no rate of a subject here; the signature,
//! the limits of the archive and the time between two pieces bound what a sender can ask for.

use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::request::Parts;
use http::{HeaderName, HeaderValue, Response, StatusCode};
use http_body_util::BodyExt as _;
use podium_api::FieldError;
use podium_api::uploads::VERSION_HEADER;
use podium_app::App;
use podium_app::deploys::{Part, Receiving, Ticket};

use crate::body::{Body, RequestBody, whole};
use crate::errors::Failure;
use crate::incoming::{no_room, query_pairs};
use crate::settings::Settings;

pub(crate) async fn receive(
    app: &App,
    settings: &Settings,
    parts: &Parts,
    deploy_id: &str,
    body: RequestBody,
) -> Result<Response<Body>, Failure> {
    let (ticket, part) = read(parts.uri.query().unwrap_or_default(), deploy_id)?;
    let length = parts.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    let mut receiving = app.receive(&ticket, part, length).await?;
    pass_on(&mut receiving, body, settings).await?;
    let version = receiving.finish().await?;
    let mut response = Response::new(whole(Bytes::new()));
    *response.status_mut() = StatusCode::CREATED;
    if let Some(version) = version.and_then(|version| HeaderValue::from_str(version.as_str()).ok()) {
        response.headers_mut().insert(HeaderName::from_static(VERSION_HEADER), version);
    }
    Ok(response)
}

async fn pass_on(
    receiving: &mut Receiving,
    mut body: RequestBody,
    settings: &Settings,
) -> Result<(), Failure> {
    let (floor, within) = (settings.upload_floor, settings.upload_idle_timeout.as_secs());
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|broken| {
            if broken.is_timeout() {
                let message = format!("The body arrived too slowly: less than {floor} bytes in {within} s.");
                return Failure::new(StatusCode::REQUEST_TIMEOUT, message);
            }
            if broken.is_too_much() {
                return no_room();
            }
            Failure::new(StatusCode::BAD_REQUEST, "The body ended early.")
        })?;
        if let Some(bytes) = frame.data_ref() {
            receiving.push(bytes).await?;
        }
    }
    Ok(())
}

/// The content of the URL. An incomplete one is treated like a forged one.
fn read(query: &str, deploy_id: &str) -> Result<(Ticket, Part), Failure> {
    let pairs = query_pairs(query);
    let value = |name: &str| pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
    let ticket = || {
        Some(Ticket {
            deploy_id: deploy_id.parse().ok()?,
            kind: value("kind")?.parse().ok()?,
            expires: value("expires")?.parse().ok()?,
            limit: value("limit")?.parse().ok()?,
            signature: value("signature")?.to_owned(),
        })
    };
    let ticket = ticket().ok_or_else(Ticket::forged)?;
    let part = match value("comp") {
        None | Some("") => Part::Whole,
        // In a query a plus sign is read as a space, and base64 has no spaces.
        Some("block") => Part::Block(value("blockid").unwrap_or_default().replace(' ', "+")),
        Some("blocklist") => Part::List,
        Some(_) => {
            let message = "must be `block`, `blocklist` or absent";
            return Err(Failure::fields(vec![FieldError::new("comp", "enum", message)]));
        }
    };
    Ok((ticket, part))
}

#[cfg(test)]
mod tests {
    use podium_api::enums::UploadKind;
    use podium_api::{DeployId, Id};

    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        let id = DeployId::from_raw(Id::from_parts(1, 2, 3));
        let signed = "kind=bundle&expires=1800000000&limit=100&signature=ab12";
        let (ticket, part) = read(signed, id.as_str()).unwrap();
        let expected = Ticket {
            deploy_id: id,
            kind: UploadKind::Bundle,
            expires: 1_800_000_000,
            limit: 100,
            signature: "ab12".into(),
        };
        assert_eq!((ticket, part), (expected, Part::Whole));
        for (more, expected) in [
            ("&comp=", Part::Whole),
            ("&comp=block&blockid=a%2Bb%3D", Part::Block("a+b=".into())),
            ("&comp=block&blockid=a+b=", Part::Block("a+b=".into())),
            ("&comp=block", Part::Block(String::new())),
            ("&blockid=a&comp=blocklist&timeout=30", Part::List),
        ] {
            assert_eq!(read(&format!("{signed}{more}"), id.as_str()).unwrap().1, expected, "{more}");
        }
        assert!(read(&format!("{signed}&comp=lease"), id.as_str()).is_err());
        for forged in ["", "kind=dags", &signed.replace("bundle", "x"), &signed.replace("100", "-1")] {
            assert_eq!(read(forged, id.as_str()).unwrap_err().status, 403, "{forged}");
        }
        assert_eq!(read(signed, "nonsense").unwrap_err().status, 403);
    }
}
