//! What a task reaches over the network if its environment has its own: two networks are created like those of
//! environments, and the launcher starts programs in them.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::thread;

use super::authors::{Launch, USER, is_root};

/// The user of those who make networks, where there are users.
const HELPER: u32 = 1_999_990_009;
/// Where the web server of each environment listens in its own network.
const WEB: u16 = 24_576;

/// Connects to addresses, and says which of them answer.
const CONNECT: &str = "
import socket, sys
for address in sys.argv[1:]:
    host, port = address.rsplit(':', 1)
    try:
        with socket.create_connection((host, int(port)), timeout=5) as one:
            print(address, one.recv(100).decode() or 'connected')
    except OSError as error:
        print(address, 'refused')
";

/// Asks with a datagram.
const ASK: &str = "
import socket, sys
one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
one.settimeout(5)
one.connect((sys.argv[1], int(sys.argv[2])))
one.send(b'question')
print(one.recv(100).decode())
";

/// Answers with a word on the socket that it is given for the inside, until its standard output is closed.
const SERVE: &str = "
import os, socket
one = socket.socket(fileno=int(os.environ['PODIUM_INNER_SOCKET']))
print('serves', flush=True)
while True:
    there, _ = one.accept()
    there.sendall(b'own web server')
    there.close()
";

/// Listens where the kernel likes, on all addresses, and answers with a word.
const LISTEN: &str = "
import socket
one = socket.create_server(('', 0))
print(one.getsockname()[1], flush=True)
while True:
    there, _ = one.accept()
    there.sendall(b'neighbour')
    there.close()
";

/// Tries to become the master of the network that it is in.
const MASTER: &str = "
import ctypes, fcntl, os
libc = ctypes.CDLL(None, use_errno=True)
NEW_USER, NEW_NET, GET_USER_NS = 0x10000000, 0x40000000, 0xb701
network = os.open('/proc/self/ns/net', os.O_RDONLY)
try:
    owner = fcntl.ioctl(network, GET_USER_NS)
    print('enter', libc.setns(owner, NEW_USER))
except OSError:
    print('enter -1')
print('leave', libc.setns(os.open('/proc/1/ns/net', os.O_RDONLY), NEW_NET) if os.access('/proc/1/ns/net', os.R_OK) else -1)
print('raw', os.system('ip link set podium0 down 2>/dev/null') and -1)
";

/// A process that ends with the test, and all of its group.
struct Helper(Child);

impl Helper {
    fn start(command: &mut Command) -> Self {
        Self(command.process_group(0).spawn().expect("it starts"))
    }

    fn kill(&mut self) {
        let group = format!("-{}", self.0.id());
        let _ = Command::new("kill").args(["-9", "--", &group]).stderr(Stdio::null()).status();
        let _ = self.0.wait();
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A network as environments have them.
struct Network {
    holder: Helper,
    uplink: Helper,
    forwards: Vec<String>,
}

impl Network {
    fn new(forwards: &[String]) -> Self {
        let listen = format!("127.0.0.1:{WEB}");
        let holder = Helper::start(ours("hold", forwards).args(["--listen", &listen]));
        until("the network is made", || number_of(holder.0.id()) != number_of(std::process::id()));
        until("it is held", || sleeps(holder.0.id()));
        let uplink = uplink(&holder, forwards);
        let network = Self { holder, uplink, forwards: forwards.to_vec() };
        until("there is a way out", || network.leads_out());
        network
    }

    fn leads_out(&self) -> bool {
        let routes = fs::read_to_string(format!("/proc/{}/net/route", self.holder.0.id()));
        routes.is_ok_and(|routes| routes.contains("podium0"))
    }

    /// What kills the way out, and what the supervisor does then.
    fn lose_uplink(&mut self) {
        self.uplink.kill();
        until("there is no way out", || !self.leads_out());
    }

    fn restore_uplink(&mut self) {
        self.uplink = uplink(&self.holder, &self.forwards);
        until("there is a way out again", || self.leads_out());
    }

    /// What starts a program in it.
    fn launch(&self) -> Launch {
        self.launch_with_number(number_of(self.holder.0.id()))
    }

    fn launch_with_number(&self, number: u64) -> Launch {
        let launch = Launch::new().with_any_file().told("--network", number.to_string());
        let launch = launch.told("--holder", self.holder.0.id().to_string());
        if is_root() { launch.told("--user", USER.to_string()) } else { launch }
    }

    /// Which of these addresses answer to a program in it, and what.
    fn hears(&self, addresses: &[SocketAddr]) -> Vec<String> {
        let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        let mut program = vec!["python3", "-c", CONNECT];
        program.extend(addresses.iter().map(String::as_str));
        let said = self.launch().run(&program);
        let answers = said.lines().zip(&addresses).map(|(line, address)| {
            line.strip_prefix(&format!("{address} ")).unwrap_or_else(|| panic!("{said}")).to_owned()
        });
        answers.collect()
    }
}

fn ours(what: &str, forwards: &[String]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_podium"));
    command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").current_dir("/").stdin(Stdio::null());
    command.args(["network", what]);
    if is_root() {
        command.args(["--user", &HELPER.to_string()]);
    }
    command.args(forwards.iter().flat_map(|forward| ["--forward", forward]));
    command
}

fn uplink(holder: &Helper, forwards: &[String]) -> Helper {
    let mut command = ours("uplink", forwards);
    command.args(["--holder", &holder.0.id().to_string(), "--pasta", "pasta"]);
    Helper::start(&mut command)
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = std::time::Instant::now();
    while !is_so() {
        assert!(begun.elapsed().as_secs() < 60, "it never came true: {what}");
        thread::yield_now();
    }
}

fn number_of(pid: u32) -> u64 {
    fs::metadata(format!("/proc/{pid}/ns/net")).expect("it runs").ino()
}

fn sleeps(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "sleep")
}

/// The address of this machine that is not loopback, where networks can be made here.
fn outward() -> Option<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("a socket");
    let address = socket.connect((Ipv4Addr::new(198, 51, 100, 1), 9)).and_then(|()| socket.local_addr());
    let lacks = match address {
        Err(_) => "this machine has no network",
        Ok(_) if Command::new("pasta").arg("--version").output().is_err() => {
            "pasta is not installed (package passt)"
        }
        Ok(_) if !can_make_name_spaces() => "no name spaces can be made here",
        Ok(address) => return Some(address.ip()),
    };
    eprintln!("SKIPPED: {lacks}");
    None
}

fn can_make_name_spaces() -> bool {
    Command::new("unshare").args(["--user", "--net", "true"]).status().is_ok_and(|status| status.success())
}

/// Somebody of this machine who answers whoever connects.
fn service(address: IpAddr, word: &'static str) -> SocketAddr {
    let listener = TcpListener::bind((address, 0)).expect("a free port");
    let at = listener.local_addr().expect("it listens");
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.write_all(word.as_bytes());
        }
    });
    at
}

#[test]
fn a_task_reaches_the_internet_and_itself_and_nothing_else_on_loopback() {
    let Some(outward) = outward() else { return };
    let loopback = Ipv4Addr::LOCALHOST.into();
    let (machine, closed, opened) =
        (service(outward, "machine"), service(loopback, "control plane"), service(loopback, "database"));
    // A resolver as many machines have one: on loopback, and not at its usual address.
    let resolver = UdpSocket::bind("127.0.0.77:0").expect("a free port");
    let resolver_at = resolver.local_addr().expect("it listens");
    thread::spawn(move || {
        let mut question = [0; 100];
        while let Ok((length, from)) = resolver.recv_from(&mut question) {
            let _ = resolver.send_to(&[b"answer to a ".as_slice(), &question[..length]].concat(), from);
        }
    });
    let forwards = [format!("tcp:{opened}"), format!("udp:{resolver_at}")];
    let (mut mine, theirs) = (Network::new(&forwards), Network::new(&[]));
    let neighbour = theirs.launch().start(&["python3", "-c", LISTEN], Stdio::null());
    let (neighbour, port) = listening(neighbour);
    let at = |port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let port = port.trim().parse().expect("a port");
    let on_machine = SocketAddr::new(outward, port);
    let asked = [machine, opened, closed, at(port), on_machine];
    let expected = ["machine", "database", "refused", "refused", "refused"];
    assert_eq!(theirs.hears(&[at(port)]), ["neighbour"], "this is how it would show");
    assert_eq!(mine.hears(&asked), expected);
    let ask = |network: &Network| {
        let (host, port) = (resolver_at.ip().to_string(), resolver_at.port().to_string());
        network.launch().run(&["python3", "-c", ASK, &host, &port])
    };
    assert_eq!(ask(&mine), "answer to a question\n");
    assert!(ask(&theirs).contains("refused"), "{}", ask(&theirs));
    // Whoever leads out is killed, and started again: those who run have their network again.
    mine.lose_uplink();
    assert_eq!(mine.hears(&[machine]), ["refused"]);
    mine.restore_uplink();
    assert_eq!(mine.hears(&asked), expected);
    assert_eq!(ask(&mine), "answer to a question\n");
    drop(neighbour);
}

#[test]
fn a_web_server_is_reached_from_inside_and_from_outside() {
    if outward().is_none() {
        return;
    }
    let network = Network::new(&[]);
    // The one outside tells the launcher which one inside it is.
    let outside = TcpListener::bind((Ipv4Addr::LOCALHOST, WEB)).ok();
    let Some(outside) = outside else {
        eprintln!("SKIPPED: somebody else has port {WEB}");
        return;
    };
    let stdin = Stdio::from(std::os::fd::OwnedFd::from(outside.try_clone().expect("a copy")));
    let (server, said) = listening(network.launch().start(&["python3", "-c", SERVE], stdin));
    assert_eq!(said, "serves\n");
    let web = SocketAddr::from((Ipv4Addr::LOCALHOST, WEB));
    assert_eq!(network.hears(&[web]), ["own web server"]);
    drop(server);
    // The holder keeps it while the web server restarts: nobody is refused, but waits for the next one.
    let mut waiting = network.launch().start(&["python3", "-c", CONNECT, &web.to_string()], Stdio::null());
    let stdin = Stdio::from(std::os::fd::OwnedFd::from(outside));
    let (_server, _) = listening(network.launch().start(&["python3", "-c", SERVE], stdin));
    let mut said = String::new();
    waiting.stdout.take().expect("it is piped").read_to_string(&mut said).expect("text");
    assert_eq!(said, format!("{web} own web server\n"));
    waiting.wait().expect("it ends");
}

#[test]
fn a_task_does_not_control_its_network() {
    if outward().is_none() {
        return;
    }
    let network = Network::new(&[]);
    let said = network.launch().run(&["python3", "-c", MASTER]);
    assert_eq!(said, "enter -1\nleave -1\nraw -1\n");
    assert!(network.leads_out());
    if is_root() {
        let helper = format!("kill -9 {} 2>&1", network.holder.0.id());
        assert!(
            network.launch().shell(&helper).contains("not permitted"),
            "whoever holds it is somebody else"
        );
    }
}

#[test]
fn nothing_starts_in_another_network_than_its_own() {
    if outward().is_none() {
        return;
    }
    let network = Network::new(&[]);
    let said = network.launch_with_number(number_of(std::process::id())).shell("echo started");
    assert!(said.contains("its network cannot be entered") && !said.contains("started"), "{said}");
    let lost =
        Launch::new().with_any_file().told("--network", "0").told("--holder", "0").shell("echo started");
    assert!(lost.contains("its network cannot be entered") && !lost.contains("started"), "{lost}");
}

/// A program that serves, and the first line that it says.
fn listening(mut child: Child) -> (Helper, String) {
    let mut said = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut line = String::new();
    said.read_line(&mut line).expect("text");
    // What it says later is nobody's business.
    drop(File::from(std::os::fd::OwnedFd::from(said.into_inner())));
    (Helper(child), line)
}
