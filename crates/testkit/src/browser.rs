//! A browser, driven as WebDriver says: a few JSON documents over HTTP.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine as _;
use serde_json::{Value, json};
use tempfile::TempDir;

/// So long that only a hang reaches it, on a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_mins(5);
const PAUSE: Duration = Duration::from_millis(50);
const BROWSER: &str = "chromium";
const DRIVER: &str = "chromedriver";
/// Keys that write nothing, as the driver spells them.
const KEYS: &[(&str, &str)] = &[
    ("Tab", "\u{e004}"),
    ("Enter", "\u{e007}"),
    ("Escape", "\u{e00c}"),
    ("Down", "\u{e015}"),
    ("Up", "\u{e013}"),
    ("Backspace", "\u{e003}"),
];
/// How the driver names elements.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";
const CONTROL: &str = "\u{e009}";

/// What the driver says when it cannot do something.
#[derive(Debug)]
pub struct DriverError(String);

impl std::fmt::Display for DriverError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// A browser with a profile of its own; it ends when it is dropped.
pub struct Browser {
    driver: Child,
    address: SocketAddr,
    session: String,
    _profile: TempDir,
}

/// Which of the programs that it takes are missing.
pub fn missing() -> Vec<&'static str> {
    [BROWSER, DRIVER].into_iter().filter(|name| find(name).is_none()).collect()
}

fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|directory| directory.join(program)).find(|path| path.is_file())
}

impl Browser {
    /// Starts one with a window of 1400 by 1000.
    pub fn start() -> Self {
        let address =
            TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a free port");
        let driver = Command::new(find(DRIVER).expect("it is installed"))
            .arg(format!("--port={}", address.port()))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the driver starts");
        let profile = tempfile::tempdir().expect("a directory for its profile");
        let mut browser = Self { driver, address, session: String::new(), _profile: profile };
        let started = Instant::now();
        while TcpStream::connect(address).is_err() {
            assert!(started.elapsed() < PATIENCE, "the driver does not listen");
            std::thread::sleep(PAUSE);
        }
        let directory = format!("--user-data-dir={}", browser._profile.path().display());
        let arguments = "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run \
            --disable-background-networking --disable-component-update --disable-sync --window-size=1400,1000";
        let arguments: Vec<&str> = arguments.split(' ').chain([directory.as_str()]).collect();
        let options = json!({ "args": arguments, "binary": find(BROWSER) });
        let wanted = json!({ "capabilities": { "alwaysMatch": { "goog:chromeOptions": options } } });
        let begun = browser.post("", &wanted).expect("the browser starts");
        browser.session = format!("/{}", begun["sessionId"].as_str().expect("a session"));
        browser
    }

    /// Asks the driver for something; fails with what it says.
    fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value, DriverError> {
        let body = body.map(Value::to_string).unwrap_or_default();
        let head = format!(
            "{method} /session{}{path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            self.session,
            self.address,
            body.len()
        );
        let (status, body) =
            talk(self.address, head.as_bytes()).map_err(|error| DriverError(error.to_string()))?;
        let answer: Value = serde_json::from_slice(&body).map_err(|error| DriverError(error.to_string()))?;
        if status == 200 {
            Ok(answer["value"].clone())
        } else {
            Err(DriverError(answer["value"]["message"].to_string()))
        }
    }

    fn post(&self, path: &str, body: &Value) -> Result<Value, DriverError> {
        self.ask("POST", path, Some(body))
    }

    /// Opens a page, and waits until it is loaded.
    pub fn open(&self, url: &str) {
        self.post("/url", &json!({ "url": url })).expect("the page is opened");
    }

    /// Goes back to the page before.
    pub fn back(&self) {
        self.post("/back", &json!({})).expect("it goes back");
    }

    pub fn url(&self) -> String {
        self.ask("GET", "/url", None).expect("it is somewhere").as_str().unwrap_or_default().to_owned()
    }

    /// Runs a script in the page, and returns what it returns; null if it fails.
    pub fn run(&self, script: &str) -> Value {
        self.run_to_end(script).unwrap_or_default()
    }

    /// Runs a script in the page, and waits for what its promise resolves to.
    pub fn run_to_end(&self, script: &str) -> Result<Value, DriverError> {
        self.post("/execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// Sends a command of the browser's own protocol.
    fn command(&self, name: &str, parameters: &Value) {
        let body = json!({ "cmd": name, "params": parameters });
        self.post("/goog/cdp/execute", &body).unwrap_or_else(|error| panic!("{name}: {error}"));
    }

    /// Lets pages that are opened from now on run scripts, or not.
    pub fn set_scripts(&self, are_run: bool) {
        self.command("Emulation.setScriptExecutionDisabled", &json!({ "value": !are_run }));
    }

    /// Prefers dark pages or light ones, and never motion.
    pub fn set_dark(&self, is_dark: bool) {
        let scheme =
            json!({ "name": "prefers-color-scheme", "value": if is_dark { "dark" } else { "light" } });
        let motion = json!({ "name": "prefers-reduced-motion", "value": "reduce" });
        self.command("Emulation.setEmulatedMedia", &json!({ "features": [scheme, motion] }));
    }

    /// Gives the page this size.
    pub fn set_size(&self, width: u32, height: u32) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600 });
        self.command("Emulation.setDeviceMetricsOverride", &size);
    }

    /// A picture of what is shown, as PNG.
    pub fn picture(&self) -> Vec<u8> {
        let text = self.ask("GET", "/screenshot", None).expect("a picture is taken");
        base64::engine::general_purpose::STANDARD
            .decode(text.as_str().unwrap_or_default())
            .expect("the driver encodes it")
    }

    /// Presses keys, wherever the focus is. Those that write nothing have names, such as `Tab`; `Ctrl+k` is a chord.
    pub fn press(&self, keys: &[&str]) {
        let mut actions = Vec::new();
        let mut push = |kind: &str, key: &str| actions.push(json!({ "type": kind, "value": key }));
        for name in keys {
            let (chord, key) = match name.strip_prefix("Ctrl+") {
                Some(key) => (Some(CONTROL), key),
                None => (None, *name),
            };
            let key = KEYS.iter().find(|(named, _)| *named == key).map_or(key, |(_, key)| key);
            chord.into_iter().for_each(|chord| push("keyDown", chord));
            push("keyDown", key);
            push("keyUp", key);
            chord.into_iter().for_each(|chord| push("keyUp", chord));
        }
        let source = json!({ "type": "key", "id": "keyboard", "actions": actions });
        self.post("/actions", &json!({ "actions": [source] })).expect("keys are pressed");
    }

    /// Presses a mouse button over something, moves to the right and lets go: from so many pixels of its middle to so many.
    pub fn draw(&self, xpath: &str, (from, to): (i32, i32)) {
        let id = self.find(xpath).expect("it is there");
        let origin = json!({ ELEMENT: id });
        let mv = |x: i32| json!({ "type": "pointerMove", "duration": 20, "x": x, "y": 0, "origin": origin });
        let actions = [
            mv(from),
            json!({ "type": "pointerDown", "button": 0 }),
            mv((from + to) / 2),
            mv(to),
            json!({ "type": "pointerUp", "button": 0 }),
        ];
        let source = json!({ "type": "pointer", "id": "mouse", "actions": actions });
        self.post("/actions", &json!({ "actions": [source] })).expect("it is drawn over");
    }

    /// Types a text, wherever the focus is.
    pub fn write(&self, text: &str) {
        let keys: Vec<String> = text.chars().map(String::from).collect();
        self.press(&keys.iter().map(String::as_str).collect::<Vec<_>>());
    }

    /// What a person reads.
    pub fn text(&self) -> String {
        self.run("return document.body ? document.body.innerText : ''")
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    /// The cookies of the page that is open, those that no script reads too.
    pub fn cookies(&self) -> Vec<(String, Value)> {
        let all = self.ask("GET", "/cookie", None).expect("cookies can be asked for");
        let all = all.as_array().cloned().unwrap_or_default();
        all.into_iter()
            .map(|cookie| (cookie["name"].as_str().unwrap_or_default().to_owned(), cookie))
            .collect()
    }

    pub fn wait(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let started = Instant::now();
        while !is_so(self) {
            assert!(started.elapsed() < PATIENCE, "{what}: never at {}: {}", self.url(), self.text());
            std::thread::sleep(PAUSE);
        }
    }

    /// Waits until a person can read something.
    pub fn wait_for_text(&self, text: &str) {
        self.wait(text, |browser| browser.text().contains(text));
    }

    fn find(&self, xpath: &str) -> Result<String, DriverError> {
        let found = self.post("/element", &json!({ "using": "xpath", "value": xpath }))?;
        let id = found.as_object().and_then(|found| found.values().next()).and_then(Value::as_str);
        Ok(id.unwrap_or_default().to_owned())
    }

    /// Does something with an element once it is there and takes it.
    fn act(&self, xpath: &str, what: &str, body: &Value) {
        let act = |browser: &Self| browser.post(&format!("/element/{}/{what}", browser.find(xpath)?), body);
        self.wait(xpath, |browser| act(browser).is_ok());
    }

    /// Clicks on something once it is there and can be clicked.
    pub fn click(&self, xpath: &str) {
        self.act(xpath, "click", &json!({}));
    }

    pub fn count(&self, xpath: &str) -> usize {
        let found = self.post("/elements", &json!({ "using": "xpath", "value": xpath }));
        found.ok().and_then(|found| found.as_array().map(Vec::len)).unwrap_or_default()
    }

    /// Writes something else into a field once it is there.
    pub fn fill(&self, xpath: &str, text: &str) {
        self.act(xpath, "clear", &json!({}));
        self.type_into(xpath, text);
    }

    /// Types into a field once it is there.
    pub fn type_into(&self, xpath: &str, text: &str) {
        self.act(xpath, "value", &json!({ "text": text }));
    }
}

/// Sends a request, and reads an answer of the length that it names: the driver does not close its connections.
fn talk(address: SocketAddr, request: &[u8]) -> std::io::Result<(u16, Vec<u8>)> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(request)?;
    let mut answer = BufReader::new(stream);
    let (mut line, mut status, mut length) = (String::new(), 0, 0);
    while line != "\r\n" {
        line.clear();
        if answer.read_line(&mut line)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        if let Some(code) = line.strip_prefix("HTTP/1.1 ") {
            status = code.split(' ').next().and_then(|code| code.parse().ok()).unwrap_or_default();
        }
        if let Some(text) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = text.trim().parse().unwrap_or_default();
        }
    }
    let mut body = vec![0; length];
    answer.read_exact(&mut body)?;
    Ok((status, body))
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The driver ends its browser with the session, and not by itself.
        let _ = self.ask("DELETE", "", None);
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
