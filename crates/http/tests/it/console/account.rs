//! Your account: the sessions that are listed there, and how they end.

use podium_testkit::on_both_engines;
use serde_json::json;

use super::{ORIGIN, Person};
use crate::front_door::{SESSION, cookies};

const SCRIPT: &str = "<script>alert(1)</script>\"'><img src=x>";
const FIREFOX: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";

/// Another browser of the same person.
async fn browser<'a>(person: &Person<'a>, token: &str, user_agent: &str) -> Person<'a> {
    let form = person.app.call("POST", "/sign-in").header("origin", ORIGIN).header("user-agent", user_agent);
    let answer = form.body(format!("token={token}")).send().await;
    let cookie = format!("{SESSION}={}", cookies(&answer)[SESSION]);
    Person { app: person.app, cookie, home: person.home.clone() }
}

on_both_engines! {
    async fn a_person_ends_sessions_at_the_console(app) {
        let ada = app.member("ada").await;
        let person = Person::new(&app, &ada).await;
        let others = [browser(&person, &ada.token, FIREFOX).await, browser(&person, &ada.token, FIREFOX).await];
        let page = person.page("/account").await;
        assert_eq!(page.matches("This session").count(), 1);
        assert_eq!(page.matches("This browser signed in with this token").count(), 1, "that button would sign out: {page}");
        assert_eq!(page.matches("Firefox on Linux</td>").count() + page.matches("Firefox on Linux<span").count(), 2, "{page}");
        let listed = app.get(&ada, "/v1/auth/sessions").await.ok();
        let of_firefox = listed["sessions"].as_array().unwrap().iter().find(|session| session["userAgent"] == FIREFOX).unwrap();
        let end = format!("/account/sessions/{}/end", of_firefox["id"].as_str().unwrap());
        assert!(person.sent(&end, "").await.contains("has to sign in again"));
        let left = [others[0].read("/account").await.code(), others[1].read("/account").await.code()];
        assert!(left == [200, 303] || left == [303, 200], "{left:?}");
        let again = person.send(&end, "").await;
        assert!(again.text().contains("There is no such session"), "{}", again.text());
        let page = person.sent("/account/sessions/end-others", "").await;
        assert!(page.contains("This session") && !page.contains("Firefox"), "{page}");
        for other in &others {
            assert_eq!(other.read("/account").await.code(), 303);
        }
        let forged = app.call("POST", &format!("{}/account/sessions/end-others", person.home)).header("origin", ORIGIN);
        assert_eq!(forged.header("cookie", &person.cookie).body("form-token=").send().await.code(), 403);
    }

    async fn a_script_in_a_user_agent_stays_text(app) {
        let ada = app.member("ada").await;
        let person = Person::new(&app, &ada).await;
        browser(&person, &ada.token, SCRIPT).await;
        let page = person.page("/account").await;
        assert!(page.contains("&#60;script&#62;alert(1)") || page.contains("&lt;script&gt;alert(1)"), "{page}");
        assert!(!page.contains("<script>alert") && !page.contains("<img src=x"), "{page}");
    }

    async fn a_new_password_keeps_the_browser_that_sets_it(app) {
        let ada = app.member("ada").await;
        let person = Person::new(&app, &ada).await;
        let other = browser(&person, &ada.token, FIREFOX).await;
        let page = person.sent("/account", "currentPassword=&newPassword=correct+horse+battery").await;
        assert!(page.contains("This session") && !page.contains("Firefox"), "{page}");
        assert_eq!(other.read("/account").await.code(), 303);
        let body = json!({ "username": "ada@podium.test", "password": "correct horse battery" });
        app.call("POST", "/v1/auth/sign-in").json(&body).send().await.ok();
    }

    async fn an_api_token_has_an_account_page_without_sessions(app) {
        let token = app.token("ci", "ORGANIZATION", app.organization_id, "ORGANIZATION_MEMBER").await;
        let page = Person::new(&app, &token).await.page("/account").await;
        assert!(!page.contains("End all other sessions"), "{page}");
    }
}
