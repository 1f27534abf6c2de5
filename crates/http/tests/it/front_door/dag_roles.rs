//! Roles on single DAGs, as far as Airflow lets a door enforce them.

use podium_dataplane::Line;
use podium_testkit::{on_both_engines, role};
use serde_json::{Value, json};

use super::{Behind, signed_in};

on_both_engines! {
    async fn a_role_on_one_dag_reaches_that_dag_and_no_other(app) {
        let behind = Behind::new(&app).await;
        let author = behind.holder(&app, "author", vec![role(behind.on_dag("mine"), "DAG_AUTHOR")]).await;
        let viewer = behind.holder(&app, "viewer", vec![role(behind.on_dag("mine"), "DAG_VIEWER")]).await;
        app.get(&viewer, &behind.at("/api/v2/dags/mine/dagRuns")).await.ok();
        app.post(&author, &behind.at("/api/v2/dags/mine/dagRuns"), json!({})).await.ok();
        assert_eq!(behind.environment.seen().len(), 2);
        app.post(&viewer, &behind.at("/api/v2/dags/mine/dagRuns"), json!({})).await.refused(403);
        for path in [
            "/api/v2/dags/other", "/api/v2/dags/~/dagRuns", "/api/v2/dags/%7E/dagRuns", "/api/v2/dags", "/plugin/x",
            "/ui/dashboard/dag_stats", "/ui/dependencies",
            "/api/v2/eventLogs", "/api/v2/eventLogs?dag_id=mine&dag%5Fid=other", "/api/v2/importErrors",
            "/api/v2/dags/mine%2F..%2Fother", "/api/v2/connections",
        ] {
            let code = app.get(&author, &behind.at(path)).await.code();
            assert!([400, 403].contains(&code), "{path}: {code}");
        }
        app.post(&author, &behind.at("/api/v2/dags/~/dagRuns/list"), json!({ "dag_ids": ["mine"] })).await.refused(403);
        assert!(behind.environment.seen().is_empty());
        let told = app.get(&author, &behind.at("/api/v2/eventLogs?dag_id=mine&limit=1")).await.ok();
        assert_eq!(told["target"], behind.at("/api/v2/eventLogs?dag_id=mine&limit=1"));
    }

    async fn a_role_on_a_dag_or_none_inside_opens_the_pages_and_nothing_more(app) {
        let behind = Behind::new(&app).await;
        let viewer = behind.holder(&app, "viewer", vec![role(behind.on_dag("mine"), "DAG_VIEWER")]).await;
        let accessor = behind.holder(&app, "accessor", vec![role(behind.on(), "DEPLOYMENT_ACCESSOR")]).await;
        for who in [&viewer, &accessor] {
            let browser = behind.browser_by_page(&app, who).await;
            for path in ["/", "/dags", "/dags/mine", "/static/a.js", "/ui/auth/me", "/ui/auth/menus", "/ui/config"] {
                assert_eq!(browser.get(&behind.at(path)).await.code(), 200, "{path}");
            }
            for path in ["/api/v2/dags/other", "/api/v2/connections", "/ui/dashboard/dag_stats", "/plugin/x"] {
                browser.get(&behind.at(path)).await.refused(403);
            }
        }
        let (viewer, accessor) =
            (behind.browser_by_page(&app, &viewer).await, behind.browser_by_page(&app, &accessor).await);
        assert_eq!(viewer.get(&behind.at("/ui/dags")).await.ok()["target"], behind.at("/ui/dags?dag_ids=mine"));
        assert_eq!(viewer.get(&behind.at("/ui/grid/runs/mine")).await.code(), 200);
        accessor.get(&behind.at("/ui/dags")).await.refused(403);
        accessor.get(&behind.at("/ui/grid/runs/mine")).await.refused(403);
        let nobody = app.member("nobody").await;
        let session = signed_in(&app, &nobody).await;
        let page = app.call("GET", &behind.at("/")).header("accept", "text/html").header("cookie", &session).send().await;
        assert_eq!(page.code(), 404, "who sees nothing of it finds nothing");
    }

    async fn in_airflow_2_a_role_on_a_dag_gives_access_to_the_pages_of_that_dag(app) {
        let behind = Behind::of_line(&app, Line::Two).await;
        let viewer = behind.holder(&app, "viewer", vec![role(behind.on_dag("mine"), "DAG_VIEWER")]).await;
        let browser = behind.browser_by_page(&app, &viewer).await;
        for path in ["/static/a.js", "/dags/mine/grid", "/object/grid_data?dag_id=mine"] {
            assert_eq!(browser.get(&behind.at(path)).await.code(), 200, "{path}");
        }
        // Its pages are made by the server, with the DAGs of all.
        for path in ["/home", "/dags/other/grid", "/dagrun/list/"] {
            browser.get(&behind.at(path)).await.refused(403);
        }
    }

    async fn a_role_on_a_tag_makes_the_front_door_request_the_tags(app) {
        let behind = Behind::new(&app).await;
        let viewer = behind.holder(&app, "viewer", vec![role(behind.on_tag("finance"), "DAG_VIEWER")]).await;
        behind.environment.answer_with(200, r#"{"dag_id":"a","tags":[{"name":"finance","dag_id":"a"}]}"#);
        app.get(&viewer, &behind.at("/api/v2/dags/a/dagRuns")).await.ok();
        let seen = behind.environment.seen();
        let targets: Vec<&Value> = seen.iter().map(|request| &request["target"]).collect();
        assert_eq!(targets, [&json!(behind.at("/api/v2/dags/a")), &json!(behind.at("/api/v2/dags/a/dagRuns"))]);
        app.get(&viewer, &behind.at("/api/v2/dags/a/tasks")).await.ok();
        assert_eq!(behind.environment.seen().len(), 1, "tags are remembered for a moment");
        behind.environment.answer_with(200, r#"{"dag_id":"b","tags":[{"name":"other"}]}"#);
        app.get(&viewer, &behind.at("/api/v2/dags/b")).await.refused(403);
        behind.environment.answer_with(404, "{}");
        app.get(&viewer, &behind.at("/api/v2/dags/c")).await.refused(403);
        behind.environment.answer_with(500, "{}");
        assert!(app.get(&viewer, &behind.at("/api/v2/dags/d")).await.refused(502).contains("tags"));
        assert_eq!(behind.environment.seen().len(), 3, "nothing but tags was asked for");
    }

    async fn lists_are_narrowed_where_they_have_a_filter(app) {
        let behind = Behind::new(&app).await;
        let tagged = behind.holder(&app, "tagged", vec![role(behind.on_tag("a b"), "DAG_VIEWER")]).await;
        let told = app.get(&tagged, &behind.at("/api/v2/dags?limit=2&tags=other&tags=a+b")).await.ok();
        assert_eq!(told["target"], behind.at("/api/v2/dags?limit=2&tags=a%20b"));
        let told = app.get(&tagged, &behind.at("/ui/dags")).await.ok();
        assert_eq!(told["target"], behind.at("/ui/dags?tags=a%20b"));
        let named = behind.holder(&app, "named", vec![role(behind.on_dag("x"), "DAG_VIEWER")]).await;
        let told = app.get(&named, &behind.at("/ui/dags?dag_ids=x&dag_ids=y")).await.ok();
        assert_eq!(told["target"], behind.at("/ui/dags?dag_ids=x"));
        let refused = app.get(&named, &behind.at("/api/v2/dags")).await.refused(403);
        assert!(refused.contains("ask for one DAG"), "{refused}");
    }
}
