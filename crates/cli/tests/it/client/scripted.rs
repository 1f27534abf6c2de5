//! A server in this process whose data plane does what it is told: behind its front door a web server answers as Airflow
//! does, and an operation waits for a task.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use podium_api::DeploymentId;
use podium_dataplane::{Line, Secret, WebServer};
use podium_testkit::{Engine, TestApp};
use serde_json::json;
use tempfile::TempDir;
use tokio::net::TcpListener;

use super::recorded_airflow::{Recorded, answer};
use super::search_path;

/// The server, and somebody at a keyboard.
pub(super) struct Scripted {
    url: String,
    token: String,
    home: TempDir,
    pub(super) deployment: DeploymentId,
    _airflow: Recorded,
}

impl Scripted {
    /// A server with the deployment `nightly`, which is being changed.
    pub(super) async fn start(app: &TestApp) -> Self {
        Self::start_at(app, TcpListener::bind("127.0.0.1:0").await.unwrap()).await
    }

    /// The same with an application that knows where it is reached, so that things can be uploaded to it.
    pub(super) async fn start_with_uploads() -> (TestApp, Self) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let app = TestApp::start_with(Engine::Sqlite, |config, _| config.public_url = url).await;
        let scripted = Self::start_at(&app, listener).await;
        (app, scripted)
    }

    async fn start_at(app: &TestApp, listener: TcpListener) -> Self {
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(podium_http::serve(app.server.clone(), listener, std::future::pending()));
        let body = json!({
            "name": "nightly", "workspaceId": app.workspace("Reports").await, "isDevelopmentMode": true,
        });
        let made = app.post(&app.owner, &app.path("/deployments"), body).await;
        app.settle().await;
        let id: DeploymentId = made.id().parse().unwrap();
        let airflow = Recorded::start(|path| answer(path, "3.0.6"));
        let key = Secret::new("what the environment believes".into());
        app.plane
            .script()
            .lock()
            .web_servers
            .insert(id, WebServer { upstream: airflow.address.into(), line: Line::Three, key });
        app.plane.script().lock().rollout = Duration::from_hours(1);
        let path = app.path(&format!("/deployments/{id}/hibernation-override"));
        app.post(&app.owner, &path, json!({ "isHibernating": true })).await.ok();
        app.settle().await;
        app.wait_for_task(id, "load/scheduled__1/greet").await;
        let (token, home) = (app.owner.token.clone(), tempfile::tempdir().unwrap());
        Self { url, token, home, deployment: id, _airflow: airflow }
    }

    pub(super) fn folder(&self) -> &Path {
        self.home.path()
    }

    /// Gives a shell what the person at the keyboard has.
    pub(super) fn furnish(&self, mut command: Command) -> Command {
        command.current_dir(self.folder()).env("PATH", search_path());
        command.env("PODIUM_CONFIG_DIR", self.folder()).env("PODIUM_URL", &self.url);
        command.env("PODIUM_TOKEN", &self.token).env("PODIUM_DEPLOYMENT", "nightly");
        command
    }
}
