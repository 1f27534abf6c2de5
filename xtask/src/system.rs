//! Finds programs on this machine, and installs missing ones by package name where that is possible.

use std::env;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;

use crate::outcome::{Outcome, While};
use crate::server_process::Account;
use crate::workspace::{must, works};

/// The directory of a program, looked for in `PATH` and then in `more`.
pub(crate) fn directory_of(program: &str, more: &[PathBuf]) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).chain(more.iter().cloned()).find(|directory| directory.join(program).is_file())
}

pub(crate) fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

/// The account of the first of these users that exists.
pub(crate) fn account(names: &[&str]) -> Option<Account> {
    let passwd = fs::read_to_string("/etc/passwd").ok()?;
    names.iter().find_map(|name| account_in(&passwd, name))
}

fn account_in(passwd: &str, name: &str) -> Option<Account> {
    let entry =
        passwd.lines().map(|line| line.split(':').collect::<Vec<_>>()).find(|entry| entry[0] == name)?;
    Some((entry.get(2)?.parse().ok()?, entry.get(3)?.parse().ok()?))
}

pub(crate) fn free_port() -> Outcome<u16> {
    let listener = TcpListener::bind("127.0.0.1:0").doing("looking for a free port")?;
    Ok(listener.local_addr().doing("looking for a free port")?.port())
}

pub(crate) fn need(program: &str, what: &str, packages: &[&str]) -> Outcome {
    let is_there = directory_of(program, &["/usr/sbin".into()]).is_some();
    if is_there { Ok(()) } else { install(what, packages) }
}

/// Sees to it that there are programs that only some tests need, each of a package, or says what is left out.
pub(crate) fn offer(programs: &[(&str, &str)]) {
    for (program, package) in programs {
        if let Err(failure) = need(program, program, &[package]) {
            println!("SKIPPED: what needs {program}: {failure}");
        }
    }
}

/// Installs Debian packages by name, or says what a person has to install.
pub(crate) fn install(what: &str, packages: &[&str]) -> Outcome {
    static UPDATED: Once = Once::new();
    let advice =
        format!("{what} is missing: please install it (on Debian: apt-get install {})", packages.join(" "));
    if !Path::new("/usr/bin/apt-get").exists() {
        return Err(advice);
    }
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("env");
        if !is_root() {
            command = Command::new("sudo");
            command.args(["-n", "env"]);
        }
        command.args(["DEBIAN_FRONTEND=noninteractive", "apt-get", "-q"]).args(arguments);
        command
    };
    if !is_root() && !works(Command::new("sudo").args(["-n", "true"])) {
        return Err(advice);
    }
    println!("installing {}", packages.join(" "));
    // A failed update is no reason to stop: the existing lists may be good enough.
    UPDATED.call_once(|| drop(apt(&["update"]).status()));
    must(apt(&["install", "-y", "--no-install-recommends"]).args(packages))
        .map_err(|failure| format!("{advice}; {failure}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_accounts() {
        let passwd = "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65533::/:/usr/sbin/nologin\n";
        assert_eq!(account_in(passwd, "nobody"), Some((65534, 65533)));
        assert_eq!(account_in(passwd, "postgres"), None);
    }

    #[test]
    fn finds_programs() {
        assert!(directory_of("sh", &[]).is_some());
        assert_eq!(directory_of("no-such-program", &["/bin".into()]), None);
    }
}
