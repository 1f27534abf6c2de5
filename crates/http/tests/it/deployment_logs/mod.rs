//! Logs of a deployment.

mod counts;
mod following;
mod snapshots;

use std::time::Duration;

use podium_api::enums::LogSource;
use podium_api::{DeploymentId, Timestamp};
use podium_domain::On;
use podium_logs::Line;
use podium_testkit::{Actor, Answer, START, TestApp, on_both_engines, role};
use serde_json::{Value, json};

pub(crate) fn line(deployment_id: DeploymentId, millis: i64, source: LogSource, text: &str) -> Line {
    Line { deployment_id, source, timestamp: Timestamp::from_millis(millis), text: text.to_owned() }
}

pub(crate) async fn write(app: &TestApp, lines: Vec<Line>) {
    app.app.log_store(&app.system).append(lines).await.expect("lines can be written");
}

pub(crate) async fn search(app: &TestApp, by: &Actor, id: DeploymentId, query: &str) -> Answer {
    app.get(by, &app.path(&format!("/deployments/{id}/logs?{query}"))).await
}

pub(crate) fn texts(page: &Value) -> Vec<&str> {
    let results = page["results"].as_array().expect("a page has results");
    assert_eq!(page["resultCount"], results.len());
    results.iter().map(|entry| entry["raw"].as_str().expect("a text")).collect()
}

on_both_engines! {
    async fn a_page_shows_lines_newest_first(app) {
        let id = app.deployment(app.workspace("Data").await).await;
        write(&app, vec![
            line(id, START - 2000, LogSource::Scheduler, "first"),
            line(id, START - 1000, LogSource::Worker, "second"),
            line(id, START, LogSource::Triggerer, "third"),
        ]).await;
        let answer = search(&app, &app.owner, id, "sources=scheduler&sources=worker&sources=triggerer&limit=2").await;
        let page = answer.ok();
        assert_eq!(page, json!({
            "results": [
                { "raw": "third", "source": "triggerer", "timestamp": START },
                { "raw": "second", "source": "worker", "timestamp": START - 1000 },
            ],
            "resultCount": 2,
            "searchId": page["searchId"],
            "limit": 2,
            "offset": 0,
            "maxNumResults": 10_000,
        }));
        let rest = search(&app, &app.owner, id, "sources=scheduler&sources=worker&offset=1").await.ok();
        assert_eq!((texts(&rest), &rest["limit"], &rest["offset"]), (vec!["first"], &json!(500), &json!(1)));
    }

    async fn writes_are_visible_at_once(app) {
        let id = app.deployment(app.workspace("Data").await).await;
        for number in 1..=3 {
            write(&app, vec![line(id, START, LogSource::Worker, "again")]).await;
            // The very same request: nothing that was remembered may be given again.
            let page = search(&app, &app.owner, id, "sources=worker").await.ok();
            assert_eq!(texts(&page).len(), number);
        }
    }

    async fn a_window_is_given_by_dates_or_ends_now(app) {
        let id = app.deployment(app.workspace("Data").await).await;
        let hour = 3_600_000;
        write(&app, vec![
            line(id, START - 2 * hour, LogSource::Worker, "two hours ago"),
            line(id, START - hour, LogSource::Worker, "an hour ago"),
            line(id, START - 60_000, LogSource::Worker, "a minute ago"),
            line(id, START + 1, LogSource::Worker, "in the future"),
        ]).await;
        let found = async |query: &str| {
            let page = search(&app, &app.owner, id, &format!("sources=worker&{query}")).await.ok();
            texts(&page).into_iter().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(found("").await, ["a minute ago", "an hour ago"]);
        assert_eq!(found("range=60").await, ["a minute ago"]);
        assert_eq!(found("range=7200").await, ["a minute ago", "an hour ago", "two hours ago"]);
        let dates = "startDate=2027-01-15T06:00:00Z&endDate=2027-01-15T07:00:00Z";
        assert_eq!(found(dates).await, ["two hours ago"]);
        assert_eq!(found(&format!("{dates}&range=60")).await, ["two hours ago"]);
        let day = "startDate=2027-01-14T00:00:00%2B01:00&endDate=2027-01-17T00:00:00Z";
        assert_eq!(found(day).await.len(), 4);
    }

    async fn all_errors_are_reported_at_once(app) {
        let id = app.deployment(app.workspace("Data").await).await;
        for (query, wrong) in [
            ("", &["sources: required"][..]),
            ("sources=", &["sources: required"]),
            ("sources=kitchen", &["sources[0]: enum"]),
            ("sources=worker&startDate=2027-01-15T06:00:00Z", &["endDate: required"]),
            ("sources=worker&endDate=2027-01-15T06:00:00Z", &["startDate: required"]),
            (
                "sources=worker&startDate=2027-01-15T06:00:00Z&endDate=2027-01-15T06:00:00Z",
                &["endDate: order"],
            ),
            ("sources=worker&startDate=yesterday", &["startDate: format"]),
            ("sources=worker&range=59", &["range: minimum"]),
            ("sources=worker&limit=0&offset=-1", &["limit: minimum", "offset: minimum"]),
            ("sources=worker&maxNumResults=0", &["maxNumResults: minimum"]),
        ] {
            let mut found = search(&app, &app.owner, id, query).await.wrong_fields();
            found.sort();
            assert_eq!(found, wrong, "{query}");
        }
    }

    async fn a_search_text_asks_for_words_beginnings_and_texts(app) {
        let id = app.deployment(app.workspace("Data").await).await;
        write(&app, vec![
            line(id, START - 2, LogSource::Worker, "Task extract_orders failed: connection refused"),
            line(id, START - 1, LogSource::Worker, "Task extract_users succeeded"),
            line(id, START, LogSource::Worker, "connecting to the database"),
        ]).await;
        for (text, expected) in [
            ("task", &[1, 2][..]),
            ("TASK+FAILED", &[2]),
            ("extract", &[]),
            ("extract*", &[1, 2]),
            ("connect*", &[0, 2]),
            ("%22connection+refused%22", &[2]),
            ("%22ract_us%22+task", &[1]),
            ("nothing", &[]),
            ("", &[0, 1, 2]),
        ] {
            let page = search(&app, &app.owner, id, &format!("sources=worker&searchText={text}")).await.ok();
            let times: Vec<i64> = page["results"].as_array().unwrap().iter()
                .map(|entry| START - entry["timestamp"].as_i64().unwrap()).collect();
            assert_eq!(times, expected, "{text}");
        }
    }

    async fn a_component_that_the_deployment_lacks_gives_no_lines(app) {
        let workspace = app.workspace("Data").await;
        let (new, old) = (app.deployment(workspace).await, app.deployment(workspace).await);
        let spec = "REPLACE(spec, '\"runtimeVersion\":\"3.3.2\"', '\"runtimeVersion\":\"2.11.2\"')";
        app.set_column("deployments", old, "spec", spec).await;
        let all: Vec<String> = LogSource::ALL.iter().map(|source| format!("sources={source}")).collect();
        for id in [new, old] {
            write(&app, LogSource::ALL.iter().map(|source| line(id, START, *source, source.as_str())).collect()).await;
        }
        let mut shown = Vec::new();
        for id in [new, old] {
            let page = search(&app, &app.owner, id, &all.join("&")).await.ok();
            let mut found: Vec<String> = texts(&page).into_iter().map(str::to_owned).collect();
            found.sort();
            shown.push(found);
        }
        assert_eq!(shown[0], ["apiserver", "dag-processor", "scheduler", "triggerer", "worker"]);
        assert_eq!(shown[1], ["scheduler", "triggerer", "webserver", "worker"]);
        assert_eq!(texts(&search(&app, &app.owner, new, "sources=webserver").await.ok()), [] as [&str; 0]);
    }

    async fn logs_are_read_by_those_who_may(app) {
        let workspace = app.workspace("Data").await;
        let (id, other) = (app.deployment(workspace).await, app.deployment(workspace).await);
        let on = On::Deployment { id, workspace_id: workspace };
        write(&app, vec![line(id, START, LogSource::Worker, "mine"), line(other, START, LogSource::Worker, "other")]).await;
        let organization = role(On::Organization, "ORGANIZATION_MEMBER");
        let member = app.user_with("m", vec![organization.clone(), role(On::Workspace(workspace), "WORKSPACE_MEMBER")]).await;
        let accessor = app.user_with("a", vec![organization, role(on, "DEPLOYMENT_ACCESSOR")]).await;
        assert_eq!(texts(&search(&app, &member, id, "sources=worker").await.ok()), ["mine"]);
        search(&app, &accessor, id, "sources=worker").await.refused(403);
        search(&app, &accessor, other, "sources=worker").await.refused(404);
        search(&app, &app.member("plain").await, id, "sources=worker").await.refused(404);
        search(&app, &app.stranger().await, id, "sources=worker").await.refused(404);
        search(&app, &app.owner, app.world.id(), "sources=worker").await.refused(404);
    }

    async fn days_that_are_over_for_long_enough_are_dropped(app) {
        let id = app.deployment(app.workspace("Data").await).await;
        write(&app, vec![line(id, START, LogSource::Worker, "old")]).await;
        app.advance(Duration::from_hours(15 * 24));
        podium_app::maintenance::once(&app.app).await.expect("housekeeping works");
        let everything = "sources=worker&range=100000000";
        assert_eq!(texts(&search(&app, &app.owner, id, everything).await.ok()), ["old"]);
        app.advance(Duration::from_hours(16));
        podium_app::maintenance::once(&app.app).await.expect("housekeeping works");
        assert_eq!(texts(&search(&app, &app.owner, id, everything).await.ok()), [] as [&str; 0]);
    }
}
