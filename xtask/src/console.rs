//! `cargo xtask console`: the web console in a real browser, against a simulated data plane. `cargo xtask screenshots` makes
//! pictures of every page.
//!
//! Chromium with its driver is installed by its package name where that is possible; axe-core comes from npm, for these tests only.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::airflow::browser;
use crate::outcome::{Outcome, While};
use crate::system;
use crate::workspace::{cargo, must, scratch, works};

/// What is installed from npm.
const PACKAGE: &str = include_str!("../npm/package.json");

/// The test that makes pictures.
const PICTURES: &str = "pictures_of_every_page";

/// The test that fills a large database.
const WEIGHT: &str = "pages_are_light_and_quick";
/// How long a page may take in an optimized build.
const PAGE_MILLIS: &str = "10";

/// Measures every page with ten thousand deployments and a million audit records.
pub(crate) fn bench() -> Outcome {
    let mut command = cargo(&["test", "--release", "--package", "podium-http", "--test", "browser", WEIGHT]);
    must(command.args(["--", "--ignored", "--nocapture"]).env("PODIUM_TEST_PAGE_MILLIS", PAGE_MILLIS))
}

/// Runs the tests; says whether there was a browser to run them with.
pub(crate) fn run() -> Outcome<bool> {
    if let Err(failure) = browser() {
        println!("SKIPPED: the console in a browser: {failure}");
        return Ok(false);
    }
    let axe = tools(&scratch()?)?.join("axe-core/axe.min.js");
    must(tests(&["--skip", PICTURES, "--skip", WEIGHT]).env("PODIUM_TEST_AXE", axe))?;
    Ok(true)
}

/// Makes pictures of every page, wide and narrow, light and dark.
pub(crate) fn screenshots() -> Outcome {
    browser()?;
    let directory = scratch()?.join("screenshots");
    must(tests(&[PICTURES]).env("PODIUM_TEST_PICTURES", &directory))?;
    println!("the pictures are in {}", directory.display());
    Ok(())
}

/// The command that runs the tests that take a browser. It names all of the workspace, as for the other tests: what is compiled
/// is then what they have compiled.
fn tests(which: &[&str]) -> Command {
    let mut command = if works(&mut cargo(&["nextest", "--version"])) {
        let told = "nextest run --workspace --test browser --run-ignored only --no-fail-fast --";
        cargo(&told.split(' ').collect::<Vec<_>>())
    } else {
        cargo(&["test", "--workspace", "--test", "browser", "--no-fail-fast", "--", "--ignored"])
    };
    command.args(which);
    command
}

/// The directory of the packages from npm; installs them if they are not there.
fn tools(scratch: &Path) -> Outcome<PathBuf> {
    let directory = scratch.join("npm");
    let (packages, installed) = (directory.join("node_modules"), directory.join("installed.json"));
    if fs::read_to_string(&installed).is_ok_and(|text| text == PACKAGE) {
        return Ok(packages);
    }
    system::need("npm", "npm", &["npm"])?;
    fs::create_dir_all(&directory).doing("making a place for packages")?;
    fs::write(directory.join("package.json"), PACKAGE).doing("writing what is installed")?;
    let mut npm = Command::new("npm");
    npm.args("install --ignore-scripts --no-audit --no-fund --no-package-lock --loglevel=error".split(' '));
    must(npm.current_dir(&directory))
        .map_err(|failure| format!("the packages could not be installed from npm: {failure}"))?;
    fs::rename(directory.join("package.json"), &installed).doing("keeping what is installed")?;
    Ok(packages)
}
