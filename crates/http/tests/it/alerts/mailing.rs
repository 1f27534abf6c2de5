//! Mails of alerts: written with the notice, and sent until the mail server has taken them.

use podium_app::mail::Mailer;
use podium_testkit::{Engine, Inbox, block_on};

use super::*;

/// An app with a mail server, and an alert that mails what is found at once.
async fn start(engine: Engine) -> (TestApp, Inbox) {
    let inbox = Inbox::start().await;
    let url = inbox.url();
    let app = TestApp::start_with(engine, |config, _| {
        config.mailer = Some(Mailer::new(&url, "podium@example.com").expect("settings"));
    });
    (app.await, inbox)
}

async fn mailed(world: &World<'_>) -> (DeploymentId, Value) {
    let addresses = ["ops@example.com", "ada@example.com"];
    let rule = json!({ "name": "Broken", "afterMinutes": 0, "webhookIds": [], "mailAddresses": addresses });
    let id = world.deployment("Nightly").await;
    (id, world.alert("DEPLOYMENT_UNHEALTHY", rule).await)
}

fn to<'a>(mails: &'a [String], address: &str) -> Vec<&'a String> {
    mails.iter().filter(|mail| mail.contains(&format!("To: {address}"))).collect()
}

/// The header that tells mails apart.
fn message_id(mail: &str) -> &str {
    mail.lines().find(|line| line.starts_with("Message-ID: ")).expect("an id")
}

fn a_notice_is_mailed_also_when_the_mail_server_was_away(engine: Engine) {
    block_on(async {
        let (app, inbox) = start(engine).await;
        let world = World::new(&app).await;
        let (id, alert) = mailed(&world).await;
        inbox.refuse();
        inbox.refuse();
        world.set_healthy(id, false).await;
        wait_for_notice(&app).await;
        assert_eq!((inbox.mails().len(), app.rows("alert_mails").await), (0, 2));
        let read = app.get(&app.owner, &of(&app, &alert)).await.ok();
        assert_eq!(read["mailFailingSince"], "2027-01-15T08:01:00.000Z");
        app.advance(Duration::from_secs(6));
        work(&app).await;
        let mails = inbox.mails();
        assert_eq!((mails.len(), app.rows("alert_mails").await), (2, 0));
        for address in ["ops@example.com", "ada@example.com"] {
            let [mail] = to(&mails, address)[..] else { panic!("one to {address}: {mails:?}") };
            assert!(mail.contains("Subject: Firing: Broken"), "{mail}");
            assert!(mail.contains("- The deployment Nightly is unhealthy."), "{mail}");
            assert!(mail.contains("Since 2027-01-15T08:00:00.000Z"), "{mail}");
            assert!(
                mail.contains("Why: ") && mail.contains(&format!("Next: podium deployment get {id}")),
                "{mail}"
            );
        }
        let read = app.get(&app.owner, &of(&app, &alert)).await.ok();
        assert_eq!(read.get("mailFailingSince"), None);
        world.set_healthy(id, true).await;
        wait_for_notice(&app).await;
        let mails = inbox.mails();
        assert_eq!(mails.len(), 4);
        assert!(mails[2].contains("Subject: Resolved: Broken"), "{}", mails[2]);
        wait_for_notice(&app).await;
        assert_eq!(inbox.mails().len(), 4);
    });
}

#[test]
fn a_notice_is_mailed_also_when_the_mail_server_was_away_on_sqlite() {
    a_notice_is_mailed_also_when_the_mail_server_was_away(Engine::Sqlite);
}

#[test]
fn a_notice_is_mailed_also_when_the_mail_server_was_away_on_postgres() {
    a_notice_is_mailed_also_when_the_mail_server_was_away(Engine::Postgres);
}

fn an_attempt_that_a_crash_cut_off_is_made_again_under_the_same_id(engine: Engine) {
    block_on(async {
        let (app, inbox) = start(engine).await;
        let world = World::new(&app).await;
        let (id, _) = mailed(&world).await;
        world.set_healthy(id, false).await;
        app.advance(WINDOW);
        inbox.hang();
        crate::events::settled(&app).await;
        tokio::select! {
            _ = app.settle() => panic!("the mail server does not answer"),
            () = inbox.wait_for_attempts(2) => {}
        }
        // Nobody makes the attempt again while it may still be under way.
        let before = app.rows("alert_mails").await;
        work(&app).await;
        assert_eq!(app.rows("alert_mails").await, before);
        app.advance(Duration::from_secs(30));
        work(&app).await;
        assert_eq!(app.rows("alert_mails").await, 0);
        let mails = inbox.mails();
        for address in ["ops@example.com", "ada@example.com"] {
            let mut ids: Vec<&str> = to(&mails, address).into_iter().map(|mail| message_id(mail)).collect();
            ids.dedup();
            assert_eq!(ids.len(), 1, "{mails:?}");
        }
    });
}

#[test]
fn an_attempt_that_a_crash_cut_off_is_made_again_on_sqlite() {
    an_attempt_that_a_crash_cut_off_is_made_again_under_the_same_id(Engine::Sqlite);
}

#[test]
fn an_attempt_that_a_crash_cut_off_is_made_again_on_postgres() {
    an_attempt_that_a_crash_cut_off_is_made_again_under_the_same_id(Engine::Postgres);
}

#[test]
fn a_mail_to_nobody_is_given_up() {
    block_on(async {
        let (app, inbox) = start(Engine::Sqlite).await;
        let world = World::new(&app).await;
        let (id, alert) = mailed(&world).await;
        inbox.reject();
        world.set_healthy(id, false).await;
        wait_for_notice(&app).await;
        assert_eq!((inbox.mails().len(), app.rows("alert_mails").await), (1, 0));
        app.delete(&app.owner, &of(&app, &alert)).await.ok();
        work(&app).await;
    });
}

#[test]
fn mails_are_not_sent_to_those_who_are_not_told_any_more() {
    block_on(async {
        for engine in [Engine::Sqlite, Engine::Postgres] {
            let (app, inbox) = start(engine).await;
            let world = World::new(&app).await;
            let (id, alert) = mailed(&world).await;
            inbox.refuse();
            inbox.refuse();
            world.set_healthy(id, false).await;
            wait_for_notice(&app).await;
            assert_eq!((inbox.mails().len(), app.rows("alert_mails").await), (0, 2));
            let kept = json!({ "mailAddresses": ["ada@example.com"] });
            app.post(&app.owner, &of(&app, &alert), kept).await.ok();
            assert_eq!(app.rows("alert_mails").await, 1);
            inbox.refuse();
            app.advance(Duration::from_secs(6));
            work(&app).await;
            assert_eq!((inbox.mails().len(), app.rows("alert_mails").await), (0, 1), "it is tried again");
            app.post(&app.owner, &of(&app, &alert), json!({ "isEnabled": false })).await.ok();
            assert_eq!(app.rows("alert_mails").await, 0);
            app.advance(Duration::from_hours(1));
            work(&app).await;
            assert_eq!(inbox.mails().len(), 0);
        }
    });
}

#[test]
fn mails_of_a_deleted_alert_are_not_sent() {
    block_on(async {
        let (app, inbox) = start(Engine::Sqlite).await;
        let world = World::new(&app).await;
        let (id, alert) = mailed(&world).await;
        inbox.refuse();
        inbox.refuse();
        world.set_healthy(id, false).await;
        wait_for_notice(&app).await;
        assert_eq!(app.rows("alert_mails").await, 2);
        app.delete(&app.owner, &of(&app, &alert)).await.ok();
        app.advance(Duration::from_hours(1));
        work(&app).await;
        assert_eq!((inbox.mails().len(), app.rows("alert_mails").await), (0, 0));
    });
}
