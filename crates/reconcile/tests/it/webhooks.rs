//! Where events may be sent: what a name leads to is checked when it is connected to.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use podium_app::webhooks::Destinations;
use podium_reconcile::{Lookup, Loops, Options, Resolver, Webhooks};
use podium_testkit::{Engine, Receiver, TestApp, block_on};
use serde_json::{Value, json};

/// Gives the next addresses of a list, and the last for ever.
struct Scripted {
    answers: Mutex<Vec<Vec<IpAddr>>>,
    lookups: AtomicUsize,
}

impl Scripted {
    fn new(answers: &[&[&str]]) -> Arc<Self> {
        let parse = |list: &&[&str]| list.iter().map(|text| text.parse().unwrap()).collect();
        Arc::new(Self {
            answers: Mutex::new(answers.iter().map(parse).collect()),
            lookups: AtomicUsize::new(0),
        })
    }
}

impl Resolver for Scripted {
    fn resolve(&self, _: String) -> Lookup {
        self.lookups.fetch_add(1, Ordering::Relaxed);
        let mut answers = self.answers.lock().unwrap();
        let answer = if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() };
        Box::pin(async move { Ok(answer) })
    }
}

struct World {
    app: TestApp,
    loops: Loops,
    webhook: String,
}

impl World {
    /// A webhook to a name that a resolver looks up, on a server that allows a range.
    async fn start(resolver: Arc<Scripted>, allowed: &str, url: &str) -> Self {
        let allowed = allowed.parse().unwrap();
        let app = TestApp::start_with(Engine::Sqlite, |config, _| {
            config.webhook_destinations = Destinations::new(vec![allowed]);
        })
        .await;
        let options = Options::default();
        let webhooks = Webhooks::with_resolver(&app.app, app.system.steward(), options.step_time, resolver);
        let loops =
            Loops::of(&app.app, app.system.steward(), &app.planes(), options, vec![Box::new(webhooks)]);
        let body = json!({ "name": "Chat", "url": url, "eventTypes": ["podium.team.created"] });
        let webhook = app.post(&app.owner, &app.path("/webhooks"), body).await.id();
        Self { app, loops, webhook }
    }

    /// Makes an event, and lets the loop send it; returns the newest delivery.
    async fn send(&self, team: &str) -> Value {
        self.app.team(team, &[]).await;
        podium_app::webhooks::enqueue_behind(&self.app.app, None).await.unwrap();
        self.loops.step_until_idle().await.unwrap();
        let path = self.app.path(&format!("/webhooks/{}/deliveries?limit=1", self.webhook));
        self.app.get(&self.app.owner, &path).await.ok()["deliveries"][0].clone()
    }
}

const REFUSED: &str = "The URL leads to an address that events may not be sent to.";

#[test]
fn a_name_that_leads_elsewhere_a_moment_later_is_refused_then() {
    block_on(async {
        let allowed = Receiver::start_at(SocketAddr::from(([127, 0, 0, 2], 0))).await;
        let port = allowed.address().port();
        let forbidden = Receiver::start_at(SocketAddr::from(([127, 0, 0, 1], port))).await;
        let resolver = Scripted::new(&[&["127.0.0.2"], &["127.0.0.1"]]);
        let url = format!("http://rebinding.test:{port}/");
        let world = World::start(Arc::clone(&resolver), "127.0.0.2/32", &url).await;
        let delivery = world.send("First").await;
        assert_eq!(delivery["state"], "SUCCEEDED", "{delivery}");
        assert_eq!(resolver.lookups.load(Ordering::Relaxed), 1, "what was checked is what was connected to");
        assert_eq!(allowed.received().len(), 1);
        let delivery = world.send("Second").await;
        assert_eq!((&delivery["state"], &delivery["lastError"]), (&json!("PENDING"), &json!(REFUSED)));
        assert_eq!((allowed.received().len(), forbidden.received().len()), (1, 0));
    });
}

#[test]
fn a_name_with_one_forbidden_address_is_refused() {
    block_on(async {
        let receiver = Receiver::start_at(SocketAddr::from(([127, 0, 0, 2], 0))).await;
        for other in ["127.0.0.1", "::1", "169.254.169.254", "10.0.0.1", "::ffff:127.0.0.1", "8.8.8.8"] {
            let resolver = Scripted::new(&[&["127.0.0.2", other]]);
            let url = format!("http://mixed.test:{}/", receiver.address().port());
            let delivery = World::start(resolver, "127.0.0.2/32", &url).await.send("Data").await;
            assert_eq!(delivery["lastError"], REFUSED, "{other}");
        }
        assert_eq!(receiver.received().len(), 0);
    });
}

#[test]
fn encryption_does_not_open_private_addresses() {
    block_on(async {
        for address in ["127.0.0.1", "::1", "192.168.0.1", "100.64.0.1", "fd00::1", "64:ff9b::127.0.0.1"] {
            let resolver = Scripted::new(&[&[address]]);
            let world = World::start(resolver, "127.0.0.2/32", "https://private.test/").await;
            let delivery = world.send("Data").await;
            assert_eq!(delivery["lastError"], REFUSED, "{address}");
        }
    });
}

#[test]
fn a_name_without_addresses_is_tried_again() {
    block_on(async {
        let world = World::start(Scripted::new(&[&[]]), "127.0.0.2/32", "https://nowhere.test/").await;
        let delivery = world.send("Data").await;
        assert_eq!(delivery["lastError"], "The host of the URL cannot be found.");
        assert_eq!((&delivery["state"], &delivery["lastStatus"]), (&json!("PENDING"), &Value::Null));
    });
}
