//! `/organizations/{organizationId}/deployments/{deploymentId}/deploys`

mod blocks;
mod create;
mod expiry;
mod files;
mod finalize;
mod reports;
mod rights;
mod rollback;
mod strict;
mod upload;
mod wake;

use std::path::Path;
use std::sync::LazyLock;

use podium_api::openapi::Document;
use podium_api::{DeploymentId, uploads};
use podium_domain::names;
use podium_store::deployments::{self, DeploymentRow};
use podium_testkit::{Actor, Answer, TestApp, archive};
use serde_json::{Value, json};

static DOCUMENT: LazyLock<Value> = LazyLock::new(|| Document::collect().to_json("https://podium.test/v1"));

pub(crate) struct Place<'a> {
    app: &'a TestApp,
    id: DeploymentId,
}

impl<'a> Place<'a> {
    async fn new(app: &'a TestApp) -> Self {
        let workspace = app.workspace("Analytics").await;
        Self { app, id: app.deployment(workspace).await }
    }

    fn path(&self, rest: &str) -> String {
        self.app.path(&format!("/deployments/{}/deploys{rest}", self.id))
    }

    async fn create_as(&self, actor: &Actor, body: Value) -> Answer {
        self.app.post(actor, &self.path(""), body).await
    }

    async fn create(&self, kind: &str) -> Value {
        let mut body = json!({ "type": kind });
        if kind == "BUNDLE" {
            body["bundleType"] = "dbt".into();
            body["bundleMountPath"] = "dbt".into();
        }
        self.create_as(&self.app.owner, body).await.ok()
    }

    async fn get(&self, deploy: &Value) -> Value {
        self.app.get(&self.app.owner, &self.path(&format!("/{}", id(deploy)))).await.ok()
    }

    async fn finalize(&self, deploy: &Value, body: Value) -> Answer {
        self.app.post(&self.app.owner, &self.path(&format!("/{}/finalize", id(deploy))), body).await
    }

    async fn roll_back_to(&self, deploy: &Value) -> Answer {
        self.app.post(&self.app.owner, &self.path(&format!("/{}/rollback", id(deploy))), json!({})).await
    }

    /// Creates a deploy of this type, uploads what it takes, and finalizes it.
    async fn deploy(&self, kind: &str) -> Value {
        let deploy = self.create(kind).await;
        let mut body = json!({});
        if let Some(url) = deploy["dagsUploadUrl"].as_str() {
            body["dagTarballVersion"] = self.upload(url).await.into();
        }
        if let Some(url) = deploy["bundleUploadUrl"].as_str() {
            body["bundleTarballVersion"] = self.upload(url).await.into();
        }
        self.finalize(&deploy, body).await.ok()
    }

    /// Uploads some archive, and says which version it is.
    async fn upload(&self, url: &str) -> String {
        let uploaded = put(self.app, url, archive(&[("dags/a.py", b"print()")])).await;
        assert_eq!(uploaded.code(), 201, "{}", uploaded.text());
        uploaded.header("x-ms-version-id").to_owned()
    }

    async fn state(&self) -> DeploymentRow {
        let system = self.app.system;
        let id = self.id;
        let read =
            self.app.app.db(&self.app.system).read(None, move |conn| deployments::state(conn, &system, id));
        let row: podium_db::Result<Option<DeploymentRow>> = read.await;
        row.expect("it reads").expect("the deployment is there")
    }

    /// Changes the deployment behind the application's back.
    async fn change(&self, change: impl Fn(&mut DeploymentRow) + Send + 'static) {
        let scope = self.app.scope();
        let system = self.app.system;
        let id = self.id;
        let changed = self.app.app.db(&self.app.system).write(None, move |tx| {
            let mut row = deployments::state(tx, &system, id)?.expect("the deployment is there");
            change(&mut row);
            row.stamp.version += 1;
            deployments::update(tx, &scope, &row, &names::fold(&row.name))
        });
        changed.await.expect("a deployment can be changed");
    }
}

pub(crate) fn id(deploy: &Value) -> &str {
    deploy["id"].as_str().expect("a deploy has an id")
}

/// The upload URL of a deploy.
fn url(deploy: &Value) -> &str {
    let url = deploy["dagsUploadUrl"].as_str().or(deploy["bundleUploadUrl"].as_str());
    url.expect("a deploy with something to upload")
}

/// Sends bytes to an upload URL.
async fn put(app: &TestApp, url: &str, bytes: impl Into<Vec<u8>>) -> Answer {
    described(app.call("PUT", path_of(url)).body(bytes.into()).send().await)
}

/// The path and the query of a URL.
fn path_of(url: &str) -> &str {
    url.strip_prefix("https://podium.test").expect("URLs begin with the public one")
}

/// The answer to an upload, which the document describes.
fn described(answer: Answer) -> Answer {
    let response = &DOCUMENT["paths"][uploads::PATH]["put"]["responses"][answer.code().to_string()];
    assert!(!response.is_null(), "the document does not declare {}", answer.code());
    assert!(!answer.header("x-request-id").is_empty());
    match response["content"].as_object() {
        Some(_) => drop(answer.refused(answer.code())),
        None => assert!(answer.bytes.is_empty() && answer.header("content-type").is_empty()),
    }
    answer
}

/// Every file that is kept, by its path below the directory of files.
fn files(app: &TestApp) -> Vec<String> {
    fn walk(directory: &Path, root: &Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(directory).expect("a directory can be read") {
            let path = entry.expect("an entry").path();
            match path.is_dir() {
                true => walk(&path, root, found),
                false => found.push(path.strip_prefix(root).expect("below the root").display().to_string()),
            }
        }
    }
    let mut found = Vec::new();
    walk(&app.app.config.files, &app.app.config.files, &mut found);
    found.sort();
    found
}
