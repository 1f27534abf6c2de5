//! From where an organization is reached.

use podium_api::AllowedIpAddressRangeId;
use podium_testkit::{Actor, Engine, TestApp, block_on, on_both_engines};
use serde_json::json;

use super::{PATH, allow, listed};

/// The status of a read of the organization from an address.
async fn from(app: &TestApp, actor: &Actor, address: &str, forwarded_for: &[&str]) -> u16 {
    let mut call = app.call("GET", &app.path("")).by(actor).from(address);
    for hops in forwarded_for {
        call = call.header("x-forwarded-for", hops);
    }
    call.send().await.code()
}

on_both_engines! {
    async fn without_ranges_every_address_is_allowed(app) {
        for address in ["127.0.0.1", "203.0.113.9", "2001:db8::1", "::ffff:203.0.113.9"] {
            assert_eq!(from(&app, &app.owner, address, &[]).await, 200, "{address}");
        }
    }

    async fn with_ranges_only_they_are_let_in(app) {
        for range in ["127.0.0.0/8", "203.0.113.0/24", "2001:db8::/32"] {
            allow(&app, range).await.ok();
        }
        let eve = app.member("eve").await;
        let token = app.token("ci", "ORGANIZATION", app.organization_id, "ORGANIZATION_MEMBER").await;
        for actor in [&app.owner, &eve, &token] {
            for (address, status) in [
                ("203.0.113.9", 200),
                ("::ffff:203.0.113.9", 200),
                ("2001:db8::1", 200),
                ("203.0.114.1", 403),
                ("::ffff:203.0.114.1", 403),
                ("2001:db9::1", 403),
                ("::1", 403),
            ] {
                assert_eq!(from(&app, actor, address, &[]).await, status, "{address}");
            }
        }
        let refused = app.call("GET", &app.path("/users")).by(&eve).from("198.51.100.1").send().await;
        let message = "Requests from 198.51.100.1 are not allowed: ask an owner to allow your address range.";
        assert_eq!(refused.refused(403), message);
        assert_eq!(app.call("GET", "/v1/users/self").by(&eve).from("198.51.100.1").send().await.code(), 200);
    }

    async fn a_change_of_the_allowed_ranges_takes_effect_at_once(app) {
        assert_eq!(from(&app, &app.owner, "203.0.113.9", &[]).await, 200);
        let id = allow(&app, "127.0.0.0/8").await.id();
        assert_eq!(from(&app, &app.owner, "203.0.113.9", &[]).await, 403);
        let at = app.path(&format!("{PATH}/{id}"));
        assert_eq!(app.call("DELETE", &at).by(&app.owner).from("203.0.113.9").send().await.code(), 403);
        assert_eq!(app.delete(&app.owner, &at).await.code(), 204);
        assert_eq!(from(&app, &app.owner, "203.0.113.9", &[]).await, 200);
    }

    async fn a_range_that_cannot_be_parsed_admits_nobody(app) {
        let id = allow(&app, "127.0.0.0/8").await.id();
        app.set_column("allowed_ip_address_ranges", id.parse::<AllowedIpAddressRangeId>().unwrap(), "ip_address_range", "'127.0.0.0/99'").await;
        app.app.forget_caller(&app.owner.token, Some(app.organization_id));
        for address in ["127.0.0.1", "203.0.113.9"] {
            assert_eq!(from(&app, &app.owner, address, &[]).await, 403, "{address}");
        }
        // Only the operator opens the door again.
        assert_eq!(app.app.reset_allowed_ip_address_ranges(&app.system).await.unwrap(), 1);
        assert_eq!(from(&app, &app.owner, "127.0.0.1", &[]).await, 200);
    }

    async fn a_caller_of_another_organization_learns_nothing_from_the_address_check(app) {
        let stranger = app.stranger().await;
        let ask = async |address: &str| {
            let call = app.call("GET", &app.path("")).by(&stranger).header("x-request-id", "same");
            let answer = call.from(address).send().await;
            (answer.code(), answer.headers.clone(), answer.text())
        };
        let before = ask("203.0.113.9").await;
        allow(&app, "127.0.0.0/8").await.ok();
        assert_eq!(before.0, 404);
        assert_eq!(ask("203.0.113.9").await, before);
        assert_eq!(ask("127.0.0.1").await, before);
    }

    async fn the_address_is_checked_before_the_permission(app) {
        let eve = app.member("eve").await;
        allow(&app, "127.0.0.0/8").await.ok();
        let body = json!({ "name": "Mine" });
        let call = app.call("POST", &app.path("/workspaces")).by(&eve).json(&body).from("203.0.113.9");
        assert!(call.send().await.refused(403).starts_with("Requests from 203.0.113.9"));
    }

    async fn a_header_from_anybody_is_not_believed(app) {
        allow(&app, "127.0.0.0/8").await.ok();
        assert_eq!(from(&app, &app.owner, "203.0.113.9", &["127.0.0.1"]).await, 403);
        assert_eq!(from(&app, &app.owner, "127.0.0.1", &["203.0.113.9"]).await, 200);
        let call = app
            .call("POST", &app.path("/workspaces"))
            .by(&app.owner)
            .header("x-forwarded-for", "203.0.113.9");
        call.json(&json!({ "name": "Data" })).send().await.ok();
        assert_eq!(app.audit().await.last().unwrap()["sourceAddress"], "127.0.0.1");
    }

    async fn the_operator_can_reset_the_allowed_ranges(app) {
        allow(&app, "127.0.0.0/8").await.ok();
        assert_eq!(from(&app, &app.owner, "203.0.113.9", &[]).await, 403);
        assert_eq!(app.app.reset_allowed_ip_address_ranges(&app.system).await.unwrap(), 1);
        assert_eq!(from(&app, &app.owner, "203.0.113.9", &[]).await, 200);
        assert_eq!(listed(&app, "").await, Vec::<String>::new());
    }
}

#[test]
fn a_header_from_a_trusted_proxy_is_believed() {
    for engine in [Engine::Sqlite, Engine::Postgres] {
        block_on(async {
            let app = TestApp::start_with(engine, |_, settings| {
                settings.trusted_proxies = vec!["10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()];
            })
            .await;
            for range in ["127.0.0.0/8", "203.0.113.0/24", "2001:db8::/32"] {
                allow(&app, range).await.ok();
            }
            let table: [(&str, &[&str], u16); 12] = [
                ("10.0.0.1", &["203.0.113.9"], 200),
                ("fd00::1", &["2001:db8::7"], 200),
                ("::ffff:10.0.0.1", &["203.0.113.9"], 200),
                ("10.0.0.1", &["198.51.100.1"], 403),
                ("10.0.0.1", &["203.0.113.9, 198.51.100.1"], 403),
                ("10.0.0.1", &["198.51.100.1, 203.0.113.9"], 200),
                ("10.0.0.1", &["203.0.113.9, 10.0.0.2"], 200),
                ("10.0.0.1", &["203.0.113.9", "10.0.0.2"], 200),
                ("10.0.0.1", &["203.0.113.9", "198.51.100.1"], 403),
                ("10.0.0.1", &["203.0.113.9, nonsense"], 403),
                ("10.0.0.1", &[], 403),
                ("198.51.100.1", &["203.0.113.9"], 403),
            ];
            for (peer, hops, status) in table {
                assert_eq!(from(&app, &app.owner, peer, hops).await, status, "{peer} {hops:?}");
            }
        });
    }
}
