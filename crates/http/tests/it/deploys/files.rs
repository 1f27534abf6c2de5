//! Files: what the archive of a deploy contains.

use podium_api::Id;
use podium_domain::Permission;
use podium_testkit::{archive, on_both_engines};
use serde_json::{Value, json};

use super::rights::holder;
use super::{Place, files, id, put, url};

/// The SHA-256 of nothing, and of `print()`.
const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
const PRINT: &str = "525d513313416cf187f44fa87e1753ee6d11552c22097537ddc32b4ed34fa68f";

impl Place<'_> {
    async fn files(&self, deploy: &Value) -> Value {
        self.app.get(&self.app.owner, &self.path(&format!("/{}/files", id(deploy)))).await.ok()
    }

    async fn deploy_files(&self, files: &[(&str, &[u8])]) -> Value {
        let deploy = self.create("DAG_ONLY").await;
        let uploaded = put(self.app, url(&deploy), archive(files)).await;
        let version = uploaded.header("x-ms-version-id").to_owned();
        self.finalize(&deploy, json!({ "dagTarballVersion": version })).await.ok()
    }
}

on_both_engines! {
    async fn the_files_of_a_deploy_are_listed_with_their_hashes(app) {
        let place = Place::new(&app).await;
        let deploy = place.deploy_files(&[("./dags/b.py", b"print()"), ("a.txt", b"")]).await;
        let expected = json!({
            "deployId": id(&deploy),
            "files": [
                { "path": "a.txt", "size": 0, "sha256": EMPTY },
                { "path": "dags/b.py", "size": 7, "sha256": PRINT },
            ],
            "totalCount": 2,
        });
        assert_eq!(place.files(&deploy).await, expected);
        assert_eq!(place.files(&deploy).await, expected, "and again");
    }

    async fn a_deploy_without_an_archive_has_no_files(app) {
        let place = Place::new(&app).await;
        let waiting = place.create("DAG_ONLY").await;
        put(&app, url(&waiting), archive(&[("dags/a.py", b"")])).await;
        let image = place.deploy("IMAGE_ONLY").await;
        for deploy in [&waiting, &image] {
            let none = json!({ "deployId": id(deploy), "files": [], "totalCount": 0 });
            assert_eq!(place.files(deploy).await, none);
        }
    }

    async fn a_deploy_that_keeps_or_restores_dags_lists_those(app) {
        let place = Place::new(&app).await;
        let first = place.deploy_files(&[("dags/first.py", b"print()")]).await;
        let second = place.deploy_files(&[("dags/second.py", b"print()")]).await;
        let image = place.deploy("IMAGE_ONLY").await;
        let rollback = place.roll_back_to(&first).await.ok();
        for (deploy, path) in [
            (&first, "dags/first.py"),
            (&second, "dags/second.py"),
            (&image, "dags/second.py"),
            (&rollback, "dags/first.py"),
        ] {
            let file = json!({ "path": path, "size": 7, "sha256": PRINT });
            let expected = json!({ "deployId": id(deploy), "files": [file], "totalCount": 1 });
            assert_eq!(place.files(deploy).await, expected);
        }
    }

    async fn files_are_listed_for_whoever_may_read_the_deploy(app) {
        let place = Place::new(&app).await;
        let deploy = place.deploy("DAG_ONLY").await;
        let path = place.path(&format!("/{}/files", id(&deploy)));
        let reader = holder(&app, &place, "reader", &[Permission::known("deployment.deploys.get")]).await;
        assert_eq!(app.get(&reader, &path).await.ok()["totalCount"], 1);
        let other = holder(&app, &place, "other", &[Permission::known("deployment.get")]).await;
        app.get(&other, &path).await.refused(403);
        app.get(&app.stranger().await, &path).await.refused(404);
        let unknown = place.path(&format!("/{}/files", Id::from_parts(1, 2, 3)));
        app.get(&app.owner, &unknown).await.refused(404);
        let elsewhere = Place { app: &app, id: app.deployment(app.workspace("Other").await).await };
        app.get(&app.owner, &elsewhere.path(&format!("/{}/files", id(&deploy)))).await.refused(404);
    }

    async fn an_archive_that_is_no_longer_stored_is_said_to_be_gone(app) {
        let place = Place::new(&app).await;
        let deploy = place.deploy("DAG_ONLY").await;
        std::fs::remove_dir_all(app.app.config.files.join("deployments")).unwrap();
        let path = place.path(&format!("/{}/files", id(&deploy)));
        let message = app.get(&app.owner, &path).await.refused(410);
        assert_eq!(message, "The archive of the deploy is no longer stored: deploy again to list its files.");
    }

    async fn an_archive_that_is_damaged_is_not_listed(app) {
        let place = Place::new(&app).await;
        let deploy = place.deploy("DAG_ONLY").await;
        let [stored] = &files(&app)[..] else { panic!("one archive") };
        std::fs::write(app.app.config.files.join(stored), b"no gzip").unwrap();
        let path = place.path(&format!("/{}/files", id(&deploy)));
        let message = app.get(&app.owner, &path).await.refused(409);
        let expected = "The archive of the deploy cannot be read any more (it is not compressed with gzip): deploy \
            again to list its files.";
        assert_eq!(message, expected);
    }
}
