//! Durable creates: how many a second, how long callers wait, and what each costs the server.

use std::fs;
use std::path::PathBuf;

use super::{Bench, SECONDS, WRITERS, wrk};
use crate::outcome::{Outcome, While};

impl Bench {
    /// Workspaces, deployments and teams, each with many connections at once.
    pub(super) fn durable_creates(&self) -> Outcome {
        let workspace = self.first("workspaces")?;
        println!(
            "{:<34}{:>12}{:>12}{:>16}   latency",
            "durable creates", "podium/s", "created", "processor µs"
        );
        for (kind, fields) in [
            ("workspaces", r#","description":"made by the benchmark""#.to_owned()),
            ("deployments", format!(r#","workspaceId":"{workspace}""#)),
            ("teams", String::new()),
        ] {
            let before = self.total(kind)?;
            let script = self.create_script(before, &fields)?;
            let path = format!("{}/{kind}", self.root());
            let idle = self.processor_time()?;
            let measured = wrk(self.port, &path, &self.token, WRITERS, SECONDS, Some(&script))?;
            let used = (self.processor_time()? - idle) as f64 * 1000.0;
            let created = self.total(kind)? - before;
            let (rate, each) = (measured.rate, used / created.max(1) as f64);
            println!("  {kind:<32}{rate:>12.0}{created:>12}{each:>16.0}   {}", measured.latency);
            self.settled()?;
        }
        Ok(())
    }

    /// Sends creates with names that are unique over threads and, by `run`, over runs.
    pub(super) fn create_script(&self, run: u64, fields: &str) -> Outcome<PathBuf> {
        let script = self.directory.join("create.lua");
        let text = format!(
            "local threads = 0\n\
             function setup(thread) thread:set('number', threads); threads = threads + 1 end\n\
             function init() count = 0 end\n\
             function request()\n\
               count = count + 1\n\
               local body = '{{\"name\":\"{run}-' .. number .. '-' .. count .. '\"{fields}}}'\n\
               wrk.headers['Content-Type'] = 'application/json'\n\
               return wrk.format('POST', nil, nil, body)\n\
             end\n"
        );
        fs::write(&script, text).doing("writing a script")?;
        Ok(script)
    }
}
