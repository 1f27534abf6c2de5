//! Bodies of requests: what is not JSON, what does not fit, and what counts as absent.

use podium_testkit::{Answer, TestApp, on_one_engine};
use serde_json::{Value, json};

async fn send(app: &TestApp, media: &str, body: impl Into<bytes::Bytes>) -> Answer {
    let call = app.call("POST", &app.path("/workspaces")).by(&app.owner);
    let call = if media.is_empty() { call } else { call.header("content-type", media) };
    call.body(body).send().await
}

on_one_engine! {
    async fn malformed_json_is_refused_with_its_position(app) {
        for (body, place) in [
            (r#"{"name": }"#, "line 1 column 10"),
            ("{\n  \"name\": \"x\"", "line 2 column 13"),
            (r#"{"name": "x"} trailing"#, "line 1 column 15"),
            (r#"{'name': 'x'}"#, "line 1 column 2"),
        ] {
            let answer = send(&app, "application/json", body).await;
            assert_eq!(answer.wrong_fields(), [": json"], "{body}");
            let message = answer.refused(400);
            assert!(message.starts_with("The body is not JSON: ") && message.ends_with(place), "{message}");
        }
        let answer = send(&app, "application/json", "").await;
        assert_eq!(answer.refused(400), "The body is required, as JSON");
        let latin = send(&app, "application/json", &b"{\"name\": \"caf\xe9\"}"[..]).await;
        assert_eq!(latin.wrong_fields(), [": json"]);
        let deep = send(&app, "application/json", "[".repeat(100_000)).await;
        assert_eq!(deep.wrong_fields(), [": json"]);
    }

    async fn a_body_that_is_no_object_is_refused(app) {
        for (body, found) in [("[]", "an array"), ("7", "a number"), ("null", "null"), ("\"x\"", "a string")]
        {
            let answer = send(&app, "application/json", body).await;
            assert_eq!(answer.wrong_fields(), [": type"], "{body}");
            assert_eq!(answer.refused(400), format!("The body must be an object, is {found}"));
        }
    }

    async fn only_json_is_taken(app) {
        let body = r#"{"name":"x"}"#;
        for media in
            ["", "text/plain", "application/x-www-form-urlencoded", "application/jsonx", "application/xml"]
        {
            let message = send(&app, media, body).await.refused(415);
            assert_eq!(message, "The body must be JSON: send `Content-Type: application/json`.", "{media}");
        }
        for (n, media) in ["application/json", "Application/JSON; charset=utf-8"].into_iter().enumerate() {
            let body = json!({ "name": n.to_string() }).to_string();
            assert_eq!(send(&app, media, body).await.code(), 200, "{media}");
        }
    }

    async fn a_body_over_the_limit_is_refused(app) {
        let fill = |size: usize| {
            let frame = json!({ "name": "x", "padding": "" }).to_string().len();
            json!({ "name": "x", "padding": "x".repeat(size - frame) }).to_string()
        };
        let message = send(&app, "application/json", fill(1024 * 1024 + 1)).await.refused(413);
        assert_eq!(message, "The body is too large: at most 1048576 bytes are read.");
        assert_eq!(send(&app, "application/json", fill(1024 * 1024)).await.code(), 200);
        let eve = app.member("eve").await;
        let call =
            app.call("POST", &app.path("/workspaces")).by(&eve).header("content-type", "application/json");
        assert_eq!(call.body(fill(1024 * 1024 + 1)).send().await.code(), 403, "rights come first");
    }

    async fn all_wrong_fields_are_reported_at_once_with_their_paths(app) {
        let body = json!({
            "name": "",
            "description": 7,
            "cicdEnforcedDefault": "yes",
            "defaultClusterId": "x",
            "defaultCloudProvider": "aws",
            "defaultRegion": ["eu"],
        });
        let answer = app.post(&app.owner, &app.path("/workspaces"), body).await;
        let mut body = answer.json();
        body["requestId"] = "…".into();
        insta::assert_json_snapshot!(body, @r#"
        {
          "message": "name must not be empty; description must be a string, is a number; cicdEnforcedDefault must be true or false, is a string; 3 more fields are wrong",
          "requestId": "…",
          "statusCode": 400,
          "code": "invalid",
          "fieldErrors": [
            {
              "field": "name",
              "code": "minLength",
              "message": "must not be empty"
            },
            {
              "field": "description",
              "code": "type",
              "message": "must be a string, is a number"
            },
            {
              "field": "cicdEnforcedDefault",
              "code": "type",
              "message": "must be true or false, is a string"
            },
            {
              "field": "defaultClusterId",
              "code": "format",
              "message": "must be an id: 25 characters, `c` and 24 of 0-9 and a-z"
            },
            {
              "field": "defaultCloudProvider",
              "code": "enum",
              "message": "must be one of AWS, AZURE, GCP"
            },
            {
              "field": "defaultRegion",
              "code": "type",
              "message": "must be a string, is an array"
            }
          ]
        }
        "#);
        let call = app.call("POST", &app.path("/teams/x/roles?limit=x")).by(&app.owner);
        let body = json!({ "workspaceRoles": [{ "role": "X", "workspaceId": "y" }, {}, "z"] });
        assert_eq!(
            call.json(&body).send().await.wrong_fields(),
            [
                "organizationRole: required",
                "workspaceRoles[0].role: enum",
                "workspaceRoles[0].workspaceId: format",
                "workspaceRoles[1].role: required",
                "workspaceRoles[1].workspaceId: required",
                "workspaceRoles[2]: type",
            ]
        );
    }

    async fn the_message_names_up_to_three_fields_and_counts_the_others(app) {
        let workspace = app.workspace("Analytics").await;
        let one = app.post(&app.owner, &app.path("/teams"), json!({})).await;
        assert_eq!(one.refused(400), "name is required");
        let deployment = json!({ "workspaceId": workspace, "workerQueues": [] });
        let two = app.post(&app.owner, &app.path("/deployments"), deployment).await;
        assert_eq!(two.refused(400), "name is required");
        let deployment = json!({ "name": " ", "workspaceId": workspace, "workerQueues": [] });
        let two = app.post(&app.owner, &app.path("/deployments"), deployment).await;
        assert_eq!(
            two.refused(400),
            "name must not be blank; workerQueues must have at least 1 item: the queue `default` always exists"
        );
        let members = app.path(&format!("/teams/{}/members", app.team("Crew", &[]).await));
        let none = app.post(&app.owner, &members, json!({ "memberIds": [] })).await;
        assert_eq!(none.refused(400), "memberIds must have at least 1 item");
        let four = json!({ "memberIds": ["a", "b", "c", "d"] });
        let message = app.post(&app.owner, &members, four).await.refused(400);
        assert!(message.starts_with("memberIds[0] must be an id: "), "{message}");
        assert!(message.contains("; memberIds[2] must be an id: ") && !message.contains("[3]"), "{message}");
        assert!(message.ends_with("; 1 more field is wrong"), "{message}");
        let query = app.get(&app.owner, &app.path("/workspaces?limit=-1&offset=-1")).await;
        assert_eq!(query.refused(400), "offset must be at least 0; limit must be at least 0");
    }

    async fn unknown_properties_are_ignored(app) {
        let body = json!({ "name": "Data", "unknown": { "a": [1] }, "id": "mine", "createdAt": 7 });
        let created = app.post(&app.owner, &app.path("/workspaces"), body).await.ok();
        assert_eq!(created["name"], "Data");
        assert_ne!(created["id"], "mine");
        assert_eq!(created.get("unknown"), None);
        let path = app.path("/workspaces?unknown=1&unknown=2&__proto__=x");
        assert_eq!(app.get(&app.owner, &path).await.code(), 200);
    }

    async fn null_is_as_absent_and_so_is_an_empty_word_or_id(app) {
        let create = async |name: &str, others: Value| {
            let mut body = others;
            body["name"] = name.into();
            let mut created = app.post(&app.owner, &app.path("/workspaces"), body).await.ok();
            for changing in ["id", "name"] {
                created.as_object_mut().unwrap().remove(changing);
            }
            created
        };
        let absent = create("absent", json!({})).await;
        let null = json!({
            "description": null,
            "cicdEnforcedDefault": null,
            "defaultClusterId": null,
            "defaultCloudProvider": null,
            "defaultRegion": null,
        });
        assert_eq!(create("null", null).await, absent);
        let empty = json!({ "defaultClusterId": "", "defaultCloudProvider": "", "defaultRegion": "" });
        assert_eq!(create("empty", empty).await, absent);
        let wrong = app
            .post(&app.owner, &app.path("/workspaces"), json!({ "name": "x", "cicdEnforcedDefault": "" }))
            .await;
        assert_eq!(wrong.wrong_fields(), ["cicdEnforcedDefault: type"], "a boolean is neither");
    }

    async fn the_nul_character_is_refused_everywhere(app) {
        for (path, body, wrong) in [
            ("/workspaces", json!({ "name": "a\u{0}b" }), "name: format"),
            ("/workspaces", json!({ "name": "x", "description": "\u{0}" }), "description: format"),
            ("/teams", json!({ "name": "\u{0}" }), "name: format"),
            (
                "/invites",
                json!({ "inviteeEmail": "a\u{0}@b.c", "role": "ORGANIZATION_MEMBER" }),
                "inviteeEmail: format",
            ),
            ("/allowed-ip-address-ranges", json!({ "ipAddressRange": "\u{0}" }), "ipAddressRange: format"),
        ] {
            assert_eq!(app.post(&app.owner, &app.path(path), body).await.wrong_fields(), [wrong], "{path}");
        }
        for (path, wrong) in [
            ("/workspaces?names=a%00b", "names[0]: format"),
            ("/workspaces?workspaceIds=x&workspaceIds=%00", "workspaceIds[1]: format"),
            ("/users?dagId=%00", "dagId: format"),
            ("/teams?workspaceId=%00", "workspaceId: format"),
        ] {
            assert_eq!(app.get(&app.owner, &app.path(path)).await.wrong_fields(), [wrong], "{path}");
        }
        assert_eq!(app.get(&app.owner, &app.path("/workspaces/%00")).await.code(), 404);
    }

    async fn text_is_kept_as_it_was_sent(app) {
        let description =
            "Quotes ' \" and \\ — emoji 🚀, tabs\tand\nlines; DROP TABLE workspaces; -- %s {} $1";
        let body = json!({ "name": "Robert'); --", "description": description });
        let created = app.post(&app.owner, &app.path("/workspaces"), body).await;
        assert_eq!(created.ok()["description"], description);
        let read = app.get(&app.owner, &app.path("/workspaces?names=Robert%27%29%3B%20--")).await.ok();
        assert_eq!(
            (&read["totalCount"], &read["workspaces"][0]["description"]),
            (&json!(1), &json!(description))
        );
    }
}
