//! `--plan`: every command that changes something shows what it would change, and stops.

use super::Desk;

#[track_caller]
fn shows(desk: &Desk, arguments: &[&str], expected: &str) {
    let done = desk.run(&[arguments, &["--plan"]].concat());
    let ended = (done.code, done.stdout.as_str(), done.stderr.as_str());
    assert_eq!(ended, (Some(0), expected, "Nothing was changed.\n"), "{arguments:?}");
}

#[test]
fn a_plan_shows_what_a_command_would_change_and_changes_nothing() {
    let desk = Desk::signed_in();
    desk.shown(&["workspace", "create", "Reports"]);
    desk.shown(&["team", "create", "Data", "--member", "owner@localhost"]);
    desk.shown(&["team", "create", "Other"]);
    desk.shown(&["deployment", "create", "nightly", "--workspace", "Reports", "--wait"]);
    let before = desk.shown(&["export"]);
    shows(&desk, &["workspace", "create", "New", "-o", "table"], "create workspace New\n    name: \"New\"\n");
    shows(
        &desk,
        &["workspace", "update", "Reports", "--name", "Figures"],
        "update workspace Figures\n    name: \"Reports\" -> \"Figures\"\n",
    );
    shows(
        &desk,
        &["team", "delete", "Data", "Other"],
        "delete team Data\n    ! Its members lose what they may do through the team. (owner@localhost)\ndelete team Other\n",
    );
    let both = ["team", "update", "Data", "--description", "x", "--role", "owner"];
    let shown = desk.shown(&[&both[..], &["--plan"]].concat());
    assert!(
        shown.starts_with("update team Data\n    description: \"\" -> \"x\"\nupdate team roles"),
        "{shown}"
    );
    assert!(shown.contains("organizationRole: \"ORGANIZATION_MEMBER\" -> \"ORGANIZATION_OWNER\""), "{shown}");
    shows(
        &desk,
        &["team", "member", "remove", "Data", "owner@localhost"],
        "remove team member\n    ! The member loses what the roles of Data allow.\n",
    );
    let shown = desk.shown(&["deployment", "update", "nightly", "--variable", "A=b", "--plan"]);
    assert!(shown.contains("environmentVariables[A]: ") && shown.contains("    ! "), "{shown}");
    assert!(!shown.contains("    status"), "what follows from the change by itself is not listed: {shown}");
    let path = "/organizations/{organization}/workspaces";
    shows(&desk, &["api", "POST", path, "-f", "name=New"], "create workspace New\n    name: \"New\"\n");
    let wire = desk.json(&["deployment", "delete", "nightly", "--plan"]);
    assert_eq!(wire["calls"][0]["operationId"], "DeleteDeployment");
    assert_eq!(desk.shown(&["export"]), before);
}

#[test]
fn a_plan_that_would_be_refused_says_why() {
    let desk = Desk::signed_in();
    let done = desk.run(&["workspace", "create", "default", "--plan"]);
    assert_eq!(done.code, Some(5), "{}", done.stderr);
    assert!(
        done.stderr.contains("create workspace default: A workspace named `default` already exists"),
        "{}",
        done.stderr
    );
    desk.shown(&["init", "hello"]);
    desk.shown(&["deployment", "create", "hello", "--wait"]);
    let planned = desk.run(&["deploy", "hello", "--plan"]);
    assert_eq!(
        (planned.code, planned.stdout.as_str(), planned.stderr.as_str()),
        (Some(0), "", "Nothing has been deployed yet: all 4 files are new.\nNothing was changed.\n")
    );
    assert_eq!(desk.shown(&["deploy", "list", "--deployment", "hello", "--output", "name"]), "");
}
