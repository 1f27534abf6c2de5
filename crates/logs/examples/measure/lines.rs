//! Lines as an Apache Airflow environment writes them, the same ones each time.

use podium_api::enums::LogSource;
use podium_api::{DeploymentId, Timestamp};
use podium_logs::Line;

/// When the first line is written.
pub(crate) const START: i64 = 1_800_000_000_000;
/// Over how long a time the lines are spread.
pub(crate) const SPAN: i64 = 24 * 3_600_000;
/// A word that one line in a million has.
pub(crate) const RARE: &str = "heartbeatlost";
/// Every millionth line has the rare word.
const RARE_EVERY: u64 = 1_000_000;

const DAGS: &str = "etl_orders etl_customers dbt_daily ml_features billing_export inventory_sync web_events fraud_scores \
                    churn_model warehouse_vacuum reports_weekly crm_import payments_reconcile";
const TASKS: &str = "extract transform load_partition validate_schema publish wait_for_file train notify cleanup compact \
                    check_freshness copy_to_warehouse";
const TRACEBACK: &[&str] = &[
    "Traceback (most recent call last):",
    "  File \"/usr/local/lib/python3.11/site-packages/airflow/sdk/execution_time/task_runner.py\", line 867, in run",
    "    result = _execute_task(context=context, ti=ti, log=log)",
    "  File \"/usr/local/lib/python3.11/site-packages/airflow/providers/standard/operators/python.py\", line 216, in execute",
    "    return_value = self.execute_callable()",
    "sqlalchemy.exc.OperationalError: (psycopg2.OperationalError) connection to server at \"10.20.30.40\", port 5432 failed: Connection refused",
];

pub(crate) struct Lines {
    deployment_id: DeploymentId,
    total: u64,
    made: u64,
    random: u64,
    /// What is left to say of a traceback.
    traceback: usize,
    task: Task,
}

#[derive(Clone, Default)]
struct Task {
    dag: &'static str,
    task: &'static str,
    id: String,
    run: String,
}

impl Lines {
    pub(crate) fn new(deployment_id: DeploymentId, total: u64) -> Self {
        let mut lines = Self {
            deployment_id,
            total,
            made: 0,
            random: 0x9e37_79b9_7f4a_7c15,
            traceback: 0,
            task: Task::default(),
        };
        lines.next_task();
        lines
    }

    fn random(&mut self, below: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) % below
    }

    fn one_of(&mut self, words: &'static str) -> &'static str {
        let words: Vec<&str> = words.split(' ').collect();
        words[self.random(words.len() as u64) as usize]
    }

    fn next_task(&mut self) {
        let (high, low) = (self.random(u64::MAX >> 12), self.random(u64::MAX >> 12));
        let id = format!(
            "0197{:04x}-{:04x}-7{:03x}-a{:03x}-{:012x}",
            high & 0xffff,
            high >> 16 & 0xffff,
            high >> 32 & 0xfff,
            low >> 40 & 0xfff,
            low & 0xffff_ffff_ffff
        );
        let hour = Timestamp::from_millis(self.moment() - self.moment() % 3_600_000).to_string();
        let run = format!("scheduled__{}+00:00", hour.trim_end_matches(".000Z"));
        self.task = Task { dag: self.one_of(DAGS), task: self.one_of(TASKS), id, run };
    }

    fn moment(&self) -> i64 {
        START + (SPAN as i128 * i128::from(self.made) / i128::from(self.total)) as i64
    }

    /// The id of the task that is spoken of now.
    pub(crate) fn task_id(&self) -> &str {
        &self.task.id
    }

    fn text(&mut self) -> (LogSource, String) {
        if self.traceback > 0 {
            self.traceback -= 1;
            return (LogSource::Worker, TRACEBACK[TRACEBACK.len() - 1 - self.traceback].to_owned());
        }
        if self.made % RARE_EVERY == RARE_EVERY / 2 {
            let text =
                format!("WARNING supervisor: {RARE} for task instance {} after 300 seconds", self.task.id);
            return (LogSource::Scheduler, text);
        }
        let kind = self.random(100);
        let (number, port) = (self.random(100_000), 1024 + self.random(60_000));
        let Task { dag, task, id, run } = self.task.clone();
        if kind < 4 {
            self.next_task();
        }
        match kind {
            0..20 => (
                LogSource::Scheduler,
                format!(
                    "INFO scheduler_job_runner.py:{}: Setting the following tasks to queued state: <TaskInstance: {dag}.{task} {run} [scheduled]> pool=default_pool priority_weight={} ti_id={id}",
                    400 + number % 300,
                    number % 10
                ),
            ),
            20..30 => (
                LogSource::Scheduler,
                format!(
                    "INFO local_executor.py:115: Adding to queue workload ExecuteTask(ti=TaskInstance(id='{id}', task_id='{task}', dag_id='{dag}', run_id='{run}', try_number={}, map_index=-1))",
                    1 + number % 3
                ),
            ),
            30..45 => (
                LogSource::DagProcessor,
                format!(
                    "INFO manager.py:998: dags/{dag}.py  PID={}  Current Duration=  # DAGs=1  # Errors=0  Last Duration={}.{:02}s  Last Run At={}",
                    1000 + number % 30_000,
                    number % 4,
                    number % 100,
                    Timestamp::from_millis(self.moment())
                ),
            ),
            45..65 => (
                LogSource::ApiServer,
                format!(
                    "INFO: 127.0.0.1:{port} - \"PUT /execution/task-instances/{id}/heartbeat HTTP/1.1\" 204 No Content duration_ms={}",
                    number % 90
                ),
            ),
            65..92 => (
                LogSource::Worker,
                format!(
                    "{{\"timestamp\":\"{}\",\"level\":\"info\",\"event\":\"Processed partition {} of {dag}.{task}: {} rows in {} ms\",\"logger\":\"task\",\"ti_id\":\"{id}\",\"filename\":\"{dag}.py\",\"lineno\":{}}}",
                    Timestamp::from_millis(self.moment()),
                    number % 64,
                    number,
                    number % 9000,
                    number % 400
                ),
            ),
            92..98 => (
                LogSource::Triggerer,
                format!("INFO triggerer_job_runner.py:500: {} triggers currently running", number % 50),
            ),
            98 => {
                self.traceback = TRACEBACK.len();
                (
                    LogSource::Worker,
                    format!(
                        "ERROR task_runner.py:912: Task failed with exception ti_id={id} dag_id={dag} task_id={task}"
                    ),
                )
            }
            _ => (
                LogSource::Worker,
                format!(
                    "INFO Done. Returned value was: {{'rows': {number}, 'checksum': '{:016x}'}}",
                    self.random(u64::MAX)
                ),
            ),
        }
    }
}

impl Iterator for Lines {
    type Item = Line;

    fn next(&mut self) -> Option<Line> {
        if self.made >= self.total {
            return None;
        }
        // Components are a little apart, so lines come a little out of order.
        let timestamp = Timestamp::from_millis(self.moment() - self.random(50) as i64);
        let (source, text) = self.text();
        self.made += 1;
        Some(Line { deployment_id: self.deployment_id, source, timestamp, text })
    }
}
