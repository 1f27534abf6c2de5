//! How many lines there are over time.

use podium_api::enums::LogSource;
use podium_testkit::{START, on_both_engines};
use serde_json::{Value, json};

use super::{line, write};

/// Errors, warnings and other lines of each part.
fn counts(answer: &Value) -> Vec<[u64; 3]> {
    let of = |bucket: &Value| {
        ["errorCount", "warningCount", "otherCount"].map(|name| bucket[name].as_u64().expect("a count"))
    };
    answer["buckets"].as_array().expect("parts").iter().map(of).collect()
}

on_both_engines! {
    async fn lines_are_counted_over_time_by_level(app) {
        let id = app.deployment(app.workspace("Data").await).await;
        let minute = 60_000;
        write(&app, vec![
            line(id, START - 59 * minute, LogSource::Worker, "ERROR - the first"),
            line(id, START - 31 * minute, LogSource::Worker, "a WARNING"),
            line(id, START - 30 * minute + 1000, LogSource::Scheduler, "all is well"),
            line(id, START, LogSource::Scheduler, "all is well still"),
            line(id, START + minute, LogSource::Scheduler, "in the future"),
        ]).await;
        let count = async |query: &str| app.get(&app.owner, &app.path(&format!("/deployments/{id}/logs/counts?{query}"))).await.ok();
        for is_flushed in [false, true] {
            if is_flushed {
                app.app.log_store(&app.system).flush().await.unwrap();
            }
            let all = count("sources=worker&sources=scheduler&buckets=2").await;
            assert_eq!(counts(&all), [[1, 1, 0], [0, 0, 2]]);
            assert_eq!((&all["startDate"], &all["endDate"]), (&json!("2027-01-15T07:00:00.000Z"), &json!("2027-01-15T08:00:00.001Z")));
            assert_eq!(all["buckets"][1]["startDate"], "2027-01-15T07:30:00.001Z", "the first moment that is counted in it");
            assert_eq!(all["completeFrom"], Value::Null);
            assert_eq!(counts(&count("sources=scheduler&buckets=1").await), [[0, 0, 2]]);
            assert_eq!(counts(&count("sources=scheduler&buckets=1&searchText=still").await), [[0, 0, 1]]);
            assert_eq!(counts(&count("sources=scheduler&buckets=1&range=60").await), [[0, 0, 1]]);
            let dates = "startDate=2027-01-15T07:29:00Z&endDate=2027-01-15T07:31:00Z";
            assert_eq!(counts(&count(&format!("sources=worker&sources=scheduler&buckets=2&{dates}")).await), [[0, 1, 0], [0, 0, 1]]);
            let offset = "startDate=2027-01-15T08:29:00%2B01:00&endDate=2027-01-15T07:31:00.5Z";
            let echoed = count(&format!("sources=worker&buckets=1&{offset}")).await;
            assert_eq!((&echoed["startDate"], &echoed["endDate"]), (&json!("2027-01-15T08:29:00+01:00"), &json!("2027-01-15T07:31:00.5Z")));
            assert_eq!(echoed["buckets"][0]["startDate"], "2027-01-15T07:29:00.000Z");
            assert_eq!(counts(&count("sources=worker").await).len(), 60);
            assert_eq!(counts(&count("sources=webserver&buckets=1").await), [[0, 0, 0]], "the deployment has no such component");
        }
    }

    async fn all_errors_of_a_count_are_reported(app) {
        let id = app.deployment(app.workspace("Data").await).await;
        for (query, wrong) in [
            ("", &["sources: required"][..]),
            ("sources=kitchen", &["sources[0]: enum"]),
            ("sources=worker&buckets=0", &["buckets: minimum"]),
            ("sources=worker&buckets=501", &["buckets: maximum"]),
            ("sources=worker&range=59", &["range: minimum"]),
            ("sources=worker&startDate=2027-01-15T06:00:00Z", &["endDate: required"]),
        ] {
            let answer = app.get(&app.owner, &app.path(&format!("/deployments/{id}/logs/counts?{query}"))).await;
            assert_eq!(answer.wrong_fields(), wrong, "{query}");
        }
    }
}
