//! Every page, as people see it: whether everybody can read it, and pictures to look at.

use std::collections::{BTreeSet, VecDeque};
use std::path::PathBuf;

use podium_api::{DeploymentId, Id};
use podium_testkit::Browser;
use serde_json::{Value, json};

use super::Site;

/// What finds things that some people cannot use.
const AXE: &str = "PODIUM_TEST_AXE";
/// Where pictures go.
const PICTURES: &str = "PODIUM_TEST_PICTURES";
/// Of every kind of page, the first that is found is looked at.
const LINKS: &str = "return [...document.querySelectorAll('a[href^=\"/console/\"]')].map((link) => link.pathname + link.search)";

/// The kind of page that a path leads to: the path without ids and query.
pub(crate) fn kind(path: &str) -> String {
    let path = path.split('?').next().unwrap_or_default();
    let parts = path.split('/').skip(3).filter(|part| !part.is_empty());
    // Ids, and the names of default roles.
    let is_one =
        |part: &str| part.parse::<Id>().is_ok() || part.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    let parts: Vec<&str> = parts.map(|part| if is_one(part) { "one" } else { part }).collect();
    if parts.is_empty() { "overview".to_owned() } else { parts.join("-") }
}

/// Opens one page of every kind that links lead to, from these on; and those that need no sign-in.
fn every_page(
    site: &Site,
    browser: &Browser,
    first: &[String],
    mut look: impl FnMut(&str),
) -> BTreeSet<String> {
    let origin = format!("http://{}", site.address);
    let mut waiting: VecDeque<String> =
        first.iter().map(|path| site.page(path)[origin.len()..].to_owned()).collect();
    let mut seen = BTreeSet::new();
    while let Some(path) = waiting.pop_front() {
        let is_file = path.contains("/logs/download") || path.contains("/audit/export");
        if is_file || !seen.insert(kind(&path)) {
            continue;
        }
        browser.open(&format!("{origin}{path}"));
        let waits = "//late-part[@aria-busy='true']";
        browser.wait("what comes in after the page", |browser| browser.count(waits) == 0);
        look(&kind(&path));
        let links = browser.run(LINKS);
        waiting.extend(links.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned));
    }
    for (name, path) in
        [("design", "/console/design"), ("nothing", "/console/nothing"), ("sign-out", "/sign-out")]
    {
        browser.open(&format!("{origin}{path}"));
        look(name);
    }
    browser.open(&site.page("/tokens/new"));
    browser.type_into("//input[@name='name']", "one more");
    browser.click("//main//button[contains(., 'Create token')]");
    browser.wait_for_text("Token created");
    look("token-made");
    seen
}

/// The pages to begin with, of the deployments that have most to show.
fn paths([used, asleep]: [DeploymentId; 2]) -> [String; 5] {
    let of = |id, tab| format!("/deployments/{id}{tab}");
    [of(used, ""), of(used, "/dags"), of(used, "/logs"), of(asleep, "/settings"), String::new()]
}

/// What is seriously wrong with the page that is open.
fn findings(browser: &Browser, axe: &str, is_dark: bool) -> Vec<String> {
    browser.set_dark(is_dark);
    browser.run_to_end(&format!("{axe}; return true")).expect("it can be loaded");
    // Only colours differ in the dark.
    let options = match is_dark {
        true => json!({ "resultTypes": ["violations"], "runOnly": ["color-contrast"] }),
        false => json!({ "resultTypes": ["violations"] }),
    };
    let script = format!(
        "return axe.run(document, {options}).then((found) => found.violations.map((it) => \
         [it.impact, it.id, it.help, it.nodes.map((node) => node.html).slice(0, 3).join(' ')]))"
    );
    let found = browser.run_to_end(&script).expect("it runs");
    let found = found.as_array().expect("a list of findings").iter();
    found
        .filter(|it| ["serious", "critical"].contains(&it[0].as_str().unwrap_or_default()))
        .map(Value::to_string)
        .collect()
}

#[test]
#[ignore = "takes a browser: cargo xtask console"]
fn every_page_can_be_used_by_everybody() {
    let axe = std::env::var(AXE).unwrap_or_else(|_| panic!("{AXE} names the file of axe-core"));
    let axe = std::fs::read_to_string(axe).expect("axe-core can be read");
    let (site, first) = Site::seeded();
    let first = paths(first);
    let browser = site.browser();
    let mut found = Vec::new();
    let seen = every_page(&site, &browser, &first, |page| {
        for is_dark in [false, true] {
            found.extend(findings(&browser, &axe, is_dark).into_iter().map(|it| format!("{page}: {it}")));
        }
    });
    assert!(seen.len() > 35, "{seen:?}");
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
#[ignore = "makes pictures for people to look at: cargo xtask screenshots"]
fn pictures_of_every_page() {
    let directory = PathBuf::from(std::env::var(PICTURES).expect("where pictures go"));
    std::fs::create_dir_all(&directory).expect("there is a place for pictures");
    let (site, first) = Site::seeded();
    let first = paths(first);
    let browser = site.browser();
    every_page(&site, &browser, &first, |page| {
        for (size, (width, height)) in [("wide", (1280, 860)), ("phone", (390, 844))] {
            browser.set_size(width, height);
            for is_dark in [false, true] {
                browser.set_dark(is_dark);
                let name = format!("{page}-{size}-{}.png", if is_dark { "dark" } else { "light" });
                std::fs::write(directory.join(name), browser.picture()).expect("a picture is kept");
            }
        }
    });
}
