//! The operator's socket in the data directory.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Stdio;

use super::Desk;

impl Desk {
    fn data_dir(&self) -> PathBuf {
        self.installation.data_dir()
    }

    /// Runs a command as somebody who has not signed in, next to the data directory.
    fn operate(&self, arguments: &[&str]) -> crate::program::Ended {
        self.run_as(&[("PODIUM_DATA_DIR", &self.data_dir().display().to_string())], arguments)
    }

    /// Sends a request over the socket with this authorization: the status.
    fn knock(&self, authorization: &str) -> u16 {
        let mut stream = UnixStream::connect(self.data_dir().join("podium.sock")).unwrap();
        let head =
            format!("GET /v1/users/self HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{authorization}\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_else(|| panic!("{answer}"))
    }
}

#[test]
fn the_operator_needs_no_account() {
    let desk = Desk::new();
    let who = desk.operate(&["whoami", "--output", "name"]);
    let socket = desk.data_dir().join("podium.sock");
    let said = format!(
        "Acting as the operator of the server in {}.\nYou are the operator of this server, through {}.\n",
        desk.data_dir().display(),
        socket.display()
    );
    assert_eq!(
        (who.code, who.stdout.as_str(), who.stderr.as_str()),
        (Some(0), "owner@localhost\n", said.as_str())
    );
    assert_eq!(desk.operate(&["workspace", "create", "Reports"]).code, Some(0));
    let directory = desk.data_dir().display().to_string();
    let listed = desk.shown(&["workspace", "list", "--output", "name", "--data-dir", &directory]);
    assert!(listed.contains("Reports\n"), "{listed}");
    let log = desk.operate(&["audit", "export"]);
    let made = log
        .stdout
        .lines()
        .find(|line| line.contains("CreateWorkspace"))
        .unwrap_or_else(|| panic!("{}{}", log.stdout, log.stderr));
    assert!(made.contains("\"via\":\"OPERATOR_SOCKET\"") && made.contains("owner@localhost"), "{made}");
}

#[test]
fn what_others_do_is_not_marked_as_the_operators() {
    let desk = Desk::signed_in();
    desk.shown(&["workspace", "create", "Reports"]);
    let log = desk.operate(&["audit", "export"]).stdout;
    assert!(log.contains("CreateWorkspace") && !log.contains("OPERATOR_SOCKET"), "{log}");
}

#[test]
fn a_context_or_a_token_comes_before_the_socket() {
    let desk = Desk::signed_in();
    let who = desk.operate(&["whoami", "--output", "name"]);
    assert_eq!((who.code, who.stderr.as_str()), (Some(0), ""));
    let directory = desk.data_dir().display().to_string();
    let told = desk.run(&["whoami", "--data-dir", &directory, "--output", "name"]);
    assert!(told.stderr.starts_with("You are the operator"), "{}", told.stderr);
    let variables =
        [("PODIUM_URL", "http://127.0.0.1:1"), ("PODIUM_CONTEXT", "another"), ("PODIUM_TOKEN", "x")];
    let told = desk.run_as(&variables, &["whoami", "--data-dir", &directory, "--output", "name"]);
    assert_eq!((told.code, told.stdout.as_str()), (Some(0), "owner@localhost\n"), "{}", told.stderr);
    for flag in ["--url", "--context"] {
        desk.refuses(
            &["whoami", "--data-dir", &directory, flag, "http://127.0.0.1:1"],
            2,
            &format!("podium: --data-dir and {flag} each name a server: give one\n"),
        );
    }
    desk.refuses(
        &["whoami", "--data-dir", "nowhere"],
        6,
        "podium: no server runs with its data in nowhere\nStart it: podium serve --data-dir nowhere\n",
    );
}

#[test]
fn the_socket_takes_nothing_but_its_key() {
    let desk = Desk::new();
    for name in ["podium.sock", "operator-key"] {
        let mode = fs::metadata(desk.data_dir().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    let key = fs::read_to_string(desk.data_dir().join("operator-key")).unwrap();
    assert_eq!(desk.knock(&format!("Authorization: Operator {key}\r\n")), 200);
    let bearer = format!("Authorization: Bearer {}\r\n", desk.token);
    for wrong in ["", "Authorization: Operator wrong\r\n", "Authorization: Operator \r\n", &bearer] {
        assert_eq!(desk.knock(wrong), 401, "{wrong}");
    }
    let over_tcp = desk.program.call("GET", "/v1/users/self", "x", None);
    assert_eq!(over_tcp.status, 401);
    let mut stream = desk.program.connect();
    let head = format!(
        "GET /v1/users/self HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Operator {key}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 401"), "the key is worth nothing elsewhere: {answer}");
}

#[test]
fn a_killed_server_leaves_a_socket_that_the_next_one_replaces() {
    let mut desk = Desk::new();
    let before = fs::read_to_string(desk.data_dir().join("operator-key")).unwrap();
    desk.program.crash();
    assert!(desk.data_dir().join("podium.sock").exists());
    let done = desk.operate(&["whoami"]);
    assert_eq!(done.code, Some(6), "{}", done.stderr);
    assert!(done.stderr.contains("podium.sock cannot be reached"), "{}", done.stderr);
    desk.restart();
    assert_eq!(desk.operate(&["whoami"]).code, Some(0));
    assert_eq!(
        desk.knock(&format!("Authorization: Operator {before}\r\n")),
        401,
        "a start has a key of its own"
    );
}

#[test]
fn whoever_has_signed_in_anywhere_is_not_the_operator_by_accident() {
    let desk = Desk::signed_in();
    let contexts = desk.settings().join("contexts.json");
    let mut stored: serde_json::Value = serde_json::from_slice(&fs::read(&contexts).unwrap()).unwrap();
    stored["current"] = serde_json::Value::Null;
    fs::write(&contexts, stored.to_string()).unwrap();
    let done = desk.operate(&["whoami"]);
    let choose = format!("podium context use {}. List contexts: podium context list", desk.program.address);
    let said = format!("podium: you are not signed in to a server\nNo context is current: {choose}\n");
    assert_eq!(done.stderr, said);
    assert_eq!((done.code, done.stdout.as_str()), (Some(4), ""));
}

#[test]
fn the_operator_takes_no_session_away() {
    let desk = Desk::new();
    let decide = ["/auth/device/decide", "-f", "userCode=BCDF-GHJK", "-f", "decision=APPROVE"];
    for call in [&["/auth/renew"][..], &decide] {
        let done = desk.operate(&[&["api", "POST"], call].concat());
        assert!(done.stderr.contains("The operator's socket gives no sessions"), "{call:?}: {}", done.stderr);
        assert_eq!((done.code, done.stdout.as_str()), (Some(4), ""), "{call:?}");
    }
}

#[test]
fn a_connection_without_the_key_is_closed() {
    let desk = Desk::new();
    let mut stream = UnixStream::connect(desk.data_dir().join("podium.sock")).unwrap();
    stream.write_all(b"GET /v1/users/self HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 401") && answer.contains("connection: close"), "{answer}");
}

#[test]
fn a_command_over_the_socket_outlasts_a_restart_of_the_server() {
    let mut desk = Desk::new();
    let directory = desk.data_dir().display().to_string();
    let make = |desk: &Desk, name: &str| {
        let made = desk.operate(&["workspace", "create", name]);
        assert_eq!(made.code, Some(0), "{}", made.stderr);
    };
    make(&desk, "Before");
    let follow = ["event", "follow", "--since", "1h", "--output", "jsonl", "--data-dir", &directory];
    let mut child = desk.command(&follow).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("Before")), "it follows");
    desk.restart();
    make(&desk, "After");
    assert!(lines.any(|line| line.contains("After")), "it follows the server's next start");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_server_that_stops_takes_its_socket_with_it() {
    let Desk { program, installation, .. } = Desk::new();
    program.stop();
    for name in ["podium.sock", "operator-key"] {
        assert!(!installation.data_dir().join(name).exists(), "{name}");
    }
}

#[test]
fn an_operator_outlasts_the_end_of_every_session() {
    let desk = Desk::new();
    assert_eq!(desk.operate(&["whoami"]).code, Some(0));
    let body = serde_json::json!({ "currentPassword": "", "newPassword": "correct horse battery staple" });
    let changed = desk.program.call("POST", "/v1/auth/change-password", &desk.token, Some(&body));
    assert_eq!(changed.status, 204, "{}", String::from_utf8_lossy(&changed.body));
    let done = desk.operate(&["whoami"]);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
}
