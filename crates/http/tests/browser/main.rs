//! `/console` in a real browser: what people do with it, from signing in to moving a cluster.
//!
//! `cargo xtask console` runs these. The data plane is simulated, and its loops run when a test says so.

mod administration;
mod airflow;
mod appearance;
mod deploying;
#[allow(dead_code, reason = "the other tests ask more of it")]
#[path = "../it/front_door/environment.rs"]
mod environment;
mod keys;
mod seeded;
mod together;
mod weight;

use std::net::SocketAddr;

use podium_api::DeploymentId;
use podium_testkit::{Browser, Engine, TestApp, archive};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

/// A console on a real socket.
struct Site {
    runtime: Runtime,
    app: TestApp,
    address: SocketAddr,
}

impl Site {
    fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let (app, address) = runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
            let address = listener.local_addr().expect("it listens");
            let url = format!("http://{address}");
            let app = TestApp::start_with(Engine::Sqlite, |config, _| config.public_url = url).await;
            tokio::spawn(podium_http::serve(app.server.clone(), listener, std::future::pending()));
            (app, address)
        });
        Self { runtime, app, address }
    }

    /// The address of a page of the organization.
    fn page(&self, path: &str) -> String {
        format!("http://{}/console/{}{path}", self.address, self.app.organization_id)
    }

    /// Waits for what the application does.
    fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// Runs the loops until nothing is due.
    fn settle(&self) {
        self.wait(self.app.settle());
    }

    /// Creates something as the owner.
    fn make(&self, path: &str, body: Value) -> Value {
        self.wait(async { self.app.post(&self.app.owner, &self.app.path(path), body).await.ok() })
    }

    /// Reads something as the owner.
    fn read(&self, path: &str) -> Value {
        self.wait(async { self.app.get(&self.app.owner, &self.app.path(path)).await.ok() })
    }

    /// A browser whose owner has signed in.
    fn browser(&self) -> Browser {
        let browser = Browser::start();
        self.sign_in(&browser);
        browser
    }

    fn sign_in(&self, browser: &Browser) {
        browser.open(&format!("http://{}/", self.address));
        browser.wait_for_text("Sign in");
        browser.click("//summary");
        browser.type_into("//input[@name='token']", &self.app.owner.token);
        browser.click("//button[contains(., 'with the token')]");
        browser.wait("the overview", |browser| browser.url() == self.page(""));
    }

    /// Deploys these files, and returns their version; they go live when the loops run.
    fn deploy(&self, id: DeploymentId, description: &str, files: &[(&str, &[u8])]) -> String {
        let path = format!("/deployments/{id}/deploys");
        let made = self.make(&path, json!({ "type": "DAG_ONLY", "description": description }));
        let url = made["dagsUploadUrl"].as_str().expect("where to upload to");
        let target = url.strip_prefix(&format!("http://{}", self.address)).expect("it is on this site");
        let uploaded = self.wait(self.app.call("PUT", target).body(archive(files)).send());
        assert_eq!(uploaded.code(), 201, "{}", uploaded.text());
        let version = uploaded.header("x-ms-version-id").to_owned();
        let finalize = format!("{path}/{}/finalize", made["id"].as_str().expect("an id"));
        self.make(&finalize, json!({ "dagTarballVersion": version }));
        version
    }
}

/// The id of something that was made.
fn id_of(made: &Value) -> &str {
    made["id"].as_str().expect("an id")
}
