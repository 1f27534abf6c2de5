//! What environments on the server's own machine cannot install: said before a deploy is sent, which would be refused.
//!
//! It is only said. Where a deployment runs is the server's business, and an image on a cluster brings what it needs.

use std::path::Path;

use super::archive::File;
use crate::client::commands::{one_line, shout};

/// Where the guide says more.
const GUIDE: &str = "docs/guide/deploys.md#what-this-machine-cannot-install";
/// The largest list that is read.
const MOST_BYTES: u64 = 64 * 1024;
const MOST_NAMED: usize = 5;

/// Says what a project asks for that only an image can have.
pub(super) fn tell(folder: &Path, files: &[File]) {
    let is_project = files.iter().any(|file| file.name.starts_with("dags/"));
    let read = |name: &str| {
        let is_packed = is_project && files.iter().any(|file| file.name == name && !file.is_link());
        let path = folder.join(name);
        let is_small = || std::fs::metadata(&path).is_ok_and(|found| found.len() <= MOST_BYTES);
        if is_packed && is_small() {
            std::fs::read_to_string(&path).unwrap_or_default()
        } else {
            String::new()
        }
    };
    let found = [os_packages(&read("packages.txt")), requirements(&read("requirements.txt"))].concat();
    if found.is_empty() {
        return;
    }
    shout("Environments on the server's own machine cannot install these, and refuse the deploy:");
    found.iter().take(MOST_NAMED).for_each(|line| eprintln!("  {}", one_line(line)));
    if found.len() > MOST_NAMED {
        eprintln!("  and {} more", found.len() - MOST_NAMED);
    }
    eprintln!("An image deploy on a cluster can install them. See {GUIDE}");
}

/// The lines of a list that say something, with their numbers.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

fn os_packages(text: &str) -> Vec<String> {
    let said = |(number, line): (usize, &str)| {
        format!("packages.txt, line {number}: {line} is a package of the operating system")
    };
    lines(text).map(said).collect()
}

fn requirements(text: &str) -> Vec<String> {
    let said = |(number, line): (usize, &str)| {
        let why = unable(line)?;
        Some(format!("requirements.txt, line {number}: {line} {why}"))
    };
    lines(text).filter_map(said).collect()
}

/// Why a requirement cannot be installed there, if that is so whatever the package index has.
fn unable(line: &str) -> Option<&'static str> {
    let line = line.split(" #").next().unwrap_or(line).trim();
    let is_source = [".tar.gz", ".zip", ".tar.bz2"].iter().any(|ending| line.ends_with(ending));
    if line.starts_with('-') {
        Some("is an option: the server's operator chooses the package indexes")
    } else if is_source || line.contains("git+") {
        Some("would be built from source: only packages that have a wheel are installed")
    } else if line.contains("://") || line.contains('/') || line.starts_with('.') || line.contains('@') {
        Some("is a file or a URL: packages are installed by name, from the server's package index")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_an_image_can_have_is_named_with_its_line() {
        assert_eq!(
            os_packages("# none\n\nlibpq-dev\n"),
            ["packages.txt, line 3: libpq-dev is a package of the operating system"]
        );
        let found = requirements(
            "pandas>=2\nrequests[socks]==2.* ; python_version >= \"3.10\"\n./vendor/own-1.0.tar.gz\n-e .\n\
             git+https://example.com/x.git\nown @ https://example.com/own.whl\n",
        );
        let numbers: Vec<&str> = found.iter().map(|line| line.split(':').next().unwrap()).collect();
        let expected = [3, 4, 5, 6].map(|number| format!("requirements.txt, line {number}"));
        assert_eq!(numbers, expected);
        assert!(
            found[0].ends_with("built from source: only packages that have a wheel are installed"),
            "{found:?}"
        );
        assert!(os_packages("").is_empty() && requirements("pandas\n").is_empty());
    }
}
