//! Signing in, contexts, and who one is.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Stdio};

use super::Desk;

#[test]
fn nobody_is_signed_in_at_first() {
    let desk = Desk::new();
    let hint = "Sign in: podium login URL. In CI, set PODIUM_URL and PODIUM_TOKEN. To start a server on this machine: \
                podium serve";
    desk.refuses(&["whoami"], 4, &format!("podium: you are not signed in to a server\n{hint}\n"));
    let data = desk.folder().join("podium-data");
    std::fs::create_dir(&data).unwrap();
    std::fs::write(data.join("owner-token"), "x").unwrap();
    let done = desk.run(&["team", "list"]);
    assert_eq!(done.code, Some(4));
    assert!(done.stderr.contains("--token-file ./podium-data/owner-token"), "{}", done.stderr);
}

#[test]
fn a_token_is_kept_in_a_private_file() {
    let desk = Desk::new();
    let file = desk.folder().join("token");
    std::fs::write(&file, format!("{}\n", desk.token)).unwrap();
    let done = desk.run(&["login", &desk.url, "--token-file", "token", "--name", "here"]);
    assert_eq!(desk.plain(&done.stderr), "Signed in to URL as owner@localhost (context here).\n");
    assert_eq!((done.code, done.stdout.as_str()), (Some(0), ""));
    let mode = std::fs::metadata(desk.settings().join("contexts.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let listed = desk.shown(&["context", "list", "--columns", "current,name,subject"]);
    assert_eq!(listed, "CURRENT  NAME  SUBJECT\n*        here  owner@localhost\n");
    assert_eq!(desk.shown(&["whoami", "--output", "name"]), "owner@localhost\n");
    let done = desk.run(&["logout"]);
    assert_eq!((done.code, done.stderr.as_str()), (Some(0), "Signed out of here.\n"));
    assert_eq!(desk.run(&["whoami"]).code, Some(4));
    assert!(!std::fs::read_to_string(desk.settings().join("contexts.json")).unwrap().contains(&desk.token));
}

#[test]
fn a_wrong_token_is_not_kept() {
    let desk = Desk::new();
    let done = desk.run_with(&["login", &desk.url], "nonsense");
    assert_eq!(done.code, Some(4));
    assert!(done.stderr.contains("malformed") && !done.stderr.contains("nonsense"), "{}", done.stderr);
    assert!(!desk.settings().join("contexts.json").exists());
    let nothing = desk.run_with(&["login", &desk.url], "");
    assert_eq!(nothing.code, Some(2), "{}", nothing.stderr);
}

/// Starts to sign in with a browser elsewhere: the program, and the code that it shows.
fn waiting(desk: &Desk) -> (Child, BufReader<std::process::ChildStderr>, String) {
    let mut command = desk.command(&["login", &desk.url, "--no-browser", "--name", "here"]);
    let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let (mut link, mut rest) = (String::new(), String::new());
    said.read_line(&mut link).unwrap();
    said.read_line(&mut rest).unwrap();
    let code = link.trim().rsplit_once('=').unwrap().1.to_owned();
    assert_eq!(desk.plain(&link), format!("Open URL/sign-in/device?code={code}\n"));
    assert_eq!(rest, format!("in a browser, on any machine, and approve the code {code}.\n"));
    (child, said, code)
}

/// Decides as the owner.
pub(super) fn decide(desk: &Desk, code: &str, decision: &str) {
    let owner = [("PODIUM_URL", desk.url.as_str()), ("PODIUM_TOKEN", desk.token.as_str())];
    let (code, decision) = (format!("userCode={code}"), format!("decision={decision}"));
    let done = desk.run_as(&owner, &["api", "POST", "/auth/device/decide", "-f", &code, "-f", &decision]);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
}

#[test]
fn a_browser_anywhere_signs_in_a_terminal() {
    let desk = Desk::new();
    let (mut child, mut said, code) = waiting(&desk);
    decide(&desk, &code, "APPROVE");
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert_eq!(desk.plain(&line), "Signed in to URL as owner@localhost (context here).\n");
    assert!(child.wait().unwrap().success());
    assert_eq!(desk.shown(&["whoami", "--output", "name"]), "owner@localhost\n");
    let kept = std::fs::read_to_string(desk.settings().join("contexts.json")).unwrap();
    assert!(!kept.contains(&desk.token) && kept.contains("\"isSession\": true"), "{kept}");
    assert_eq!(desk.run(&["logout"]).stderr, "Signed out of here.\n");
}

#[test]
fn a_terminal_that_is_denied_is_not_signed_in() {
    let desk = Desk::new();
    let (mut child, mut said, code) = waiting(&desk);
    decide(&desk, &code, "DENY");
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert_eq!((line.as_str(), child.wait().unwrap().code()), ("podium: the sign-in was denied\n", Some(4)));
    assert!(!desk.settings().join("contexts.json").exists());
}

#[test]
fn a_terminal_stays_patient_while_the_server_restarts() {
    let mut desk = Desk::new();
    let (mut child, mut said, code) = waiting(&desk);
    desk.restart();
    decide(&desk, &code, "APPROVE");
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert_eq!(desk.plain(&line), "Signed in to URL as owner@localhost (context here).\n");
    assert!(child.wait().unwrap().success());
}

#[test]
fn ci_needs_no_file() {
    let desk = Desk::new();
    let variables = [("PODIUM_URL", desk.url.as_str()), ("PODIUM_TOKEN", desk.token.as_str())];
    let done = desk.run_as(&variables, &["workspace", "list", "--output", "name"]);
    assert_eq!((done.code, done.stdout.as_str()), (Some(0), "Default\n"), "{}", done.stderr);
    assert!(!desk.settings().exists());
    let verbose = desk.run_as(&variables, &["whoami", "--verbose"]);
    assert!(verbose.stderr.contains("GET /v1/users/self -> 200 OK"), "{}", verbose.stderr);
    assert!(!verbose.stderr.contains(&desk.token));
}

#[test]
fn a_token_goes_to_its_own_server_only() {
    let desk = Desk::signed_in();
    let done = desk.run(&["whoami", "--url", "http://127.0.0.1:9"]);
    assert_eq!(done.code, Some(4), "{}", done.stderr);
    assert!(done.stderr.contains("you are not signed in to http://127.0.0.1:9"), "{}", done.stderr);
    let away = desk.run_as(&[("PODIUM_TOKEN", "x")], &["whoami", "--url", "http://127.0.0.1:9"]);
    assert_eq!(away.code, Some(6), "{}", away.stderr);
    assert!(away.stderr.starts_with("podium: http://127.0.0.1:9 cannot be reached"), "{}", away.stderr);
}

#[test]
fn contexts_are_switched_and_removed() {
    let desk = Desk::signed_in();
    assert_eq!(desk.run_with(&["login", &desk.url, "--name", "two"], &desk.token).code, Some(0));
    let first = desk.url.trim_start_matches("http://");
    assert_eq!(desk.run(&["context", "use", first]).stderr, format!("{first} is the current context.\n"));
    assert_eq!(desk.shown(&["context", "list", "--output", "name"]), format!("{first}\ntwo\n"));
    assert_eq!(desk.run(&["context", "remove", "two"]).code, Some(0));
    let gone = format!("podium: there is no context named \"two\"\nContexts: {first}\n");
    desk.refuses(&["whoami", "--context", "two"], 3, &gone);
}

#[test]
fn an_invite_is_accepted_by_signing_in() {
    let desk = Desk::signed_in();
    let link = |email: &str| {
        let invited = desk.json(&["invite", "create", email]);
        desk.shown(&["invite", "link", invited["inviteId"].as_str().unwrap()])
    };
    let first = link("grace@example.com");
    let typed = format!("{}\nGrace\ncorrect horse battery staple\n", first.trim());
    let done = desk.run_with(&["login", "--invite", "--name", "grace"], &typed);
    assert_eq!(
        desk.plain(&done.stderr),
        "Accepting an invite to URL.\nSigned in to URL as grace@example.com (context grace).\n"
    );
    assert_eq!(desk.shown(&["whoami", "--output", "name"]), "grace@example.com\n");
    let again = desk.run_with(&["login", "--invite"], &typed);
    assert_eq!(again.code, Some(3), "{}", again.stderr);
    assert!(
        again.stderr.ends_with("A link works once, and until the invite expires: ask for another one.\n")
    );
    desk.refuses(
        &["login", first.trim()],
        2,
        "podium: that is the link of an invite, which nobody else may see\n\
         Type podium login --invite, and paste the link when you are asked for it.\n",
    );
    let named = |arguments: &[&str], email: &str| {
        let typed = format!("{}\nAda\ncorrect horse battery staple\n", link(email).trim());
        desk.run_with(arguments, &typed)
    };
    desk.shown(&["context", "use", desk.url.trim_start_matches("http://")]);
    let done = named(&["login", &desk.url, "--invite", "--name", "ada"], "ada@example.com");
    assert!(done.stderr.ends_with("as ada@example.com (context ada).\n"), "{}", done.stderr);
    desk.shown(&["context", "use", desk.url.trim_start_matches("http://")]);
    let other = named(&["login", "--invite", "http://127.0.0.1:1"], "bob@example.com");
    assert_eq!(other.code, Some(2), "{}", other.stderr);
    assert!(other.stderr.starts_with("podium: the link is for another server, not http://127.0.0.1:1\n"));
    let weak = desk.run_with(&["login", "--invite"], &format!("{}\nGrace\nshort\n", first.trim()));
    assert_ne!(weak.code, Some(0));
    assert!(!weak.stderr.contains(first.trim().rsplit('=').next().unwrap()), "{}", weak.stderr);
}
