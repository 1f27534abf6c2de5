//! Mistakes that people make: each message says what happened, why, and what to do next.

use super::Desk;
use super::recorded_airflow::Recorded;
use crate::program::finish;

#[test]
fn a_wrong_server_is_recognized() {
    let desk = Desk::signed_in();
    let said = |url: &str| {
        let done = desk.run_as(&[("PODIUM_URL", url), ("PODIUM_TOKEN", "abc")], &["whoami"]);
        (done.code, desk.plain(&done.stderr))
    };
    let other = Recorded::start(|_| (404, "<html>".into()));
    let message = "the server answered 404 Not Found and did not say why: it may not be a Podium server";
    assert_eq!(said(&other.url()), (Some(3), format!("podium: {message}\n")));
    let address = desk.program.address;
    let message = format!("\"{address}\" is not the URL of a server: it must begin with http:// or https://");
    assert_eq!(said(&address.to_string()), (Some(2), format!("podium: {message}\n")));
    let message = "it does not speak TLS, perhaps its URL begins with http://\n";
    let hint = "Check the URL, and that the server is running: podium context list\n";
    let expected = format!("podium: https://{address} cannot be reached: {message}{hint}");
    assert_eq!(said(&format!("https://{address}")), (Some(6), expected));
    desk.refuses(
        &["whoami", "--context", &address.to_string(), "--url", "http://127.0.0.1:1"],
        2,
        &format!(
            "podium: the context \"{address}\" is for URL, not for http://127.0.0.1:1\n\
             Name the server once: with --context (PODIUM_CONTEXT) or with --url (PODIUM_URL).\n"
        ),
    );
}

#[test]
fn a_wrong_token_of_the_environment_is_named() {
    let desk = Desk::signed_in();
    let done = desk.run_as(&[("PODIUM_TOKEN", "abc")], &["whoami"]);
    let hint = "The token comes from PODIUM_TOKEN: set it to a token of this server.\n";
    assert_eq!(done.code, Some(4));
    assert!(done.stderr.ends_with(hint), "{}", done.stderr);
    let done = desk.run_as(&[("PODIUM_TOKEN", "abc"), ("PODIUM_CONFIG_DIR", "unused")], &["whoami"]);
    let hint = "PODIUM_TOKEN is set, but no server to use it for: set PODIUM_URL too, or give --url.\n";
    assert_eq!(
        (done.code, done.stderr),
        (Some(4), format!("podium: you are not signed in to a server\n{hint}"))
    );
}

#[test]
fn a_misspelt_column_is_named() {
    let desk = Desk::signed_in();
    let note = "No item has the field nmae. To see all fields: --output json\n";
    for arguments in [&["list"][..], &["get", "Default"]] {
        let all = [&["workspace"], arguments, &["--columns", "nmae,name"]].concat();
        let done = desk.run(&all);
        assert_eq!((done.code, done.stderr.as_str()), (Some(0), note), "{arguments:?}");
        assert!(done.stdout.contains("Default"), "{}", done.stdout);
    }
}

#[test]
fn what_is_wrong_with_a_file_is_said_with_the_place_in_it() {
    let desk = Desk::signed_in();
    std::fs::write(desk.folder().join("bad.yaml"), "workspaces:\n  - name: a\n   x: [\n").unwrap();
    std::fs::write(desk.folder().join("podium.yaml"), "deployment: a\nworkspcae: b\n").unwrap();
    for (arguments, start) in [
        (&["deployment", "create", "x", "--file", "bad.yaml"][..], "podium: bad.yaml:3:4: "),
        (&["apply", "-f", "bad.yaml"], "podium: bad.yaml:3:4: "),
        (&["dag", "list"], "podium: ./podium.yaml:2:1: unknown field `workspcae`"),
    ] {
        let done = desk.run(arguments);
        assert_eq!(done.code, Some(2), "{}", done.stderr);
        let first = done.stderr.lines().next().unwrap_or_default();
        assert!(first.starts_with(start) && !first.contains(" at line "), "{}", done.stderr);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_and_a_closed_pipe_are_told_apart() {
    let desk = Desk::signed_in();
    let full = finish(desk.shell("podium workspace list > /dev/full"), "");
    let said = "podium: reading or writing failed: No space left on device (os error 28)\n";
    assert_eq!((full.code, full.stderr.as_str()), (Some(1), said));
    let closed = finish(desk.shell("podium workspace list | true"), "");
    assert_eq!((closed.code, closed.stderr.as_str()), (Some(0), ""));
}

#[test]
fn what_can_be_chosen_is_said() {
    let desk = Desk::signed_in();
    desk.refuses(
        &["env", "create", "STAGE"],
        2,
        "podium: STAGE needs a value\n\
         Give --value TEXT, or --secret NAME to read the environment variable NAME instead.\n",
    );
    let state = desk.run(&["operation", "list", "--state", "asleep"]);
    assert_eq!(state.code, Some(2));
    assert!(state.stderr.contains("write one of pending, running, succeeded, "), "{}", state.stderr);
    let cluster = desk.run(&["cluster", "create", "main"]);
    assert_eq!(cluster.code, Some(1));
    let said = "podium: 3 fields are invalid\n  cloudProvider: is required\n  region: is required\n";
    assert!(cluster.stderr.starts_with(said), "{}", cluster.stderr);
    assert!(cluster.stderr.contains("\nFlags: --provider, --region, --vpc. "), "{}", cluster.stderr);
    desk.shown(&["init", "hello"]);
    let file = desk.folder().join("hello/podium.yaml");
    std::fs::write(&file, "deployment: hello\nlinks: warehouse\n").unwrap();
    let listed = desk.run(&["deploy", "hello"]);
    assert_eq!(listed.code, Some(2));
    assert!(listed.stderr.contains(":2:8: this must be a list, such as [a, b]\n"), "{}", listed.stderr);
}

#[test]
fn a_token_of_the_api_is_told_what_it_is() {
    let desk = Desk::signed_in();
    let token = desk.shown(&["token", "create", "ci", "--workspace", "Default", "--role", "author"]);
    let variables = [("PODIUM_URL", desk.url.as_str()), ("PODIUM_TOKEN", token.trim())];
    let shown = desk.run_as(&variables, &["whoami", "--output", "name"]);
    assert_eq!((shown.code, shown.stdout.as_str()), (Some(0), "ci\n"), "{}", shown.stderr);
    let shown = desk.run_as(&variables, &["whoami"]);
    let said =
        "TOKEN         ci\nSCOPE         WORKSPACE\nROLES         WORKSPACE_AUTHOR on workspace Default\n";
    assert!(shown.stdout.starts_with(said), "{}", shown.stdout);
    let signed_in = desk.run_with(&["login", &desk.url, "--name", "ci"], token.trim());
    let said = format!("Signed in to {} as the token ci (context ci).\n", desk.url);
    assert_eq!((signed_in.code, signed_in.stderr), (Some(0), said));
}

#[test]
fn a_field_that_does_not_exist_or_cannot_be_changed_is_refused() {
    let desk = Desk::signed_in();
    desk.shown(&["deployment", "create", "nightly", "--workspace", "Default", "--wait"]);
    let unknown = "podium: a deployment has no field \"schedulrSize\"\nDid you mean \"schedulerSize\"?\n";
    let update = ["deployment", "update", "nightly", "--set"];
    desk.refuses(&[&update[..], &["schedulrSize=LARGE"]].concat(), 2, unknown);
    desk.refuses(&[&update[..], &["schedulrSize=LARGE", "--plan"]].concat(), 2, unknown);
    desk.refuses(&["deployment", "create", "other", "--set", "schedulrSize=LARGE"], 2, unknown);
    let runtime = "podium: \"platformRuntimeVersion\" of a deployment cannot be changed\n\
                   To change the runtime, write runtime: VERSION into podium.yaml and run podium deploy\n";
    desk.refuses(&[&update[..], &["platformRuntimeVersion=3.2.0"]].concat(), 2, runtime);
    let variable = ["env", "create", "A", "--workspace", "Default", "--value", "x", "--set", "descripton=y"];
    let unknown =
        "podium: an environment object has no field \"descripton\"\nDid you mean \"description\"?\n";
    desk.refuses(&variable, 2, unknown);
    let cluster = ["cluster", "create", "main", "--set", "drRegin=us-west-2"];
    let unknown = "podium: a cluster has no field \"drRegin\"\nDid you mean \"drRegion\"?\n";
    desk.refuses(&cluster, 2, unknown);
    std::fs::write(desk.folder().join("fields.yaml"), "schedulrSize: LARGE\nisCicdEnforcd: true\n").unwrap();
    let done = desk.run(&["deployment", "update", "nightly", "--file", "fields.yaml"]);
    assert_eq!(done.code, Some(2), "{}", done.stderr);
    assert!(done.stderr.starts_with("podium: 2 fields cannot be set\n"), "{}", done.stderr);
}

#[test]
fn a_change_is_only_said_where_something_differed() {
    let desk = Desk::signed_in();
    desk.shown(&["deployment", "create", "nightly", "--workspace", "Default", "--wait"]);
    desk.shown(&["team", "create", "Data"]);
    desk.shown(&["env", "create", "STAGE", "--workspace", "Default", "--value", "x"]);
    let said = |arguments: &[&str]| {
        let done = desk.run(arguments);
        assert_eq!(done.code, Some(0), "{}", done.stderr);
        done.stderr
    };
    for (arguments, what) in [
        (&["deployment", "update", "nightly", "--set", "schedulerSize=LARGE"][..], "deployment nightly"),
        (&["workspace", "update", "Default", "--description", "Numbers"], "workspace Default"),
        (&["team", "update", "Data", "--description", "People"], "team Data"),
        (&["env", "update", "STAGE", "--workspace", "Default", "--value", "y"], "STAGE"),
    ] {
        assert_eq!(said(arguments), format!("Changed {what}.\n"));
        assert_eq!(said(arguments), format!("Nothing was changed: {what} already had these values.\n"));
    }
    let secret = ["env", "create", "KEY", "--workspace", "Default", "--secret", "KEY"];
    assert_eq!(desk.run_as(&[("KEY", "one")], &secret).code, Some(0));
    let update = ["env", "update", "KEY", "--workspace", "Default", "--secret", "KEY"];
    let told = desk.run_as(&[("KEY", "two")], &update).stderr;
    assert_eq!(told, "Changed KEY.\n", "nobody can tell whether a secret differs");
}
