//! Another log database next to ours: the same lines and the same questions.
//!
//! It is a program that the caller has; nothing is installed. It has to take lines as JSON and answer questions over HTTP
//! in the way below.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;

use super::TIMES;
use crate::outcome::{Outcome, While};
use crate::server_process::{self, ServerProcess};
use crate::system::free_port;
use crate::workspace::scratch;

const INSERT: &str = "/insert/jsonline?_stream_fields=source&_time_field=time&_msg_field=text";
const QUERY: &str = "/select/logsql/query";
/// How much is sent at once, roughly.
const BATCH: usize = 8 * 1024 * 1024;
const READY: Duration = Duration::from_secs(60);

/// The program, and the flags that it is started with: `DIR` and `PORT` in them are where it shall keep its data and
/// listen.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Program<'a> {
    pub(super) path: &'a str,
    pub(super) flags: &'a [&'a str],
}

/// The program while it runs.
pub(super) struct Running {
    port: u16,
    _process: ServerProcess,
}

impl Program<'_> {
    /// Whether it can be started at all, before anything else takes its time.
    pub(super) fn check(&self) -> Outcome {
        if !Path::new(self.path).is_file() {
            return Err(format!("--against: there is no program {}; give the path of its binary", self.path));
        }
        let names = |what: &str| self.flags.iter().any(|flag| flag.contains(what));
        if !names("DIR") || !names("PORT") {
            return Err(
                "--against: give the program's own flags after its path, with DIR where its data directory goes \
                 and PORT where its port goes"
                    .into(),
            );
        }
        Ok(())
    }

    /// Starts it, and waits until it listens.
    pub(super) fn start(&self) -> Outcome<Running> {
        let port = free_port()?;
        let directory = server_process::directory("against", None)?;
        let path = fs::canonicalize(self.path).doing(self.path)?.display().to_string();
        let fill = |flag: &&str| {
            flag.replace("DIR", &directory.display().to_string()).replace("PORT", &port.to_string())
        };
        let flags: Vec<String> = self.flags.iter().map(fill).collect();
        let mut command = vec![path.as_str()];
        command.extend(flags.iter().map(String::as_str));
        let mut process =
            ServerProcess::start(&command, &directory, None, scratch()?.join("bench-against.log"), "TERM")?;
        process.wait_until(READY, || TcpStream::connect(("127.0.0.1", port)).is_ok())?;
        Ok(Running { port, _process: process })
    }
}

impl Running {
    /// Sends the lines of plain files, and waits until a question that some of them answer is answered.
    pub(super) fn load(&self, plain: &Path, present: &str) -> Outcome {
        let mut files: Vec<_> =
            fs::read_dir(plain).doing("listing lines")?.flatten().map(|f| f.path()).collect();
        files.sort();
        let started = Instant::now();
        let mut batch = String::new();
        let mut lines = 0u64;
        for file in files {
            for line in BufReader::new(fs::File::open(file).doing("reading lines")?).lines() {
                batch.push_str(&as_json(&line.doing("reading lines")?));
                lines += 1;
                if batch.len() >= BATCH {
                    self.post(INSERT, "application/stream+json", &std::mem::take(&mut batch))?;
                }
            }
        }
        self.post(INSERT, "application/stream+json", &batch)?;
        println!("the other took {lines} lines in {:.1} s", started.elapsed().as_secs_f64());
        while self.ask(present)?.0 == 0 {
            if started.elapsed() > READY * 10 {
                return Err(format!(
                    "the other finds nothing for {present}; are its lines too far in the future?"
                ));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    /// How many lines answer a question, a hundred at the most, and the milliseconds of the best of some tries.
    pub(super) fn ask(&self, query: &str) -> Outcome<(usize, f64)> {
        let form = format!("query={}&limit=100", encoded(query));
        let (mut best, mut hits) = (f64::MAX, 0);
        for _ in 0..TIMES {
            let started = Instant::now();
            let answer = self.post(QUERY, "application/x-www-form-urlencoded", &form)?;
            best = best.min(started.elapsed().as_secs_f64() * 1000.0);
            hits = answer.lines().filter(|line| !line.is_empty()).count();
        }
        Ok((hits, best))
    }

    fn post(&self, path: &str, kind: &str, body: &str) -> Outcome<String> {
        let (status, answer) = exchange(self.port, path, kind, body).doing(path)?;
        if status / 100 == 2 {
            Ok(answer)
        } else {
            Err(format!("{path} was answered with {status}: {answer}"))
        }
    }
}

fn exchange(port: u16, path: &str, kind: &str, body: &str) -> std::io::Result<(u16, String)> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    // HTTP/1.0, so that the body comes in one piece and its end is the end of the connection.
    let length = body.len();
    write!(
        stream,
        "POST {path} HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n"
    )?;
    stream.write_all(body.as_bytes())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let text = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    Ok((status, body.to_owned()))
}

/// A line of a plain file (time, source, text) as JSON.
fn as_json(line: &str) -> String {
    let mut parts = line.splitn(3, ' ');
    let mut part = || parts.next().unwrap_or_default();
    let (time, source, text) = (part(), part(), part());
    format!("{}\n", json!({ "time": time, "source": source, "text": text }))
}

fn encoded(value: &str) -> String {
    let letter = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    value.bytes().map(letter).collect()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_program_that_is_missing_or_lacks_placeholders_is_refused() {
        let flags = ["-data=DIR", "-listen=127.0.0.1:PORT"];
        let missing = Program { path: "/no/such/program", flags: &flags }.check().unwrap_err();
        assert!(missing.contains("/no/such/program") && missing.contains("give the path"), "{missing}");
        assert_eq!(Program { path: "/bin/sh", flags: &flags }.check(), Ok(()));
        for flags in [&flags[..1], &flags[1..], &[]] {
            let untold = Program { path: "/bin/sh", flags }.check().unwrap_err();
            assert!(untold.contains("DIR") && untold.contains("PORT"), "{untold}");
        }
    }

    #[test]
    fn lines_and_queries_are_encoded() {
        let line = as_json("2027-01-15T08:00:00Z worker a \"b\" c");
        let due = json!({ "time": "2027-01-15T08:00:00Z", "source": "worker", "text": "a \"b\" c" });
        assert_eq!(line.strip_suffix('\n').map(|line| line.parse().unwrap()), Some(due));
        assert_eq!(encoded("~\"a b\""), "%7E%22a%20b%22");
    }

    #[test]
    fn a_query_is_posted_and_its_lines_are_counted() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::spawn(move || {
            let mut stream = listener.accept().unwrap().0;
            let mut asked = String::new();
            while !asked.ends_with("limit=100") {
                let mut some = [0; 512];
                let length = stream.read(&mut some).unwrap();
                asked.push_str(std::str::from_utf8(&some[..length]).unwrap());
            }
            stream.write_all(b"HTTP/1.0 200 OK\r\n\r\n{}\n{}\n").unwrap();
            asked
        });
        let answer = exchange(port, QUERY, "application/x-www-form-urlencoded", "query=a&limit=100").unwrap();
        assert_eq!(answer, (200, "{}\n{}\n".to_owned()));
        assert!(server.join().unwrap().starts_with("POST /select/logsql/query HTTP/1.0\r\n"));
    }
}
