//! Checks the tables against the paths themselves: the deepest collection of a path names the resource, the method
//! names the verb. Any row that requires less than that fails here.

use super::tests::LISTS;
use super::{AirflowPath, Line, Rule, closed, find};

/// Each resource, and the collections of the API that hold it.
const COLLECTIONS: [(&str, &str); 16] = [
    ("datasets", "assets datasets"),
    ("dagRun", "backfills clearDagRuns clearPartitions dagRuns dagStats"),
    ("taskInstance", "clearTaskInstances taskGroupInstances taskInstances updateTaskInstancesState"),
    ("config", "config"),
    ("connection", "connections"),
    ("dagCode", "dagSources"),
    ("dag", "dags parseDagFile"),
    ("auditLog", "eventLogs"),
    ("taskLog", "externalLogUrl logs"),
    ("importError", "importErrors"),
    ("job", "jobs"),
    ("plugin", "plugins"),
    ("pool", "pools"),
    ("provider", "providers"),
    ("variable", "variables"),
    ("xcom", "xcomEntries"),
];

/// Paths whose deepest collection is not what they show.
const OTHERWISE: [(&str, &str); 4] = [
    ("/dags/{dag_id}/assets/", "dag"),
    ("/dags/{dag_id}/datasets/", "dag"),
    ("/hitlDetails", "taskInstance"),
    ("/plugins/importErrors", "plugin"),
];

/// Resources that are created, updated and deleted one by one, each by a right of its own.
const MANAGED: [&str; 3] = ["connection", "pool", "variable"];

/// What needs no permission, and what every holder of `website.get` is shown: nothing in here may show data of DAGs.
const OPEN: &str = "\
GET /api/v1/health
GET /api/v1/version
GET /api/v2/monitor/health
GET /api/v2/version
GET /ui/auth/me
GET /ui/auth/menus
GET /ui/config
GET /ui/teams";

fn rules() -> impl Iterator<Item = (&'static str, &'static str, &'static Rule)> {
    LISTS.into_iter().flat_map(|(line, list): (Line, &'static str)| {
        list.lines().filter_map(move |request| {
            let (method, path) = request.split_once(' ').expect("a method and a path");
            let parsed = AirflowPath::parse(&path.replace(['{', '}'], "x")).expect("a path");
            let (rule, _) = find(line, method, &parsed).filter(|_| closed(&parsed).is_none())?;
            Some((method, path, rule))
        })
    })
}

fn resource_of(path: &str) -> Option<&'static str> {
    if let Some((_, resource)) = OTHERWISE.iter().find(|(part, _)| path.contains(part)) {
        return Some(resource);
    }
    let holds = |collections: &str, segment| collections.split(' ').any(|collection| collection == segment);
    let known = |segment| COLLECTIONS.iter().find(|(_, collections)| holds(collections, segment));
    path.starts_with("/api/").then(|| path.rsplit('/').find_map(known).map(|(resource, _)| *resource))?
}

fn needs(rule: &Rule, permission: &str) -> bool {
    rule.needs.iter().any(|need| need.name() == format!("deployment.airflow.{permission}"))
}

#[test]
fn a_path_of_the_api_takes_a_right_on_the_resource_that_it_names() {
    let mut judged = 0;
    for (method, path, rule) in rules() {
        let Some(resource) = resource_of(path) else { continue };
        let verbs = if method == "GET" { &["get"][..] } else { &["get", "create", "update", "delete"] };
        let takes = verbs.iter().any(|verb| needs(rule, &format!("{resource}.{verb}")));
        assert!(takes || rule.path.ends_with("/favorite"), "{method} {path} needs {:?}", rule.needs);
        judged += 1;
    }
    assert!(judged > 150, "only {judged} were judged");
}

#[test]
fn connections_pools_and_variables_are_changed_by_the_right_to_do_just_that() {
    let mut judged = 0;
    for (method, path, rule) in rules() {
        let Some(resource) = resource_of(path).filter(|resource| MANAGED.contains(resource)) else {
            continue;
        };
        let verbs: &[&str] = match (method, path.ends_with('}')) {
            ("GET", _) => &["get"],
            ("POST", _) => &["create"],
            ("PATCH", true) => &["update"],
            ("PATCH", false) => &["create", "update", "delete"],
            ("DELETE", true) => &["delete"],
            _ => panic!("{method} {path} is of no known form"),
        };
        let taken: Vec<&str> = rule.needs.iter().map(|need| need.name()).collect();
        let expected: Vec<String> =
            verbs.iter().map(|verb| format!("deployment.airflow.{resource}.{verb}")).collect();
        assert_eq!(taken, expected, "{method} {path}");
        judged += 1;
    }
    assert!(judged > 20, "only {judged} were judged");
}

#[test]
fn endpoints_without_a_resource_permission_are_listed_here() {
    let open = |rule: &Rule| rule.needs.iter().all(|need| need.name() == "deployment.airflow.website.get");
    let mut found: Vec<String> = rules()
        .filter(|(_, path, rule)| open(rule) && (path.starts_with("/api/") || path.starts_with("/ui/")))
        .map(|(method, path, _)| format!("{method} {path}"))
        .collect();
    found.sort();
    found.dedup();
    assert_eq!(found.join("\n"), OPEN);
}
