//! `/organizations`, and the export of an organization's audit log.

mod audit;

use podium_api::enums::OrganizationRole;
use podium_testkit::{Actor, TestApp, on_both_engines};
use serde_json::{Value, json};

fn settings(others: Value) -> Value {
    let mut body = json!({ "name": "Acme", "billingEmail": "bills@acme.test", "isScimEnabled": false });
    if let Value::Object(others) = others {
        others.into_iter().for_each(|(key, value)| body[key] = value);
    }
    body
}

async fn names(app: &TestApp, actor: &Actor, query: &str) -> Vec<String> {
    let list = app.get(actor, &format!("/v1/organizations?{query}")).await.ok();
    let organizations = list["organizations"].as_array().unwrap();
    assert_eq!(list["totalCount"], organizations.len());
    organizations.iter().map(|organization| organization["name"].as_str().unwrap().to_owned()).collect()
}

on_both_engines! {
    async fn an_organization_is_read_in_full(app) {
        let answer = app.get(&app.owner, &app.path("")).await;
        insta::assert_json_snapshot!(answer.ok(), @r#"
        {
          "id": "cmywpiww00000000000000000",
          "name": "My organization",
          "billingEmail": "",
          "status": "ACTIVE",
          "product": "HOSTED",
          "productPlans": [],
          "hasAllowedIpAddressRanges": false,
          "isScimEnabled": false,
          "shouldEnforceDedicatedClusters": false,
          "allowEnhancedSupportAccess": false,
          "hasAiFeaturesDisabled": false,
          "isBlockedEnableAiFeatures": false,
          "managedDomains": [],
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
        assert_eq!(answer.header("etag").split('-').next(), Some("\"1"));
    }

    async fn a_lookup_skips_slow_details(app) {
        insta::assert_json_snapshot!(app.get(&app.owner, &app.path("?isLookUpOnly=true")).await.ok(), @r#"
        {
          "id": "cmywpiww00000000000000000",
          "name": "My organization",
          "status": "ACTIVE",
          "product": "HOSTED",
          "productPlans": [],
          "hasAllowedIpAddressRanges": false,
          "isScimEnabled": false,
          "shouldEnforceDedicatedClusters": false,
          "allowEnhancedSupportAccess": false,
          "hasAiFeaturesDisabled": false,
          "isBlockedEnableAiFeatures": false,
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
        let full = app.get(&app.owner, &app.path("?isLookUpOnly=false")).await.ok();
        assert_eq!(full, app.get(&app.owner, &app.path("")).await.ok());
        let wrong = app.get(&app.owner, &app.path("?isLookUpOnly=maybe")).await.wrong_fields();
        assert_eq!(wrong, ["isLookUpOnly: type"]);
    }

    async fn settings_are_changed_and_omitted_ones_stay(app) {
        let change = settings(json!({
            "isScimEnabled": true,
            "shouldEnforceDedicatedClusters": true,
            "allowEnhancedSupportAccess": true,
            "hasAiFeaturesDisabled": true,
        }));
        app.advance(std::time::Duration::from_millis(1));
        let mut expected = app.get(&app.owner, &app.path("")).await.ok();
        for (key, value) in change.as_object().unwrap() {
            expected[key] = value.clone();
        }
        expected["updatedAt"] = "2027-01-15T08:00:00.001Z".into();
        assert_eq!(app.post(&app.owner, &app.path(""), change).await.ok(), expected);
        assert_eq!(app.get(&app.owner, &app.path("")).await.ok(), expected);
        let less =
            settings(json!({ "shouldEnforceDedicatedClusters": null, "allowEnhancedSupportAccess": false }));
        let changed = app.post(&app.owner, &app.path(""), less).await.ok();
        assert_eq!(changed["isScimEnabled"], false);
        assert_eq!(changed["shouldEnforceDedicatedClusters"], true);
        assert_eq!(changed["allowEnhancedSupportAccess"], false);
        assert_eq!(changed["hasAiFeaturesDisabled"], true);
    }

    async fn every_wrong_setting_is_named(app) {
        let post = async |body| app.post(&app.owner, &app.path(""), body).await.wrong_fields();
        assert_eq!(
            post(json!({})).await,
            ["name: required", "billingEmail: required", "isScimEnabled: required"]
        );
        let wrong = settings(json!({ "name": " ", "billingEmail": "nobody" }));
        assert_eq!(post(wrong).await, ["name: required", "billingEmail: format"]);
        assert_eq!(post(settings(json!({ "name": "x".repeat(51) }))).await, ["name: maxLength"]);
        assert_eq!(post(settings(json!({ "isScimEnabled": "yes" }))).await, ["isScimEnabled: type"]);
        let no_mail = app.post(&app.owner, &app.path(""), settings(json!({ "billingEmail": "" }))).await.ok();
        assert_eq!(no_mail["billingEmail"], "");
    }

    async fn billing_admins_change_settings_and_members_read_them(app) {
        let table = [
            (OrganizationRole::Member, 403),
            (OrganizationRole::ObserveMember, 403),
            (OrganizationRole::ObserveAdmin, 403),
            (OrganizationRole::BillingAdmin, 200),
            (OrganizationRole::Owner, 200),
        ];
        for (role, changed) in table {
            let actor = app.member_as(&format!("the {}", role.as_str()), role).await;
            assert_eq!(app.get(&actor, &app.path("")).await.code(), 200, "{}", role.as_str());
            let answer = app.post(&actor, &app.path(""), settings(json!({}))).await;
            assert_eq!(answer.code(), changed, "{}", role.as_str());
        }
        let stranger = app.stranger().await;
        for answer in [
            app.get(&stranger, &app.path("")).await,
            app.post(&stranger, &app.path(""), settings(json!({}))).await,
            app.get(&app.owner, "/v1/organizations/nonsense").await,
        ] {
            assert_eq!(answer.refused(404), "There is no such organization, or you may not see it.");
        }
    }

    async fn a_caller_lists_the_organizations_that_it_belongs_to(app) {
        let (eve, stranger) = (app.member("eve").await, app.stranger().await);
        let token = app.token("ci", "ORGANIZATION", app.organization_id, "ORGANIZATION_MEMBER").await;
        for actor in [&app.owner, &eve, &token] {
            assert_eq!(names(&app, actor, "").await, ["My organization"]);
        }
        assert_eq!(names(&app, &stranger, "").await, ["Elsewhere"]);
        let list = app.get(&app.owner, "/v1/organizations").await.ok();
        let own = app.get(&app.owner, &app.path("")).await.ok();
        assert_eq!(list, json!({ "organizations": [own], "limit": 20, "offset": 0, "totalCount": 1 }));
    }

    async fn an_invited_user_lists_an_organization_once_it_has_accepted(app) {
        let stranger = app.stranger().await;
        let invite = json!({ "inviteeEmail": "stranger@podium.test", "role": "ORGANIZATION_MEMBER" });
        let invite = app.post(&app.owner, &app.path("/invites"), invite).await.ok();
        assert_eq!(names(&app, &stranger, "").await, ["Elsewhere"]);
        assert_eq!(app.get(&stranger, &app.path("")).await.code(), 404);
        let link = app.path(&format!("/invites/{}/link", invite["inviteId"].as_str().unwrap()));
        let link = app.post(&app.owner, &link, json!(null)).await.ok();
        app.post(&stranger, "/v1/auth/accept-invite", json!({ "token": link["token"] })).await.ok();
        assert_eq!(names(&app, &stranger, "sorts=name:asc").await, ["Elsewhere", "My organization"]);
        assert_eq!(names(&app, &stranger, "sorts=name:desc").await, ["My organization", "Elsewhere"]);
        assert_eq!(app.get(&stranger, &app.path("")).await.code(), 200);
    }

    async fn organizations_are_filtered_by_product_and_plan(app) {
        for (query, found) in [
            ("product=HOSTED", 1),
            ("product=HYBRID", 0),
            ("product=", 1),
            ("productPlan=TRIAL", 0),
            ("platformProduct=PLATFORM", 0),
            ("productPlan=&platformProduct=", 1),
        ] {
            assert_eq!(names(&app, &app.owner, query).await.len(), found, "{query}");
        }
        let wrong =
            app.get(&app.owner, "/v1/organizations?product=hosted&productPlan=GOLD").await.wrong_fields();
        assert_eq!(wrong, ["productPlan: enum", "product: enum"]);
    }

    async fn the_organization_says_whether_it_lists_allowed_ranges(app) {
        let flag =
            async || app.get(&app.owner, &app.path("")).await.ok()["hasAllowedIpAddressRanges"].clone();
        assert_eq!(flag().await, false);
        let ranges = app.path("/allowed-ip-address-ranges");
        let id = app.post(&app.owner, &ranges, json!({ "ipAddressRange": "127.0.0.0/8" })).await.id();
        assert_eq!(flag().await, true);
        assert_eq!(app.delete(&app.owner, &format!("{ranges}/{id}")).await.code(), 204);
        assert_eq!(flag().await, false);
    }
}
