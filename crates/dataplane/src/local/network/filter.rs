//! Keeps environments that share the machine's network from connecting to each other on loopback, by their users, with
//! an nftables table of this plane.
//!
//! The ports of web servers and of the control plane are known: connections from other environments are rejected. Tasks
//! may listen on any port, so a connection is marked with the user who opened it, and replies from another
//! environment's user are dropped.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::ops::Range;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use super::NetworkError;

#[derive(Debug)]
pub(in crate::local) struct Filter {
    program: PathBuf,
    users: Range<u32>,
    /// The loopback ports that are closed to all environments.
    closed: Vec<u16>,
    /// The ports of web servers, by the users of their environments.
    web_ports: Mutex<BTreeMap<u32, u16>>,
}

impl Filter {
    /// Installs the table, replacing an older one. An error says why that is not possible.
    pub(super) fn new(
        program: PathBuf,
        users: Range<u32>,
        closed: Vec<u16>,
        web_ports: BTreeMap<u32, u16>,
    ) -> Result<Self, NetworkError> {
        let filter = Self { program, users, closed, web_ports: Mutex::new(web_ports) };
        filter.change(|_| {})?;
        Ok(filter)
    }

    /// Lets only an environment's own user reach the port of its web server.
    pub(in crate::local) fn admit(&self, user: u32, web_port: u16) -> Result<(), NetworkError> {
        self.change(|ports| {
            ports.insert(user, web_port);
        })
    }

    pub(in crate::local) fn forget(&self, user: u32) -> Result<(), NetworkError> {
        self.change(|ports| {
            ports.remove(&user);
        })
    }

    /// Removes the table if no environment is left.
    pub(in crate::local) fn remove_if_unused(&self) {
        if self.web_ports.lock().unwrap_or_else(PoisonError::into_inner).is_empty() {
            self.remove();
        }
    }

    pub(super) fn forget_table(program: PathBuf, users: Range<u32>) {
        Self { program, users, closed: Vec::new(), web_ports: Mutex::default() }.remove();
    }

    fn remove(&self) {
        let table = self.table();
        if let Err(error) = self.apply(&format!("add table {table}\ndelete table {table}\n")) {
            tracing::warn!(table, %error, "a table of the packet filter cannot be removed");
        }
    }

    fn table(&self) -> String {
        format!("inet podium_{}", self.users.start)
    }

    /// Changes the ports and atomically updates the table.
    fn change(&self, change: impl FnOnce(&mut BTreeMap<u32, u16>)) -> Result<(), NetworkError> {
        let mut ports = self.web_ports.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut ports);
        self.apply(&self.rules(&ports))
    }

    fn rules(&self, ports: &BTreeMap<u32, u16>) -> String {
        let list = |of: &dyn Fn(u32, u16) -> String| {
            let all: Vec<String> = ports.iter().map(|(user, port)| of(*user, *port)).collect();
            if all.is_empty() { String::new() } else { format!("elements = {{ {} }};", all.join(", ")) }
        };
        let (table, first, last) = (self.table(), self.users.start, self.users.end - 1);
        // Atomically replaces the previous table, whether there was one or not.
        let mut rules = format!("add table {table}\ndelete table {table}\ntable {table} {{\n");
        let sets = [
            ("map marks", "uid : mark", list(&|user, _| format!("{user} : {user}"))),
            ("set same", "uid . mark", list(&|user, _| format!("{user} . {user}"))),
            ("set web", "inet_service", list(&|_, port| port.to_string())),
            ("set own", "uid . inet_service", list(&|user, port| format!("{user} . {port}"))),
        ];
        for (name, kind, elements) in sets {
            let _ = writeln!(rules, "  {name} {{ type {kind}; {elements} }}");
        }
        let mut chain = vec![
            "type filter hook output priority filter; policy accept;".to_owned(),
            "oifname != \"lo\" accept".to_owned(),
            format!("meta skuid != {first}-{last} accept"),
            "ct direction original tcp dport @web meta skuid . tcp dport != @own reject with tcp reset"
                .to_owned(),
        ];
        for port in &self.closed {
            for address in ["ip daddr 127.0.0.0/8", "ip6 daddr ::1"] {
                chain.push(format!("ct direction original {address} tcp dport {port} reject with tcp reset"));
            }
        }
        chain.push("ct direction original ct mark 0 ct mark set meta skuid map @marks".to_owned());
        chain.push(format!("ct direction reply ct mark {first}-{last} meta skuid . ct mark != @same drop"));
        let _ = write!(rules, "  chain output {{\n    {}\n  }}\n}}\n", chain.join("\n    "));
        rules
    }

    fn apply(&self, rules: &str) -> Result<(), NetworkError> {
        let fail = |error: std::io::Error| NetworkError::from(format!("{}: {error}", self.program.display()));
        let mut command = Command::new(&self.program);
        command.args(["-f", "-"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(fail)?;
        if let Some(mut input) = child.stdin.take() {
            input.write_all(rules.as_bytes()).map_err(fail)?;
        }
        let output = child.wait_with_output().map_err(fail)?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(format!("{}: {}", self.program.display(), said.lines().next().unwrap_or("it failed")).into())
    }
}

#[cfg(test)]
mod tests;
