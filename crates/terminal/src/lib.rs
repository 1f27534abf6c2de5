//! The person at the terminal: questions, and the command line that was typed. Without a terminal nothing is asked.
//!
//! It is what the commands of a client and those of an operator have in common, and knows neither.

pub mod typed;

use std::io::{BufRead as _, IsTerminal as _};

use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

/// Whether there is somebody to ask.
pub fn is_interactive() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

pub fn ask(prompt: &str) -> std::io::Result<String> {
    eprint!("{prompt}");
    line()
}

/// Asks for a line that is not shown; without a terminal it is read without asking.
pub fn ask_secret(prompt: &str) -> std::io::Result<String> {
    if !std::io::stdin().is_terminal() {
        return line();
    }
    // What was typed before the echo is off is thrown away, so the question comes after.
    let typed = without_echo(|| ask(prompt));
    eprintln!();
    typed
}

/// Asks a question that is answered with yes or no; anything else is no.
pub fn confirm(question: &str) -> std::io::Result<bool> {
    let answer = ask(&format!("{question} [y/N] "))?;
    Ok(matches!(answer.to_lowercase().as_str(), "y" | "yes"))
}

/// The next line of standard input, without its end.
pub fn line() -> std::io::Result<String> {
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

/// Runs something with terminal echo off.
fn without_echo<T>(work: impl FnOnce() -> T) -> T {
    let stdin = std::io::stdin();
    let Ok(before) = tcgetattr(&stdin) else { return work() };
    let mut quiet = before.clone();
    quiet.local_modes.remove(LocalModes::ECHO);
    let _ = tcsetattr(&stdin, OptionalActions::Flush, &quiet);
    let done = work();
    let _ = tcsetattr(&stdin, OptionalActions::Flush, &before);
    done
}
