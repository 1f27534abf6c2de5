//! A server that is newer than this program: it answers with words and fields that this program does not know.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use serde_json::Value;

use super::Desk;
use crate::program::exchange;

/// Stands in front of a server, and replaces every word of the contract in what it answers.
fn newer(desk: &Desk) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (url, behind) = (format!("http://{}", listener.local_addr().unwrap()), desk.program.address);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let mut lines = BufReader::new(stream.try_clone().unwrap());
            let (mut head, mut line, mut length) = (String::new(), String::new(), 0);
            while lines.read_line(&mut line).is_ok_and(|count| count > 2) {
                let lower = line.to_lowercase();
                if let Some(text) = lower.strip_prefix("content-length:") {
                    length = text.trim().parse().unwrap();
                }
                if !lower.starts_with("connection:") && !lower.starts_with("accept-encoding:") {
                    head.push_str(&line);
                }
                line.clear();
            }
            let mut body = vec![0; length];
            lines.read_exact(&mut body).unwrap();
            let request = [format!("{head}Connection: close\r\n\r\n").as_bytes(), &body].concat();
            let reply = exchange(TcpStream::connect(behind).unwrap(), &request);
            let body = match serde_json::from_slice::<Value>(&reply.body) {
                Ok(value) => novel(value).to_string().into_bytes(),
                Err(_) => reply.body,
            };
            let head = format!(
                "HTTP/1.1 {} x\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                reply.status,
                body.len()
            );
            let _ = (&stream).write_all(&[head.as_bytes(), &body].concat());
        }
    });
    url
}

/// The same with another word in the place of every word of the contract, and a field that nobody knows.
fn novel(value: Value) -> Value {
    let is_word = |text: &str| text.len() > 2 && text.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    match value {
        Value::String(text) if is_word(&text) => "NOVEL".into(),
        Value::Array(items) => items.into_iter().map(novel).collect(),
        Value::Object(fields) => {
            let mut fields: serde_json::Map<String, Value> =
                fields.into_iter().map(|(name, value)| (name, novel(value))).collect();
            fields.insert("fieldOfANewerServer".into(), serde_json::json!({ "kind": "NOVEL" }));
            Value::Object(fields)
        }
        other => other,
    }
}

#[test]
fn what_a_newer_server_says_is_shown() {
    let desk = Desk::signed_in();
    for made in [
        &["deployment", "create", "nightly", "--workspace", "Default", "--wait"][..],
        &["team", "create", "Data"],
        &["env", "create", "STAGE", "--workspace", "Default", "--value", "x"],
        &["ip-range", "create", "0.0.0.0/0"],
        &["init", "hello"],
        &["deploy", "hello", "--deployment", "nightly"],
    ] {
        desk.shown(made);
    }
    let url = newer(&desk);
    let variables = [("PODIUM_URL", url.as_str()), ("PODIUM_TOKEN", &desk.token)];
    for command in [
        "whoami",
        "organization list",
        "organization get",
        "workspace list",
        "workspace get Default",
        "deployment list",
        "deployment get nightly",
        "deployment options",
        "deploy list --deployment nightly",
        "deploy report --deployment nightly",
        "deploy diff hello --deployment nightly",
        "cluster list",
        "cluster options",
        "env list --workspace Default",
        "operation list",
        "event list --since 1h",
        "team list",
        "team get Data",
        "user list",
        "user get owner@localhost",
        "role list",
        "role templates",
        "role permissions",
        "token list",
        "webhook list",
        "alert list",
        "ip-range list",
        "audit export",
        "top",
        "export",
    ] {
        let words: Vec<&str> = command.split(' ').collect();
        let done = desk.run_as(&variables, &words);
        assert_eq!(done.code, Some(0), "podium {command}: {}{}", done.stdout, done.stderr);
    }
    let shown = desk.run_as(&variables, &["deployment", "get", "nightly", "--output", "json"]);
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!((&shown["status"], &shown["fieldOfANewerServer"]["kind"]), (&"NOVEL".into(), &"NOVEL".into()));
    // It may be on its way to a state that is known.
    let waited = desk.run_as(&variables, &["deployment", "wait", "nightly", "--timeout", "1s"]);
    assert_eq!(waited.code, Some(7), "{}", waited.stderr);
    assert!(waited.stderr.contains("nightly is still NOVEL"), "{}", waited.stderr);
}
