//! An application in process, with a fixed clock and fixed ids.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use podium_api::{OrganizationId, Timestamp};
use podium_app::nodes::Node;
use podium_app::secrets::Secrets;
use podium_app::world::World;
use podium_app::{App, Config};
use podium_dataplane::simulated::Simulated;
use podium_dataplane::{LogLine, Planes};
use podium_domain::webhooks::Destinations;
use podium_http::{Server, Settings};
use podium_reconcile::{Loops, Options};
use podium_store::{Scope, System};
use serde_json::Value;
use tempfile::TempDir;

use crate::actors::Actor;
use crate::answer::Answer;
use crate::databases::{Database, Engine};

/// When every test begins, in milliseconds: 2027-01-15T08:00:00Z.
pub const START: i64 = 1_800_000_000_000;
/// Where the ids of a second replica begin.
const REPLICA_IDS: u32 = 800_000;
pub(crate) const KEY: &str = "the secret key of tests, which is no secret";

/// Lines that have not been written to the log store yet.
pub(crate) type PendingLines = Arc<Mutex<Vec<LogLine>>>;

pub struct TestApp {
    pub server: Server,
    pub app: App,
    /// The right to act for the system itself.
    pub system: System,
    pub world: Arc<World>,
    pub database: Arc<Database>,
    pub files: Arc<TempDir>,
    /// The simulated data plane, into which tests can inject faults.
    pub plane: Arc<Simulated>,
    /// Lines of its components that have not been written to the log store yet.
    pub(crate) said: PendingLines,
    /// The loops, which run when a test says so.
    pub loops: Loops,
    /// The organization of the first start.
    pub organization_id: OrganizationId,
    pub owner: Actor,
}

impl TestApp {
    pub fn db(&self) -> &podium_db::Db {
        self.app.db(&self.system)
    }

    /// Starts an application on an empty database.
    pub async fn start(engine: Engine) -> Self {
        Self::start_with(engine, |_, _| {}).await
    }

    /// Starts one with other settings.
    pub async fn start_with(engine: Engine, change: impl FnOnce(&mut Config, &mut Settings)) -> Self {
        let files = Arc::new(tempfile::tempdir().expect("a directory for files"));
        let mut config = config(&files);
        let mut settings = Settings::default();
        change(&mut config, &mut settings);
        let database = Arc::new(Database::migrated(engine).await);
        let world = Arc::new(World::fixed(Timestamp::from_millis(START)));
        let secrets = Secrets::from_text(KEY).expect("the key is long enough");
        let started =
            App::start(database.target(), config, secrets, Arc::clone(&world)).await.expect("it starts");
        let token = started.owner_token.expect("the first start makes the owner's token");
        let (app, system) = (started.app, started.system);
        let authority = app.authority(&token, None, world.now()).await.expect("the token works");
        let owner = Actor { id: authority.credential.subject_id, token };
        let organization_id = app
            .db(&system)
            .read(None, move |conn| podium_store::organizations::first(conn, &system))
            .await
            .expect("it reads")
            .expect("there is one");
        let parts = (world, database, files);
        Self::of(app, system, settings, parts, organization_id, owner)
    }

    /// An application that has started, on a simulated plane of its own.
    pub(crate) fn of(
        app: App,
        system: System,
        settings: Settings,
        (world, database, files): (Arc<World>, Arc<Database>, Arc<TempDir>),
        organization_id: OrganizationId,
        owner: Actor,
    ) -> Self {
        let clock = Arc::clone(&world);
        let said: PendingLines = Arc::default();
        let ear = Arc::clone(&said);
        let plane = Simulated::in_memory(Arc::new(move || clock.now())).bound_to_machine();
        let plane = Arc::new(plane.logging_to(Arc::new(move |batch| {
            ear.lock().unwrap_or_else(PoisonError::into_inner).extend(batch);
        })));
        let server = Server::new(app.clone(), planes(&plane), settings);
        let loops = loops(&app, system, &plane);
        Self { server, app, system, world, database, files, plane, said, loops, organization_id, owner }
    }

    /// Another replica on the same database; PostgreSQL only.
    pub async fn replica(&self) -> Self {
        let secrets = Secrets::from_text(KEY).expect("the key is long enough");
        let config = config(&self.files);
        let world = Arc::new(World::fixed_from(self.world.now(), REPLICA_IDS));
        let started =
            App::start(self.database.target(), config, secrets, Arc::clone(&world)).await.expect("it starts");
        assert!(started.owner_token.is_none(), "only the very first start makes an owner");
        let server = Server::new(started.app.clone(), planes(&self.plane), Settings::default());
        let loops = loops(&started.app, started.system, &self.plane);
        Self { server, loops, app: started.app, system: started.system, world, ..self.again() }
    }

    /// The same application with loops of its own.
    fn again(&self) -> Self {
        Self {
            server: self.server.clone(),
            loops: loops(&self.app, self.system, &self.plane),
            app: self.app.clone(),
            system: self.system,
            world: Arc::clone(&self.world),
            database: Arc::clone(&self.database),
            files: Arc::clone(&self.files),
            plane: Arc::clone(&self.plane),
            said: Arc::clone(&self.said),
            organization_id: self.organization_id,
            owner: self.owner.clone(),
        }
    }

    /// Restarts loops and server, with these planes.
    pub fn restart_with(&mut self, planes: Planes) {
        self.loops = Loops::new(&self.app, self.system.steward(), &planes, Options::default());
        self.server = Server::new(self.app.clone(), planes, Settings::default());
    }

    /// The same application as the owner of another organization sees it.
    pub async fn elsewhere(&self) -> Self {
        let owner = self.stranger().await;
        let listed = self.get(&owner, "/v1/organizations").await.ok();
        let id = listed["organizations"][0]["id"].as_str().expect("the stranger has an organization");
        Self { organization_id: id.parse().expect("an id"), owner, ..self.again() }
    }

    /// The same application as a node with its own machine.
    pub async fn on_node(mut self, name: &str) -> Self {
        let clock = Arc::clone(&self.world);
        self.plane = Arc::new(Simulated::in_memory(Arc::new(move || clock.now())).bound_to_machine());
        self.server = Server::new(self.app.clone(), planes(&self.plane), Settings::default());
        self.loops = loops(&self.app, self.system, &self.plane);
        let node = Node { id: self.world.id(), name: name.to_owned() };
        self.app.join(node, self.plane.environments()).await.expect("it joins");
        self
    }

    /// A scope in the organization of the first start, without a caller.
    pub fn scope(&self) -> Scope {
        self.system.scope(self.organization_id)
    }

    pub fn advance(&self, by: Duration) {
        self.world.set(self.world.now() + by);
    }

    /// A path below the organization of the first start.
    pub fn path(&self, rest: &str) -> String {
        format!("/v1/organizations/{}{rest}", self.organization_id)
    }

    pub fn call(&self, method: &str, path: &str) -> Call<'_> {
        let request = Request::builder().method(method).uri(path);
        Call { app: self, request, body: Bytes::new(), peer: ([127, 0, 0, 1], 40_000).into(), port: None }
    }

    pub async fn get(&self, actor: &Actor, path: &str) -> Answer {
        self.call("GET", path).by(actor).send().await
    }

    /// Creates, updates or acts as an actor.
    pub async fn post(&self, actor: &Actor, path: &str, body: Value) -> Answer {
        self.call("POST", path).by(actor).json(&body).send().await
    }

    pub fn planes(&self) -> Planes {
        planes(&self.plane)
    }

    pub async fn delete(&self, actor: &Actor, path: &str) -> Answer {
        self.call("DELETE", path).by(actor).send().await
    }

    /// The audit records of the organization so far.
    pub async fn audit(&self) -> Vec<Value> {
        let answer = self.get(&self.owner, &self.path("/audit-logs")).await;
        assert_eq!(answer.code(), 200, "{}", answer.text());
        answer.text().lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
    }
}

fn planes(plane: &Arc<Simulated>) -> Planes {
    Planes::only(Arc::<Simulated>::clone(plane))
}

/// The loops of an application on a plane, not started.
fn loops(app: &App, system: System, plane: &Arc<Simulated>) -> Loops {
    Loops::new(app, system.steward(), &planes(plane), Options::default())
}

/// Many tests run at once: each takes few connections.
pub(crate) fn config(files: &TempDir) -> Config {
    // Each replica has its own logs.
    let logs = TempDir::with_prefix_in("logs-", files).expect("a directory for logs").keep();
    let objects = files.path().join("objects");
    // Receivers of webhooks listen here.
    let webhook_destinations = Destinations::new(vec!["127.0.0.1/32".parse().expect("a range")]);
    let config = Config::new("https://podium.test");
    Config { connections: Some(4), logs: Some(logs), files: objects, webhook_destinations, ..config }
}

pub struct Call<'a> {
    pub(crate) app: &'a TestApp,
    pub(crate) request: http::request::Builder,
    pub(crate) body: Bytes,
    pub(crate) peer: SocketAddr,
    port: Option<u16>,
}

impl Call<'_> {
    pub fn by(self, actor: &Actor) -> Self {
        let token = actor.token.clone();
        self.header("authorization", &format!("Bearer {token}"))
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.request = self.request.header(name, value);
        self
    }

    pub fn from(mut self, address: &str) -> Self {
        self.peer = SocketAddr::new(address.parse().expect("an address"), 40_000);
        self
    }

    pub fn on_port(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }

    pub fn json(self, body: &Value) -> Self {
        self.header("content-type", "application/json").body(body.to_string())
    }

    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    pub async fn send(self) -> Answer {
        let request = self.request.body(Full::new(self.body)).expect("a request");
        let response = match self.port {
            Some(port) => self.app.server.call_on_port(port, request, self.peer).await,
            None => self.app.server.call(request, self.peer).await,
        };
        let (parts, mut body) = response.into_parts();
        let mut bytes = Vec::new();
        while let Some(frame) = body.frame().await {
            bytes.extend_from_slice(frame.expect("a whole body").data_ref().expect("a body has no trailers"));
        }
        assert!(body.frame().await.is_none(), "a body may be asked again after its end, as compression does");
        Answer { status: parts.status, headers: parts.headers, bytes }
    }

    /// Sends it, to read the response as a stream.
    pub async fn open(self) -> StreamingResponse {
        let request = self.request.body(Full::new(self.body)).expect("a request");
        let (parts, body) = self.app.server.call(request, self.peer).await.into_parts();
        StreamingResponse { status: parts.status, headers: parts.headers, body }
    }
}

pub struct StreamingResponse {
    pub status: http::StatusCode,
    pub headers: http::HeaderMap,
    body: podium_http::Body,
}

impl StreamingResponse {
    /// Waits for the next piece of the body; `None` at the end.
    pub async fn next(&mut self) -> Option<String> {
        let frame = self.body.frame().await?.expect("a whole body");
        let bytes = frame.data_ref().expect("a body has no trailers");
        Some(String::from_utf8(bytes.to_vec()).expect("text"))
    }

    /// Reads the rest; returns whether the body is aborted.
    pub async fn is_aborted(mut self) -> bool {
        while let Some(frame) = self.body.frame().await {
            if frame.is_err() {
                return true;
            }
        }
        false
    }
}
