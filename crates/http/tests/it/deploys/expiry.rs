//! Deploys that nobody finalizes, and deployments that are gone.

use std::time::Duration;

use podium_api::{DeployId, Id};
use podium_app::deploys::{ExpiryOutcome, expire};
use podium_testkit::{TestApp, archive, on_both_engines};
use serde_json::{Value, json};

use super::{Place, files, id, put, url};

const DAY: Duration = Duration::from_hours(24);

/// What the loop makes of a deploy.
async fn fate(app: &TestApp, deploy: &Value) -> ExpiryOutcome {
    let (id, now): (DeployId, _) = (id(deploy).parse().unwrap(), app.world.now());
    let system = app.system;
    app.app
        .db(&app.system)
        .write(None, move |tx| expire(tx, &system, id, now))
        .await
        .expect("it can be looked at")
}

on_both_engines! {
    async fn a_deploy_that_is_not_finalized_within_a_day_fails(app) {
        let place = Place::new(&app).await;
        let deploy = place.create("DAG_ONLY").await;
        let version = place.upload(url(&deploy)).await;
        let second = Duration::from_secs(1);
        app.advance(DAY - second - second);
        assert_eq!(place.get(&deploy).await["status"], "INITIALIZED");
        app.advance(second + second);
        assert_eq!(place.get(&deploy).await["status"], "FAILED", "whether anybody has noticed or not");
        let message = place.finalize(&deploy, json!({ "dagTarballVersion": version })).await.refused(400);
        assert_eq!(message, "The deploy failed because it was not finalized in time: create another one.");
        let list = app.get(&app.owner, &place.path("")).await.ok();
        assert_eq!(list["deploys"][0]["status"], "FAILED");
    }

    async fn the_loop_fails_it_when_its_time_is_over_and_removes_its_files(app) {
        let place = Place::new(&app).await;
        let deploy = place.create("DAG_ONLY").await;
        place.upload(url(&deploy)).await;
        let due = app.world.now() + DAY;
        let waits: Vec<_> = app.pending_work().await.into_iter().map(|work| (work.kind, work.due_at)).collect();
        assert_eq!(waits, [("deploys".to_owned(), due)], "the loop is told when to look");
        assert_eq!(fate(&app, &deploy).await, ExpiryOutcome::Waits(due));
        app.settle().await;
        assert_eq!((files(&app).len(), app.rows("uploads").await), (1, 1));
        let path = place.path(&format!("/{}", id(&deploy)));
        let etag = app.get(&app.owner, &path).await.header("etag").to_owned();
        app.advance(DAY);
        app.settle().await;
        assert_eq!((files(&app), app.rows("uploads").await), (vec![], 0));
        assert_eq!(app.pending_work().await, []);
        let failed = app.get(&app.owner, &path).await;
        assert_eq!(failed.ok()["status"], "FAILED");
        let version = |etag: &str| etag.split('-').next().unwrap().to_owned();
        assert_eq!(version(failed.header("etag")), version(&etag), "only callers advance a version");
        let deployment_id = place.id;
        assert_eq!(fate(&app, &deploy).await, ExpiryOutcome::Failed { deployment_id }, "it may be looked at again");
        assert_eq!(fate(&app, &json!({ "id": app.world.id::<Id>() })).await, ExpiryOutcome::Settled);
    }

    async fn a_deploy_that_was_finalized_never_fails(app) {
        let place = Place::new(&app).await;
        let deploy = place.deploy("DAG_ONLY").await;
        app.advance(DAY * 2);
        assert_eq!(fate(&app, &deploy).await, ExpiryOutcome::Settled);
        assert_eq!(place.get(&deploy).await["status"], "DEPLOYED");
        assert_eq!(files(&app).len(), 1);
    }

    async fn everything_that_belongs_to_a_deployment_is_deleted_with_it(app) {
        let place = Place::new(&app).await;
        place.deploy("DAG_ONLY").await;
        let waiting = place.create("BUNDLE").await;
        place.upload(url(&waiting)).await;
        app.delete(&app.owner, &app.path(&format!("/deployments/{}", place.id))).await.ok();
        assert_eq!((app.rows("deploys").await, app.rows("uploads").await), (0, 0));
        let kinds: Vec<String> = app.pending_work().await.into_iter().map(|work| work.kind).collect();
        assert_eq!(kinds, ["deployments"]);
        app.get(&app.owner, &place.path("")).await.refused(404);
        let dead = put(&app, url(&waiting), archive(&[("a", b"")])).await;
        let message = dead.refused(403);
        assert_eq!(
            message,
            "This upload URL no longer works: its deployment has been deleted. Create a deploy of another deployment."
        );
        assert_eq!(files(&app).len(), 2);
        app.settle().await;
        assert_eq!(files(&app), [""; 0]);
    }
}
