//! An installation whose deployments really run, and what a test does to it.

use std::collections::BTreeMap;
use std::fs;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use podium_testkit::archive;
use serde_json::{Value, json};

use crate::program::{Ended, Installation, Program, Reply, exchange};

/// So long that only a hang reaches it, on a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_mins(15);
const PAUSE: Duration = Duration::from_millis(500);

/// An installation, and the program that serves it.
pub(super) struct World {
    pub(super) installation: Installation,
    url: String,
    program: Option<Program>,
    started: Instant,
}

/// A deployment, and what is to be gone after it.
pub(super) struct Environment {
    pub(super) id: String,
    pub(super) namespace: String,
    traces: Vec<u16>,
}

impl Environment {
    fn of(deployment: &Value) -> Self {
        let text = |name: &str| deployment[name].as_str().expect("text").to_owned();
        Self { id: text("id"), namespace: text("namespace"), traces: Vec::new() }
    }
}

impl World {
    pub(super) fn new() -> Self {
        Self::in_installation(Installation::new())
    }

    /// One whose data is in an installation of its own kind.
    pub(super) fn in_installation(mut installation: Installation) -> Self {
        installation.set("PODIUM_DATA_PLANE", "local");
        // The same address after every restart: environments are told of it.
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|free| free.local_addr());
        let address = address.expect("a free port").to_string();
        installation.set("PODIUM_LISTEN", &address);
        let directory = installation.data_dir().parent().expect("it is in a directory").to_owned();
        // Environments run under users of their own where that is possible: they have to get there.
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o711)).expect("it is ours");
        fs::create_dir(installation.data_dir()).expect("it is new");
        symlink("data", directory.join("podium-data")).expect("it is new");
        fs::create_dir(directory.join("bin")).expect("it is new");
        symlink(env!("CARGO_BIN_EXE_podium"), directory.join("bin/podium")).expect("it is new");
        Self { installation, url: format!("http://{address}"), program: None, started: Instant::now() }
    }

    /// Shows how far the test has come.
    pub(super) fn say(&self, what: &str) {
        eprintln!("[{:4} s] {what}", self.started.elapsed().as_secs());
    }

    pub(super) fn wait_until(&self, what: &str, is_so: impl Fn() -> bool) {
        let (waiting, mut shown) = (Instant::now(), Instant::now());
        while !is_so() {
            assert!(waiting.elapsed() < PATIENCE, "it never came true: {what}");
            if shown.elapsed() > Duration::from_secs(10) {
                self.say(&format!("  … {what}"));
                shown = Instant::now();
            }
            std::thread::sleep(PAUSE);
        }
    }

    pub(super) fn directory(&self) -> PathBuf {
        self.installation.data_dir().parent().expect("it is in a directory").to_owned()
    }

    /// Where programs are looked for: the one under test first.
    pub(super) fn search_path(&self) -> String {
        format!("{}:{}", self.directory().join("bin").display(), std::env::var("PATH").unwrap_or_default())
    }

    pub(super) fn serve(&mut self) {
        self.program = Some(self.installation.serve(&[]));
    }

    pub(super) fn serve_with(&mut self, arguments: &[&str]) {
        self.program = Some(self.installation.serve(arguments));
    }

    /// Runs a command to its end.
    pub(super) fn command(&self, arguments: &[&str]) -> Ended {
        self.installation.run(arguments)
    }

    /// Ends the server and everything that it started, as pulling the plug does.
    pub(super) fn lose_power(&mut self) {
        self.crash();
        self.kill_environments();
        for pid in self.database_server() {
            let _ = std::process::Command::new("kill").args(["-9", &pid]).status();
        }
        self.wait_until("the database server is gone", || !self.has_database_server());
    }

    pub(super) fn crash(&mut self) {
        self.program.take().expect("it serves").crash();
    }

    pub(super) fn stop(&mut self) {
        self.program.take().expect("it serves").stop();
    }

    pub(super) fn program(&self) -> &Program {
        self.program.as_ref().expect("it serves")
    }

    /// Where the console is.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    pub(super) fn token(&self) -> String {
        self.installation.read("owner-token")
    }

    pub(super) fn call(&self, method: &str, path: &str, body: Option<&Value>) -> Reply {
        let token = self.token();
        let path = format!("{}{path}", self.program().organization(&token));
        self.program().call(method, &path, &token, body)
    }

    pub(super) fn of(
        &self,
        environment: &Environment,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Reply {
        self.call(method, &format!("/deployments/{}{path}", environment.id), body)
    }

    /// When each runtime of a line was installed.
    pub(super) fn installed(&self, line: &str) -> BTreeMap<String, SystemTime> {
        let runtimes =
            fs::read_dir(self.installation.data_dir().join("local/runtimes")).expect("there are some");
        let runtimes =
            runtimes.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(line));
        let of = |entry: fs::DirEntry| {
            let at = fs::metadata(entry.path().join("podium-ready")).and_then(|metadata| metadata.modified());
            (entry.file_name().to_string_lossy().into_owned(), at.expect("it is whole"))
        };
        runtimes.map(of).collect()
    }

    pub(super) fn create(&self, name: &str, settings: &Value) -> Environment {
        let workspace = self.call("GET", "/workspaces", None).json()["workspaces"][0]["id"].clone();
        let mut body = json!({ "name": name, "workspaceId": workspace });
        body.as_object_mut().expect("an object").extend(settings.as_object().expect("an object").clone());
        Environment::of(&self.call("POST", "/deployments", Some(&body)).json())
    }

    pub(super) fn find(&self, name: &str) -> Environment {
        let found = self.call("GET", &format!("/deployments?names={name}"), None).json();
        Environment::of(&found["deployments"][0])
    }

    pub(super) fn wait_for_status(&self, environment: &Environment, status: &str) -> Value {
        let shown = || self.of(environment, "GET", "", None).json();
        self.wait_until(&format!("{status}: {}", environment.namespace), || {
            let now = shown();
            if now["status"] != status && now["status"] != "HEALTHY" {
                let reason = now["statusReason"].as_str().unwrap_or_default().to_owned();
                assert!(!reason.contains("cannot") && !reason.contains("failed"), "{reason}");
            }
            now["status"] == status
        });
        shown()
    }

    /// Replaces the variables of a deployment; everything else stays.
    pub(super) fn set_variables(&self, environment: &Environment, variables: &Value) {
        let now = self.of(environment, "GET", "", None).json();
        let kept = [
            "type",
            "name",
            "workspaceId",
            "executor",
            "schedulerSize",
            "isHighAvailability",
            "isCicdEnforced",
            "isDagDeployEnabled",
        ];
        let mut body: Value = kept.map(|name| (name.to_owned(), now[name].clone())).into_iter().collect();
        body["environmentVariables"] = variables.clone();
        assert_eq!(self.of(environment, "POST", "", Some(&body)).status, 200);
    }

    /// Every runtime that is offered.
    pub(super) fn runtimes(&self) -> Vec<String> {
        let options = self.call("GET", "/deployment-options", None).json();
        let version = |runtime: &Value| runtime["version"].as_str().expect("a version").to_owned();
        options["runtimeReleases"].as_array().expect("a list").iter().map(version).collect()
    }

    /// Removes an installed runtime, so that many of them fit on the disk.
    pub(super) fn forget_runtime(&self, version: &str) {
        let runtime = self.installation.data_dir().join("local/runtimes").join(version);
        fs::remove_dir_all(runtime).expect("it was installed");
    }

    pub(super) fn web_server_url(&self, environment: &Environment) -> String {
        let shown = self.of(environment, "GET", "", None).json();
        shown["webServerUrl"].as_str().expect("it has one").to_owned()
    }

    /// Deploys one file of DAGs; the answer is the deploy.
    pub(super) fn deploy(&self, environment: &Environment, file: &str) -> String {
        let (id, version) = self.finalize(environment, &[("dags/hello.py", file)]);
        self.wait_for_version(environment, &version);
        id
    }

    /// Uploads files and finalizes the deploy, without waiting; the answer is the deploy and the version.
    pub(super) fn finalize(&self, environment: &Environment, files: &[(&str, &str)]) -> (String, String) {
        self.finalize_with(environment, files, &json!({}))
    }

    /// The same with further fields of the finalizing request.
    pub(super) fn finalize_with(
        &self,
        environment: &Environment,
        files: &[(&str, &str)],
        more: &Value,
    ) -> (String, String) {
        let deploy = self.of(environment, "POST", "/deploys", Some(&json!({ "type": "DAG_ONLY" }))).json();
        let url = deploy["dagsUploadUrl"].as_str().expect("DAGs can be uploaded");
        let path = url.strip_prefix(&self.url).expect("it is ours");
        let files: Vec<_> = files.iter().map(|(name, text)| (*name, text.as_bytes())).collect();
        let bytes = archive(&files);
        let head = format!(
            "PUT {path} HTTP/1.1\r\nHost: podium\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
            bytes.len()
        );
        let uploaded = exchange(self.program().connect(), &[head.as_bytes(), &bytes].concat());
        let version = uploaded.header("x-ms-version-id").expect("it is kept").to_owned();
        let id = deploy["id"].as_str().expect("an id").to_owned();
        let mut body = more.clone();
        body["dagTarballVersion"] = version.clone().into();
        let finalized = self.of(environment, "POST", &format!("/deploys/{id}/finalize"), Some(&body));
        assert_eq!(finalized.json()["status"], "DEPLOYED");
        (id, version)
    }

    /// The operations of an environment that a query finds, newest first.
    pub(super) fn operations(&self, environment: &Environment, query: &str) -> Vec<Value> {
        let found =
            self.call("GET", &format!("/operations?targetIds={}&{query}", environment.id), None).json();
        found["operations"].as_array().expect("a list").clone()
    }

    /// What a plan to delete an environment once its tasks have ended says of these tasks.
    pub(super) fn planned_drain(&self, environment: &Environment) -> Value {
        let organization = self.program().organization(&self.token());
        let path = format!("{organization}/deployments/{}?drain=true", environment.id);
        let body = json!({ "calls": [{ "method": "DELETE", "path": path }] });
        let plan = self.call("POST", "/plans", Some(&body)).json();
        let effects = plan["calls"][0]["effects"].as_array().expect("a list");
        effects.iter().find(|effect| effect["type"] == "DRAIN").expect("it drains").clone()
    }

    /// Ends the wait of an operation for running tasks.
    pub(super) fn force(&self, operation: &Value) -> Value {
        let id = operation["id"].as_str().expect("an id");
        self.call("POST", &format!("/operations/{id}/force"), None).json()
    }

    /// The report of a deploy, once its rollout has ended.
    pub(super) fn report(&self, environment: &Environment, deploy: &str) -> Value {
        let report = || self.of(environment, "GET", &format!("/deploys/{deploy}/report"), None).json();
        self.wait_until("the rollout has ended", || report()["finishedAt"].is_string());
        report()
    }

    pub(super) fn roll_back(&self, environment: &Environment, deploy: &str) {
        let made =
            self.of(environment, "POST", &format!("/deploys/{deploy}/rollback"), Some(&json!({}))).json();
        self.wait_for_version(environment, made["dagTarballVersion"].as_str().expect("it has DAGs"));
    }

    /// Waits until the deployment runs a version, and Airflow knows it.
    fn wait_for_version(&self, environment: &Environment, version: &str) {
        self.wait_until("the deployment runs the version", || {
            let now = self.of(environment, "GET", "", None).json();
            now["dagTarballVersion"] == version && now["status"] == "HEALTHY"
        });
        self.wait_until("Airflow has read the DAG", || {
            let dag = self.airflow(environment, "GET", "/dags/hello", None);
            let known = serde_json::from_slice::<Value>(&dag.body).unwrap_or_default();
            // The 2.x line knows no versions; what it has read shows by its runs.
            dag.status == 200 && (known["bundle_version"] == version || known["bundle_version"].is_null())
        });
    }

    /// Calls an environment's own API through the front door.
    pub(super) fn airflow(
        &self,
        environment: &Environment,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Reply {
        let url = self.of(environment, "GET", "", None).json()["webServerAirflowApiUrl"].clone();
        let base = url.as_str().and_then(|url| url.strip_prefix(&self.url)).expect("it is ours");
        self.program().call(method, &format!("{base}{path}"), &self.token(), body)
    }

    /// Starts a run; the answer is its id.
    pub(super) fn trigger(&self, environment: &Environment) -> String {
        let _ = fs::remove_file(format!("{}/tmp/go", self.place(environment)));
        self.trigger_dag(environment, "hello")
    }

    /// Starts a run of a DAG; the answer is its id.
    pub(super) fn trigger_dag(&self, environment: &Environment, dag: &str) -> String {
        self.airflow(environment, "PATCH", &format!("/dags/{dag}"), Some(&json!({ "is_paused": false })))
            .json();
        let is_old = self.of(environment, "GET", "", None).json()["runtimeVersion"]
            .as_str()
            .is_some_and(|v| v.starts_with("2."));
        let body = if is_old { json!({}) } else { json!({ "logical_date": null }) };
        let run = self.airflow(environment, "POST", &format!("/dags/{dag}/dagRuns"), Some(&body)).json();
        run["dag_run_id"].as_str().expect("a run").to_owned()
    }

    /// Lets the task of a run that waits end.
    pub(super) fn let_go(&self, environment: &Environment) {
        fs::write(format!("{}/tmp/go", self.place(environment)), "").expect("its directory is there");
    }

    pub(super) fn wait_for_run(&self, environment: &Environment, run: &str) {
        let path = format!("/dags/hello/dagRuns/{}", run.replace('+', "%2B"));
        self.wait_until("the run has ended well", || {
            let state = self.airflow(environment, "GET", &path, None);
            let state = serde_json::from_slice::<Value>(&state.body).unwrap_or_default()["state"].clone();
            assert_ne!(state, "failed", "{:#?}", self.lines(environment, ""));
            state == "success"
        });
    }

    pub(super) fn run_to_the_end(&self, environment: &Environment) {
        let run = self.trigger(environment);
        self.let_go(environment);
        self.wait_for_run(environment, &run);
    }

    fn lines(&self, environment: &Environment, text: &str) -> Vec<String> {
        let text = text.replace('"', "%22").replace(' ', "%20");
        let raw = |entry: &Value| entry["raw"].as_str().expect("text").to_owned();
        let mut all = Vec::new();
        loop {
            let path = format!("/logs?sources=worker&searchText={text}&limit=1000&offset={}", all.len());
            let found = self.of(environment, "GET", &path, None).json();
            let page = found["results"].as_array().expect("a list");
            all.extend(page.iter().map(raw));
            if page.len() < 1000 {
                return all;
            }
        }
    }

    pub(super) fn count_lines(&self, environment: &Environment, text: &str) -> usize {
        self.lines(environment, text).len()
    }

    /// Waits until so many lines are found, and sees that they do not become more.
    pub(super) fn wait_for_lines(&self, environment: &Environment, text: &str, count: usize) {
        self.wait_until(&format!("{count} lines with {text}"), || {
            self.count_lines(environment, text) >= count
        });
        assert_eq!(self.count_lines(environment, text), count, "{:#?}", self.lines(environment, text));
    }

    pub(super) fn hibernate(&self, environment: &Environment, is_hibernating: bool) {
        let body = json!({ "isHibernating": is_hibernating });
        self.of(environment, "POST", "/hibernation-override", Some(&body)).json();
    }

    /// What an installation keeps to itself.
    pub(super) fn secrets(&self) -> Vec<String> {
        let path = |name: &str| self.installation.data_dir().join(name).display().to_string();
        ["", "owner-token", "secret-key", "podium.db", "logs", "objects", "local/environments"]
            .map(path)
            .into()
    }

    /// The directories of environments.
    pub(super) fn places(&self) -> Vec<String> {
        let entries =
            fs::read_dir(self.installation.data_dir().join("local/environments")).into_iter().flatten();
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }

    pub(super) fn place(&self, environment: &Environment) -> String {
        self.installation.data_dir().join("local/environments").join(&environment.id).display().to_string()
    }

    fn state(&self, environment: &Environment) -> Value {
        let text = fs::read(format!("{}/state.json", self.place(environment))).expect("it is remembered");
        serde_json::from_slice(&text).expect("JSON")
    }

    /// The processes that are kept, with what tells them from all others.
    pub(super) fn processes(&self, environment: &Environment) -> Value {
        self.state(environment)["processes"].clone()
    }

    pub(super) fn has_networks(&self, environment: &Environment) -> bool {
        self.processes(environment)["network"].is_object()
    }

    /// Kills whoever leads out of an environment's network.
    pub(super) fn kill_uplink(&self, environment: &Environment) {
        let processes = self.processes(environment);
        let mut all = processes.as_object().expect("processes").iter();
        let (_, uplink) = all.find(|(name, _)| name.starts_with("uplink-")).expect("there is a way out");
        let pid = uplink["identity"]["pid"].to_string();
        assert!(std::process::Command::new("kill").args(["-9", &pid]).status().expect("kill").success());
    }

    pub(super) fn ports(&self, environment: &Environment) -> Vec<u16> {
        let port = self.state(environment)["webPort"].as_u64();
        port.and_then(|port| u16::try_from(port).ok()).into_iter().collect()
    }

    /// Processes that have anything of an environment open or on their command line.
    pub(super) fn descendants(&self, environment: &Environment) -> Vec<i32> {
        let numbers = fs::read_dir("/proc").expect("Linux").flatten();
        let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let is_theirs = |pid: &i32| {
            let at = |what: &str| fs::read_link(format!("/proc/{pid}/{what}")).unwrap_or_default();
            at("cwd").starts_with(self.place(environment)) || is_marked(*pid, &environment.id)
        };
        numbers.filter(is_theirs).collect()
    }

    /// The same, once it is up.
    pub(super) fn remember_traces_once_it_runs(&self, environment: &mut Environment) {
        self.wait_for_status(environment, "HEALTHY");
        self.remember_traces(environment);
    }

    /// Whether the installation's own database server runs.
    pub(super) fn has_database_server(&self) -> bool {
        !self.database_server().is_empty()
    }

    fn database_server(&self) -> Vec<String> {
        let cluster =
            fs::canonicalize(self.installation.data_dir()).expect("it is there").join("local/postgres");
        let numbers = fs::read_dir("/proc").expect("Linux").flatten();
        let is_there = |entry: &fs::DirEntry| {
            fs::read_link(entry.path().join("cwd")).is_ok_and(|directory| directory.starts_with(&cluster))
        };
        numbers.filter(is_there).map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }

    /// Takes note of what must be gone with the environment.
    pub(super) fn remember_traces(&self, environment: &mut Environment) {
        assert_ne!(self.descendants(environment), Vec::<i32>::new());
        environment.traces = self.ports(environment);
    }

    /// Deletes a deployment, and sees that nothing is left of it.
    pub(super) fn delete(&self, environment: &Environment) {
        assert_eq!(self.of(environment, "DELETE", "", None).status, 204);
        assert_eq!(self.of(environment, "GET", "", None).status, 404);
        self.wait_until("its directory is gone", || !self.places().contains(&environment.id));
        assert_eq!(self.descendants(environment), Vec::<i32>::new());
        let listens = |port: &u16| TcpStream::connect((Ipv4Addr::LOCALHOST, *port)).is_ok();
        assert!(!environment.traces.iter().any(listens), "somebody listens on a port of it");
    }
}

/// Whether a process carries the mark of an environment, as those do that make its network.
fn is_marked(pid: i32, id: &str) -> bool {
    let mark = format!("PODIUM_ENVIRONMENT={id}");
    let told = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    told.split(|byte| *byte == 0).any(|pair| pair == mark.as_bytes())
}

impl Drop for World {
    /// A test that fails leaves no environment behind, either.
    fn drop(&mut self) {
        drop(self.program.take());
        self.kill_environments();
    }
}

impl World {
    pub(super) fn kill_environments(&self) -> usize {
        kill_environments(&self.installation.data_dir())
    }
}

/// Kills whatever runs of the environments of a data directory; how many processes that were.
pub(super) fn kill_environments(data: &Path) -> usize {
    let entries = fs::read_dir(data.join("local/environments")).into_iter().flatten().flatten();
    let places: Vec<_> = entries.map(|entry| (entry.path(), entry.file_name())).collect();
    let numbers = fs::read_dir("/proc").expect("Linux").flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let is_theirs = |pid: &i32| {
        let cwd = fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
        places.iter().any(|(place, id)| cwd.starts_with(place) || is_marked(*pid, &id.to_string_lossy()))
    };
    let theirs: Vec<i32> = numbers.filter(is_theirs).collect();
    for pid in &theirs {
        let _ = std::process::Command::new("kill").args(["-9", &pid.to_string()]).status();
    }
    theirs.len()
}
