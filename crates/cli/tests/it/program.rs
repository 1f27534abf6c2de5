//! The built program, and a minimal HTTP client.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use podium_db::Target;
use podium_testkit::{Database, Engine, block_on, mark_node_unseen};
use serde_json::Value;
use tempfile::TempDir;

/// Long enough that only a hang exceeds it.
const PATIENCE: Duration = Duration::from_secs(60);

/// A data directory, and what runs on it.
pub(crate) struct Installation {
    directory: TempDir,
    variables: Vec<(&'static str, String)>,
}

/// How a command ended.
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Installation {
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir().expect("a temporary directory"), variables: Vec::new() }
    }

    /// An installation whose data is on this engine.
    pub(crate) fn on(engine: Engine) -> Self {
        let mut installation = Self::new();
        if engine == Engine::Postgres
            && let Target::Postgres(url) = block_on(Database::create(engine)).target()
        {
            let key = "the key of these tests, which is long enough".to_owned();
            let limits = "off".to_owned();
            installation.variables = vec![
                ("PODIUM_DATABASE_URL", url),
                ("PODIUM_SECRET_KEY", key),
                ("PODIUM_RATE_LIMITS", limits),
            ];
        }
        installation
    }

    /// Another machine of the same installation: the same database, and a data directory of its own.
    pub(crate) fn another_machine(&self) -> Self {
        Self { variables: self.variables.clone(), ..Self::new() }
    }

    /// Makes a node look as if it had been away for ever; PostgreSQL only.
    pub(crate) fn mark_node_unseen(&self, name: &str) {
        let (_, url) = self.variables.iter().find(|(name, _)| *name == "PODIUM_DATABASE_URL").expect("a URL");
        block_on(mark_node_unseen(Target::parse(url), name));
    }

    /// Sets an environment variable of the programs that run on it.
    pub(crate) fn set(&mut self, name: &'static str, value: &str) {
        self.variables.push((name, value.to_owned()));
    }

    /// Leaves a variable to its default.
    pub(crate) fn unset(&mut self, name: &str) {
        self.variables.retain(|(known, _)| *known != name);
    }

    /// The data directory, which the program makes itself.
    pub(crate) fn data_dir(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    pub(crate) fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.data_dir().join(file)).expect("the file is there")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_podium"));
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("PODIUM_")) {
            command.env_remove(name);
        }
        command.args(arguments).env("PODIUM_DATA_DIR", self.data_dir()).current_dir(self.directory.path());
        command.env("PODIUM_DATA_PLANE", "simulated");
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        self.run_with(arguments, "")
    }

    /// Runs a command that reads this to its end.
    pub(crate) fn run_with(&self, arguments: &[&str], input: &str) -> Ended {
        finish(self.command(arguments), input)
    }

    /// Serves, on a free port unless one is set; returns once the program says that it is ready.
    pub(crate) fn serve(&self, arguments: &[&str]) -> Program {
        let is_free = !self.variables.iter().any(|(name, _)| *name == "PODIUM_LISTEN");
        let listen: &[&str] = if is_free { &["--listen", "127.0.0.1:0"] } else { &[] };
        let all = [&["serve"], listen, arguments].concat();
        Program::watch(self.command(&all))
    }

    /// Serves as a shell starts it that did something before, with this as its standard input.
    pub(crate) fn serve_after(&self, script: &str, stdin: Stdio) -> Program {
        let ours = self.command(&["serve"]);
        let mut command = Command::new("sh");
        command
            .args(["-c", &format!("{script}; exec \"$@\""), "sh"])
            .arg(ours.get_program())
            .args(ours.get_args());
        for (name, value) in ours.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.current_dir(self.directory.path()).stdin(stdin);
        Program::watch(command)
    }
}

/// Runs a command that reads this to its end.
pub(crate) fn finish(mut command: Command, input: &str) -> Ended {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    // A command that does not read may be gone already.
    let _ = child.stdin.take().expect("it is piped").write_all(input.as_bytes());
    let output = child.wait_with_output().expect("it ends");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    Ended { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// A program that serves.
pub(crate) struct Program {
    child: Child,
    pub(crate) address: SocketAddr,
    said: Arc<Mutex<String>>,
    listener: Option<JoinHandle<()>>,
}

impl Program {
    /// Starts a server; returns once it says that it is ready.
    fn watch(mut command: Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().expect("the program starts");
        let said = Arc::new(Mutex::new(String::new()));
        let mut lines = BufReader::new(child.stderr.take().expect("it is piped"));
        let mut address = None;
        let mut line = String::new();
        while address.is_none() && lines.read_line(&mut line).expect("text") > 0 {
            let url = line.strip_prefix("Podium is ready at ").and_then(|url| url.trim().split_once("//"));
            address = url.map(|(_, address)| address.parse().expect("an address"));
            said.lock().unwrap().push_str(&line);
            line.clear();
        }
        let keep = Arc::clone(&said);
        let listener = std::thread::spawn(move || {
            while lines.read_line(&mut line).is_ok_and(|length| length > 0) {
                keep.lock().unwrap().push_str(&line);
                line.clear();
            }
        });
        let address = address.unwrap_or_else(|| panic!("it did not start: {}", said.lock().unwrap()));
        Self { child, address, said, listener: Some(listener) }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it has said so far.
    pub(crate) fn said(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    /// Tells it to stop, as an operator's tools do.
    pub(crate) fn tell_to_stop(&self, signal: &str) {
        let kill = format!("kill -{signal} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().expect("a shell").success());
    }

    pub(crate) fn end(&mut self) -> ExitStatus {
        let status = self.child.wait().expect("it ends");
        if let Some(listener) = self.listener.take() {
            listener.join().expect("it listened to the end");
        }
        status
    }

    /// Stops it in good order.
    pub(crate) fn stop(mut self) -> String {
        self.tell_to_stop("TERM");
        assert_eq!(self.end().code(), Some(0), "{}", self.said());
        self.said()
    }

    /// Ends it at once, whatever it is doing.
    pub(crate) fn crash(&mut self) {
        self.child.kill().expect("it runs");
        self.end();
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
        stream
    }

    /// Calls with a JSON body, or none.
    pub(crate) fn call(&self, method: &str, path: &str, token: &str, body: Option<&Value>) -> Reply {
        let head = format!("Authorization: Bearer {token}\r\nConnection: close\r\n");
        exchange(self.connect(), &request(method, path, &head, body))
    }

    pub(crate) fn get(&self, path: &str, token: &str) -> Reply {
        self.call("GET", path, token, None)
    }

    /// The path of the only organization.
    pub(crate) fn organization(&self, token: &str) -> String {
        let list = self.get("/v1/organizations", token).json();
        format!("/v1/organizations/{}", list["organizations"][0]["id"].as_str().expect("there is one"))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client that keeps its connection, and gives up when that breaks.
pub(crate) struct Caller {
    stream: TcpStream,
    answers: BufReader<TcpStream>,
    head: String,
}

impl Caller {
    pub(crate) fn new(program: &Program, token: &str) -> Self {
        let stream = program.connect();
        let answers = BufReader::new(stream.try_clone().expect("a socket has two ends"));
        Self { stream, answers, head: format!("Authorization: Bearer {token}\r\n") }
    }

    /// Status and body of a whole answer; `None` where none came.
    pub(crate) fn call(&mut self, method: &str, path: &str, body: Option<&Value>) -> Option<(u16, Vec<u8>)> {
        self.stream.write_all(&request(method, path, &self.head, body)).ok()?;
        let (mut line, mut length, mut status) = (String::new(), 0, 0);
        loop {
            line.clear();
            if self.answers.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if let Some(text) = line.strip_prefix("HTTP/1.1 ") {
                status = text.split(' ').next()?.parse().ok()?;
            } else if let Some(text) = line.to_lowercase().strip_prefix("content-length:") {
                length = text.trim().parse().ok()?;
            } else if line == "\r\n" {
                let mut body = vec![0; length];
                self.answers.read_exact(&mut body).ok()?;
                return Some((status, body));
            }
        }
    }
}

/// An answer as it came.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        assert!((200..300).contains(&self.status), "{}", String::from_utf8_lossy(&self.body));
        serde_json::from_slice(&self.body).expect("JSON")
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.head.lines().filter_map(|line| line.split_once(": "));
        headers.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

/// The bytes of a request; `head` holds whole header lines.
pub(crate) fn request(method: &str, path: &str, head: &str, body: Option<&Value>) -> Vec<u8> {
    let body = body.map(Value::to_string).unwrap_or_default();
    let kind = if body.is_empty() { "" } else { "Content-Type: application/json\r\n" };
    let length = body.len();
    format!("{method} {path} HTTP/1.1\r\nHost: podium\r\n{head}{kind}Content-Length: {length}\r\n\r\n{body}")
        .into_bytes()
}

/// Sends a request that closes the connection, and reads the whole answer.
pub(crate) fn exchange(mut stream: impl Read + Write, request: &[u8]) -> Reply {
    stream.write_all(request).expect("it reads");
    read_reply(stream)
}

/// Reads an answer from its first byte to the end of the connection.
pub(crate) fn read_reply(mut stream: impl Read) -> Reply {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("it answers");
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").expect("a whole head");
    let head = String::from_utf8(bytes[..end].to_vec()).expect("a head is text");
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
    let body = bytes[end + 4..].to_vec();
    let reply = Reply { status, head, body };
    if reply.header("transfer-encoding") == Some("chunked") {
        return Reply { body: join_chunks(&reply.body), ..reply };
    }
    reply
}

fn join_chunks(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let end = rest.windows(2).position(|window| window == b"\r\n").expect("the size of a chunk");
        let size = std::str::from_utf8(&rest[..end]).expect("a size is text");
        let size = usize::from_str_radix(size, 16).expect("a size is hexadecimal");
        if size == 0 {
            return body;
        }
        body.extend_from_slice(&rest[end + 2..end + 2 + size]);
        rest = &rest[end + 4 + size..];
    }
}
