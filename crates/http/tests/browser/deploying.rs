//! A deployment, from the form that creates it to a rollback; and its logs.

use std::time::Duration;

use podium_api::DeploymentId;
use podium_testkit::Browser;

use super::Site;

#[test]
#[ignore = "takes a browser: cargo xtask console"]
fn a_deployment_from_its_creation_to_a_rollback() {
    let site = Site::start();
    site.wait(site.app.workspace("Analytics"));
    let browser = site.browser();
    browser.wait_for_text("Three steps to a running DAG");

    browser.click("//a[contains(., 'Create deployment')]");
    browser.type_into("//input[@name='name']", "nightly");
    browser.click("//button[contains(., 'Create deployment')]");
    browser.wait_for_text("Created.");
    browser.wait_for_text("Creating");
    browser.run("window.isSamePage = true");
    site.settle();
    browser.wait_for_text("Healthy");
    assert_eq!(browser.run("return window.isSamePage"), true, "the page was not loaded again");
    let shown = "//div[@class='title']/span[@class='status good'][contains(., 'Healthy')]";
    assert_eq!(browser.count(shown), 1, "its colour changes with its word");
    let here = browser.url().split('?').next().expect("a path").to_owned();
    let id: DeploymentId = here.rsplit('/').next().expect("an id").parse().expect("an id");

    let first = site.deploy(id, "the first", &[("dags/sales.py", b"1")]);
    site.settle();
    let second = site.deploy(id, "the second", &[("dags/sales.py", b"2")]);
    site.settle();
    let broken = site.deploy(id, "the broken one", &[("dags/sales.py", b"def")]);
    site.app.plane.script().refuse_dags(&broken, "dags/sales.py:1: invalid syntax");
    site.settle();
    browser.click("//nav[@class='tabs']/a[contains(., 'Deploys')]");
    browser.wait_for_text("the broken one");
    browser.click(&format!("//a[.='{broken}']"));
    browser.wait_for_text("dags/sales.py:1: invalid syntax");
    assert_eq!(browser.count("//button[contains(., 'Roll back')]"), 0, "it never ran");

    browser.click("//nav[@class='tabs']/a[contains(., 'Deploys')]");
    browser.click("//form//button[.='Compare']");
    browser.wait_for_text("Differences");
    browser.wait_for_text("the first");
    browser.wait_for_text("the second");

    browser.click("//nav[@class='tabs']/a[contains(., 'Deploys')]");
    browser.click(&format!("//a[.='{first}']"));
    browser.click("//button[contains(., 'Roll back to this deploy')]");
    browser.wait_for_text("What this change does");
    let running = || site.read(&format!("/deployments/{id}"))["dagTarballVersion"].clone();
    assert_eq!(running(), second.as_str(), "nothing has changed yet");
    browser.click("//button[contains(., 'Roll back')]");
    browser.wait("the deployment", |browser| browser.url().starts_with(&here));
    site.settle();
    assert_eq!(running(), first.as_str());

    site.app.advance(Duration::from_secs(60));
    browser.click("//nav[@class='tabs']/a[contains(., 'Logs')]");
    browser.wait_for_text("Starting the scheduler");
    browser.type_into("//input[@name='q']", "orphaned");
    browser.press(&["Enter"]);
    browser.wait("what was found is marked", |browser| browser.count("//mark[.='orphaned']") > 0);
    assert!(!browser.text().contains("Starting the scheduler"), "{}", browser.text());
    assert!(browser.url().contains("q=orphaned"), "the search can be shared");
}

#[test]
#[ignore = "takes a browser: cargo xtask console"]
fn logs_are_narrowed_by_drawing_and_followed() {
    let (site, [id, _]) = Site::seeded();
    site.app.plane.script().lock().rollout = Duration::ZERO;
    let browser = site.browser();
    browser.open(&site.page(&format!("/deployments/{id}/logs")));
    let lines = |browser: &Browser| browser.count("//ol[@id='lines']/li");
    let all = lines(&browser);
    let chart = "//*[name()='svg'][contains(@class, 'histogram')]";
    browser.wait("the lines are counted", |browser| browser.count(chart) == 1);
    browser.draw(chart, (200, 300));
    browser.wait("a part of the time", |browser| browser.url().contains("from="));
    browser.wait_for_text("in a part of the time range");
    let part = lines(&browser);
    assert!(part > 0 && part < all, "{part} of {all} lines");
    browser.click("//a[.='Back to the newest lines']");
    browser.wait("all of it", |browser| lines(browser) == all);

    site.deploy(id, "the next", &[("dags/orders.py", b"1")]);
    browser.wait_for_text("Deploying");
    browser.click("//button[.='Follow']");
    browser.wait_for_text("Stop following");
    let line = |text: &str| podium_dataplane::LogLine {
        deployment_id: id,
        source: "scheduler".into(),
        timestamp: site.app.world.now(),
        text: text.into(),
    };
    site.wait(site.app.keep_lines(vec![line("<b>something new</b>")]));
    browser.wait_for_text("<b>something new</b>");
    site.settle();
    browser.click("//button[.='Stop following']");
    browser.wait_for_text("Healthy");
    assert_eq!(browser.count("//button[.='Follow'][@aria-pressed='false']"), 1);

    // A line that comes while the page is read again is not lost with what was shown before.
    browser.run(
        "const [read, Source] = [window.fetch, window.EventSource]; \
         window.fetch = async (...asked) => { \
             const text = await (await read(...asked)).text(); \
             await new Promise((goOn) => { window.goOn = goOn; }); \
             return new Response(text); \
         }; \
         window.EventSource = class extends Source { \
             constructor(url) { \
                 super(url); \
                 this.addEventListener('message', () => { window.hasHeard = true; }); \
             } \
         };",
    );
    browser.click("//button[.='Follow']");
    browser.wait("the page is read", |browser| browser.run("return typeof window.goOn") == "function");
    site.wait(site.app.keep_lines(vec![line("meanwhile")]));
    browser.wait("the line is heard", |browser| browser.run("return window.hasHeard") == true);
    browser.run("window.goOn()");
    browser.wait_for_text("Stop following");
    browser.wait_for_text("meanwhile");
}
