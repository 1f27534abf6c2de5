//! An organization that has been used for a while: something of everything that pages show.

use std::time::Duration;

use podium_api::DeploymentId;
use podium_api::deploy_reports::{ReportedChanges, RolloutReport};
use podium_dataplane::LogLine;
use podium_domain::deployments::plan::Health;
use podium_domain::deployments::rollout::{RolloutProgress, RolloutStep};
use serde_json::{Value, json};

use super::{Site, id_of};

/// What the rollout of a deploy found: the first files, and later some that changed.
fn report(at: usize) -> RolloutReport {
    let names = |of: &[&str]| of.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let changes = |added: &[&str], changed: &[&str]| {
        let (added, changed) = (names(added), names(changed));
        let (added_count, changed_count) = (added.len() as u64, changed.len() as u64);
        Some(ReportedChanges { added, changed, added_count, changed_count, ..ReportedChanges::default() })
    };
    let (files, dags) = match at {
        0 => (changes(&["dags/sales.py"], &[]), changes(&["sales"], &[])),
        1 => (
            changes(&["dags/orders.py", "include/warehouse.py"], &["dags/sales.py"]),
            changes(&["orders", "orders_backfill"], &["sales"]),
        ),
        _ => (changes(&["dags/stock.py"], &["dags/orders.py"]), changes(&["stock"], &["orders"])),
    };
    RolloutReport { files, dags, ..RolloutReport::default() }
}

const DAGS: &[(&str, &[u8])] = &[("dags/sales.py", b"1"), ("dags/orders.py", b"2"), ("dags/stock.py", b"3")];

impl Site {
    /// A site with something of everything; the deployments are one that is used much, and one that sleeps by a schedule.
    pub(super) fn seeded() -> (Self, [DeploymentId; 2]) {
        let site = Self::start();
        let spaces =
            ["Analytics", "Finance", "Machine learning"].map(|name| site.wait(site.app.workspace(name)));
        let make = |name: &str, workspace: usize, more: Value| {
            let mut body = json!({ "name": name, "workspaceId": spaces[workspace] });
            if let (Value::Object(more), Some(body)) = (more, body.as_object_mut()) {
                body.extend(more);
            }
            let made = site.make("/deployments", body);
            id_of(&made).parse::<DeploymentId>().expect("an id")
        };
        let nightly =
            make("nightly-orders", 0, json!({ "description": "Orders of the day, at two in the morning" }));
        make("ad-hoc-analysis", 0, json!({}));
        make("customer-events", 0, json!({}));
        make("quarterly-close", 1, json!({}));
        let invoices = make("invoices", 1, json!({}));
        let features = make("feature-store", 2, json!({}));
        let training = make(
            "model-training",
            2,
            json!({ "isDevelopmentMode": true, "scalingSpec": { "hibernationSpec": {
            "schedules": [
                { "isEnabled": true, "description": "Nights", "hibernateAtCron": "0 19 * * 1-5", "wakeAtCron": "0 7 * * 1-5" },
                { "isEnabled": true, "description": "Weekends", "hibernateAtCron": "0 19 * * 5", "wakeAtCron": "0 7 * * 1" },
            ] } } }),
        );
        site.settle();
        site.administered(&spaces[0].to_string(), nightly);
        site.used(nightly, invoices, features);
        site.airflow(nightly);
        (site, [nightly, training])
    }

    /// People, tokens, roles, clusters and what else administrators make.
    fn administered(&self, workspace: &str, deployment: DeploymentId) {
        let role = podium_api::enums::OrganizationRole::Member;
        for name in ["Ada Lovelace", "Grace Hopper", "Katherine Johnson"] {
            self.wait(self.app.member_as(name, role));
        }
        let everybody = self.read("/users")["users"].clone();
        let ids: Vec<&str> = everybody.as_array().expect("a list").iter().map(id_of).collect();
        self.make("/teams", json!({ "name": "Data platform", "description": "Runs it", "memberIds": ids }));
        self.make("/tokens", json!({ "name": "deploys from CI", "scope": "ORGANIZATION", "role": "ORGANIZATION_OWNER", "tokenExpiryPeriodInDays": 9 }));
        self.make("/tokens", json!({ "name": "backups", "scope": "WORKSPACE", "entityId": workspace, "role": "WORKSPACE_OPERATOR", "tokenExpiryPeriodInDays": 300 }));
        self.make("/roles", json!({ "name": "On-call", "description": "Reads, and restarts what hangs", "scopeType": "DEPLOYMENT", "permissions": ["deployment.get", "deployment.update"] }));
        self.make("/environment-objects", json!({ "objectKey": "WAREHOUSE_URL", "objectType": "ENVIRONMENT_VARIABLE", "scope": "WORKSPACE",
            "scopeEntityId": workspace, "environmentVariable": { "value": "warehouse.example.test", "isSecret": false }, "autoLinkDeployments": true }));
        self.make("/environment-objects", json!({ "objectKey": "orders_db", "objectType": "CONNECTION", "scope": "WORKSPACE", "scopeEntityId": workspace,
            "connection": { "type": "postgres", "host": "db.example.test", "login": "orders" }, "links": [{ "scope": "DEPLOYMENT", "scopeEntityId": deployment }] }));
        let hook = self.make("/webhooks", json!({ "name": "on call", "url": "https://hooks.example.test/podium", "description": "Pages the one on call" }));
        self.make("/alerts", json!({ "name": "Broken deployments", "description": "Wakes the one on call", "kind": "DEPLOYMENT_UNHEALTHY", "afterMinutes": 0, "webhookIds": [hook["id"]] }));
        self.make("/alerts", json!({ "name": "Late orders", "kind": "DAG_RUN_TOO_SLOW", "afterMinutes": 45, "dagId": "orders", "webhookIds": [hook["id"]], "deploymentIds": [deployment] }));
        self.make("/alerts", json!({ "name": "Tokens of CI", "kind": "TOKEN_EXPIRING", "daysBefore": 14, "webhookIds": [hook["id"]], "isEnabled": false }));
        self.make("/allowed-ip-address-ranges", json!({ "ipAddressRange": "127.0.0.0/8" }));
        self.wait(self.app.new_cluster("east", json!({ "drRegion": "us-west-2" })));
        self.settle();
    }

    /// Deploys, a failure, an operation under way, lines of logs.
    fn used(&self, nightly: DeploymentId, invoices: DeploymentId, features: DeploymentId) {
        let minutes = |count: u64| self.app.advance(Duration::from_secs(count * 60));
        for (at, description) in
            ["Orders by region", "Retries for the warehouse", "Stock levels"].iter().enumerate()
        {
            minutes(600);
            self.deploy(nightly, description, &DAGS[..=at]);
            let newest = self.read(&format!("/deployments/{nightly}/deploys"))["deploys"][0].clone();
            let deploy_id = id_of(&newest).parse().expect("an id");
            self.wait(self.app.report_rollout(nightly, deploy_id, report(at)));
            self.settle();
        }
        let broken = self.deploy(nightly, "Typed too fast", &[("dags/sales.py", b"def")]);
        self.app
            .plane
            .script()
            .refuse_dags(&broken, "dags/sales.py:14: invalid syntax. What ran before still serves.");
        self.settle();
        minutes(47);
        self.app.plane.script().set_health(
            invoices,
            "scheduler",
            Health::Down("its heartbeat is 4 minutes old".into()),
        );
        self.settle();
        minutes(3);
        self.app.plane.script().lock().rollout = Duration::from_secs(3600);
        let progress = RolloutProgress {
            step: RolloutStep::Packages,
            done: Some((31, 54)),
            message: None,
            waits_for: Vec::new(),
        };
        self.app.plane.script().set_progress(features, Some(progress));
        self.deploy(features, "Features of the week", DAGS);
        self.settle();
        self.write_lines(nightly);
        minutes(1);
    }

    /// An hour of what a scheduler and a worker say.
    pub(super) fn write_lines(&self, id: DeploymentId) {
        let now = self.app.world.now().millis();
        let line = |at: i64| {
            let (source, text) = match at % 11 {
                0 => (
                    "scheduler",
                    "{scheduler_job_runner.py:2012} WARNING - Queue of pool default_pool is full".to_owned(),
                ),
                5 if at % 3 == 0 => (
                    "worker",
                    format!("{{taskinstance.py:3313}} ERROR - Task failed: orders.load, try {}", at % 4),
                ),
                3 | 7 => (
                    "worker",
                    format!("{{taskinstance.py:1207}} INFO - Marking task as SUCCESS: sales.extract_{at}"),
                ),
                _ => (
                    "scheduler",
                    format!("{{dagrun.py:823}} INFO - Setting next_dagrun for orders to run {at}"),
                ),
            };
            let timestamp = podium_api::Timestamp::from_millis(now - (320 - at) * 9000 - (at * at % 97) * 80);
            LogLine {
                deployment_id: id,
                source: source.into(),
                timestamp,
                text: format!("[{timestamp}] {text}"),
            }
        };
        let mut lines: Vec<LogLine> = (0..320).map(line).collect();
        lines.sort_by_key(|line| line.timestamp);
        self.wait(self.app.keep_lines(lines));
    }
}
