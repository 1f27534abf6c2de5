//! Attacks of a DAG author: the launcher starts these programs like those of environments.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use super::strength;
use crate::program::{Installation, Program};

/// Users that are nobody's, for those that environments run under.
pub(super) const USER: u32 = 1_999_990_001;
pub(super) const OTHER_USER: u32 = 1_999_990_002;

/// Tries to listen on a port in every way that there is, and says which worked.
const LISTEN: &str = "
import socket, sys
ways = {'tcp': (2, 0), 'tcp6': (10, 0), 'multipath': (2, 262), 'multipath6': (10, 262), 'smc': (2, 256), 'af-smc': (43, 0)}
for name, (family, protocol) in ways.items():
    for address in ['127.0.0.1', '0.0.0.0'] if family != 10 else ['::1', '::']:
        try:
            one = socket.socket(family, socket.SOCK_STREAM, protocol)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            one.bind((address, int(sys.argv[1])))
            one.listen()
            print(name, 'took', address)
            one.close()
        except OSError:
            pass
";

/// A program that the launcher is to start.
pub(super) struct Launch(Command);

impl Launch {
    pub(super) fn new() -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_podium"));
        command.env_clear().env("PODIUM_SET_PATH", "/usr/bin:/bin:/usr/sbin:/sbin").current_dir("/");
        command.arg("confine");
        Self(command)
    }

    pub(super) fn told(mut self, flag: &str, value: impl AsRef<std::ffi::OsStr>) -> Self {
        self.0.arg(flag).arg(value);
        self
    }

    pub(super) fn with_any_file(mut self) -> Self {
        self.0.arg("--any-file");
        self
    }

    /// What it says; what it says of troubles last.
    pub(super) fn run(mut self, program: &[&str]) -> String {
        let output = self.0.arg("--").args(program).output().expect("the launcher starts");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        text(&output.stdout) + &text(&output.stderr)
    }

    /// Starts it in a process group of its own, with this as its standard input.
    pub(super) fn start(mut self, program: &[&str], stdin: Stdio) -> Child {
        let command = self.0.arg("--").args(program).process_group(0).stdin(stdin).stdout(Stdio::piped());
        command.spawn().expect("the launcher starts")
    }

    pub(super) fn shell(self, script: &str) -> String {
        self.run(&["/bin/sh", "-c", script])
    }
}

pub(super) fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// The kernel's version, as far as it says which rules it has.
fn kernel() -> (u32, u32) {
    let text = fs::read_to_string("/proc/sys/kernel/osrelease").expect("Linux says which it is");
    let mut numbers = text.split(['.', '-']).map(|part| part.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

fn confines_files() -> bool {
    !Launch::new().shell("true").contains("does not support Landlock")
}

/// Whether programs can have mounts of their own here; the start says so where they cannot.
fn has_own_mounts() -> bool {
    let own = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let said = Launch::new().told("--temporary", own.path()).with_any_file().shell("echo made");
    assert!(said == "made\n" || said.contains("private mounts cannot be created"), "{said}");
    said == "made\n"
}

/// A directory below one that every program may read, where this test may make one; else beside other things.
fn place_that_is_read() -> TempDir {
    tempfile::tempdir_in("/opt").or_else(|_| tempfile::tempdir()).expect("a directory")
}

fn file(path: &Path, text: &str, mode: u32) {
    fs::create_dir_all(path.parent().expect("it is in a directory")).expect("a directory");
    fs::write(path, text).expect("a file");
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
}

/// A data directory below a path that is granted, with the files that authors are after, and one environment's own.
fn data_below(root: &Path) -> (PathBuf, PathBuf) {
    let data = root.join("podium/data");
    fs::set_permissions(root, fs::Permissions::from_mode(0o755)).expect("it is ours");
    for secret in SECRETS {
        // Whatever its mode says, as for a server that is the same user.
        file(&data.join(secret), "a secret", 0o644);
    }
    let own = data.join("local/environments/own/user");
    file(&own.join("file"), "my own", 0o644);
    file(&root.join("tools/run"), "a tool", 0o755);
    (data, own)
}

const SECRETS: &[&str] = &[
    "owner-token",
    "secret-key",
    "podium.db",
    "local/environments/other/state.json",
    "local/environments/other/code/dag.py",
    "local/postgres/data/PG_VERSION",
];

#[test]
fn a_data_directory_below_a_world_readable_one_stays_closed() {
    if !confines_files() {
        return;
    }
    let root = place_that_is_read();
    let (data, own) = data_below(root.path());
    let launch = || {
        let launch = Launch::new().told("--kept", &data).told("--write", &own);
        let launch = if has_own_mounts() { launch.told("--temporary", &own) } else { launch };
        // Somebody's interpreter may be in the same place.
        launch.told("--read", root.path())
    };
    for secret in SECRETS {
        let said = launch().shell(&format!("cat '{}'", data.join(secret).display()));
        assert!(said.contains("Permission denied"), "{secret}: {said}");
    }
    for directory in [data.clone(), data.join("local"), data.join("local/environments/other")] {
        let said = launch().shell(&format!("ls '{}'", directory.display()));
        assert!(said.contains("Permission denied"), "{}: {said}", directory.display());
    }
    let around = own.join("link");
    std::os::unix::fs::symlink(data.join("owner-token"), &around).expect("a link");
    assert!(launch().shell(&format!("cat '{}'", around.display())).contains("Permission denied"));
    assert_eq!(launch().shell(&format!("cat '{}'", own.join("file").display())), "my own");
    let tool = root.path().join("tools/run");
    assert_eq!(launch().shell(&format!("cat '{}'", tool.display())), "a tool", "what lies beside is granted");
}

#[test]
fn the_start_reports_a_data_directory_below_a_world_readable_one_correctly() {
    // Below a directory that only its owner enters, root uses no other users and leaves files to the kernel, too.
    for mode in [0o755, 0o700] {
        let root = place_that_is_read();
        fs::set_permissions(root.path(), fs::Permissions::from_mode(mode)).expect("it is ours");
        let mut installation = Installation::new();
        installation.set("PODIUM_DATA_PLANE", "local");
        let data = root.path().join("data");
        installation.set("PODIUM_DATA_DIR", data.to_str().expect("text"));
        let program = installation.serve(&[]);
        let told = isolation_of(&program);
        program.stop();
        let has_users = is_root() && mode == 0o755;
        assert!(!told.contains(data.to_str().expect("text")), "{told}");
        assert_eq!(told.contains("environments are isolated"), has_users || confines_files(), "{told}");
        if has_users || confines_files() {
            let how = if has_users { "each runs as its own user" } else { "the kernel confines each" };
            assert!(told.contains(how), "{told}");
        }
        assert!(!data.join("local/proof").exists(), "what was tried is cleared away");
    }
}

/// What a server says about isolation, once it is known.
fn isolation_of(program: &Program) -> String {
    loop {
        let said = program.said();
        if let Some(line) = said.lines().find(|line| line.contains(" isolated")) {
            return line.to_owned();
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_server_in_the_current_directory_isolates_environments_like_any_other() {
    let root = place_that_is_read();
    fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).expect("it is ours");
    let mut installation = Installation::new();
    installation.set("PODIUM_DATA_PLANE", "local");
    installation.set("PODIUM_LISTEN", "127.0.0.1:0");
    // As the README says: `podium serve`, and nothing else.
    let plain = format!("cd '{}' && unset PODIUM_DATA_DIR", root.path().display());
    let program = installation.serve_after(&plain, Stdio::null());
    let told = isolation_of(&program);
    program.stop();
    assert!(root.path().join("podium-data/local/environments").is_dir(), "the data is where it was started");
    let is_own = has_own_mounts() && (is_root() || confines_files());
    assert_eq!(told.contains("with private mounts"), is_own, "{told}");
    assert_eq!(told.contains("private mounts do not work here ("), !has_own_mounts(), "{told}");
    assert!(!told.contains("No such file"), "{told}");
}

#[test]
fn a_data_directory_below_tmp_costs_nothing_else_and_is_reported() {
    let directory = tempfile::Builder::new()
        .permissions(fs::Permissions::from_mode(0o711))
        .tempdir_in("/tmp")
        .expect("a directory");
    let mut installation = Installation::new();
    installation.set("PODIUM_DATA_PLANE", "local");
    installation.set("PODIUM_DATA_DIR", directory.path().join("data").to_str().expect("text"));
    let program = installation.serve(&[]);
    let told = isolation_of(&program);
    program.stop();
    if has_own_mounts() && (is_root() || confines_files()) {
        assert!(told.contains("with private mounts"), "{told}");
        assert!(told.contains("they share /tmp, because the data directory is there"), "{told}");
    }
}

#[test]
fn a_confined_root_is_nobody_special() {
    if !confines_files() {
        return;
    }
    let said =
        Launch::new().shell("grep -E '^(Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs|Seccomp):' /proc/self/status");
    for line in said.lines() {
        let (name, value) = line.split_once(':').expect("a field");
        match name {
            "NoNewPrivs" => assert_eq!(value.trim(), "1", "{said}"),
            "Seccomp" => assert_ne!(value.trim(), "0", "{said}"),
            // Who is not root cannot empty it, and gains nothing from it either.
            "CapBnd" if !is_root() => {}
            _ => assert_eq!(u64::from_str_radix(value.trim(), 16), Ok(0), "{said}"),
        }
    }
    assert!(said.contains("NoNewPrivs"), "{said}");
    for secret in ["cat /etc/shadow", "ls /dev", "ls /root", "cat /proc/1/environ", "ls /sys/kernel/debug"] {
        let said = Launch::new().shell(secret);
        assert!(said.contains("denied") || said.contains("No such file"), "{secret}: {said}");
    }
    assert!(Launch::new().shell("cat /etc/passwd").contains("root:"), "what everybody reads is there");
    // Any disk will do.
    let disks = fs::read_dir("/sys/block").into_iter().flatten().flatten().map(|entry| entry.file_name());
    for disk in
        disks.filter_map(|name| name.into_string().ok()).filter(|name| Path::new("/dev").join(name).exists())
    {
        let said = Launch::new().shell(&format!("head -c 1 /dev/{disk} | wc -c"));
        assert!(said.contains("denied"), "{disk}: {said}");
    }
}

/// A port that is free, and none that the kernel picks.
fn free_port() -> u16 {
    free_ports().next().expect("some port is free")
}

pub(super) fn free_ports() -> impl Iterator<Item = u16> {
    let range =
        fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").expect("Linux says which it picks");
    let ends: Vec<u16> = range.split_whitespace().filter_map(|number| number.parse().ok()).collect();
    let first = 10_000 + u16::try_from(std::process::id() % 10_000).expect("it is small");
    let ports = (first..24_000).filter(move |port| !(ends[0]..=ends[1]).contains(port));
    ports.filter(|port| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok())
}

#[test]
fn a_task_cannot_take_a_port_that_clients_of_other_services_use() {
    if kernel() < (6, 7) || !confines_files() {
        return;
    }
    let mut installation = Installation::new();
    installation.set("PODIUM_LISTEN", &format!("127.0.0.1:{}", free_port()));
    let program = installation.serve(&[]);
    let port = program.address.port().to_string();
    // From here on whoever calls the server would speak to whoever has its port.
    program.stop();
    let listen = |launch: Launch, port: &str| launch.with_any_file().run(&["python3", "-c", LISTEN, port]);
    let mine = || if is_root() { Launch::new().told("--user", USER.to_string()) } else { Launch::new() };
    for _ in 0..strength(1, 20) {
        assert_eq!(listen(mine(), &port), "");
    }
    assert!(listen(mine(), "0").contains("tcp took 127.0.0.1"), "the kernel may pick one");
    let again = "import socket; one = socket.create_server(('127.0.0.1', 0)); port = one.getsockname()[1]; one.close(); \
                 socket.create_server(('127.0.0.1', port)); print('again')";
    let said = mine().with_any_file().run(&["python3", "-c", again]);
    assert_eq!(said, "again\n", "many programs let the kernel pick one, and name it then");
    let allowed = listen(mine().told("--ports", format!("{port}-{port}")), &port);
    assert!(allowed.contains("tcp took 127.0.0.1"), "the operator may allow some: {allowed}");
    assert!(!allowed.contains("multipath") && !allowed.contains("smc"), "{allowed}");
}

#[test]
fn a_set_user_id_file_of_another_environment_gives_nothing() {
    if !is_root() {
        // Nobody else can be somebody else.
        return;
    }
    let root = tempfile::tempdir().expect("a directory");
    fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).expect("it is ours");
    let (left, secret) = (root.path().join("left-behind"), root.path().join("secret"));
    fs::copy("/bin/cat", &left).expect("a program");
    file(&secret, "of the other environment", 0o600);
    for path in [&left, &secret] {
        chown(path, Some(OTHER_USER), Some(OTHER_USER)).expect("root may");
    }
    fs::set_permissions(&left, fs::Permissions::from_mode(0o6755)).expect("it is ours");
    let plain = Command::new("setpriv")
        .args([&format!("--reuid={USER}"), &format!("--regid={USER}"), "--clear-groups"])
        .args([&left, &secret])
        .output();
    if let Ok(plain) = plain {
        assert_eq!(plain.stdout, b"of the other environment", "the attack works without the launcher");
    }
    let attack = format!("'{}' '{}'", left.display(), secret.display());
    let said = Launch::new().told("--user", USER.to_string()).with_any_file().shell(&attack);
    assert!(said.contains("Permission denied"), "{said}");
    let said =
        Launch::new().told("--user", USER.to_string()).with_any_file().shell("id -u; id -G; su -c id 2>&1");
    assert!(said.starts_with(&format!("{USER}\n{USER}\n")) && !said.contains("uid=0"), "{said}");
}

#[test]
fn temporary_files_of_an_environment_are_in_its_own_directory() {
    let own = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    if is_root() {
        chown(own.path(), Some(USER), Some(USER)).expect("root may");
    }
    if !has_own_mounts() {
        return;
    }
    let name = format!("podium-left-{}", std::process::id());
    let launch = Launch::new().told("--temporary", own.path()).told("--write", own.path()).with_any_file();
    let launch = if is_root() { launch.told("--user", USER.to_string()) } else { launch };
    let said = launch.shell(&format!(
        "for place in /tmp /var/tmp /dev/shm; do echo mine >$place/{name}; done; ipcmk -Q >/dev/null 2>&1; echo done"
    ));
    assert_eq!(said, "done\n");
    assert!(own.path().join(&name).exists(), "it is in its own directory");
    for place in ["/tmp", "/var/tmp", "/dev/shm"] {
        assert!(!Path::new(place).join(&name).exists(), "{place}");
    }
    let queues = fs::read_to_string("/proc/sysvipc/msg").unwrap_or_default();
    assert!(!queues.split_whitespace().any(|field| field == USER.to_string()), "{queues}");
}

#[test]
fn a_confined_task_reaches_no_socket_of_the_user_s_session() {
    let Ok(place) = tempfile::tempdir_in("/run/user") else {
        // Only root can make one, where there are sessions at all.
        return;
    };
    if !has_own_mounts() {
        return;
    }
    let socket = place.path().join("bus");
    let _bus = std::os::unix::net::UnixListener::bind(&socket).expect("a socket");
    let connect = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1]); print('reached')";
    let own = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let program = ["python3", "-c", connect, socket.to_str().expect("text")];
    assert_eq!(Launch::new().with_any_file().run(&program), "reached\n", "nothing else keeps it");
    let confined = || Launch::new().told("--temporary", own.path());
    for launch in [confined().with_any_file(), confined()] {
        let said = launch.run(&program);
        assert!(said.contains("No such file") || said.contains("does not support Landlock"), "{said}");
    }
}
