//! The console with a keyboard alone, and without scripts.

use podium_testkit::Browser;
use serde_json::json;

use super::{Site, id_of};

/// Presses Tab until something has the focus.
fn tab_to(browser: &Browser, what: &str) {
    for _ in 0..100 {
        if browser.run(&format!("return document.activeElement.matches({what:?})")) == true {
            return;
        }
        browser.press(&["Tab"]);
    }
    panic!("Tab does not reach {what}");
}

#[test]
#[ignore = "takes a browser: cargo xtask console"]
fn everything_can_be_reached_with_keys() {
    let site = Site::start();
    let workspace = site.wait(site.app.workspace("Analytics"));
    let made = site.make("/deployments", json!({ "name": "nightly", "workspaceId": workspace }));
    site.make("/deployments", json!({ "name": "weekly", "workspaceId": workspace }));
    let browser = site.browser();
    let deployment = site.page(&format!("/deployments/{}", id_of(&made)));

    browser.press(&["Tab"]);
    assert_eq!(browser.run("return document.activeElement.textContent"), "Skip to content");
    browser.press(&["g", "d"]);
    browser.wait("the deployments", |browser| browser.url() == site.page("/deployments"));
    browser.press(&["j"]);
    assert_eq!(browser.run("return document.activeElement.textContent"), "nightly");
    browser.press(&["j", "k", "Enter"]);
    browser.wait("the deployment", |browser| browser.url() == deployment);

    browser.press(&["?"]);
    browser.wait_for_text("next and previous row");
    browser.press(&["Escape"]);
    browser.wait("the keys are closed", |browser| browser.count("//dialog[@open]") == 0);
    browser.press(&["Ctrl+k"]);
    browser.wait("the palette", |browser| browser.count("//dialog[@open]//input") == 1);
    browser.write("week");
    browser.wait("one place", |browser| browser.count("//dialog[@open]//li") == 1);
    browser.press(&["Enter"]);
    browser.wait_for_text("weekly");
    assert_ne!(browser.url(), deployment);

    browser.open(&site.page("/workspaces/new"));
    tab_to(&browser, "#name");
    browser.write("Typed");
    tab_to(&browser, "main button");
    browser.press(&["Enter"]);
    browser.wait_for_text("Created.");
    browser.wait_for_text("Typed");
}

#[test]
#[ignore = "takes a browser: cargo xtask console"]
fn pages_and_forms_work_without_scripts() {
    let site = Site::start();
    let browser = Browser::start();
    browser.set_scripts(false);
    site.sign_in(&browser);
    for (link, title) in
        [("Deployments", "No deployments here"), ("Workspaces", "Workspaces"), ("Users", "Invite somebody")]
    {
        browser.click(&format!("//nav[@id='navigation']//a[.='{link}']"));
        browser.wait_for_text(title);
    }
    browser.click("//nav[@id='navigation']//a[.='Workspaces']");
    browser.click("//main//a[contains(., 'Create workspace')]");
    browser.type_into("//input[@name='name']", "Analytics");
    browser.click("//main//button");
    browser.wait_for_text("Created.");
    browser.open(&site.page("/deployments/new"));
    browser.type_into("//input[@name='name']", "nightly");
    browser.click("//main//button[contains(., 'Create deployment')]");
    browser.wait_for_text("Creating");
    site.settle();
    browser.open(&browser.url());
    browser.wait_for_text("Healthy");
    browser.click("//nav[@class='tabs']/a[.='Settings']");
    browser.fill("//input[@name='description']", "Every night");
    browser.click("//button[contains(., 'See what this changes')]");
    browser.wait_for_text("Every night");
    browser.click("//button[contains(., 'Apply the change')]");
    browser.wait_for_text("The change was applied.");
    browser.click("//nav[@class='tabs']/a[.='Overview']");
    browser.wait_for_text("Every night");
    for needs_scripts in ["Search or jump to", "Copy"] {
        assert!(!browser.text().contains(needs_scripts), "{needs_scripts:?} is shown: {}", browser.text());
    }
}
