//! A person at the console while Apache Airflow really runs: from an empty form to a run that succeeded, a file that is
//! broken, and back.

use podium_testkit::{Browser, missing_for_browser};

use super::dag;
use super::world::World;

pub(super) fn a_person_works_at_the_console() {
    let missing = missing_for_browser();
    if !missing.is_empty() {
        eprintln!("SKIPPED: nobody can look at the console without {}", missing.join(" and "));
        return;
    }
    let mut world = World::new();
    world.serve();
    let browser = Browser::start();
    browser.open(&format!("{}/", world.url()));
    browser.wait_for_text("Sign in");
    browser.click("//summary");
    browser.type_into("//input[@name='token']", &world.token());
    browser.click("//button[contains(., 'with the token')]");
    browser.wait("the overview", |browser| browser.url().contains("/console/"));
    let home = browser.url();

    world.say("a deployment that is created in the form becomes healthy before one's eyes");
    browser.open(&format!("{home}/deployments/new"));
    browser.type_into("//input[@name='name']", "evening");
    browser.click("//main//button[contains(., 'Create deployment')]");
    browser.wait_for_text("Creating");
    let environment = world.find("evening");
    let here = format!("{home}/deployments/{}", environment.id);
    browser.open(&here);
    browser.run("window.isSamePage = true");
    browser.wait("its steps", |browser| browser.count("//ol[@class='steps']/li") > 0);
    world.wait_for_status(&environment, "HEALTHY");
    browser.wait_for_text("Healthy");
    assert_eq!(browser.run("return window.isSamePage"), true, "the page was not loaded again");

    world.say("its DAGs are on the page, and a run that is started there succeeds");
    let first = world.deploy(&environment, &dag("one", &[]));
    world.let_go(&environment);
    browser.click("//nav[@class='tabs']/a[contains(., 'DAGs')]");
    browser.wait("the DAG", |browser| browser.count("//tr[@id='dag-hello']//button") == 2);
    if browser.count("//button[@aria-label='Unpause hello']") == 1 {
        browser.click("//button[@aria-label='Unpause hello']");
        browser.wait_for_text("The DAG runs on its schedule again.");
    }
    browser.click("//button[@aria-label='Trigger hello']");
    browser.wait_for_text("A run was queued.");
    browser.wait("the run succeeds", |browser| {
        browser.count("//tr[@id='dag-hello'][contains(., 'Success')]") == 1
    });

    world.say("a broken file is shown with its line");
    let text = format!("\n\n\nimport nothing_of_this_name\n{}", dag("two", &[]));
    let (broken, _) = world.finalize(&environment, &[("dags/hello.py", &text)]);
    let report = world.report(&environment, &broken);
    assert_eq!(report["importErrorCount"], 1, "{report:#}");
    browser.open(&format!("{here}/deploys"));
    browser.click(&format!("//a[contains(@href, '/deploys/{broken}')]"));
    browser.wait_for_text("hello.py:4");
    browser.wait_for_text("No module named 'nothing_of_this_name'");

    world.say("one goes back to what ran before, and sees first what that does");
    browser.open(&format!("{here}/deploys"));
    browser.click(&format!("//a[contains(@href, '/deploys/{first}')]"));
    browser.click("//button[contains(., 'Roll back to this deploy')]");
    browser.wait_for_text("What this change does");
    browser.click("//button[contains(., 'Roll back')]");
    browser.wait("the deployment", |browser| browser.url().starts_with(&here));
    let version =
        world.of(&environment, "GET", &format!("/deploys/{first}"), None).json()["dagTarballVersion"].clone();
    world.wait_until("it runs again", || {
        world.of(&environment, "GET", "", None).json()["dagTarballVersion"] == version
    });
    world.wait_for_status(&environment, "HEALTHY");
    let dags = format!("{here}/dags?now=1");
    browser.wait("nothing is broken any more", |browser| {
        browser.open(&dags);
        browser.count("//tr[@id='dag-hello']") == 1 && browser.count("//*[@id='import-errors']") == 0
    });
    world.delete(&environment);
    world.stop();
}
