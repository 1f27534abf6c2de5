//! `/organizations/{organizationId}/allowed-ip-address-ranges`

mod bulk;
mod enforcement;

use podium_api::enums::OrganizationRole;
use podium_testkit::{Answer, TestApp, on_both_engines};
use serde_json::{Value, json};

const PATH: &str = "/allowed-ip-address-ranges";

async fn allow(app: &TestApp, range: &str) -> Answer {
    app.post(&app.owner, &app.path(PATH), json!({ "ipAddressRange": range })).await
}

async fn listed(app: &TestApp, query: &str) -> Vec<String> {
    let list = app.get(&app.owner, &app.path(&format!("{PATH}?{query}"))).await.ok();
    let range = |item: &Value| item["ipAddressRange"].as_str().unwrap().to_owned();
    list["allowedIpAddressRanges"].as_array().unwrap().iter().map(range).collect()
}

on_both_engines! {
    async fn a_range_is_added_listed_and_removed(app) {
        let created = allow(&app, " 127.0.0.0/8 ").await;
        assert_eq!(created.code(), 200);
        insta::assert_json_snapshot!(created.ok(), @r#"
        {
          "id": "cmywpiww00004000000000000",
          "ipAddressRange": "127.0.0.0/8",
          "organizationId": "cmywpiww00000000000000000",
          "createdAt": "2027-01-15T08:00:00.000Z",
          "createdBy": {
            "id": "cmywpiww00001000000000000",
            "subjectType": "USER",
            "username": "owner@localhost",
            "fullName": "Owner",
            "avatarUrl": "https://podium.test/pictures/O.svg"
          },
          "updatedAt": "2027-01-15T08:00:00.000Z",
          "updatedBy": {
            "id": "cmywpiww00001000000000000",
            "subjectType": "USER",
            "username": "owner@localhost",
            "fullName": "Owner",
            "avatarUrl": "https://podium.test/pictures/O.svg"
          }
        }
        "#);
        let list = app.get(&app.owner, &app.path(PATH)).await.ok();
        let expected =
            json!({ "allowedIpAddressRanges": [created.ok()], "limit": 20, "offset": 0, "totalCount": 1 });
        assert_eq!(list, expected);
        let at = app.path(&format!("{PATH}/{}", created.id()));
        assert_eq!(app.delete(&app.owner, &at).await.code(), 204);
        let list = app.get(&app.owner, &app.path(PATH)).await.ok();
        assert_eq!(list, json!({ "allowedIpAddressRanges": [], "limit": 20, "offset": 0, "totalCount": 0 }));
        let message = app.delete(&app.owner, &at).await.refused(404);
        assert_eq!(message, "There is no such allowed IP address range, or you may not see it.");
    }

    async fn only_canonical_ranges_are_taken(app) {
        for (range, hint) in [
            ("127.0.0.1/8", "write 127.0.0.0/8"),
            ("2001:db8::1/32", "write 2001:db8::/32"),
            ("127.0.0.1", "write 127.0.0.1/32"),
            ("127.0.0.0/33", "from 0 to 32"),
            ("::/129", "from 0 to 128"),
            ("127.0.0.0/08", "from 0 to 32"),
            ("::ffff:127.0.0.0/104", "written as an IPv4 range: 127.0.0.0/8"),
            ("everywhere", "CIDR notation"),
            ("", "CIDR notation"),
        ] {
            let answer = allow(&app, range).await;
            assert_eq!(answer.wrong_fields(), ["ipAddressRange: format"], "{range}");
            assert!(answer.refused(400).contains(hint), "{}", answer.text());
        }
        assert_eq!(
            allow(&app, "2001:DB8:0:0::/32").await.refused(400),
            "This would lock you out: your address \
            127.0.0.1 would be in none of the allowed ranges. Allow it first."
        );
        assert_eq!(allow(&app, "127.0.0.1/32").await.ok()["ipAddressRange"], "127.0.0.1/32");
        assert_eq!(allow(&app, "2001:DB8:0:0::/32").await.ok()["ipAddressRange"], "2001:db8::/32");
        assert_eq!(listed(&app, "sorts=ipAddress:asc").await, ["127.0.0.1/32", "2001:db8::/32"]);
    }

    async fn a_range_is_listed_once(app) {
        allow(&app, "0.0.0.0/0").await.ok();
        assert_eq!(allow(&app, "0.0.0.0/0").await.refused(409), "The range 0.0.0.0/0 is already allowed.");
        allow(&app, "2001:db8::/32").await.ok();
        assert_eq!(allow(&app, "2001:0db8::/32").await.code(), 409);
    }

    async fn ranges_sort_as_addresses_do(app) {
        for range in
            ["0.0.0.0/0", "100.0.0.0/8", "9.0.0.0/8", "10.0.0.0/16", "10.0.0.0/8", "fe80::/10", "::/0"]
        {
            allow(&app, range).await.ok();
            app.advance(std::time::Duration::from_millis(1));
        }
        let ascending =
            ["0.0.0.0/0", "9.0.0.0/8", "10.0.0.0/8", "10.0.0.0/16", "100.0.0.0/8", "::/0", "fe80::/10"];
        assert_eq!(listed(&app, "sorts=ipAddress:asc").await, ascending);
        let mut descending = ascending;
        descending.reverse();
        assert_eq!(listed(&app, "sorts=ipAddress:desc").await, descending);
        assert_eq!(listed(&app, "limit=2").await, ["::/0", "fe80::/10"]);
        assert_eq!(listed(&app, "limit=2&offset=1&sorts=createdAt:asc").await, ["100.0.0.0/8", "9.0.0.0/8"]);
        let list = app.get(&app.owner, &app.path(&format!("{PATH}?limit=5000"))).await.ok();
        assert_eq!((&list["limit"], &list["totalCount"]), (&json!(1000), &json!(7)));
    }

    async fn ranges_are_for_owners(app) {
        let id = allow(&app, "0.0.0.0/0").await.id();
        for role in [OrganizationRole::Member, OrganizationRole::BillingAdmin] {
            let actor = app.member_as(role.as_str(), role).await;
            for answer in [
                app.get(&actor, &app.path(PATH)).await,
                app.post(&actor, &app.path(PATH), json!({ "ipAddressRange": "::/0" })).await,
                app.post(&actor, &app.path(&format!("{PATH}/bulk-create")), json!({})).await,
                app.post(&actor, &app.path(&format!("{PATH}/bulk-delete")), json!({})).await,
                app.delete(&actor, &app.path(&format!("{PATH}/{id}"))).await,
            ] {
                assert_eq!(answer.code(), 403, "{}", answer.text());
            }
        }
    }
}
