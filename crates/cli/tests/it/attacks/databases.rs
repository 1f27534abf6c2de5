//! Floods of the database server that environments share, from one of them.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command};

use super::authors::{OTHER_USER, USER, is_root};
use super::strength;

const SERVER: u32 = 1_999_990_003;
const MOST: usize = 20;

/// Opens connections, and says how many the server has taken and how many were closed.
const FLOOD: &str = "
import socket, sys
taken, closed = [], 0
for _ in range(int(sys.argv[2])):
    one = socket.socket(socket.AF_UNIX)
    one.connect(sys.argv[1])
    if one.recv(1):
        taken.append(one)
    else:
        closed += 1
print(len(taken), closed)
";

/// A relay, which ends with the test.
struct Relay(Child);

impl Drop for Relay {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What a user gets out of so many connections.
fn flood(user: u32, socket: &Path, connections: usize) -> String {
    let mut python = Command::new("python3");
    python.args(["-c", FLOOD]).arg(socket).arg(connections.to_string()).uid(user).gid(user).current_dir("/");
    let output = python.output().expect("these tests need python3");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text").trim().to_owned()
}

#[test]
fn an_environment_cannot_take_the_connections_of_others_before_it_has_said_who_it_is() {
    if !is_root() {
        // Environments and the server are the same user, and nothing is between them.
        return;
    }
    let place = tempfile::tempdir_in("/tmp").expect("a directory");
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o711)).expect("it is ours");
    chown(place.path(), Some(SERVER), Some(SERVER)).expect("root may");
    let (server, socket) = (place.path().join("server"), place.path().join("relay"));
    let listener = UnixListener::bind(&server).expect("a socket");
    chown(&server, Some(SERVER), Some(SERVER)).expect("root may");
    fs::set_permissions(&server, fs::Permissions::from_mode(0o700)).expect("it is ours");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            std::thread::spawn(move || {
                let _ = stream.write_all(b"!");
                let _ = stream.read_to_end(&mut Vec::new());
            });
        }
    });
    let mut command = Command::new(env!("CARGO_BIN_EXE_podium"));
    command.args(["network", "database", "--most", &MOST.to_string()]);
    command.args(["--user", &SERVER.to_string(), "--client", &USER.to_string()]);
    command
        .arg("--listen")
        .arg(&socket)
        .arg("--to")
        .arg(place.path().join("nothing"))
        .arg("--to")
        .arg(&server);
    let _relay = Relay(command.spawn().expect("the relay starts"));
    while UnixStream::connect(&socket).is_err() {
        std::thread::yield_now();
    }
    let many = strength(200, 5_000);
    assert_eq!(flood(OTHER_USER, &socket, many), format!("0 {many}"), "it is another's");
    assert_eq!(flood(USER, &socket, many), format!("{MOST} {}", many - MOST));
    // Its places are free again, once the relay has noticed.
    let full = format!("{MOST} 0");
    assert!((0..1000).any(|_| flood(USER, &socket, MOST) == full), "what ended still counts");
}
