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

#[test]
#[ignore = "takes a browser: cargo xtask console"]
fn what_happens_before_a_page_follows_events_is_not_missed() {
    let site = Site::start();
    let browser = site.browser();
    // This page follows nothing. It keeps others from following until it is told to let them.
    browser.open(&site.page("/workspaces/new"));
    browser.run("navigator.locks.request(`podium:${document.body.dataset.home}`, () => new Promise((end) => { window.letFollow = end; }))");
    browser.wait("nobody follows", |browser| browser.run("return typeof window.letFollow") == "function");
    browser.run(&format!("window.other = window.open({:?})", site.page("/workspaces")));
    let shows = |browser: &Browser, text: &str| {
        let there = browser.run("return window.other.document.readyState === 'complete' ? window.other.document.body.innerText : ''");
        there.as_str().is_some_and(|there| there.contains(text))
    };
    let readings = |browser: &Browser| {
        browser.run("return window.other.performance.getEntriesByType('resource').filter((entry) => entry.name === window.other.location.href).length")
    };
    browser.wait("the other page", |browser| shows(browser, "Workspaces"));
    assert_eq!(browser.run("return window.other.document.body.dataset.seen === undefined"), false);
    site.make("/workspaces", json!({ "name": "Finance" }));
    assert!(!shows(&browser, "Finance"), "it does not follow yet");
    browser.run("window.letFollow()");
    browser.wait("what happened before", |browser| shows(browser, "Finance"));
    assert_eq!(readings(&browser), 1, "the page is read again once");
    site.make("/workspaces", json!({ "name": "Research" }));
    browser.wait("what happens later", |browser| shows(browser, "Research"));
    assert_eq!(readings(&browser), 2);

    // One that comes later is told by the one that follows, and reads nothing again that it shows already.
    browser.open(&site.page("/workspaces"));
    browser.wait_for_text("Research");
    browser.run("window.isSamePage = true");
    site.make("/workspaces", json!({ "name": "Sales" }));
    browser.wait_for_text("Sales");
    let own = "return performance.getEntriesByType('resource').filter((entry) => entry.name === location.href).length";
    assert_eq!((browser.run(own), browser.run("return window.isSamePage")), (json!(1), json!(true)));
}
