//! What administrators do: invite people, make tokens and roles, close doors, move clusters.

use podium_testkit::Browser;
use serde_json::json;

use super::{Site, id_of};

fn text_of(browser: &Browser, selector: &str) -> String {
    let script = format!("return document.querySelector({selector:?}).textContent");
    browser.run(&script).as_str().unwrap_or_default().to_owned()
}

#[test]
#[ignore = "takes a browser: cargo xtask console"]
fn somebody_is_invited_accepts_and_signs_in() {
    let site = Site::start();
    let browser = site.browser();
    browser.open(&site.page("/users"));
    browser.click("//a[contains(., 'Invite somebody')]");
    browser.type_into("//input[@name='inviteeEmail']", "ada@example.test");
    browser.click("//button[contains(., 'Send the invite')]");
    browser.wait_for_text("ada@example.test is invited");
    let link = text_of(&browser, ".code");

    let other = Browser::start();
    other.open(&link);
    other.type_into("//input[@name='fullName']", "Ada");
    other.type_into("//input[@name='password']", "correct horse battery");
    other.click("//button");
    other.wait_for_text("Your account is ready.");
    other.open(&site.page("/account"));
    other.type_into("//input[@name='username']", "ada@example.test");
    other.type_into("//input[@name='password']", "correct horse battery");
    other.click("//button[.='Sign in']");
    other.wait_for_text("Your account");
    assert_eq!(other.url(), site.page("/account"), "one goes where one wanted to go");
    assert_eq!(other.count("//nav[@id='navigation']//a[.='Audit log']"), 0, "a member is not offered it");
    browser.open(&site.page("/users"));
    browser.wait_for_text("Active");
}

#[test]
#[ignore = "takes a browser: cargo xtask console"]
fn an_alert_is_made_and_switched_off() {
    let site = Site::start();
    site.make("/webhooks", json!({ "name": "chat", "url": "https://hooks.example.test/podium" }));
    let browser = site.browser();
    browser.click("//nav[@id='navigation']//a[.='Alerts']");
    browser.click("//a[contains(., 'Create alert')]");
    browser.type_into("//input[@name='name']", "broken");
    browser.click("//label[contains(., 'chat')]/input");
    browser.click("//button[contains(., 'Create alert')]");
    browser.wait_for_text("Created.");
    browser.wait_for_text("after 5 min");
    browser.click("//input[@name='isEnabled']");
    browser.click("//button[contains(., 'Save the alert')]");
    browser.wait_for_text("Saved.");
    assert_eq!(site.read("/alerts")["alerts"][0]["isEnabled"], false);
    browser.click("//button[contains(., 'Delete the alert')]");
    browser.wait_for_text("No alerts");
}

#[test]
#[ignore = "takes a browser: cargo xtask console"]
fn tokens_roles_and_address_ranges() {
    let site = Site::start();
    site.wait(site.app.workspace("Analytics"));
    let browser = site.browser();

    browser.open(&site.page("/tokens/new"));
    browser.type_into("//input[@name='name']", "ci");
    browser.click("//button[contains(., 'Create token')]");
    browser.wait_for_text("Token created");
    let first = text_of(&browser, "#token");
    browser.open(&site.page("/tokens"));
    assert!(!browser.text().contains(&first));
    browser.click("//a[.='ci']");
    browser.click("//button[contains(., 'Rotate the token')]");
    browser.wait_for_text("Token rotated");
    let second = text_of(&browser, "#token");
    assert!(first != second && second.len() == first.len(), "{second}");

    browser.open(&site.page("/roles/new"));
    browser.type_into("//input[@name='name']", "reader");
    browser.click("//summary[code[.='deployment']]");
    browser.click("//input[@value='deployment.get']");
    browser.click("//button[contains(., 'Create role')]");
    browser.wait_for_text("Created.");
    browser.click("//input[@value='deployment.update']");
    browser.click("//button[contains(., 'Save the role')]");
    browser.wait_for_text("Saved.");
    let role = site.read("/roles")["roles"][0].clone();
    let role = site.read(&format!("/roles/{}", id_of(&role)));
    let held: Vec<&str> =
        role["permissions"].as_array().unwrap().iter().filter_map(|it| it.as_str()).collect();
    assert!(held.contains(&"deployment.get") && held.contains(&"deployment.update"), "{held:?}");

    browser.open(&site.page("/address-ranges"));
    browser.wait_for_text("you lock yourself out");
    browser.wait_for_text("127.0.0.1");
    browser.type_into("//input[@name='ipAddressRange']", "203.0.113.0/24");
    browser.click("//button[contains(., 'Add the range')]");
    browser.wait("the refusal", |browser| browser.count("//*[@role='alert']") == 1);
    assert_eq!(site.read("/allowed-ip-address-ranges")["totalCount"], 0);
    browser.fill("//input[@name='ipAddressRange']", "127.0.0.0/8");
    browser.click("//button[contains(., 'Add the range')]");
    browser.wait_for_text("Saved.");
    browser.wait_for_text("127.0.0.0/8");
}

#[test]
#[ignore = "takes a browser: cargo xtask console"]
fn a_cluster_fails_over_once_its_name_was_typed() {
    let site = Site::start();
    let id = site.wait(site.app.new_cluster("east", json!({ "drRegion": "us-west-2" })));
    site.settle();
    let browser = site.browser();
    browser.open(&site.page(&format!("/clusters/{id}")));
    browser.wait_for_text("ready in us-west-2");
    browser.type_into("//input[@name='name']", "west");
    browser.click("//button[contains(., 'Fail over to us-west-2')]");
    browser.wait_for_text("type east to confirm");
    browser.open(&site.page(&format!("/clusters/{id}")));
    browser.type_into("//input[@name='name']", "east");
    browser.click("//button[contains(., 'Fail over to us-west-2')]");
    browser.wait_for_text("What this change does");
    assert_eq!(site.read(&format!("/clusters/{id}"))["failoverInProgress"], false);
    browser.click("//button[contains(., 'Move the cluster')]");
    browser.wait("the cluster", |browser| browser.url().contains("done=applied"));
    site.settle();
    browser.wait_for_text("runs in us-west-2");
}
