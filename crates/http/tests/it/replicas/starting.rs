//! Replicas that start together, and keys that change under them.

use std::sync::Arc;

use base64::Engine as _;
use podium_api::Timestamp;
use podium_app::secrets::Secrets;
use podium_app::world::World;
use podium_app::{App, Config, Started, maintenance};
use podium_dataplane::Planes;
use podium_dataplane::simulated::Simulated;
use podium_http::{Server, Settings};
use podium_testkit::{Database, Engine, START, block_on};
use serde_json::Value;

use super::two_replicas;

async fn start(database: Arc<Database>, ids: u32) -> Started {
    let secrets = Secrets::from_text("the secret key of tests, which is no secret").unwrap();
    let world = Arc::new(World::fixed_from(Timestamp::from_millis(START), ids));
    App::start(database.target(), Config::new("https://podium.test"), secrets, world)
        .await
        .expect("it starts")
}

fn key_of(token: &str) -> String {
    let header =
        base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(token.split('.').next().unwrap()).unwrap();
    serde_json::from_slice::<Value>(&header).unwrap()["kid"].as_str().unwrap().to_owned()
}

#[test]
fn of_replicas_that_start_together_on_an_empty_database_one_creates_the_organization() {
    block_on(async {
        let database = Arc::new(Database::create(Engine::Postgres).await);
        let starting: Vec<_> =
            (0..4).map(|replica| tokio::spawn(start(Arc::clone(&database), replica * 100_000))).collect();
        let mut started = Vec::new();
        for replica in starting {
            started.push(replica.await.unwrap());
        }
        let tokens: Vec<String> = started.iter().filter_map(|replica| replica.owner_token.clone()).collect();
        assert_eq!(tokens.len(), 1, "one owner");
        let mut keys = Vec::new();
        for replica in &started {
            let clock = Arc::clone(&replica.app.world);
            let plane = Arc::new(Simulated::in_memory(Arc::new(move || clock.now())));
            let server = Server::new(replica.app.clone(), Planes::only(plane), Settings::default());
            let call = async |path: &str| {
                let bearer = format!("Bearer {}", tokens[0]);
                let request = http::Request::get(path).header("authorization", bearer);
                let body = http_body_util::Full::new(bytes::Bytes::new());
                let answer = server.call(request.body(body).unwrap(), ([127, 0, 0, 1], 1).into()).await;
                assert_eq!(answer.status(), 200);
                let body = http_body_util::BodyExt::collect(answer.into_body()).await.unwrap().to_bytes();
                serde_json::from_slice::<Value>(&body).unwrap()
            };
            assert_eq!(call("/v1/organizations").await["totalCount"], 1);
            keys.push(call("/.well-known/jwks.json").await);
        }
        assert!(keys.iter().all(|set| *set == keys[0]), "one signing key");
        assert_eq!(keys[0]["keys"].as_array().unwrap().len(), 1);
    });
}

#[test]
fn a_key_that_one_replica_rotates_is_known_to_the_other() {
    block_on(async {
        let [a, b] = two_replicas().await;
        let old = b.token("old", "ORGANIZATION", b.organization_id, "ORGANIZATION_OWNER").await;
        let key = a.app.rotate_signing_key(&a.system).await.unwrap();
        let new = a.token("new", "ORGANIZATION", a.organization_id, "ORGANIZATION_OWNER").await;
        assert_eq!(key_of(&new.token), key);
        for app in [&a, &b] {
            assert_eq!(app.get(&new, &app.path("")).await.code(), 200);
            assert_eq!(app.get(&old, &app.path("")).await.code(), 200);
        }
    });
}

#[test]
fn a_replica_signs_with_the_new_key_before_the_old_one_is_dropped() {
    block_on(async {
        let [a, b] = two_replicas().await;
        let second = a.app.rotate_signing_key(&a.system).await.unwrap();
        maintenance::once(&b.app).await.unwrap();
        let third = a.app.rotate_signing_key(&a.system).await.unwrap();
        // The other replica does not know yet, and signs with a key that is retired.
        let late = b.token("late", "ORGANIZATION", b.organization_id, "ORGANIZATION_OWNER").await;
        assert_eq!(key_of(&late.token), second);
        maintenance::once(&a.app).await.unwrap();
        assert_eq!(a.get(&late, &a.path("")).await.code(), 200);
        maintenance::once(&b.app).await.unwrap();
        let next = b.token("next", "ORGANIZATION", b.organization_id, "ORGANIZATION_OWNER").await;
        assert_eq!(key_of(&next.token), third);
        for token in [&late, &next] {
            assert_eq!(a.get(token, &a.path("")).await.code(), 200);
        }
    });
}
