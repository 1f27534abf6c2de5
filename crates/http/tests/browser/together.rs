//! Two people with browsers of their own.

use podium_testkit::Browser;
use serde_json::json;

use super::Site;

#[test]
#[ignore = "takes a browser: cargo xtask console"]
fn one_sees_at_once_what_another_changes() {
    let site = Site::start();
    let workspace = site.wait(site.app.workspace("Analytics"));
    site.make("/deployments", json!({ "name": "nightly", "workspaceId": workspace }));
    site.settle();
    let looking = site.browser();
    looking.wait_for_text("nightly");
    looking.run("window.isSamePage = true");
    let changing: Browser = site.browser();
    changing.open(&site.page("/deployments/new"));
    changing.type_into("//input[@name='name']", "weekly");
    changing.click("//main//button[contains(., 'Create deployment')]");
    changing.wait_for_text("Creating");
    looking.wait_for_text("weekly");
    looking.wait_for_text("Creating");
    site.settle();
    changing.wait_for_text("Healthy");
    looking.wait("nothing is under way", |browser| !browser.text().contains("Creating"));
    assert_eq!(looking.run("return window.isSamePage"), true, "the page was not loaded again");

    looking.open(&site.page("/workspaces"));
    changing.open(&site.page("/workspaces/new"));
    changing.type_into("//input[@name='name']", "Finance");
    changing.click("//main//button");
    looking.wait_for_text("Finance");
}
