//! A terminal, and somebody who reads it and types.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// So long that only a hang reaches it, on a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_mins(2);

/// A shell command on a terminal of its own, such as people have: nothing of this process's settings, and nothing that
/// opens windows.
pub(crate) fn on_terminal(command: &str, folder: &Path) -> Command {
    let line = format!("stty rows 24 cols 160; {command}");
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &line, "/dev/null"]).current_dir(folder);
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("PODIUM_")) {
        script.env_remove(name);
    }
    for name in ["BROWSER", "DISPLAY", "WAYLAND_DISPLAY", "NO_COLOR"] {
        script.env_remove(name);
    }
    script.env("TERM", "xterm").env("SHELL", "/bin/bash");
    script
}

pub(crate) struct Terminal {
    child: Child,
    keyboard: ChildStdin,
    shown: Receiver<Vec<u8>>,
    /// How long it may show nothing new.
    pub(crate) patience: Duration,
    /// What was shown and not yet read.
    unread: String,
    /// What was shown so far.
    pub(crate) all: String,
}

impl Terminal {
    /// Starts a command that [`on_terminal`] made.
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("script runs");
        let keyboard = child.stdin.take().expect("it is piped");
        let mut screen = child.stdout.take().expect("it is piped");
        let (show, shown) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = screen.read(&mut bytes) {
                if show.send(bytes[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self { child, keyboard, shown, patience: PATIENCE, unread: String::new(), all: String::new() }
    }

    /// Reads on until a text is shown; what was shown up to it, and with it.
    #[track_caller]
    pub(crate) fn sees(&mut self, text: &str) -> String {
        loop {
            if let Some(at) = self.unread.find(text) {
                let rest = self.unread.split_off(at + text.len());
                return std::mem::replace(&mut self.unread, rest);
            }
            match self.shown.recv_timeout(self.patience) {
                Ok(bytes) => self.take(&bytes),
                Err(RecvTimeoutError::Timeout) => panic!("never shown: {text:?} in {}", self.all),
                Err(RecvTimeoutError::Disconnected) => panic!("ended before {text:?}: {}", self.all),
            }
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes).replace('\r', "");
        self.unread.push_str(&text);
        self.all.push_str(&text);
    }

    pub(crate) fn types(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).expect("somebody reads");
    }

    /// Reads to the end; the exit code.
    pub(crate) fn ends(&mut self) -> Option<i32> {
        while let Ok(bytes) = self.shown.recv_timeout(self.patience) {
            self.take(&bytes);
        }
        self.child.wait().expect("it ends").code()
    }
}

impl Drop for Terminal {
    /// A test that fails leaves nothing that runs: a terminal that closes ends what runs on it.
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
