//! Deployments: how fast they are made, become healthy, are read and deployed to, and what sleeping ones cost.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::client::Client;
use super::{Bench, SECONDS, WRITERS, wrk};
use crate::outcome::{Outcome, While};
use crate::probe::get;
use crate::processes;

const BATCH: usize = 10_000;
const LISTED: u64 = 100_000;
const CLIENTS: usize = 32;
const FINALIZED: usize = 4_000;
const WATCHED: Duration = Duration::from_secs(10);

impl Bench {
    pub(super) fn deployments(&self) -> Outcome {
        let workspace = self.first("workspaces")?;
        self.to_healthy(&workspace)?;
        self.sleeping(&workspace)?;
        self.finalized()?;
        self.create_many(&workspace)?;
        self.read_all(&workspace)
    }

    pub(super) fn root(&self) -> String {
        format!("/v1/organizations/{}", self.organization)
    }

    pub(super) fn json(&self, path: &str) -> Outcome<Value> {
        let path = format!("{}{path}", self.root());
        serde_json::from_str(&get(self.port, &path, &self.token).doing(&path)?).doing(&path)
    }

    pub(super) fn first(&self, kind: &str) -> Outcome<String> {
        let page = self.json(&format!("/{kind}?limit=1"))?;
        Ok(page[kind][0]["id"].as_str().unwrap_or_default().to_owned())
    }

    /// Calls with many connections at once; the numbers are shared among them.
    pub(super) fn each(
        &self,
        count: usize,
        call: impl Fn(&mut Client, usize) -> Outcome + Sync,
    ) -> Outcome<Duration> {
        let started = Instant::now();
        thread::scope(|scope| {
            let run = |first: usize| {
                let call = &call;
                scope.spawn(move || {
                    let mut client = Client::connect(self.port, &self.token)?;
                    (first..count).step_by(CLIENTS).try_for_each(|number| call(&mut client, number))
                })
            };
            let running: Vec<_> = (0..CLIENTS).map(run).collect();
            running
                .into_iter()
                .try_for_each(|thread| thread.join().map_err(|_| "a client panicked".to_owned())?)
        })?;
        Ok(started.elapsed())
    }

    /// Waits until the loops have nothing left that is due.
    pub(super) fn settled(&self) -> Outcome {
        let deadline = Instant::now() + Duration::from_secs(600);
        while Instant::now() < deadline {
            let page = get(self.port, "/metrics", &self.token).doing("metrics")?;
            let left = ["podium_work_due{", "podium_work_held{"];
            let left = page.lines().filter(|line| left.iter().any(|name| line.starts_with(name)));
            let left: f64 = left.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum();
            if left == 0.0 {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(50));
        }
        Err("the loops did not come to rest".into())
    }

    fn to_healthy(&self, workspace: &str) -> Outcome {
        let path = format!("{}/deployments", self.root());
        let started = Instant::now();
        let created = self.each(BATCH, |client, number| {
            let body = json!({ "name": format!("batch {number}"), "workspaceId": workspace });
            client.post(&path, &body).map(|_| ())
        })?;
        self.settled()?;
        let all = started.elapsed();
        let (rate, memory) = (BATCH as f64 / created.as_secs_f64(), self.memory()?);
        println!(
            "{BATCH} deployments: created in {:.1} s ({rate:.0}/s), all HEALTHY after {:.1} s; memory {memory} MB",
            created.as_secs_f64(),
            all.as_secs_f64()
        );
        Ok(())
    }

    /// What deployments with hibernation schedules cost while nothing happens.
    fn sleeping(&self, workspace: &str) -> Outcome {
        let idle = self.processor_time_of(WATCHED)?;
        let path = format!("{}/deployments", self.root());
        let schedule =
            json!({ "hibernateAtCron": "0 0 1 1 *", "wakeAtCron": "0 0 2 1 *", "isEnabled": true });
        self.each(BATCH, |client, number| {
            let body = json!({
                "name": format!("sleeper {number}"),
                "workspaceId": workspace,
                "isDevelopmentMode": true,
                "scalingSpec": { "hibernationSpec": { "schedules": [schedule] } },
            });
            client.post(&path, &body).map(|_| ())
        })?;
        self.settled()?;
        thread::sleep(Duration::from_secs(3));
        let busy = self.processor_time_of(WATCHED)?;
        println!(
            "{BATCH} scheduled deployments between events: {busy} ms of processor time in {} s, {idle} ms without them",
            WATCHED.as_secs()
        );
        Ok(())
    }

    /// Milliseconds of CPU time that the server uses while idle.
    pub(super) fn processor_time_of(&self, time: Duration) -> Outcome<u64> {
        let before = self.processor_time()?;
        thread::sleep(time);
        Ok(self.processor_time()? - before)
    }

    pub(super) fn processor_time(&self) -> Outcome<u64> {
        processes::processor_time(self.server.server()?)
    }

    /// Deploys of images: nothing is uploaded, so that only the control plane is measured.
    fn finalized(&self) -> Outcome {
        let page = self.json("/deployments?limit=1000")?;
        let ids: Vec<String> = page["deployments"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|deployment| Some(deployment["id"].as_str()?.to_owned()))
            .collect();
        let deploys = std::sync::Mutex::new(Vec::with_capacity(FINALIZED));
        let path = |number: usize| format!("{}/deployments/{}/deploys", self.root(), ids[number % ids.len()]);
        let created = self.each(FINALIZED, |client, number| {
            let deploy = client.post(&path(number), &json!({ "type": "IMAGE_ONLY" }))?;
            let deploy = deploy["id"].as_str().unwrap_or_default().to_owned();
            deploys.lock().map_err(|_| "a client panicked")?.push(format!("{}/{deploy}", path(number)));
            Ok(())
        })?;
        let deploys = deploys.into_inner().map_err(|_| "a client panicked")?;
        let finalized = self.each(FINALIZED, |client, number| {
            client
                .post(&format!("{}/finalize", deploys[number]), &json!({ "dagTarballVersion": "" }))
                .map(|_| ())
        })?;
        let rate = |time: Duration| FINALIZED as f64 / time.as_secs_f64();
        println!(
            "create deploy: {:.0}/s; finalize: {:.0}/s, while the loops roll out",
            rate(created),
            rate(finalized)
        );
        self.settled()
    }

    /// Durable creates against the bare handler, then more until there are enough to list.
    fn create_many(&self, workspace: &str) -> Outcome {
        let path = format!("{}/deployments", self.root());
        let mut is_first = true;
        while self.total("deployments")? < LISTED {
            let run = self.total("deployments")?;
            println!("creating deployments: {run} of {LISTED}");
            let script = self.create_script(run, &format!(r#","workspaceId":"{workspace}""#))?;
            let ours = wrk(self.port, &path, &self.token, WRITERS, SECONDS, Some(&script))?;
            if is_first {
                let one = format!("{path}/{}", self.first("deployments")?);
                let answer = get(self.port, &one, &self.token).doing("a deployment")?;
                let bare =
                    self.bare(&answer, |port| wrk(port, &path, "", WRITERS, SECONDS, Some(&script)))?;
                let ratio = ours.rate / bare.rate;
                println!(
                    "create deployment, durable, while the loops work: {:.0}/s, {ratio:.2} of the bare handler",
                    ours.rate
                );
            }
            is_first = false;
        }
        self.settled()
    }

    fn read_all(&self, workspace: &str) -> Outcome {
        let page = self.json("/deployments?limit=20&offset=50000")?;
        let text = |index: usize, field: &str| {
            page["deployments"][index][field].as_str().unwrap_or_default().to_owned()
        };
        let ids: Vec<String> = (0..5).map(|index| format!("deploymentIds={}", text(index, "id"))).collect();
        let names: Vec<String> =
            (0..5).map(|index| format!("names={}", text(index, "name").replace(' ', "%20"))).collect();
        let list = format!("{}/deployments", self.root());
        super::heading();
        for (name, path) in [
            ("GET one deployment", format!("{list}/{}", text(0, "id"))),
            ("list 20 of 100,000 deployments", format!("{list}?limit=20")),
            ("  of one workspace", format!("{list}?limit=20&workspaceIds={workspace}")),
            ("  by five names", format!("{list}?limit=20&{}", names.join("&"))),
            ("  by five ids", format!("{list}?limit=20&{}", ids.join("&"))),
        ] {
            self.read(name, &path)?;
        }
        let near = self.fresh(&format!("{list}?limit=20&offset=0"))?;
        let far = self.fresh(&format!("{list}?limit=20&offset={}", LISTED - 20))?;
        println!("page 5,000 of deployments costs {:.2} times page 1, each read anew", near.rate / far.rate);
        println!("memory after that: {} MB", self.memory()?);
        Ok(())
    }
}
