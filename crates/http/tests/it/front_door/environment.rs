//! The web server of an environment, which answers every request with what it was sent, or with what a test tells it to.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Collected, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use podium_api::DeploymentId;
use podium_dataplane::{Line, Secret, WebServer};
use podium_testkit::TestApp;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Notify;

/// What the next answers are like.
#[derive(Clone, Default)]
struct Manner {
    status: Option<StatusCode>,
    headers: HeaderMap,
    body: Option<String>,
    /// What is answered at paths that end like this, instead.
    at: Vec<(String, u16, String)>,
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
    /// Starts one on a free port.
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it listens");
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

    /// Starts one, and puts it behind a deployment.
    pub(crate) async fn behind(app: &TestApp, id: DeploymentId, line: Line) -> Self {
        let environment = Self::start().await;
        let (address, key) = (environment.address, Secret::new("what the environment believes".into()));
        app.plane.script().lock().web_servers.insert(id, WebServer { upstream: address.into(), line, key });
        environment
    }

    /// Answers with this at paths that end so, from now on.
    pub(crate) fn answer_at(&self, path: &str, status: u16, body: &Value) {
        let at = &mut lock(&self.manner).at;
        at.retain(|(known, ..)| known != path);
        at.push((path.to_owned(), status, body.to_string()));
    }

    /// Everything that it was sent since this was last asked.
    pub(crate) fn seen(&self) -> Vec<Value> {
        std::mem::take(&mut *lock(&self.seen))
    }

    /// Answers with these headers from now on.
    pub(crate) fn send_headers(&self, headers: &[(&str, &str)]) {
        let header = |(name, value): &(&str, &str)| {
            (name.parse::<HeaderName>().expect("a name"), HeaderValue::from_str(value).expect("a value"))
        };
        lock(&self.manner).headers.clear();
        for (name, value) in headers.iter().map(header) {
            lock(&self.manner).headers.append(name, value);
        }
    }

    /// Answers with one line at once, and with another when it is told to, from now on.
    pub(crate) fn stream(&self) -> Arc<Notify> {
        let rest = Arc::new(Notify::new());
        lock(&self.manner).rest = Some(Arc::clone(&rest));
        rest
    }

    /// Answers with this from now on.
    pub(crate) fn answer_with(&self, status: u16, body: &str) {
        let mut manner = lock(&self.manner);
        (manner.status, manner.body) = (StatusCode::from_u16(status).ok(), Some(body.to_owned()));
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
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
    lock(&seen).push(told.clone());
    let mut manner = lock(&manner).clone();
    if let Some((_, status, body)) = manner.at.iter().find(|(end, ..)| parts.uri.path().ends_with(end)) {
        (manner.status, manner.body) = (StatusCode::from_u16(*status).ok(), Some(body.clone()));
    }
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
