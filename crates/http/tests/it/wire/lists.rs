//! Pages, orders and query parameters.

use podium_testkit::{TestApp, on_both_engines};
use serde_json::{Value, json};

fn names(list: &Value) -> String {
    let names: Vec<&str> =
        list["workspaces"].as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap()).collect();
    names.join(" ")
}

async fn list(app: &TestApp, query: &str) -> Value {
    app.get(&app.owner, &app.path(&format!("/workspaces?{query}"))).await.ok()
}

on_both_engines! {
    async fn a_page_has_a_limit_an_offset_and_the_total(app) {
        for n in 1..=24 {
            app.workspace(&format!("w{n:02}")).await;
        }
        let page = list(&app, "").await;
        assert_eq!(
            (&page["limit"], &page["offset"], &page["totalCount"]),
            (&json!(20), &json!(0), &json!(25))
        );
        assert_eq!(page["workspaces"].as_array().unwrap().len(), 20);
        let last = list(&app, "offset=24&limit=1000").await;
        assert_eq!(
            (names(&last).as_str(), &last["offset"], &last["limit"]),
            ("Default", &json!(24), &json!(1000))
        );
        assert_eq!(names(&list(&app, "sorts=name:asc&limit=2&offset=3").await), "w03 w04");
        let none = json!({ "workspaces": [], "limit": 0, "offset": 0, "totalCount": 25 });
        assert_eq!(list(&app, "limit=0").await, none);
        for offset in [25u64, 4_294_967_296, 9_007_199_254_740_991] {
            let past = json!({ "workspaces": [], "limit": 20, "offset": offset, "totalCount": 25 });
            assert_eq!(list(&app, &format!("offset={offset}")).await, past);
        }
        assert_eq!(list(&app, "limit=&offset=").await, page, "an empty number is absent");
    }

    async fn a_wrong_limit_or_offset_is_named(app) {
        for (query, wrong) in [
            ("limit=1001", "limit: maximum"),
            ("limit=-1", "limit: minimum"),
            ("limit=1.5", "limit: type"),
            ("limit=ten", "limit: type"),
            ("limit=99999999999999999999", "limit: type"),
            ("offset=-1", "offset: minimum"),
            ("offset=9007199254740992", "offset: maximum"),
            ("offset=0x10", "offset: type"),
        ] {
            let answer = app.get(&app.owner, &app.path(&format!("/workspaces?{query}"))).await;
            assert_eq!(answer.wrong_fields(), [wrong], "{query}");
        }
        let all = app.get(&app.owner, &app.path("/workspaces?limit=1001&offset=-1&sorts=size:asc")).await;
        assert_eq!(all.wrong_fields(), ["offset: minimum", "limit: maximum", "sorts[0]: enum"]);
    }

    async fn a_limit_without_a_maximum_is_cut_to_a_thousand(app) {
        let team = app.team("Crew", &[]).await;
        for path in ["/roles".into(), "/allowed-ip-address-ranges".into(), format!("/teams/{team}/members")] {
            for (asked, served) in [("1000", 1000), ("1001", 1000), ("9007199254740991", 1000), ("3", 3)] {
                let page = app.get(&app.owner, &app.path(&format!("{path}?limit={asked}"))).await.ok();
                assert_eq!(page["limit"], served, "{path} {asked}");
            }
        }
    }

    async fn up_to_three_sorts_are_taken_in_order(app) {
        for (name, later) in [("b", true), ("a", false), ("c", true)] {
            if later {
                app.advance(std::time::Duration::from_millis(1));
            }
            app.workspace(name).await;
        }
        for (query, expected) in [
            ("", "c a b Default"),
            ("sorts=createdAt:asc", "Default b a c"),
            ("sorts=createdAt:desc&sorts=name:desc", "c b a Default"),
            ("sorts=createdAt:desc&sorts=name:asc", "c a b Default"),
            ("sorts=updatedAt:asc&sorts=createdAt:asc&sorts=name:asc", "Default a b c"),
            ("sorts=name%3Adesc", "Default c b a"),
            ("sorts=", "c a b Default"),
            ("sorts=&sorts=name:asc", "a b c Default"),
        ] {
            assert_eq!(names(&list(&app, query).await), expected, "{query}");
        }
        for (query, wrong) in [
            ("sorts=name", "sorts[0]: enum"),
            ("sorts=name:asc&sorts=name:up", "sorts[1]: enum"),
            ("sorts=name:asc,createdAt:desc", "sorts[0]: enum"),
            ("sorts=name:asc&sorts=name:asc&sorts=name:asc&sorts=name:asc", "sorts: maxItems"),
        ] {
            let answer = app.get(&app.owner, &app.path(&format!("/workspaces?{query}"))).await;
            assert_eq!(answer.wrong_fields(), [wrong], "{query}");
        }
    }

    async fn the_id_breaks_ties_so_that_pages_never_overlap(app) {
        for n in 0..30 {
            app.workspace(&format!("w{n:02}")).await;
        }
        for sort in ["createdAt:desc", "createdAt:asc", "updatedAt:desc"] {
            let mut seen = Vec::new();
            for offset in (0..31).step_by(7) {
                let page = list(&app, &format!("sorts={sort}&limit=7&offset={offset}")).await;
                seen.extend(page["workspaces"].as_array().unwrap().iter().map(|w| w["id"].to_string()));
            }
            let ordered = seen.clone();
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen.len(), 31, "{sort}");
            if sort.ends_with("desc") {
                seen.reverse();
            }
            assert_eq!(ordered, seen, "{sort}");
        }
    }

    async fn a_scalar_parameter_is_given_once(app) {
        for (path, wrong) in [
            ("/workspaces?limit=1&limit=1", "limit: repeated"),
            ("/users?workspaceId=a&workspaceId=b", "workspaceId: repeated"),
            ("/roles?includeDefaultRoles=true&includeDefaultRoles=true", "includeDefaultRoles: repeated"),
            ("?isLookUpOnly=true&isLookUpOnly=false", "isLookUpOnly: repeated"),
        ] {
            assert_eq!(app.get(&app.owner, &app.path(path)).await.wrong_fields(), [wrong], "{path}");
        }
        let both = "/workspaces?limit=1&limit=2&offset=x&sorts=y";
        let wrong = app.get(&app.owner, &app.path(both)).await.wrong_fields();
        assert_eq!(
            wrong,
            ["limit: repeated", "offset: type", "sorts[0]: enum"],
            "with everything else that is wrong"
        );
    }

    async fn empty_lists_are_present(app) {
        let (eve, team) = (app.member("eve").await, app.team("Crew", &[]).await);
        for (path, list) in [
            ("/workspaces?names=x".to_owned(), "workspaces"),
            ("/teams?names=x".into(), "teams"),
            ("/users?dagId=x".into(), "users"),
            ("/roles".into(), "roles"),
            ("/allowed-ip-address-ranges".into(), "allowedIpAddressRanges"),
            (format!("/teams/{team}/members"), "teamMembers"),
            (format!("/users/{}/teams", eve.id), "teams"),
            ("/tokens".into(), "tokens"),
        ] {
            let page = app.get(&app.owner, &app.path(&path)).await.ok();
            assert_eq!(page, json!({ list: [], "limit": 20, "offset": 0, "totalCount": 0 }), "{path}");
        }
    }

    async fn role_lists_without_entries_are_absent(app) {
        const LISTS: [&str; 3] = ["workspaceRoles", "deploymentRoles", "dagRoles"];
        let workspace = app.workspace("Analytics").await;
        let (eve, team) = (app.member("eve").await, app.team("Crew", &[]).await);
        let listed = |all: &Value, id: String| {
            let all = all.as_array().unwrap().iter();
            all.clone().find(|one| one["id"] == id.as_str()).unwrap().clone()
        };
        let roles = |lists: Value| {
            let mut body = json!({ "organizationRole": "ORGANIZATION_MEMBER" });
            lists.as_object().unwrap().iter().for_each(|(list, roles)| body[list] = roles.clone());
            body
        };
        for (kind, id) in [("users", eve.id), ("teams", team.into())] {
            let one = app.path(&format!("/{kind}/{id}"));
            let shown = async |body: Value| {
                let answer = app.post(&app.owner, &format!("{one}/roles"), roles(body)).await.ok();
                let all = app.get(&app.owner, &app.path(&format!("/{kind}"))).await.ok();
                [answer, app.get(&app.owner, &one).await.ok(), listed(&all[kind], id.to_string())]
            };
            let held = json!([{ "workspaceId": workspace, "role": "WORKSPACE_MEMBER" }]);
            for one in shown(json!({ "workspaceRoles": held })).await {
                assert_eq!(one["workspaceRoles"], held, "{kind}");
                assert_eq!((one.get("deploymentRoles"), one.get("dagRoles")), (None, None), "{kind}");
            }
            // What was read is sent back as it was: nothing changes.
            for one in shown(json!({})).await {
                assert_eq!(one["workspaceRoles"], held, "{kind}");
            }
            for one in shown(json!({ "workspaceRoles": [], "deploymentRoles": [], "dagRoles": [] })).await {
                assert!(LISTS.iter().all(|list| one.get(list).is_none()), "{kind}: {one}");
            }
        }
    }
}
