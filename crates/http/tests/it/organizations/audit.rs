//! `/organizations/{organizationId}/audit-logs`: what the export holds, and in which order.

use std::time::Duration;

use podium_app::maintenance;
use podium_testkit::{TestApp, on_both_engines};
use serde_json::{Value, json};

const HOUR: Duration = Duration::from_secs(3600);

/// The names of the workspaces whose creation an export tells of.
async fn exported(app: &TestApp, query: &str) -> Vec<String> {
    let answer = app.get(&app.owner, &app.path(&format!("/audit-logs?{query}"))).await;
    assert_eq!(answer.code(), 200, "{}", answer.text());
    let name = |line: &str| {
        let record: Value = serde_json::from_str(line).unwrap();
        record["requestBody"]["name"].as_str().unwrap_or_default().to_owned()
    };
    answer.text().lines().map(name).collect()
}

on_both_engines! {
    async fn a_record_says_who_did_what_from_where(app) {
        let call = app.call("POST", &app.path("/workspaces")).by(&app.owner).from("192.0.2.7");
        let call = call.header("user-agent", "tests/1.0").header("x-request-id", "request-1");
        call.json(&json!({ "name": "Data", "nonsense": "dropped" })).send().await.ok();
        let answer = app.get(&app.owner, &app.path("/audit-logs")).await;
        assert_eq!(answer.header("content-type"), "application/octet-stream");
        assert!(answer.text().ends_with('\n'));
        let records = app.audit().await;
        assert_eq!(records.len(), 1);
        insta::assert_json_snapshot!(records[0], @r#"
        {
          "timestamp": "2027-01-15T08:00:00.000Z",
          "organizationId": "cmywpiww00000000000000000",
          "subjectId": "cmywpiww00001000000000000",
          "subjectType": "USER",
          "subjectName": "owner@localhost",
          "sourceAddress": "192.0.2.7",
          "userAgent": "tests/1.0",
          "method": "POST",
          "path": "/v1/organizations/cmywpiww00000000000000000/workspaces",
          "operationId": "CreateWorkspace",
          "requestId": "request-1",
          "statusCode": 200,
          "requestBody": {
            "name": "Data"
          }
        }
        "#);
    }

    async fn records_are_in_the_order_of_the_calls(app) {
        for name in ["one", "two", "three"] {
            app.workspace(name).await;
        }
        app.advance(Duration::from_millis(1));
        app.workspace("four").await;
        assert_eq!(exported(&app, "").await, ["one", "two", "three", "four"]);
    }

    async fn a_long_log_is_exported_whole(app) {
        let expected: Vec<String> = (0..1001).map(|n| format!("Workspace {n}")).collect();
        for name in &expected {
            app.workspace(name).await;
        }
        assert_eq!(exported(&app, "").await, expected);
        // What is lost while the first part is read is missing from the rest: it was not gathered before.
        let mut export = app.call("GET", &app.path("/audit-logs")).by(&app.owner).open().await;
        let first = export.next().await.expect("there is a first part");
        assert!((1..expected.len()).contains(&first.lines().count()));
        app.execute("ALTER TABLE audit_records RENAME TO lost_records").await;
        assert!(export.is_aborted().await);
    }

    async fn an_export_has_a_window_that_ends_before_its_end(app) {
        for name in ["eight", "nine", "ten"] {
            app.workspace(name).await;
            app.advance(HOUR);
        }
        let window = |from: &str, to: &str| format!("startDate=2027-01-15T{from}Z&endDate=2027-01-15T{to}Z");
        assert_eq!(exported(&app, &window("08:00:00", "10:00:00")).await, ["eight", "nine"]);
        assert_eq!(exported(&app, &window("08:00:00.001", "10:00:00.001")).await, ["nine", "ten"]);
        assert_eq!(exported(&app, &window("11:00:00", "12:00:00")).await, Vec::<String>::new());
        let elsewhere =
            "startDate=2027-01-15T10%3A00%3A00%2B01%3A00&endDate=2027-01-15T11%3A00%3A00%2B01%3A00";
        assert_eq!(exported(&app, elsewhere).await, ["nine"]);
    }

    async fn the_default_is_the_last_day(app) {
        app.workspace("first").await;
        app.advance(24 * HOUR - Duration::from_millis(1));
        assert_eq!(exported(&app, "").await, ["first"]);
        app.advance(Duration::from_millis(2));
        assert_eq!(exported(&app, "").await, Vec::<String>::new());
        assert_eq!(exported(&app, "startDate=2027-01-15T08:00:00Z").await, ["first"]);
        assert_eq!(exported(&app, "endDate=2027-01-16T07:00:00Z").await, ["first"]);
        assert_eq!(exported(&app, "startDate=&endDate=").await, Vec::<String>::new());
    }

    async fn a_window_must_have_an_end_after_its_beginning(app) {
        let export =
            async |query: &str| app.get(&app.owner, &app.path(&format!("/audit-logs?{query}"))).await;
        for query in [
            "startDate=2027-01-15T08:00:00Z&endDate=2027-01-15T08:00:00Z",
            "startDate=2027-01-15T09:00:00Z&endDate=2027-01-15T08:00:00Z",
            "startDate=2028-01-15T09:00:00Z",
        ] {
            assert_eq!(export(query).await.wrong_fields(), ["startDate: order"], "{query}");
        }
        let wrong = export("startDate=yesterday&endDate=15.1.2027").await.wrong_fields();
        assert_eq!(wrong, ["startDate: format", "endDate: format"]);
    }

    async fn an_empty_log_is_an_empty_export(app) {
        let answer = app.get(&app.owner, &app.path("/audit-logs")).await;
        assert_eq!((answer.code(), answer.bytes.len()), (200, 0));
        assert_eq!(answer.header("content-type"), "application/octet-stream");
    }

    async fn a_refused_call_is_recorded_with_its_status(app) {
        let eve = app.member("eve").await;
        app.post(&eve, &app.path("/workspaces"), json!({ "name": "Mine" })).await.refused(403);
        app.post(&app.owner, &app.path("/workspaces"), json!({ "name": "" })).await.refused(400);
        app.delete(&app.owner, &app.path("/workspaces/nothing")).await.refused(404);
        app.get(&eve, &app.path("/audit-logs")).await.refused(403);
        let told: Vec<(Value, Value)> =
            app.audit().await.iter().map(|r| (r["operationId"].clone(), r["statusCode"].clone())).collect();
        let expected = [("CreateWorkspace", 403), ("CreateWorkspace", 400), ("DeleteWorkspace", 404)];
        assert_eq!(told, expected.map(|(operation, status)| (json!(operation), json!(status))));
    }

    async fn organizations_have_logs_of_their_own(app) {
        let stranger = app.stranger().await;
        app.workspace("Here").await;
        app.post(&stranger, &app.path("/workspaces"), json!({ "name": "Intruder" })).await.refused(404);
        assert_eq!(exported(&app, "").await, ["Here"]);
        let own = app.get(&stranger, "/v1/organizations").await.ok()["organizations"][0]["id"].clone();
        let log =
            app.get(&stranger, &format!("/v1/organizations/{}/audit-logs", own.as_str().unwrap())).await;
        let record: Value = serde_json::from_str(&log.text()).unwrap();
        assert_eq!((&record["statusCode"], &record["organizationId"]), (&json!(404), &own));
        assert_eq!(app.get(&stranger, &app.path("/audit-logs")).await.code(), 404);
    }

    async fn records_are_kept_for_ninety_days(app) {
        app.workspace("old").await;
        let all = "startDate=2027-01-15T08:00:00Z";
        app.advance(90 * 24 * HOUR);
        maintenance::once(&app.app).await.unwrap();
        assert_eq!(exported(&app, all).await, ["old"]);
        app.advance(Duration::from_millis(1));
        maintenance::once(&app.app).await.unwrap();
        assert_eq!(exported(&app, all).await, Vec::<String>::new());
    }

    async fn an_effect_and_its_audit_record_are_atomic(app) {
        app.execute("ALTER TABLE audit_records RENAME TO lost_records").await;
        app.post(&app.owner, &app.path("/workspaces"), json!({ "name": "Data" })).await.refused(500);
        app.execute("ALTER TABLE lost_records RENAME TO audit_records").await;
        assert_eq!(app.get(&app.owner, &app.path("/workspaces")).await.ok()["totalCount"], 1);
        app.workspace("Data").await;
        assert_eq!(exported(&app, "").await, ["Data"]);
    }
}
