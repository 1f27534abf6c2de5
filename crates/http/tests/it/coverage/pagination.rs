//! Pages, limits and sorts of every list.

use std::cmp::Ordering;
use std::time::Duration;

use podium_api::workspaces::Workspace;
use podium_api::{Description, ENDPOINTS, OrganizationId, Timestamp, WorkspaceId};
use podium_domain::names;
use podium_store::{Stamp, subjects, workspaces};
use podium_testkit::{START, TestApp, on_both_engines};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use super::calls::prepare;
use super::contract::parameter;
use super::for_all;

const KEYS: &[&str] = &["name", "createdAt", "updatedAt"];

on_both_engines! {
    async fn any_page_in_any_order_is_the_one_that_sorting_in_memory_gives(app) {
        for number in 0..30 {
            // Names that sort another way than times, and times with ties.
            app.workspace(&format!("w{:02}", number * 7 % 30)).await;
            if number % 4 == 0 {
                app.advance(Duration::from_secs(1));
            }
        }
        let path = app.path("/workspaces");
        let all = items(&app.get(&app.owner, &format!("{path}?limit=1000")).await.ok()).clone();
        for workspace in all.iter().step_by(3) {
            let body = json!({ "name": workspace["name"], "description": "", "cicdEnforcedDefault": true });
            app.post(&app.owner, &format!("{path}/{}", workspace["id"].as_str().unwrap()), body).await.ok();
        }
        let all = items(&app.get(&app.owner, &format!("{path}?limit=1000")).await.ok()).clone();
        assert_eq!(all.len(), 31);
        let pages = (0..40u32, 0..40u32, vec((select(KEYS), any::<bool>()), 0..4));
        let (app, all, path) = (&app, &all, &path);
        for_all(64, &pages, |(offset, limit, sorts)| async move {
            let key = |(key, down): &(&str, bool)| format!("&sorts={key}:{}", word(*down));
            let keys: String = sorts.iter().map(key).collect();
            let page = format!("{path}?offset={offset}&limit={limit}{keys}");
            let answer = app.get(&app.owner, &page).await.ok();
            let mut sorted = all.clone();
            sorted.sort_by(|left, right| compare(&sorts, left, right));
            let page: Vec<Value> = sorted.into_iter().skip(offset as usize).take(limit as usize).collect();
            let total = all.len();
            let expected = json!({ "workspaces": page, "limit": limit, "offset": offset, "totalCount": total });
            assert_eq!(answer, expected);
        });
    }

    async fn every_list_keeps_to_its_limit(app) {
        let mut unbounded = Vec::new();
        for endpoint in lists() {
            let path = prepare(&app, endpoint).await.path;
            let read = |query: &str| app.call("GET", &format!("{path}?{query}")).by(&app.owner);
            let page = |limit: u64, answer: Value| {
                assert_eq!((&answer["limit"], &answer["offset"]), (&json!(limit), &json!(0)), "{}", endpoint.id);
                items(&answer).len() as u64
            };
            let total = |answer: &Value| answer["totalCount"].as_u64().expect("a total");
            let first = read("").send().await.ok();
            let count = total(&first);
            assert_eq!(page(20, first), count.min(20), "{}", endpoint.id);
            let none = read("limit=0").send().await.ok();
            assert_eq!((total(&none), page(0, none)), (count, 0), "{}", endpoint.id);
            assert_eq!(page(1000, read("limit=1000").send().await.ok()), count, "{}", endpoint.id);
            let more = read("limit=1001").send().await;
            if parameter(endpoint, "limit").unwrap()["maximum"] == 1000 {
                assert_eq!(more.wrong_fields(), ["limit: maximum"], "{}", endpoint.id);
            } else {
                assert_eq!(page(1000, more.ok()), count, "{}", endpoint.id);
                unbounded.push(endpoint.id);
            }
            for (query, wrong) in [
                ("limit=-1", "limit: minimum"),
                ("limit=many", "limit: type"),
                ("offset=-1", "offset: minimum"),
                ("limit=1&limit=2", "limit: repeated"),
            ] {
                assert_eq!(read(query).send().await.wrong_fields(), [wrong], "{}", endpoint.id);
            }
            let beyond = read("offset=4294967295").send().await.ok();
            assert_eq!((items(&beyond).len(), total(&beyond)), (0, count), "{}", endpoint.id);
        }
        assert_eq!(
            unbounded,
            ["ListAllowedIpAddressRanges", "ListEnvironmentObjects", "ListRoles", "ListTeamMembers", "ListDeployments"]
        );
    }

    async fn every_list_sorts_by_its_keys_and_no_others(app) {
        for endpoint in lists() {
            let path = prepare(&app, endpoint).await.path;
            let read = |query: &str| app.call("GET", &format!("{path}?{query}")).by(&app.owner);
            let words = parameter(endpoint, "sorts").unwrap()["items"]["enum"].as_array().unwrap();
            for word in words.iter().map(|word| word.as_str().unwrap()) {
                read(&format!("sorts={word}")).send().await.ok();
                read(&format!("sorts={word}&sorts={word}&sorts={word}")).send().await.ok();
                let four = format!("sorts={word}&sorts={word}&sorts={word}&sorts={word}");
                assert_eq!(read(&four).send().await.wrong_fields(), ["sorts: maxItems"], "{}", endpoint.id);
            }
            read("sorts=").send().await.ok();
            for unknown in ["mood:asc", "createdAt", "createdAt:up", "createdAt:ASC", "id"] {
                let answer = read(&format!("sorts={unknown}")).send().await;
                assert_eq!(answer.wrong_fields(), ["sorts[0]: enum"], "{} by {unknown}", endpoint.id);
            }
        }
    }

    /// Deep pages are found by landmarks, which must not be seen in what they show.
    async fn deep_pages_are_the_ones_that_counting_gives(app) {
        let mut rows = Vec::new();
        add(&app, &mut rows, (0..2000).map(|number| START + 1000 + number / 3)).await;
        shows(&app, &rows, 97).await;
        // Again, by landmarks that are known.
        shows(&app, &rows, 331).await;
        let newer = START + 10_000;
        add(&app, &mut rows, (0..300).map(|number| newer + number)).await;
        shows(&app, &rows, 211).await;
        for index in [1700, 1000, 999, 3] {
            let (_, id) = rows.remove(index);
            app.delete(&app.owner, &app.path(&format!("/workspaces/{id}"))).await.ok();
            shows(&app, &rows, 400).await;
        }
        add(&app, &mut rows, [START + 1100, START + 1, newer - 1]).await;
        shows(&app, &rows, 173).await;
    }
}

/// Adds workspaces that were created at these times.
async fn add(app: &TestApp, rows: &mut Vec<(i64, WorkspaceId)>, times: impl IntoIterator<Item = i64>) {
    let added: Vec<(i64, WorkspaceId)> = times.into_iter().map(|at| (at, app.world.id())).collect();
    rows.extend(&added);
    let scope = app.scope();
    let profile = subjects::user_profile(app.owner.user_id(), "owner@localhost", "Owner");
    let insert = move |tx: &podium_db::Tx| {
        added.iter().try_for_each(|(at, id)| {
            let stamp = Stamp::new(profile.clone(), Timestamp::from_millis(*at));
            let workspace = workspace(*id, scope.organization_id(), &stamp);
            workspaces::insert(tx, &scope, &workspace, &names::fold(&workspace.name), &stamp)
        })
    };
    app.app.db(&app.system).write(None, insert).await.expect("workspaces can be stored");
}

fn workspace(id: WorkspaceId, organization_id: OrganizationId, stamp: &Stamp) -> Workspace {
    Workspace {
        id,
        name: id.to_string(),
        description: None,
        organization_id,
        organization_name: None,
        cicd_enforced_default: false,
        default_cluster_id: None,
        default_cloud_provider: None,
        default_region: None,
        created_at: stamp.created_at,
        created_by: None,
        updated_at: stamp.updated_at,
        updated_by: None,
    }
}

/// Every page of this size shows what is to be shown, newest first; the first start's workspace comes last.
async fn shows(app: &TestApp, rows: &[(i64, WorkspaceId)], size: usize) {
    let mut expected = rows.to_vec();
    expected.sort_by(|left, right| right.cmp(left));
    for offset in (0..=rows.len()).rev().step_by(size) {
        let path = app.path(&format!("/workspaces?limit={size}&offset={offset}"));
        let page = app.get(&app.owner, &path).await.ok();
        assert_eq!(page["totalCount"], rows.len() + 1);
        let shown: Vec<&str> = items(&page).iter().map(|item| item["id"].as_str().unwrap()).collect();
        let due: Vec<&str> = expected.iter().skip(offset).take(size).map(|(_, id)| id.as_str()).collect();
        let (shown, last) = shown.split_at(due.len().min(shown.len()));
        assert_eq!(shown, due, "{size} from {offset} of {}", rows.len());
        assert_eq!(last.len(), usize::from(due.len() < size), "the first workspace is the oldest");
    }
}

fn lists() -> impl Iterator<Item = &'static Description> {
    ENDPOINTS.iter().filter(|endpoint| parameter(endpoint, "sorts").is_some())
}

/// The items of a page, whatever they are called.
fn items(page: &Value) -> &Vec<Value> {
    page.as_object().and_then(|page| page.values().find_map(Value::as_array)).expect("a page has items")
}

fn word(descending: bool) -> &'static str {
    if descending { "desc" } else { "asc" }
}

/// The order of two workspaces; the id breaks ties, in the direction of the last key.
fn compare(sorts: &[(&str, bool)], left: &Value, right: &Value) -> Ordering {
    let sorts = if sorts.is_empty() { &[("createdAt", true)] } else { sorts };
    let last = sorts.last().map(|(_, descending)| ("id", *descending));
    let by = |(key, descending): (&str, bool)| {
        let order = left[key].as_str().cmp(&right[key].as_str());
        if descending { order.reverse() } else { order }
    };
    sorts.iter().copied().chain(last).map(by).fold(Ordering::Equal, Ordering::then)
}
