//! What passes is passed on while it comes, and no more of it than the door bears.

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use podium_api::enums::OrganizationRole;
use podium_app::front_door::Environments;
use podium_domain::On;
use podium_http::Body;
use podium_testkit::{Actor, Engine, TestApp, block_on, role};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::{Behind, port_and_target};

async fn ask(app: &TestApp, path: &str) -> http::Response<Body> {
    ask_as(app, &app.owner, path).await
}

async fn ask_as(app: &TestApp, actor: &Actor, path: &str) -> http::Response<Body> {
    let request = Request::get(path).header("authorization", format!("Bearer {}", actor.token));
    app.server.call(request.body(Full::<Bytes>::default()).unwrap(), ([127, 0, 0, 1], 1).into()).await
}

#[test]
fn lines_arrive_before_the_response_has_ended() {
    block_on(async {
        let app = TestApp::start(Engine::Sqlite).await;
        let behind = Behind::new(&app).await;
        let rest = behind.environment.stream();
        let mut body = ask(&app, &behind.at("/api/v2/dags/a/dagRuns/r/wait?interval=1")).await.into_body();
        let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(first, "first\n", "the environment has not ended its answer yet");
        rest.notify_one();
        assert_eq!(body.collect().await.unwrap().to_bytes(), "last\n");
    });
}

#[test]
fn so_many_requests_of_one_environment_run_at_once() {
    block_on(async {
        let app = TestApp::start(Engine::Sqlite).await;
        let (behind, other) = (Behind::new(&app).await, Behind::new(&app).await);
        behind.environment.stream();
        let mut running = Vec::new();
        for _ in 0..32 {
            let answer = ask(&app, &behind.at("/api/v2/dags")).await;
            assert_eq!(answer.status(), 200);
            running.push(answer);
        }
        let more = app.get(&app.owner, &behind.at("/api/v2/dags")).await;
        assert!(more.refused(503).contains("Too many of your requests"));
        assert_eq!(more.header("retry-after"), "1");
        let colleague = app.member_as("colleague", OrganizationRole::Owner).await;
        for _ in 0..16 {
            let answer = ask_as(&app, &colleague, &behind.at("/api/v2/dags")).await;
            assert_eq!(answer.status(), 200, "another user has a share of its own");
            running.push(answer);
        }
        let more = app.get(&colleague, &behind.at("/api/v2/dags")).await;
        assert!(more.refused(503).contains("Too many of your requests"));
        assert_eq!(
            app.get(&app.owner, &other.at("/api/v2/dags")).await.code(),
            200,
            "others are not concerned"
        );
        running.drain(..16);
        assert_eq!(ask(&app, &behind.at("/api/v2/dags")).await.status(), 200);
    });
}

#[test]
fn an_environment_keeps_its_port_while_the_server_cannot_listen() {
    block_on(async {
        let app = TestApp::start(Engine::Sqlite).await;
        let behind = Behind::new(&app).await;
        let (port, _) = behind.link(&app, &app.owner).await;
        let (asking, mut asked) = tokio::sync::mpsc::channel::<podium_app::front_door::ListenRequest>(1);
        app.app.listeners.attach(asking);
        let path = app.path(&format!("/deployments/{}/open", behind.id));
        let out_of_files = async {
            let (_, answer) = asked.recv().await.unwrap();
            answer.send(Err(std::io::Error::from_raw_os_error(24))).unwrap();
        };
        let (refused, ()) = tokio::join!(app.post(&app.owner, &path, json!({})), out_of_files);
        refused.refused(500);
        drop(asked);
        assert_eq!(behind.link(&app, &app.owner).await.0, port);
    });
}

#[test]
fn an_environments_port_is_listened_on_once_it_is_needed() {
    block_on(async {
        let free =
            std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().min(65_000);
        // Somebody else has the first of the ports.
        let taken = std::net::TcpListener::bind(("127.0.0.1", free)).unwrap();
        let app = TestApp::start_with(Engine::Sqlite, |config, _| {
            config.environments = Environments::Ports(free..=free + 50);
        })
        .await;
        let behind = Behind::new(&app).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let serving = tokio::spawn(podium_http::serve(app.server.clone(), listener, async {
            let _ = stopped.await;
        }));
        let first = loop {
            // Whoever serves says so at some point; until then a link names a port that nobody listens on.
            let path = app.path(&format!("/deployments/{}/open", behind.id));
            let url = app.post(&app.owner, &path, json!({})).await.ok()["url"].as_str().unwrap().to_owned();
            let (port, target) = port_and_target(&url);
            if port != free {
                break (port, target);
            }
            tokio::task::yield_now().await;
        };
        let mut stream = TcpStream::connect(("127.0.0.1", first.0)).await.unwrap();
        let head = format!("GET {} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", first.1);
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 303 See Other"), "{answer}");
        drop((stop, taken));
        serving.await.unwrap().unwrap();
    });
}

#[test]
fn a_response_of_an_environment_ends_with_the_callers_rights() {
    block_on(async {
        let app = TestApp::start(Engine::Sqlite).await;
        let behind = Behind::new(&app).await;
        behind.environment.stream();
        let member = role(On::Workspace(behind.workspace), "WORKSPACE_MEMBER");
        let reader = behind.holder(&app, "reader", vec![member]).await;
        let mut answer = app.call("GET", &behind.at("/api/v2/dags")).by(&reader).open().await;
        assert_eq!(answer.next().await.as_deref(), Some("first\n"));
        let remove = remove(&app, &reader);
        let (is_broken, ()) = tokio::join!(answer.is_aborted(), remove);
        assert!(is_broken, "the environment never ended its answer");
    });
}

#[test]
fn a_body_for_an_environment_is_not_passed_on_once_its_caller_has_lost_its_rights() {
    block_on(async {
        let app = TestApp::start(Engine::Sqlite).await;
        let behind = Behind::new(&app).await;
        let author = role(On::Workspace(behind.workspace), "WORKSPACE_AUTHOR");
        let author = behind.holder(&app, "author", vec![author]).await;
        let call = || {
            let call = app.call("POST", &behind.at("/api/v2/dags/a/dagRuns")).by(&author);
            call.json(&json!({ "logical_date": null }))
        };
        assert_eq!(call().send_with_delayed_body(async {}).await.code(), 200);
        assert_eq!(behind.environment.seen().len(), 1);
        let refused = call().send_with_delayed_body(remove(&app, &author)).await;
        assert!(refused.refused(403).contains("Your rights changed"));
        // The environment may have seen a head, of a request that broke off.
        assert!(behind.environment.seen().iter().all(|request| request["body"] == ""));
    });
}

async fn remove(app: &TestApp, actor: &Actor) {
    let path = app.path(&format!("/users/{}/roles", actor.id));
    app.post(&app.owner, &path, json!({ "organizationRole": null })).await.ok();
}
