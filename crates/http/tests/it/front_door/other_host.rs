//! A console on this machine: environments are at another address of it, and their processes cannot use cookies.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::MetadataExt as _;

use podium_testkit::{Engine, TestApp, block_on};
use serde_json::json;
use tokio::net::TcpListener;

use super::Behind;

/// A console at a loopback address, on a real socket.
async fn serve(ports: std::ops::RangeInclusive<u16>) -> (TestApp, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let app = TestApp::start_with(Engine::Sqlite, |config, _| {
        config.public_url = format!("http://{address}");
        config.environments = podium_app::front_door::Environments::Ports(ports);
    })
    .await;
    tokio::spawn(podium_http::serve(app.server.clone(), listener, std::future::pending()));
    (app, address)
}

/// Asks for something on a connection of its own.
async fn ask(address: SocketAddr, head: String) -> String {
    let ask = move || {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(format!("{head}\r\nhost: x\r\nconnection: close\r\n\r\n").as_bytes()).unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).unwrap();
        said
    };
    tokio::task::spawn_blocking(ask).await.unwrap()
}

fn header<'a>(answer: &'a str, name: &str) -> &'a str {
    let mut lines = answer.lines().filter_map(|line| line.split_once(": "));
    lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value).unwrap_or_default()
}

async fn sign_in(app: &TestApp, address: SocketAddr) -> String {
    let form = app.call("POST", "/sign-in").header("origin", &format!("http://{address}"));
    let answer = form.body(format!("token={}", app.owner.token)).send().await;
    assert!(answer.header("set-cookie").ends_with("; Path=/; HttpOnly; SameSite=Strict; Max-Age=28800"));
    answer.header("set-cookie").split(';').next().unwrap().to_owned()
}

#[test]
#[cfg(target_os = "linux")]
fn environments_are_at_another_address_than_the_console() {
    block_on(async {
        let (app, address) = serve(21_500..=21_599).await;
        let behind = Behind::new(&app).await;
        let session = sign_in(&app, address).await;
        let page = format!("GET {} HTTP/1.1\r\naccept: text/html\r\ncookie: {session}", behind.at(""));
        let led = ask(address, page).await;
        let way = header(&led, "location");
        let rest = way.strip_prefix("http://127.0.0.2:").unwrap_or_else(|| panic!("{led}"));
        let (port, target) = rest.split_once('/').unwrap();
        let there: SocketAddr = format!("127.0.0.2:{port}").parse().unwrap();
        let entered = ask(there, format!("GET /{target} HTTP/1.1")).await;
        assert_eq!(header(&entered, "location"), behind.at("/"), "{entered}");
        let pass = header(&entered, "set-cookie").split(';').next().unwrap().to_owned();
        let post = format!("POST {} HTTP/1.1\r\ncookie: {pass}", behind.at("/api/v2/dags/a/dagRuns"));
        let own = ask(there, format!("{post}\r\norigin: http://127.0.0.2:{port}\r\ncontent-length: 0")).await;
        assert!(own.starts_with("HTTP/1.1 200"), "{own}");
        let elsewhere = ask(there, format!("{post}\r\norigin: http://{address}\r\ncontent-length: 0")).await;
        assert!(elsewhere.starts_with("HTTP/1.1 403"), "{elsewhere}");
        let console = SocketAddr::new(address.ip(), there.port());
        assert!(TcpStream::connect(console).is_err(), "nobody listens for it at the console's address");
        let policy = app.call("GET", "/sign-in").send().await;
        assert!(policy.header("content-security-policy").contains("form-action 'self' http://127.0.0.2:*;"));
    });
}

#[test]
#[cfg(target_os = "linux")]
fn a_process_of_an_environment_cannot_use_a_browsers_cookies() {
    block_on(async {
        let (app, address) = serve(21_600..=21_699).await;
        let behind = Behind::new(&app).await;
        let session = sign_in(&app, address).await;
        let way_in = || format!("GET {} HTTP/1.1\r\naccept: text/html\r\ncookie: {session}", behind.at("/"));
        let opened = app
            .post(&app.owner, &app.path(&format!("/deployments/{}/open", behind.id)), json!({}))
            .await
            .ok();
        let target = opened["url"].as_str().unwrap().strip_prefix("http://127.0.0.2:").unwrap().to_owned();
        let (port, target) = target.split_once('/').unwrap();
        let there: SocketAddr = format!("127.0.0.2:{port}").parse().unwrap();
        let entered = ask(there, format!("GET /{target} HTTP/1.1")).await;
        let pass = header(&entered, "set-cookie").split(';').next().unwrap().to_owned();
        let inside = || format!("GET {} HTTP/1.1\r\ncookie: {pass}", behind.at("/api/v2/dags"));
        let own = std::fs::metadata("/proc/self").unwrap().uid();
        // Other users' processes are environments', and this one's is not.
        app.plane.script().lock().users = Some(own + 1..own + 4096);
        assert!(ask(address, way_in()).await.starts_with("HTTP/1.1 303"));
        assert!(ask(there, inside()).await.starts_with("HTTP/1.1 200"));
        // This process is one of an environment.
        app.plane.script().lock().users = Some(own..own + 1);
        for (to, head) in [
            (address, way_in()),
            (there, inside()),
            (
                address,
                format!(
                    "POST /sign-out HTTP/1.1\r\norigin: http://{address}\r\ncontent-length: 0\r\ncookie: {session}"
                ),
            ),
        ] {
            let refused = ask(to, head).await;
            assert!(
                refused.starts_with("HTTP/1.1 403") && refused.contains("process of an environment"),
                "{refused}"
            );
        }
        let asked = ask(address, format!("GET /sign-in?to=/x HTTP/1.1\r\ncookie: {session}")).await;
        assert!(
            asked.starts_with("HTTP/1.1 200") && asked.contains("<form"),
            "it is as if it had none: {asked}"
        );
        let token = format!("GET /v1/users/self HTTP/1.1\r\nauthorization: Bearer {}", app.owner.token);
        assert!(ask(address, token).await.starts_with("HTTP/1.1 200"), "a token is a token");
        // Whose it is cannot be told: no such connection is in the kernel's table.
        let session =
            app.call("GET", &behind.at("/")).header("accept", "text/html").header("cookie", &session);
        assert_eq!(session.send().await.code(), 403);
    });
}
