//! A command that is under way, and what it says on standard error.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStderr, Command, Stdio};

pub(super) struct UnderWay {
    child: Child,
    said: BufReader<ChildStderr>,
}

impl UnderWay {
    pub(super) fn start(mut command: Command) -> Self {
        let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let said = BufReader::new(child.stderr.take().unwrap());
        Self { child, said }
    }

    /// Reads on to a line that begins so.
    #[track_caller]
    pub(super) fn says(&mut self, beginning: &str) -> String {
        let mut all = String::new();
        loop {
            let mut line = String::new();
            assert!(self.said.read_line(&mut line).unwrap() > 0, "it ended before {beginning:?}: {all}");
            if line.starts_with(beginning) {
                return line;
            }
            all.push_str(&line);
        }
    }

    /// Its exit code, and what it says until its end.
    pub(super) fn ends(&mut self) -> (Option<i32>, String) {
        let mut rest = String::new();
        self.said.read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap().code(), rest)
    }

    /// Stops it as Ctrl-C does; its exit code, and what it says until its end.
    pub(super) fn interrupt(mut self) -> (Option<i32>, String) {
        signal("INT", self.child.id());
        self.ends()
    }

    pub(super) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for UnderWay {
    /// A test that fails leaves nothing that runs.
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            signal("INT", self.child.id());
            let _ = self.child.wait();
        }
    }
}

fn signal(name: &str, pid: u32) {
    let kill = format!("kill -{name} {pid}");
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
}
