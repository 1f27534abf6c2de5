//! What every operation has in common: bodies, lists, headers, errors and limits.

mod bodies;
mod foreign_filters;
mod headers;
mod limits;
mod lists;
mod one_line;
mod replays;

use podium_api::Id;
use podium_testkit::on_both_engines;
use serde_json::json;

pub(crate) use foreign_filters::{MANY, append_events};

on_both_engines! {
    async fn the_same_paths_work_without_the_prefix(app) {
        let created = app.post(&app.owner, &app.path("/workspaces"), json!({ "name": "Data" })).await;
        let at = app.path(&format!("/workspaces/{}", created.id()));
        let bare = at.strip_prefix("/v1").unwrap();
        assert_eq!(app.get(&app.owner, bare).await.ok(), app.get(&app.owner, &at).await.ok());
        assert_eq!(app.delete(&app.owner, bare).await.code(), 204);
        for path in
            ["/v2/organizations", "/v1", "/v1/", "/v1/organizations/", "/v1/v1/organizations", "/nothing"]
        {
            let message = app.get(&app.owner, path).await.refused(404);
            assert_eq!(message, "There is no resource at this path: see /docs for the API.", "{path}");
        }
    }

    async fn ids_and_times_have_one_shape(app) {
        app.advance(std::time::Duration::from_millis(7));
        let first = app.workspace("First").await;
        let second = app.workspace("Second").await;
        app.advance(std::time::Duration::from_millis(1));
        let third = app.workspace("Third").await;
        for id in [first, second, third] {
            let text = id.to_string();
            assert_eq!(text.len(), 25);
            assert!(text.starts_with('c'));
            assert!(text.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_lowercase()), "{text}");
        }
        assert!(first < second && second < third, "ids are in the order of time");
        let read = app.get(&app.owner, &app.path(&format!("/workspaces/{first}"))).await.ok();
        assert_eq!(read["createdAt"], "2027-01-15T08:00:00.007Z");
    }

    async fn the_next_call_reads_what_was_written(app) {
        for n in 0..20 {
            let id = app.workspace(&format!("Workspace {n}")).await;
            let list = app.get(&app.owner, &app.path("/workspaces?sorts=createdAt:desc&limit=1")).await.ok();
            assert_eq!((&list["workspaces"][0]["id"], &list["totalCount"]), (&json!(id), &json!(n + 2)));
        }
    }

    async fn success_is_two_hundred_or_an_empty_two_hundred_and_four(app) {
        let created = app.post(&app.owner, &app.path("/workspaces"), json!({ "name": "Data" })).await;
        assert_eq!((created.code(), created.header("content-type")), (200, "application/json"));
        let gone = app.delete(&app.owner, &app.path(&format!("/workspaces/{}", created.id()))).await;
        assert_eq!((gone.code(), gone.header("content-type"), gone.bytes.len()), (204, "", 0));
    }

    async fn an_internal_error_reveals_no_details(app) {
        app.team("Crew", &[]).await;
        app.execute("ALTER TABLE teams RENAME TO secret_teams").await;
        for answer in [
            app.get(&app.owner, &app.path("/teams")).await,
            app.get(&app.owner, &app.path("/teams/c00000000000000000000000x")).await,
            app.post(&app.owner, &app.path("/teams"), json!({ "name": "Crew" })).await,
        ] {
            let message = answer.refused(500);
            assert_eq!(message, "Internal server error: please report the requestId.");
            assert_eq!(answer.header("content-type"), "application/json");
            assert_eq!(answer.json().as_object().unwrap().len(), 4);
        }
    }

    async fn an_absent_team_and_a_foreign_one_read_the_same(app) {
        let stranger = app.stranger().await;
        let own = app.get(&stranger, "/v1/organizations").await.ok()["organizations"][0]["id"].clone();
        let elsewhere = |rest: &str| format!("/v1/organizations/{}{rest}", own.as_str().unwrap());
        let foreign = app.post(&stranger, &elsewhere("/teams"), json!({ "name": "Theirs" })).await.id();
        let ask = async |id: &str| {
            let call = app.call("GET", &app.path(&format!("/teams/{id}"))).by(&app.owner);
            let answer = call.header("x-request-id", "same").send().await;
            assert_eq!(answer.code(), 404);
            (answer.headers.clone(), answer.text())
        };
        assert_eq!(ask(&foreign).await, ask(app.world.id::<Id>().as_str()).await);
        assert_eq!(ask(&foreign).await, ask("nonsense").await);
    }

    async fn without_if_match_the_last_write_wins(app) {
        let at = app.path(&format!("/workspaces/{}", app.workspace("Data").await));
        for description in ["first", "second"] {
            let body = json!({ "name": "Data", "description": description, "cicdEnforcedDefault": false });
            app.post(&app.owner, &at, body).await.ok();
        }
        assert_eq!(app.get(&app.owner, &at).await.ok()["description"], "second");
    }
}
