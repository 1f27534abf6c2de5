//! The tables against Airflow's own lists, and judgements as named holders of roles.

use proptest::prelude::*;

use super::*;
use crate::fixtures::{d1, holder, nothing, w1};
use crate::grants::{Grant, Grants, Held, On};
use crate::patterns::matching;

/// Every path of the API and of what the pages ask, as Airflow's own documents list them.
pub(super) const LISTS: [(Line, &str); 2] = [
    (Line::Three, include_str!("../../data/airflow-3.3.2.txt")),
    (Line::Two, include_str!("../../data/airflow-2.11.2.txt")),
];
/// The door answers these itself.
const OWN: [&str; 2] = ["/api/v2/auth/login", "/api/v2/auth/logout"];

fn rights(grants: &Grants) -> Rights<'_> {
    Rights { grants, deployment_id: d1(), workspace_id: w1() }
}

fn on_dag(dag_id: &str, patterns: &[&'static str]) -> Grant {
    let on = On::Dag { deployment_id: d1(), workspace_id: w1(), dag_id: dag_id.into() };
    Grant { on, held: custom(patterns) }
}

fn on_tag(tag: &str, patterns: &[&'static str]) -> Grant {
    Grant {
        on: On::DagTag { deployment_id: d1(), workspace_id: w1(), tag: tag.into() },
        held: custom(patterns),
    }
}

fn custom(patterns: &[&'static str]) -> Held {
    Held::Custom { id: nothing(), name: "some".into(), permissions: matching(patterns) }
}

/// Judges a request to Airflow 3.
fn ask(grants: &Grants, request: &str) -> crate::Result<Decision> {
    let (method, target) = request.split_once(' ').unwrap();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let path = AirflowPath::parse(path).unwrap();
    let (rule, dag) =
        find(Line::Three, method, &path).unwrap_or_else(|| panic!("{request} is not in the table"));
    let pairs: Vec<_> = query.split('&').filter_map(|pair| pair.split_once('=')).collect();
    let pairs: Vec<_> = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    judge(rule, dag, &pairs, &rights(grants))
}

fn status(answer: &crate::Result<Decision>) -> u16 {
    answer.as_ref().map_or_else(crate::Refusal::status, |_| 200)
}

fn narrowed(answer: crate::Result<Decision>) -> String {
    let Decision::Narrowed(query) = answer.unwrap() else { panic!("it is not narrowed") };
    query.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&")
}

#[test]
fn every_path_that_airflow_lists_is_in_a_table_or_closed() {
    for (line, list) in LISTS {
        for request in list.lines() {
            let (method, path) = request.split_once(' ').unwrap();
            if OWN.contains(&path) {
                continue;
            }
            let filled = path.replace(['{', '}'], "x");
            let path = AirflowPath::parse(&filled).unwrap();
            let found = find(line, method, &path);
            assert!(found.is_some() != closed(&path).is_some(), "{request}: {found:?}");
        }
    }
}

#[test]
fn reading_takes_rights_to_read_and_writing_takes_others() {
    for (line, list) in LISTS {
        for request in list.lines() {
            let (method, path) = request.split_once(' ').unwrap();
            let path = AirflowPath::parse(&path.replace(['{', '}'], "x")).unwrap();
            let Some((rule, _)) = find(line, method, &path) else { continue };
            let writes = rule.is_write();
            let only_asks = rule.path.ends_with("/list") || rule.path.ends_with("favorite");
            assert_eq!(writes, method != "GET" && !only_asks, "{request} needs {:?}", rule.needs);
        }
    }
}

#[test]
fn a_path_that_names_a_dag_is_judged_by_that_dag() {
    for (line, list) in LISTS {
        for request in list.lines().filter(|request| request.contains("/{dag_id}")) {
            let (method, path) = request.split_once(' ').unwrap();
            let path =
                AirflowPath::parse(&path.replace("{dag_id}", "mine").replace(['{', '}'], "x")).unwrap();
            let Some((rule, dag)) = find(line, method, &path) else { continue };
            let is_bulk = method == "PATCH"
                && (rule.path.ends_with("/dagRuns") || rule.path.ends_with("/taskInstances"));
            let expected = (!is_bulk && !rule.path.ends_with("/list")).then_some("mine");
            assert_eq!(dag, expected, "{request}");
        }
    }
}

#[test]
fn closed_paths_are_closed_in_every_spelling() {
    for path in [
        "/execution/health",
        "/execution",
        "/auth/token",
        "/auth/login/",
        "/auth/token/cli",
        "/AUTH/token",
        "/login/",
        "/internal_api/v1/rpcapi",
        "/ui/auth/token",
        "/%65xecution/x",
        "/api/v1/users",
        "/api/v1/roles/Admin",
    ] {
        assert!(closed(&AirflowPath::parse(path).unwrap()).is_some(), "{path}");
    }
    for path in ["/", "/api/v2/dags", "/ui/auth/me", "/authors", "/executions"] {
        assert!(closed(&AirflowPath::parse(path).unwrap()).is_none(), "{path}");
    }
    for path in
        ["/api/v2", "/api/v2/dags/", "/api/v3/dags", "/users/list/", "/pluginsv2/x", "/nowhere", "/ui"]
    {
        assert!(find(Line::Three, "GET", &AirflowPath::parse(path).unwrap()).is_none(), "{path}");
    }
    assert!(find(Line::Three, "TRACE", &AirflowPath::parse("/").unwrap()).is_none());
}

#[test]
fn roles_let_through_what_they_hold() {
    let table = [
        ("WORKSPACE_MEMBER", "GET /", 200),
        ("WORKSPACE_MEMBER", "HEAD /static/assets/index.js", 200),
        ("WORKSPACE_MEMBER", "GET /api/v2/dags", 200),
        ("WORKSPACE_MEMBER", "POST /api/v2/dags/a/dagRuns", 403),
        ("WORKSPACE_MEMBER", "GET /api/v2/connections", 403),
        ("WORKSPACE_AUTHOR", "POST /api/v2/dags/a/dagRuns", 200),
        ("WORKSPACE_AUTHOR", "GET /api/v2/connections", 200),
        ("WORKSPACE_AUTHOR", "PATCH /api/v2/connections/x", 403),
        ("WORKSPACE_OPERATOR", "PATCH /api/v2/connections", 200),
        ("WORKSPACE_ACCESSOR", "GET /api/v2/version", 404),
        ("DEPLOYMENT_ACCESSOR", "GET /api/v2/version", 200),
        ("DEPLOYMENT_ACCESSOR", "GET /", 200),
        ("DEPLOYMENT_ACCESSOR", "GET /ui/auth/me", 200),
        ("DEPLOYMENT_ACCESSOR", "GET /ui/dags", 403),
        ("DEPLOYMENT_ACCESSOR", "GET /plugin/x", 403),
        ("WORKSPACE_ACCESSOR", "GET /", 404),
        ("DEPLOYMENT_ADMIN", "DELETE /api/v2/variables/a", 200),
        ("ORGANIZATION_OWNER", "GET /api/v2/config", 200),
        ("ORGANIZATION_MEMBER", "GET /api/v2/version", 404),
    ];
    for (role, request, expected) in table {
        assert_eq!(status(&ask(&holder(role), request)), expected, "{role}: {request}");
    }
}

#[test]
fn a_role_on_one_dag_reaches_that_dag_only() {
    let viewer = Grants::new([on_dag("mine", &["dag.airflow.*.get"])]);
    for request in [
        "GET /api/v2/dags/mine",
        "GET /api/v2/dags/mine/dagRuns/~/taskInstances",
        "GET /ui/grid/runs/mine",
        "GET /api/v2/eventLogs?dag_id=mine",
        "GET /api/v2/dagSources/mine",
        "GET /api/v2/version",
        "GET /",
        "GET /static/assets/index.js",
        "GET /dags/mine/runs/x?a=b",
        "GET /ui/auth/menus",
    ] {
        assert_eq!(ask(&viewer, request), Ok(Decision::Unchanged), "{request}");
    }
    for request in [
        "GET /api/v2/dags/other",
        "GET /api/v2/dags/~/dagRuns",
        "POST /api/v2/dags/~/dagRuns/list",
        "PATCH /api/v2/dags/mine",
        "GET /api/v2/eventLogs",
        "GET /api/v2/eventLogs?dag_id=other",
        "GET /api/v2/eventLogs?dag_id=mine&dag_id=other",
        "GET /api/v2/dags",
        "GET /plugin/x",
        "GET /api/v2/importErrors",
        "PATCH /api/v2/dags/mine/dagRuns",
        "GET /api/v2/connections",
        "GET /api/v2/dags?dag_ids=mine",
    ] {
        assert_eq!(status(&ask(&viewer, request)), 403, "{request}");
    }
    let author = Grants::new([on_dag("mine", &["dag.*"])]);
    assert_eq!(ask(&author, "POST /api/v2/dags/mine/dagRuns"), Ok(Decision::Unchanged));
    assert_eq!(status(&ask(&author, "POST /api/v2/backfills")), 403);
}

#[test]
fn a_role_on_a_tag_waits_for_the_tags_of_the_dag() {
    let grants = Grants::new([
        on_tag("finance", &["dag.airflow.dag.get", "dag.airflow.xcom.get"]),
        on_tag("nightly", &["dag.airflow.taskInstance.*"]),
    ]);
    let tags = |tags: &[&str]| tags.iter().map(|tag| (*tag).to_owned()).collect::<Vec<_>>();
    let settle = |request: &str, names: &[&str]| {
        let Ok(Decision::IfTagged(tagged)) = ask(&grants, request) else {
            panic!("{request} does not depend on tags")
        };
        assert_eq!(tagged.dag_id, "some");
        tagged.settle(&tags(names)).map_err(|refusal| refusal.status())
    };
    assert_eq!(settle("GET /api/v2/dags/some", &["finance"]), Ok(()));
    assert_eq!(settle("GET /api/v2/dags/some", &["nightly", "x"]), Err(403));
    assert_eq!(settle("GET /api/v2/dags/some", &[]), Err(403));
    let xcom = "PATCH /api/v2/dags/some/dagRuns/r/taskInstances/t/xcomEntries/k";
    assert_eq!(settle(xcom, &["finance"]), Err(403));
    assert_eq!(settle(xcom, &["finance", "nightly"]), Ok(()));
    assert_eq!(status(&ask(&grants, "DELETE /api/v2/dags/some")), 403);
}

#[test]
fn lists_are_narrowed_to_what_is_the_callers_or_refused() {
    let tags = Grants::new([on_tag("a", &["dag.airflow.dag.get"]), on_tag("b", &["dag.airflow.dag.get"])]);
    assert_eq!(narrowed(ask(&tags, "GET /api/v2/dags?limit=5")), "limit=5&tags=a&tags=b");
    assert_eq!(narrowed(ask(&tags, "GET /api/v2/dags?tags=b&tags=c&tags_match_mode=any")), "tags=b");
    assert_eq!(ask(&tags, "GET /api/v2/dags?tags=b&tags=c&tags_match_mode=all"), Ok(Decision::Unchanged));
    let twice = "GET /api/v2/dags?tags=b&tags=c&tags_match_mode=all&tags_match_mode=any";
    assert_eq!(narrowed(ask(&tags, twice)), "tags=b");
    assert_eq!(narrowed(ask(&tags, "GET /ui/dags")), "tags=a&tags=b");
    assert_eq!(status(&ask(&tags, "GET /api/v2/dags?tags=c")), 403);
    assert_eq!(status(&ask(&tags, "GET /api/v2/dags?tags=c&tags_match_mode=all")), 403);
    let ids = Grants::new([on_dag("x", &["dag.airflow.*.get"]), on_dag("y", &["dag.airflow.*.get"])]);
    assert_eq!(narrowed(ask(&ids, "GET /ui/dags?dag_ids=x&dag_ids=z")), "dag_ids=x");
    assert_eq!(narrowed(ask(&ids, "GET /api/v2/dagStats")), "dag_ids=x&dag_ids=y");
    assert_eq!(status(&ask(&ids, "GET /ui/dags?dag_ids=z")), 403);
    let both = Grants::new([on_dag("x", &["dag.airflow.dag.get"]), on_tag("a", &["dag.airflow.dag.get"])]);
    assert_eq!(status(&ask(&both, "GET /ui/dags")), 403);
    assert_eq!(narrowed(ask(&both, "GET /ui/dags?dag_ids=x")), "dag_ids=x");
    assert_eq!(narrowed(ask(&both, "GET /ui/dags?tags=a")), "tags=a");
}

#[test]
fn the_role_inside_airflow_is_the_least_that_does() {
    let table = [
        ("WORKSPACE_MEMBER", AirflowRole::Viewer),
        ("WORKSPACE_AUTHOR", AirflowRole::Op),
        ("WORKSPACE_OPERATOR", AirflowRole::Admin),
        ("DEPLOYMENT_ACCESSOR", AirflowRole::Viewer),
        ("DEPLOYMENT_ADMIN", AirflowRole::Admin),
        ("ORGANIZATION_OWNER", AirflowRole::Admin),
        ("DAG_VIEWER", AirflowRole::Viewer),
    ];
    for (role, expected) in table {
        assert_eq!(rights(&holder(role)).airflow_role(), expected, "{role}");
    }
    let author = Grants::new([on_dag("mine", &["dag.airflow.dagRun.create"])]);
    assert_eq!(rights(&author).airflow_role(), AirflowRole::User);
}

proptest! {
    /// However a path is written, the checked path is the forwarded path.
    #[test]
    fn the_checked_path_is_the_forwarded_path(raw in "(/(api|v2|dags|%64ags|execution|ui|auth|token|~|%7e|mine|[a-z%;.]{1,4})){1,6}/?") {
        if let Ok(path) = AirflowPath::parse(&raw) {
            let sent = AirflowPath::parse(&path.encoded()).unwrap();
            prop_assert_eq!(closed(&path), closed(&sent));
            for method in ["GET", "POST", "PATCH"] {
                let judged = find(Line::Three, method, &path).map(|(rule, dag)| (rule, dag.map(str::to_owned)));
                let seen = find(Line::Three, method, &sent).map(|(rule, dag)| (rule, dag.map(str::to_owned)));
                prop_assert_eq!(judged, seen);
            }
        }
    }
}
