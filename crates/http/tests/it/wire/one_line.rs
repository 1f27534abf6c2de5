//! What people read is one line of characters that they see, and links lead to the web.

use podium_testkit::{TestApp, on_one_engine};
use serde_json::{Value, json};

const HIDDEN: [&str; 8] =
    ["\u{200b}", "\u{200d}", "\u{202e}", "\u{2066}", "\u{feff}", "\u{ad}", "\u{2028}", "\n"];

async fn wrong(app: &TestApp, path: &str, body: &Value) -> Vec<String> {
    app.post(&app.owner, &app.path(path), body.clone()).await.wrong_fields()
}

on_one_engine! {
    async fn names_contain_no_invisible_character(app) {
        let workspace = app.workspace("Data").await;
        let deployment = app.deployment(workspace).await;
        let team = app.team("Team", &[]).await;
        let token = app.token("ci", "ORGANIZATION", app.organization_id, "ORGANIZATION_MEMBER").await;
        let role = app.custom_role("Viewer", "DEPLOYMENT", &["deployment.get"]).await;
        let role_body = json!({ "scopeType": "DEPLOYMENT", "permissions": ["deployment.get"] });
        for hidden in HIDDEN {
            let name = format!("ow{hidden}ner");
            let table = [
                ("/workspaces".to_owned(), json!({})),
                (format!("/workspaces/{workspace}"), json!({ "description": "", "cicdEnforcedDefault": false })),
                ("/teams".to_owned(), json!({})),
                (format!("/teams/{team}"), json!({})),
                ("/roles".to_owned(), role_body.clone()),
                (format!("/roles/{role}"), role_body.clone()),
                ("/tokens".to_owned(), json!({ "scope": "ORGANIZATION", "role": "ORGANIZATION_MEMBER" })),
                (format!("/tokens/{}", token.id), json!({})),
                ("/deployments".to_owned(), json!({ "workspaceId": workspace })),
                (format!("/deployments/{deployment}/agent-tokens"), json!({})),
                ("".to_owned(), json!({ "billingEmail": "", "isScimEnabled": false })),
            ];
            for (path, mut body) in table {
                body["name"] = json!(name);
                assert_eq!(wrong(&app, &path, &body).await, ["name: format"], "{path} {hidden:?}");
            }
        }
        let answer = app.post(&app.owner, &app.path("/teams"), json!({ "name": "Ow\u{200b}ners" })).await;
        let message = &answer.json()["fieldErrors"][0]["message"];
        assert_eq!(message, "must be one line of visible characters: it contains an invisible character (U+200B)");
        for name in ["Zoë", "データ基盤", "فريق البيانات", "डेटा टीम", "👩\u{200d}💻 ⚠\u{fe0f}"] {
            app.post(&app.owner, &app.path("/teams"), json!({ "name": name })).await.ok();
        }
        // What is longer than a line may be several.
        let body = json!({ "name": "Described", "description": "one\ntwo\tthree" });
        app.post(&app.owner, &app.path("/teams"), body).await.ok();
    }

    async fn descriptions_of_code_are_one_line_and_links_are_http_urls(app) {
        let workspace = app.workspace("Data").await;
        let deployment = app.deployment(workspace).await;
        let path = format!("/deployments/{deployment}/deploys");
        let git = |field: &str, value: &str| {
            let mut git = json!({ "provider": "HOSTED", "account": "ada", "repo": "dags", "commitSha": "4f1c" });
            git[field] = json!(value);
            if field == "remoteUrl" {
                git = json!({ "provider": "GENERIC", "remoteUrl": value, "commitSha": "4f1c" });
            }
            json!({ "type": "DAG_ONLY", "git": git })
        };
        let lines = ["account", "repo", "branch", "path", "commitSha", "beforeCommitSha", "authorName", "authorUsername",
            "remoteUrl", "commitUrl", "authorUrl"];
        for field in lines {
            for text in ["https://a.example/b\r\nSet-Cookie: x", "a\u{202e}b", "a\u{0}b", "a\u{1b}[31m"] {
                assert_eq!(wrong(&app, &path, &git(field, text)).await, [format!("git.{field}: format")], "{text:?}");
            }
        }
        for field in ["remoteUrl", "commitUrl", "authorUrl"] {
            for text in ["javascript:alert(1)", "JAVASCRIPT:alert(1)", "javascript://a.example/%0aalert(1)",
                "data:text/html,<script>", "vbscript:x", "ftp://a.example"] {
                assert_eq!(wrong(&app, &path, &git(field, text)).await, [format!("git.{field}: format")], "{text:?}");
            }
            app.post(&app.owner, &app.path(&path), git(field, "https://git.example.com/a/b")).await.ok();
        }
        for field in ["commitUrl", "authorUrl"] {
            for text in ["file:///etc/passwd", "//a.example", "a b", "git@git.example.com:a/b.git"] {
                assert_eq!(wrong(&app, &path, &git(field, text)).await, [format!("git.{field}: format")], "{text:?}");
            }
        }
        // What `git remote` says of the working copy.
        for text in ["git@git.example.com:a/b.git", "git.example.com:a/b.git", "ssh://git@git.example.com/a/b",
            "git://git.example.com/a/b", "file:///srv/git/b.git", "/srv/git/b.git"] {
            app.post(&app.owner, &app.path(&path), git("remoteUrl", text)).await.ok();
        }
    }

    async fn other_fields_of_one_line_are_checked_too(app) {
        let workspace = app.workspace("Data").await;
        let object = |field: &str, value: Value| {
            let mut connection = json!({ "type": "postgres", "host": "db" });
            connection[field] = value;
            json!({
                "objectKey": "warehouse", "objectType": "CONNECTION", "scope": "WORKSPACE",
                "scopeEntityId": workspace, "connection": connection,
            })
        };
        for field in ["host", "login", "schema"] {
            let body = object(field, json!("one\ntwo"));
            assert_eq!(wrong(&app, "/environment-objects", &body).await, [format!("connection.{field}: format")]);
        }
        // Secrets are whatever they are.
        let body = object("password", json!("one\ntwo\u{200b}"));
        app.post(&app.owner, &app.path("/environment-objects"), body).await.ok();
        let invite = json!({ "inviteeEmail": "o\u{200b}wner@localhost", "role": "ORGANIZATION_MEMBER" });
        assert_eq!(wrong(&app, "/invites", &invite).await, ["inviteeEmail: format"]);
    }

    async fn no_text_in_json_steers_what_shows_it(app) {
        const STEERING: &str = "a\u{1b}[2J\u{9b}31m\u{7f}\u{202e}b\u{2066}c צוות\u{200f}";
        let is_steering = |text: &str| text.contains(podium_api::text::steers);
        let made = app.post(&app.owner, &app.path("/workspaces"), json!({ "name": "Data", "description": STEERING })).await;
        let at = app.path(&format!("/workspaces/{}", made.id()));
        for answer in [&made, &app.get(&app.owner, &at).await, &app.get(&app.owner, &app.path("/workspaces")).await] {
            let text = answer.text();
            assert!(!is_steering(&text), "{text:?}");
            assert!(answer.ok().to_string().contains(&json!(STEERING).to_string()), "it reads back as it was: {text}");
        }
        let refused = app.get(&app.owner, &app.path(&format!("/workspaces?sorts={}", "%E2%80%AEname"))).await;
        refused.refused(400);
        assert!(!is_steering(&refused.text()), "{:?}", refused.text());
        let log = app.get(&app.owner, &app.path("/audit-logs")).await.text();
        assert!(log.contains("CreateWorkspace") && !is_steering(&log.replace('\n', "")), "{log:?}");
        let page = app.call("GET", "/sign-in?to=/%E2%80%AEx").send().await.text();
        assert!(!is_steering(&page.replace('\n', "")), "{page:?}");
    }
}
