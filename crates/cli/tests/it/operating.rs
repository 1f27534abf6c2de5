//! What an operator sees and relies on: log lines, limits, inherited sockets, a full disk.

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::documents::commands;
use crate::loops::wait_until;
use crate::program::{Installation, Program};

fn create(program: &Program, token: &str) -> Value {
    let organization = program.organization(token);
    let workspaces = program.get(&format!("{organization}/workspaces"), token).json();
    let body = json!({ "name": "Reports", "workspaceId": workspaces["workspaces"][0]["id"] });
    program.call("POST", &format!("{organization}/deployments"), token, Some(&body)).json()
}

#[test]
fn the_log_names_the_user_and_what_became_of_deployments_and_leaves_out_probes() {
    let installation = Installation::new();
    let program = installation.serve(&[]);
    let token = installation.read("owner-token");
    let user = program.get("/v1/users/self", &token).json()["id"].as_str().unwrap().to_owned();
    let made = create(&program, &token);
    let path = format!("{}/deployments/{}", program.organization(&token), made["id"].as_str().unwrap());
    wait_until("healthy", || program.get(&path, &token).json(), |shown| shown["status"] == "HEALTHY");
    for probe in ["/healthz", "/readyz", "/metrics"] {
        assert_eq!(program.get(probe, "").status, 200);
    }
    assert_eq!(program.get("/v1/users/self", "nonsense").status, 401);
    let said = program.stop();
    let lines = |part: &str| said.lines().filter(|line| line.contains(part)).collect::<Vec<_>>();
    for operation in ["GetSelfUser", "CreateDeployment"] {
        let of = lines(&format!("operation=\"{operation}\""));
        let answered = of.iter().filter(|line| !line.contains("status=401")).collect::<Vec<_>>();
        assert!(!answered.is_empty(), "{said}");
        assert!(answered.iter().all(|line| line.contains(&format!("user=\"{user}\""))), "{answered:?}");
    }
    assert!(lines("status=401").iter().all(|line| line.contains("user=\"\"")), "{said}");
    assert_eq!(
        lines("path=\"/healthz\"").len() + lines("path=\"/readyz\"").len() + lines("path=\"/metrics\"").len(),
        0
    );
    let became = lines("status=\"HEALTHY\"");
    assert_eq!(became.len(), 1, "{said}");
    assert!(
        became[0].contains(made["id"].as_str().unwrap()) && became[0].contains("was=\"CREATING\""),
        "{became:?}"
    );
}

#[test]
fn environments_of_this_machine_are_stopped_and_started_by_name() {
    let installation = Installation::new();
    let program = installation.serve(&[]);
    assert_eq!(installation.run(&["stop"]).stderr, "No environments run on this machine.\n");
    let made = create(&program, &installation.read("owner-token"));
    program.stop();
    // One that is asleep: nothing has to be ended.
    let place = installation.data_dir().join("local/environments").join(made["id"].as_str().expect("an id"));
    std::fs::create_dir_all(&place).unwrap();
    std::fs::write(place.join("state.json"), json!({ "namespace": made["namespace"] }).to_string()).unwrap();
    let said = |arguments: &[&str]| {
        let ended = installation.run(arguments);
        (ended.code, ended.stderr)
    };
    let unknown = "podium: \"nightly\" does not run on this machine. These environments do: Reports\n";
    assert_eq!(said(&["stop", "nightly"]), (Some(1), unknown.into()));
    let alone = "podium: --no-wait needs a running server: leave it out, or start the server\n";
    assert_eq!(said(&["stop", "--no-wait"]), (Some(1), alone.into()));
    assert_eq!(said(&["start"]), (Some(0), "No environments are stopped on this machine.\n".into()));
    let stopped = "Stopping Reports, once running tasks have finished. To end them: podium stop Reports --now\n\
                   Stopped Reports. To start again: podium start Reports\n";
    assert_eq!(said(&["stop", "Reports"]), (Some(0), stopped.into()));
    assert!(place.join("stopped").exists());
    let started = "The server is not running. Start it to start Reports: podium serve\n";
    assert_eq!(said(&["start", made["namespace"].as_str().expect("text")]), (Some(0), started.into()));
    assert!(!place.join("stopped").exists());
}

#[test]
fn the_commands_of_the_operators_guide_work_as_they_are_written() {
    let installation = Installation::new();
    let program = installation.serve(&[]);
    create(&program, &installation.read("owner-token"));
    let directory = installation.data_dir().parent().unwrap().to_owned();
    std::os::unix::fs::symlink("data", directory.join("podium-data")).unwrap();
    std::fs::create_dir(directory.join("bin")).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_podium"), directory.join("bin/podium")).unwrap();
    let guide = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/operate.md");
    let commands = commands(&std::fs::read_to_string(guide).unwrap());
    for command in [
        "podium backup",
        "podium restore",
        "podium stop",
        "podium start",
        "podium node list",
        "podium work",
        "curl",
    ] {
        assert!(commands.contains(command), "{command}");
    }
    let path = format!("{}:{}", directory.join("bin").display(), std::env::var("PATH").unwrap_or_default());
    let script = format!("set -eu\n{}", commands.replace("127.0.0.1:8080", &program.address.to_string()));
    let typed = std::process::Command::new("sh")
        .args(["-c", &script])
        .current_dir(&directory)
        .env("PATH", path)
        .output()
        .expect("a shell");
    let said =
        format!("{}{}", String::from_utf8_lossy(&typed.stdout), String::from_utf8_lossy(&typed.stderr));
    assert!(typed.status.success(), "{said}");
    assert!(said.contains("podium_deployment_status{"), "{said}");
    assert!(directory.join("restored/podium.db").exists());
    program.stop();
}

#[test]
fn the_settings_that_the_operators_guide_names_are_there() {
    let guide = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/operate.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let installation = Installation::new();
    let help = ["serve", "backup", "restore", "stop", "work"]
        .map(|command| installation.run(&[command, "--help"]).stdout);
    let help = format!("{}{}", help.concat(), installation.run(&["node", "forget", "--help"]).stdout);
    let flag =
        |word: &str| word.chars().all(|c| c.is_ascii_lowercase() || c == '-').then(|| format!("--{word}"));
    let named = guide
        .split("--")
        .skip(1)
        .filter_map(|rest| flag(rest.split(|c: char| !c.is_ascii_lowercase() && c != '-').next()?));
    let elsewhere = ["--now", "--silent"];
    for flag in named.filter(|flag| flag.len() > 3 && !elsewhere.contains(&flag.as_str())) {
        assert!(help.contains(&flag), "{flag} is in the guide, and no command knows it");
    }
}

#[test]
fn the_limit_of_open_files_is_raised_to_its_maximum() {
    let mut installation = Installation::new();
    installation.set("PODIUM_LISTEN", "127.0.0.1:0");
    let program = installation.serve_after("ulimit -S -n 256; ulimit -H -n 2048", Stdio::null());
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", program.pid())).unwrap();
    let open_files = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let numbers: Vec<&str> = open_files.split_whitespace().collect();
    assert_eq!(numbers[3..5], ["2048", "2048"], "{open_files}");
    program.stop();
}

#[test]
fn an_inherited_socket_is_never_closed_between_two_servers() {
    let installation = Installation::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serve = || {
        let stdin = Stdio::from(OwnedFd::from(listener.try_clone().unwrap()));
        let script = "exec 3<&0 0</dev/null; export LISTEN_FDS=1 LISTEN_PID=$$";
        let program = installation.serve_after(script, stdin);
        assert_eq!(program.address, address, "it has the address of the socket");
        program
    };
    let program = serve();
    assert_eq!(program.get("/healthz", "").status, 200);
    program.stop();
    // Nobody is there, and the connection is not refused: it waits for the next server.
    let waiting = std::net::TcpStream::connect(address).expect("the port is taken");
    let program = serve();
    let request = b"GET /healthz HTTP/1.1\r\nHost: podium\r\nConnection: close\r\n\r\n";
    assert_eq!(crate::program::exchange(waiting, request).status, 200);
    program.stop();
}

#[test]
fn an_unusable_interpreter_prevents_the_start() {
    let mut installation = Installation::new();
    installation.set("PODIUM_DATA_PLANE", "local");
    for python in ["/nope", "/bin/false"] {
        let refused = installation.run(&["serve", "--listen", "127.0.0.1:0", "--python", python]);
        assert_eq!(refused.code, Some(1));
        assert!(
            refused.stderr.contains(&format!("--python {python} is not a usable Python")),
            "{}",
            refused.stderr
        );
    }
    assert!(!installation.data_dir().join("podium.db").exists(), "nothing was made");
}

#[test]
fn a_full_disk_is_reported_everywhere_and_nothing_is_started_on_it() {
    let mut installation = Installation::new();
    installation.set("PODIUM_DISK_RESERVE_MIB", "99999999999");
    // Environments elsewhere have disks of their own.
    installation.set("PODIUM_SIMULATED_IS_BOUND", "true");
    let program = installation.serve(&[]);
    let token = installation.read("owner-token");
    let ready = program.get("/readyz", "");
    assert_eq!(ready.status, 503);
    assert!(String::from_utf8_lossy(&ready.body).contains("The disk is full"), "{ready:?}");
    assert_eq!(program.get("/healthz", "").status, 200);
    let made = create(&program, &token);
    let path = format!("{}/deployments/{}", program.organization(&token), made["id"].as_str().unwrap());
    let shown = wait_until(
        "said",
        || program.get(&path, &token).json(),
        |shown| shown["statusReason"].as_str().is_some_and(|reason| reason.starts_with("The disk is full")),
    );
    assert!(shown["status"] == "HEALTHY" || shown["status"] == "CREATING", "{shown}");
    let deploy = json!({ "type": "DAG_ONLY" });
    let deploy = program.call("POST", &format!("{path}/deploys"), &token, Some(&deploy)).json();
    let url = deploy["dagsUploadUrl"].as_str().unwrap();
    let target = &url[url.find("/v1/").unwrap()..];
    let head =
        format!("PUT {target} HTTP/1.1\r\nHost: podium\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc");
    let refused = crate::program::exchange(program.connect(), head.as_bytes());
    assert_eq!(refused.status, 503, "{refused:?}");
    program.stop();
    // There is room again, and the reason goes.
    let mut installation = installation;
    installation.set("PODIUM_DISK_RESERVE_MIB", "1");
    let program = installation.serve(&[]);
    assert_eq!(program.get("/readyz", "").status, 200);
    program.stop();
}
