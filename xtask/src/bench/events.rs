//! What operations and events cost: creates with and without storing them, and a thousand followers.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::client::Client;
use super::{Bench, WRITERS, wrk};
use crate::outcome::{Outcome, While};
use crate::system::need;

const FOLLOWERS: usize = 1000;
const FOLLOWERS_OF_ONE: usize = 100;
/// How often creates are measured with them and without them, by turns.
const TURNS: u64 = 6;
const TURN: &str = "3s";
/// How many events are sent to the followers.
const EVENTS: usize = 20;
const IDLE: Duration = Duration::from_secs(10);

/// The database drops what is inserted into these tables; everything else of a create stays as it is.
const WITHOUT: &str = "\
CREATE TRIGGER IF NOT EXISTS bench_events BEFORE INSERT ON events BEGIN SELECT RAISE(IGNORE); END;
CREATE TRIGGER IF NOT EXISTS bench_operations BEFORE INSERT ON operations BEGIN SELECT RAISE(IGNORE); END;";
const WITH: &str = "DROP TRIGGER IF EXISTS bench_events; DROP TRIGGER IF EXISTS bench_operations;";

impl Bench {
    pub(super) fn events(&self) -> Outcome {
        need("sqlite3", "the shell of SQLite", &["sqlite3"])?;
        let workspace = self.first("workspaces")?;
        for (kind, fields) in [
            ("workspaces", r#","description":"made by the benchmark""#.to_owned()),
            ("deployments", format!(r#","workspaceId":"{workspace}""#)),
        ] {
            self.creates_by_turns(kind, &fields)?;
        }
        self.followers()
    }

    /// The rate of creates that store events and operations, against those that do not.
    fn creates_by_turns(&self, kind: &str, fields: &str) -> Outcome {
        let path = format!("{}/{kind}", self.root());
        let (mut with, mut without) = (0.0, 0.0);
        for turn in 0..TURNS {
            let mut order = [(&mut with, WITH), (&mut without, WITHOUT)];
            if turn % 2 == 1 {
                order.reverse();
            }
            for (rate, change) in order {
                self.in_database(change)?;
                let run = turn * 2 + u64::from(change == WITHOUT);
                let script = self.create_script(run, fields)?;
                *rate += wrk(self.port, &path, &self.token, WRITERS, TURN, Some(&script))?.rate;
            }
        }
        self.in_database(WITH)?;
        let (with, without) = (with / TURNS as f64, without / TURNS as f64);
        println!(
            "create {kind}: {with:.0}/s, {:.2} of the {without:.0}/s without events and operations",
            with / without
        );
        self.settled()
    }

    fn in_database(&self, statements: &str) -> Outcome {
        let database = self.directory.join("data/podium.db");
        let mut shell = Command::new("sqlite3");
        let ran = shell.args(["-cmd", ".timeout 30000"]).arg(database).arg(statements).output();
        let ran = ran.doing("sqlite3")?;
        if ran.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&ran.stderr).into_owned()) }
    }

    /// Idle followers, and how soon the last of them has an event.
    fn followers(&self) -> Outcome {
        let alone = self.idle()?;
        let (sender, arrived) = mpsc::channel();
        let mut client = Client::connect(self.port, &self.token)?;
        let mut token = String::new();
        for number in 0..FOLLOWERS {
            // One caller may have so many streams.
            if number % FOLLOWERS_OF_ONE == 0 {
                let body = json!({ "name": format!("follower {number}"), "scope": "ORGANIZATION", "role": "ORGANIZATION_OWNER" });
                let made = client.post(&format!("{}/tokens", self.root()), &body)?;
                token = made["token"].as_str().unwrap_or_default().to_owned();
            }
            let mut stream = self.follow(&token).doing("following events")?;
            let sender = sender.clone();
            let reader = move || {
                let (mut buffer, mut unread) = ([0; 16 * 1024], Vec::new());
                while let Ok(length @ 1..) = stream.read(&mut buffer) {
                    unread.extend_from_slice(&buffer[..length]);
                    // An event ends with an empty line, and may come in pieces.
                    while let Some(end) = unread.windows(2).position(|pair| pair == b"\n\n") {
                        let event: Vec<u8> = unread.drain(..end + 2).collect();
                        if String::from_utf8_lossy(&event).contains("podium.workspace.created") {
                            let _ = sender.send(Instant::now());
                        }
                    }
                }
            };
            let named = thread::Builder::new().stack_size(128 * 1024);
            named.spawn(reader).doing("starting a thread")?;
        }
        let followed = self.idle()?;
        println!(
            "{FOLLOWERS} idle followers: {followed} ms of processor time in {} s, {alone} ms without them; memory {} MB",
            IDLE.as_secs(),
            self.memory()?
        );
        let path = format!("{}/workspaces", self.root());
        let mut last = Vec::new();
        for number in 1..=EVENTS {
            let began = Instant::now();
            client.post(&path, &json!({ "name": format!("followed {number}") }))?;
            let mut all: Vec<Duration> = Vec::new();
            while all.len() < FOLLOWERS {
                let at = arrived.recv_timeout(Duration::from_secs(30)).doing("waiting for an event")?;
                all.push(at.saturating_duration_since(began));
            }
            last.extend(all.into_iter().max());
        }
        last.sort_unstable();
        println!(
            "an event is with the last of {FOLLOWERS} followers {} ms after its request was sent (median), {} ms at most",
            last[last.len() / 2].as_millis(),
            last[last.len() - 1].as_millis()
        );
        Ok(())
    }

    /// Processor time of the server while nothing happens, in milliseconds.
    fn idle(&self) -> Outcome<u64> {
        self.settled()?;
        self.processor_time_of(IDLE)
    }

    /// Follows the events of the organization; the stream is open once its head has come.
    fn follow(&self, token: &str) -> std::io::Result<TcpStream> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        let request = format!(
            "GET {}/events/follow HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {token}\r\n\r\n",
            self.root()
        );
        stream.write_all(request.as_bytes())?;
        let mut head = [0; 4096];
        let length = stream.read(&mut head)?;
        match head[..length].starts_with(b"HTTP/1.1 200") {
            true => Ok(stream),
            false => Err(std::io::Error::other(String::from_utf8_lossy(&head[..length]).into_owned())),
        }
    }
}
