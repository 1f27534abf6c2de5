//! Guides whose commands need no Airflow: they are taken from the documents and typed.

use std::path::Path;
use std::process::Command;

use super::Desk;
use crate::documents::{blocks, commands};
use crate::program::{Ended, finish};

fn guide(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide").join(name);
    std::fs::read_to_string(path).unwrap()
}

impl Desk {
    /// Runs a line of a shell, with variables.
    fn types(&self, line: &str, variables: &[(&str, &str)]) -> Ended {
        let bin = Path::new(env!("CARGO_BIN_EXE_podium")).parent().unwrap();
        let search = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
        let mut command = Command::new("bash");
        command.args(["-c", line]).current_dir(self.folder()).env("PATH", search);
        command.env("PODIUM_CONFIG_DIR", self.settings()).env("NO_COLOR", "1");
        command.envs(variables.iter().copied());
        finish(command, "")
    }

    fn must(&self, line: &str, variables: &[(&str, &str)]) -> String {
        let done = self.types(line, variables);
        assert_eq!(done.code, Some(0), "{line}: {}{}", done.stdout, done.stderr);
        done.stdout
    }
}

#[test]
fn the_guide_to_ci_is_true() {
    let desk = Desk::signed_in();
    let guide = guide("ci.md");
    let typed = commands(&guide);
    let make = typed.lines().find(|line| line.starts_with("podium token create")).unwrap();
    let token = desk.must(make, &[]).trim().to_owned();
    desk.shown(&["init", ".", "--deployment", "production"]);
    for name in ["production", "staging"] {
        desk.shown(&["deployment", "create", name, "--workspace", "Default", "--wait"]);
    }
    let job = [
        ("PODIUM_URL", desk.url.as_str()),
        ("PODIUM_TOKEN", &token),
        ("PODIUM_CONFIG_DIR", "/nowhere"),
        ("GITHUB_WORKFLOW", "deploy"),
        ("GITHUB_RUN_NUMBER", "7"),
        ("CI_PIPELINE_ID", "8"),
    ];
    let mut jobs = 0;
    for block in blocks(&guide, "yaml") {
        let runs = block.lines().filter_map(|line| {
            let line = line.trim().trim_start_matches("- ");
            line.find("podium ").map(|at| line[at..].to_owned())
        });
        for line in runs {
            desk.must(&line, &job);
            jobs += 1;
        }
    }
    assert_eq!(jobs, 2, "GitHub and GitLab");
    let listed = desk.shown(&["deploy", "list", "--deployment", "production", "--columns", "description"]);
    assert_eq!(listed, "DESCRIPTION\nPipeline 8\ndeploy 7\n");
    let staging = typed.lines().find(|line| line.starts_with("PODIUM_DEPLOYMENT=staging")).unwrap();
    desk.must(staging, &job);
    let listed = desk.json(&["deploy", "list", "--deployment", "staging"]);
    assert_eq!(listed.as_array().unwrap().len(), 1);
    assert!(guide.contains("`podium deployment update NAME --set isCicdEnforced=true`"));
    desk.shown(&["deployment", "update", "staging", "--set", "isCicdEnforced=true"]);
    desk.must(staging, &job);
}

#[test]
fn the_guide_to_declarations_is_true() {
    let desk = Desk::signed_in();
    let guide = guide("declarative.md");
    let file = blocks(&guide, "yaml").into_iter().find(|block| block.starts_with("set: ")).unwrap();
    std::fs::write(desk.folder().join("production.yaml"), &file).unwrap();
    let secrets = [("API_KEY", "k"), ("WAREHOUSE_PASSWORD", "w")];
    let typed = commands(&guide);
    let lines: Vec<&str> = typed.lines().filter(|line| line.contains(" -f ")).collect();
    assert_eq!(lines, ["podium plan -f production.yaml", "podium apply -f production.yaml"]);
    desk.must(lines[0], &secrets);
    // There is nobody to ask.
    desk.must(&format!("{} --yes", lines[1]), &secrets);
    let again = desk.types(&format!("{} --yes", lines[1]), &secrets);
    assert!(again.stderr.contains("Nothing to change"), "{}{}", again.stdout, again.stderr);
    // In CI, from a folder.
    std::fs::create_dir(desk.folder().join("environments")).unwrap();
    std::fs::write(desk.folder().join("environments/production.yaml"), &file).unwrap();
    let job = guide.lines().find_map(|line| line.trim().strip_prefix("- run: ")).unwrap();
    desk.must(job, &secrets);
    // The file that is exported is the same for whoever applies it.
    let export = typed.lines().find(|line| line.starts_with("podium export")).unwrap();
    desk.must(export, &[]);
    let exported = std::fs::read_to_string(desk.folder().join("production.yaml")).unwrap();
    assert!(exported.contains("name: nightly") && !exported.contains("value: k\n"), "{exported}");
}
