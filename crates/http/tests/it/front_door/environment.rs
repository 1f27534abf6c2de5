//! An environment that answers every request with what it was sent, or with what a test tells it to.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Collected, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Notify;

/// What the next answers are like.
#[derive(Clone, Default)]
struct Manner {
    status: Option<StatusCode>,
    headers: HeaderMap,
    body: Option<String>,
    /// What an answer waits for after its first line.
    rest: Option<Arc<Notify>>,
}

/// An environment's web server; it serves as long as its runtime lives.
pub(crate) struct Environment {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<Value>>>,
    manner: Arc<Mutex<Manner>>,
}

impl Environment {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (seen, manner) = (Arc::<Mutex<Vec<Value>>>::default(), Arc::<Mutex<Manner>>::default());
        let (ear, mouth) = (Arc::clone(&seen), Arc::clone(&manner));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (ear, mouth) = (Arc::clone(&ear), Arc::clone(&mouth));
                let service =
                    service_fn(move |request| answer(request, Arc::clone(&ear), Arc::clone(&mouth)));
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        Self { address, seen, manner }
    }

    /// Everything that it was sent since this was last asked.
    pub(crate) fn seen(&self) -> Vec<Value> {
        std::mem::take(&mut *self.seen.lock().unwrap())
    }

    /// Answers with these headers from now on.
    pub(crate) fn send_headers(&self, headers: &[(&str, &str)]) {
        let header = |(name, value): &(&str, &str)| {
            (name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap())
        };
        self.manner.lock().unwrap().headers.clear();
        for (name, value) in headers.iter().map(header) {
            self.manner.lock().unwrap().headers.append(name, value);
        }
    }

    /// Answers with one line at once, and with another when it is told to, from now on.
    pub(crate) fn stream(&self) -> Arc<Notify> {
        let rest = Arc::new(Notify::new());
        self.manner.lock().unwrap().rest = Some(Arc::clone(&rest));
        rest
    }

    /// Answers with this from now on.
    pub(crate) fn answer_with(&self, status: u16, body: &str) {
        let mut manner = self.manner.lock().unwrap();
        (manner.status, manner.body) = (StatusCode::from_u16(status).ok(), Some(body.to_owned()));
    }
}

async fn answer(
    request: Request<Incoming>,
    seen: Arc<Mutex<Vec<Value>>>,
    manner: Arc<Mutex<Manner>>,
) -> Result<Response<UnsyncBoxBody<Bytes, Infallible>>, Infallible> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map(Collected::to_bytes).unwrap_or_default();
    let mut headers = json!({});
    for (name, value) in &parts.headers {
        headers[name.as_str()] = value.to_str().unwrap_or("?").into();
    }
    let told = json!({
        "method": parts.method.as_str(),
        "target": parts.uri.to_string(),
        "headers": headers,
        "body": String::from_utf8_lossy(&body),
    });
    seen.lock().unwrap().push(told.clone());
    let manner = manner.lock().unwrap().clone();
    let body = match manner.rest {
        None => Full::from(manner.body.unwrap_or_else(|| told.to_string())).boxed_unsync(),
        Some(rest) => {
            let first = stream::iter(["first\n"]);
            let last = stream::once(async move {
                rest.notified().await;
                "last\n"
            });
            StreamBody::new(first.chain(last).map(|line| Ok(Frame::data(Bytes::from(line))))).boxed_unsync()
        }
    };
    let mut response = Response::new(body);
    *response.status_mut() = manner.status.unwrap_or(StatusCode::OK);
    response.headers_mut().insert("content-type", HeaderValue::from_static("application/json"));
    response.headers_mut().extend(manner.headers);
    Ok(response)
}
