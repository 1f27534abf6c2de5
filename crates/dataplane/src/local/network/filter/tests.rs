use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::Child;

use rustix::thread::UnshareFlags;

use super::*;
use crate::local::network::{holder, program};

const FIRST: u32 = 1_999_900_000;

const LISTEN: &str = "
import socket, sys
one = socket.create_server((sys.argv[1], int(sys.argv[2])))
print(one.getsockname()[1], flush=True)
while True:
    one.accept()[0].close()
";

const CONNECT: &str = "
import socket, sys
for port in sys.argv[1:]:
    try:
        socket.create_connection(('127.0.0.1', int(port)), timeout=1).close()
        print(port, 'reached')
    except TimeoutError:
        print(port, 'unanswered')
    except OSError:
        print(port, 'refused')
";

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn python(user: u32, script: &str) -> Command {
    let mut command = Command::new("/usr/bin/python3");
    command.args(["-I", "-c", script]).current_dir("/").stdout(Stdio::piped()).uid(user).gid(user);
    command
}

/// Somebody who listens under a user, and the port.
fn server(user: u32, port: u16) -> (Server, u16) {
    let mut child = python(user, LISTEN).args(["127.0.0.1", &port.to_string()]).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (Server(child), line.trim().parse().unwrap())
}

fn heard(user: u32, ports: &[u16]) -> Vec<String> {
    let output = python(user, CONNECT).args(ports.iter().map(ToString::to_string)).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    said.lines().filter_map(|line| line.split_once(' ')).map(|(_, heard)| heard.to_owned()).collect()
}

/// Leaves the machine's network for one that only this thread and what it starts are in.
fn leave_network() -> bool {
    #[expect(deprecated, reason = "its successor is unsafe because of flags that are not used here")]
    let left = rustix::thread::unshare(UnshareFlags::NEWNET);
    left.is_ok() && holder::raise_loopback().is_ok()
}

#[test]
fn environments_with_own_users_cannot_reach_each_other_on_loopback() {
    let tried = std::thread::spawn(|| {
        let Some(nft) = program("nft") else { return Some("nft is not installed (package nftables)".into()) };
        if !leave_network() {
            return Some("no network can be made to try it in".to_owned());
        }
        let (one, other) = (FIRST + 1, FIRST + 2);
        let filter = Filter::new(nft, FIRST..FIRST + 100, vec![8080], BTreeMap::from([(one, 24_577)]));
        let filter = match filter {
            Ok(filter) => filter,
            Err(why) => return Some(why.to_string()),
        };
        filter.admit(other, 24_578).unwrap();
        // Web servers have sockets of the control plane's own user.
        let webs = [server(0, 24_577), server(0, 24_578), server(0, 8080), server(0, 5432)];
        let (mine, theirs) = (server(one, 0), server(other, 0));
        let ports = [24_577, 24_578, 8080, 5432, mine.1, theirs.1];
        let expected = ["reached", "refused", "refused", "reached", "reached", "unanswered"];
        assert_eq!(heard(one, &ports), expected);
        assert_eq!(heard(0, &ports), ["reached"; 6], "nobody else is filtered");
        let stranger = FIRST + 3;
        assert_eq!(
            heard(stranger, &ports[..3]),
            ["refused"; 3],
            "whoever is not known yet has no web server"
        );
        filter.forget(other).unwrap();
        filter.remove_if_unused();
        assert_eq!(heard(one, &ports[..1]), ["reached"]);
        assert_eq!(
            heard(one, &ports[2..3]),
            ["refused"],
            "the table stays while there is somebody to filter"
        );
        filter.forget(one).unwrap();
        filter.remove_if_unused();
        assert_eq!(heard(one, &ports), ["reached"; 6]);
        drop(webs);
        None
    });
    if let Some(lacks) = tried.join().unwrap() {
        eprintln!("SKIPPED: {lacks}");
    }
}
