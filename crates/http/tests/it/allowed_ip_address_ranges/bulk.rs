//! Many ranges at once: all or none.

use podium_api::Id;
use podium_testkit::{Answer, TestApp, on_both_engines};
use serde_json::{Value, json};

use super::{PATH, allow, listed};

async fn create(app: &TestApp, ranges: &[&str]) -> Answer {
    let body = json!({ "allowedIpAddressRanges": ranges });
    app.post(&app.owner, &app.path(&format!("{PATH}/bulk-create")), body).await
}

async fn delete(app: &TestApp, ids: &[Value]) -> Answer {
    let body = json!({ "allowedIpAddressRangeIds": ids });
    app.post(&app.owner, &app.path(&format!("{PATH}/bulk-delete")), body).await
}

fn ids(created: &Value) -> Vec<Value> {
    created["allowedIpAddressRanges"].as_array().unwrap().iter().map(|range| range["id"].clone()).collect()
}

on_both_engines! {
    async fn ranges_are_added_in_the_order_of_the_request(app) {
        let created = create(&app, &["127.0.0.0/8", "2001:db8::/32"]).await.ok();
        assert_eq!(created.as_object().unwrap().len(), 1);
        let added = created["allowedIpAddressRanges"].as_array().unwrap();
        assert_eq!(added[0]["ipAddressRange"], "127.0.0.0/8");
        assert_eq!(added[1]["ipAddressRange"], "2001:db8::/32");
        assert_eq!(added[1]["createdBy"]["id"], json!(app.owner.id));
        assert_eq!(listed(&app, "sorts=ipAddress:asc").await, ["127.0.0.0/8", "2001:db8::/32"]);
    }

    async fn one_wrong_range_stops_them_all(app) {
        allow(&app, "127.0.0.0/8").await.ok();
        let wrong = create(&app, &["10.0.0.0/8", "10.0.0.1/8", "192.168.0.0/16", "x"]).await;
        assert_eq!(
            wrong.wrong_fields(),
            ["allowedIpAddressRanges[1]: format", "allowedIpAddressRanges[3]: format"]
        );
        let twice = create(&app, &["10.0.0.0/8", "::/0", "10.0.0.0/8"]).await.refused(409);
        assert_eq!(twice, "The request lists 10.0.0.0/8 twice; list every range once.");
        let taken = create(&app, &["10.0.0.0/8", "127.0.0.0/8"]).await.refused(409);
        assert_eq!(taken, "The range 127.0.0.0/8 is already allowed.");
        assert_eq!(listed(&app, "").await, ["127.0.0.0/8"]);
    }

    async fn from_one_to_a_thousand_are_taken(app) {
        assert_eq!(create(&app, &[]).await.wrong_fields(), ["allowedIpAddressRanges: minItems"]);
        assert_eq!(delete(&app, &[]).await.wrong_fields(), ["allowedIpAddressRangeIds: minItems"]);
        let mut ranges: Vec<String> = (0..1000).map(|n| format!("10.{}.{}.0/24", n / 256, n % 256)).collect();
        ranges.push("127.0.0.0/8".into());
        let ranges: Vec<&str> = ranges.iter().map(String::as_str).collect();
        assert_eq!(create(&app, &ranges).await.wrong_fields(), ["allowedIpAddressRanges: maxItems"]);
        let created = ids(&create(&app, &ranges[1..]).await.ok());
        assert_eq!(created.len(), 1000);
        let list = app.get(&app.owner, &app.path(&format!("{PATH}?limit=0"))).await.ok();
        assert_eq!((&list["allowedIpAddressRanges"], &list["totalCount"]), (&json!([]), &json!(1000)));
        assert_eq!(delete(&app, &created).await.code(), 204);
        assert_eq!(listed(&app, "").await, Vec::<String>::new());
    }

    async fn one_unknown_id_removes_none_of_them(app) {
        let created = ids(&create(&app, &["127.0.0.0/8", "10.0.0.0/8"]).await.ok());
        let unknown = json!(app.world.id::<Id>());
        let wrong =
            delete(&app, &[created[0].clone(), unknown, created[1].clone(), created[0].clone()]).await;
        let expected = ["allowedIpAddressRangeIds[1]: notFound", "allowedIpAddressRangeIds[3]: duplicate"];
        assert_eq!(wrong.wrong_fields(), expected);
        let shapeless = delete(&app, &[created[0].clone(), json!("x"), json!(7)]).await.wrong_fields();
        assert_eq!(shapeless, ["allowedIpAddressRangeIds[1]: format", "allowedIpAddressRangeIds[2]: type"]);
        assert_eq!(listed(&app, "").await.len(), 2);
        assert_eq!(delete(&app, &created).await.code(), 204);
        assert_eq!(
            delete(&app, &created[..1]).await.wrong_fields(),
            ["allowedIpAddressRangeIds[0]: notFound"]
        );
    }

    async fn nobody_locks_itself_out(app) {
        let locked = "This would lock you out: your address 127.0.0.1 would be in none of the allowed ranges. \
                      Allow it first.";
        assert_eq!(allow(&app, "203.0.113.0/24").await.refused(400), locked);
        assert_eq!(create(&app, &["203.0.113.0/24", "::/0"]).await.refused(400), locked);
        assert_eq!(listed(&app, "").await, Vec::<String>::new());
        let created = ids(&create(&app, &["203.0.113.0/24", "127.0.0.1/32", "::/0"]).await.ok());
        let own = app.path(&format!("{PATH}/{}", created[1].as_str().unwrap()));
        assert_eq!(app.delete(&app.owner, &own).await.refused(400), locked);
        assert_eq!(delete(&app, &created[1..2]).await.refused(400), locked);
        assert_eq!(delete(&app, &created[..2]).await.refused(400), locked);
        assert_eq!(listed(&app, "").await.len(), 3);
        assert_eq!(delete(&app, &created).await.code(), 204, "no range at all opens the door");
    }
}
