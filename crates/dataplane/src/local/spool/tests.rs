use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

use podium_airflow::support;
use podium_api::{Id, Timestamp};
use podium_domain::events::{Allowance, SpoolBatch, SpoolPosition};

use super::*;
use crate::PlaneFuture;
use crate::blocking::allow_blocking;

/// Keeps what is recorded, like a database that can fail.
struct Kept {
    state: Mutex<SpoolState>,
    claims: Mutex<Vec<String>>,
    dropped: Mutex<u64>,
    fails: Mutex<bool>,
}

impl Claims for Kept {
    fn state(&self, _: DeploymentId) -> PlaneFuture<'_, SpoolState> {
        let state = *self.state.lock().unwrap();
        Box::pin(async move { Ok(state) })
    }

    fn record(&self, _: DeploymentId, batch: SpoolBatch) -> PlaneFuture<'_, Option<SpoolState>> {
        Box::pin(async move {
            if *self.fails.lock().unwrap() {
                return Err(Fault::Failed("the database is away".into()));
            }
            let mut state = self.state.lock().unwrap();
            if state.position != batch.from {
                return Ok(None);
            }
            *state = SpoolState { position: batch.to, allowance: state.allowance.less(batch.events()) };
            *self.dropped.lock().unwrap() += batch.dropped;
            self.claims.lock().unwrap().extend(batch.claims.iter().map(|claim| format!("{claim:?}")));
            Ok(Some(*state))
        })
    }
}

struct Fixture {
    directory: tempfile::TempDir,
    kept: Arc<Kept>,
    now: Timestamp,
}

impl Fixture {
    fn new() -> Self {
        let now = Timestamp::from_millis(4_000_000_000_000);
        let kept = Kept {
            state: Mutex::new(SpoolState::new(now)),
            claims: Mutex::default(),
            dropped: Mutex::default(),
            fails: Mutex::default(),
        };
        Self { directory: tempfile::tempdir().unwrap(), kept: Arc::new(kept), now }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join(name)
    }

    fn append(&self, name: &str, text: &[u8]) {
        OpenOptions::new().append(true).create(true).open(self.path(name)).unwrap().write_all(text).unwrap();
    }

    fn reader(&self) -> Reader {
        let now = self.now;
        Reader {
            id: DeploymentId::from_raw(Id::from_parts(1, 2, 3)),
            spool: self.directory.path().to_owned(),
            claims: Arc::clone(&self.kept) as Arc<dyn Claims>,
            clock: Arc::new(move || now),
        }
    }

    /// Reads everything, as a control plane that has just started; returns what is new, and how much was dropped.
    async fn read(&self) -> (Vec<String>, u64) {
        let (reader, before) = (self.reader(), *self.kept.dropped.lock().unwrap());
        let mut state = reader.claims.state(reader.id).await.unwrap();
        while let Some((next, _)) = reader.step(state).await.unwrap() {
            state = next;
        }
        let claims = std::mem::take(&mut *self.kept.claims.lock().unwrap());
        let runs = claims.iter().map(|claim| {
            let (_, rest) = claim.split_once("run_id: \"").unwrap();
            rest.split('"').next().unwrap().to_owned()
        });
        (runs.collect(), *self.kept.dropped.lock().unwrap() - before)
    }

    fn position(&self) -> SpoolPosition {
        self.kept.state.lock().unwrap().position
    }
}

fn line(run: &str) -> Vec<u8> {
    format!("\n{{\"event\":\"dag_run.failed\",\"dag_id\":\"daily\",\"run_id\":\"{run}\"}}\n").into_bytes()
}

const FIRST: &str = "0000000000000001";
const SECOND: &str = "0000000000000002";
const THIRD: &str = "0000000000000003";

#[tokio::test]
async fn each_line_is_stored_once_over_segments_restarts_and_failures() {
    let fixture = Fixture::new();
    assert_eq!(fixture.read().await, (vec![], 0));
    fixture.append(FIRST, &[line("a"), line("b")].concat());
    *fixture.kept.fails.lock().unwrap() = true;
    fixture.reader().step(SpoolState::new(fixture.now)).await.unwrap_err();
    *fixture.kept.fails.lock().unwrap() = false;
    assert_eq!(fixture.read().await.0, ["a", "b"]);
    assert_eq!(fixture.read().await, (vec![], 0));
    // Half a line waits for its other half.
    let c = line("c");
    fixture.append(FIRST, &c[..20]);
    assert_eq!(fixture.read().await, (vec![], 0));
    fixture.append(FIRST, &c[20..]);
    fixture.append(SECOND, &line("d"));
    assert_eq!(fixture.read().await.0, ["c", "d"]);
    assert_eq!(fixture.read().await, (vec![], 0));
    assert!(!fixture.path(FIRST).exists() && fixture.path(SECOND).exists());
    // Another reader has read it meanwhile.
    let stale = SpoolState { position: SpoolPosition::default(), allowance: Allowance::full(fixture.now) };
    fixture.append(SECOND, &line("e"));
    fixture.reader().step(stale).await.unwrap_err();
    assert_eq!(fixture.read().await, (vec!["e".to_owned()], 0));
}

#[tokio::test]
async fn the_last_writers_of_a_segment_have_time_to_finish() {
    let mut fixture = Fixture::new();
    fixture.append(FIRST, &line("a"));
    fixture.append(SECOND, &line("c"));
    let written = fs::metadata(fixture.path(FIRST)).unwrap().modified().unwrap();
    let written = written.duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
    fixture.now = Timestamp::from_millis(i64::try_from(written).unwrap() + 1_000);
    assert_eq!(fixture.read().await.0, ["a"]);
    fixture.append(FIRST, &line("b"));
    assert_eq!(fixture.read().await.0, ["b"]);
    fixture.now = Timestamp::from_millis(4_000_000_000_000);
    assert_eq!(fixture.read().await.0, ["c"]);
}

#[tokio::test]
async fn a_spool_that_begins_anew_is_read_from_its_beginning() {
    let fixture = Fixture::new();
    fixture.append(SECOND, &[line("a"), line("b"), line("c")].concat());
    assert_eq!(fixture.read().await.0.len(), 3);
    fs::write(fixture.path(SECOND), line("d")).unwrap();
    assert_eq!(fixture.read().await.0, ["d"]);
    fs::remove_file(fixture.path(SECOND)).unwrap();
    fixture.append(FIRST, &line("e"));
    assert_eq!(fixture.read().await.0, ["e"]);
    assert_eq!(fixture.position().segment, 1);
}

#[tokio::test]
async fn what_no_listener_writes_is_counted_and_passed_over() {
    let fixture = Fixture::new();
    let elsewhere = tempfile::tempdir().unwrap();
    fs::write(elsewhere.path().join("other"), line("stolen")).unwrap();
    symlink(elsewhere.path().join("other"), fixture.path("0000000000000000")).unwrap();
    let made = Command::new("mkfifo").arg(fixture.path(FIRST)).status().unwrap();
    assert!(made.success());
    fs::create_dir(fixture.path(SECOND)).unwrap();
    fs::hard_link(elsewhere.path().join("other"), fixture.path(THIRD)).unwrap();
    fixture.append("0000000000000004", b"rubbish\n{}\n\xff\n");
    // A line that is longer than what is read at a time, in a file that is longer than any listener's.
    let long =
        OpenOptions::new().write(true).create_new(true).open(fixture.path("0000000000000005")).unwrap();
    long.set_len(1 << 40).unwrap();
    fixture.append("0000000000000006", &line("honest"));
    fixture.append("notes", b"whatever");
    let (claims, dropped) = fixture.read().await;
    assert_eq!(claims, ["honest"]);
    assert_eq!(dropped, 4 + 3 + 9, "four that are no files, three lines, and the long one in parts");
    assert_eq!(fs::read(elsewhere.path().join("other")).unwrap(), line("stolen"));
    let left: Vec<_> = fs::read_dir(fixture.directory.path()).unwrap().collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[tokio::test]
async fn dropped_events_are_counted_once() {
    let fixture = Fixture::new();
    fixture.append("dropped", b"...");
    assert_eq!(fixture.read().await, (vec![], 3));
    fixture.append("dropped", b".");
    fixture.append(FIRST, &line("a"));
    assert_eq!(fixture.read().await, (vec!["a".to_owned()], 1));
    fs::write(fixture.path("dropped"), "..").unwrap();
    assert_eq!(fixture.read().await, (vec![], 2), "it was begun anew");
    OpenOptions::new().write(true).open(fixture.path("dropped")).unwrap().set_len(1 << 40).unwrap();
    assert_eq!(fixture.read().await, (vec![], (1 << 20) - 2));
    assert_eq!(fixture.read().await, (vec![], 0));
    assert!(!fixture.path("dropped").exists(), "it begins anew before it is full");
    fixture.append("dropped", b".");
    assert_eq!(fixture.read().await, (vec![], 1));
}

#[tokio::test]
async fn a_spool_with_too_many_files_is_emptied() {
    let fixture = Fixture::new();
    for number in 0..1030 {
        fixture.append(&format!("{number:016}"), b"");
    }
    fixture.kept.state.lock().unwrap().allowance.left = 0;
    assert_eq!(fixture.read().await, (vec![], 0));
    fixture.kept.state.lock().unwrap().allowance.left = 100;
    assert_eq!(fixture.read().await, (vec![], 1), "it is told of once that is allowed");
    fixture.append("1800000000000000", &line("a"));
    assert_eq!(fixture.read().await, (vec!["a".to_owned()], 0));
}

#[tokio::test]
async fn an_environment_that_says_too_much_is_read_later() {
    let fixture = Fixture::new();
    fixture.kept.state.lock().unwrap().allowance.left = 4;
    let all: Vec<u8> = (0..10).flat_map(|number| line(&number.to_string())).collect();
    fixture.append(FIRST, &all);
    assert_eq!(fixture.read().await.0, ["0", "1", "2"], "one is left to tell what was dropped");
    fixture.append("dropped", b"..");
    assert_eq!(fixture.read().await, (vec![], 2));
    fixture.append("dropped", b"..");
    assert_eq!(fixture.read().await, (vec![], 0));
    fixture.kept.state.lock().unwrap().allowance.left = 100;
    let (claims, dropped) = fixture.read().await;
    assert_eq!((claims.join(""), dropped), ("3456789".to_owned(), 2));
}

/// As Airflow's own, which never adopts tasks.
const LOCAL_EXECUTOR: &str = "
class LocalExecutor:
    def try_adopt_task_instances(self, tis):
        return tis
";

/// As Airflow's own, which adopts what was sent to a worker.
const CELERY_EXECUTOR: &str = "
class CeleryExecutor:
    def try_adopt_task_instances(self, tis):
        return [task for task in tis if task.external_executor_id is None]
";

/// Runs the listener in a process with stand-ins for Airflow and its plugin framework.
fn listen(spool: &Path, script: &str) -> String {
    let modules = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = modules.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("podium_airflow/__init__.py", support::text("podium_airflow/__init__.py").unwrap());
    write("podium_airflow/listener.py", support::text("podium_airflow/listener.py").unwrap());
    write("podium_airflow/signals.py", support::text("podium_airflow/signals.py").unwrap());
    write("podium_airflow/executors.py", support::text("podium_airflow/executors.py").unwrap());
    write("podium_airflow/celery_executor.py", support::text("podium_airflow/celery_executor.py").unwrap());
    write("podium_airflow/interruptions.py", support::text("podium_airflow/interruptions.py").unwrap());
    write("airflow/providers/celery/executors/celery_executor.py", CELERY_EXECUTOR);
    write("airflow/executors/__init__.py", "");
    write("airflow/executors/local_executor.py", LOCAL_EXECUTOR);
    write("pluggy.py", include_str!("../tests/fake_pluggy.py"));
    write("airflow/__init__.py", "");
    write("airflow/listeners/__init__.py", "");
    write("airflow/listeners/listener.py", include_str!("../tests/fake_listeners.py"));
    let python = Command::new("python3")
        .args(["-B", "-c", script])
        .env("PYTHONPATH", modules.path())
        .env("PODIUM_SPOOL", spool)
        .output()
        .expect("these tests need python3");
    assert!(python.status.success(), "{}", String::from_utf8_lossy(&python.stderr));
    String::from_utf8(python.stdout).unwrap()
}

const TELL: &str = "
from podium_airflow import listener
listener.install()
from airflow.listeners.listener import get_listener_manager
import datetime, types
now = datetime.datetime(2027, 1, 15, 8, tzinfo=datetime.timezone.utc)
run = types.SimpleNamespace(dag_id='daily', run_id='one', run_type='manual', start_date=now, end_date=None)
task = types.SimpleNamespace(dag_id='daily', run_id='two', task_id='load', map_index=-1, try_number=2, max_tries=1)
manager = get_listener_manager()
";

#[tokio::test]
async fn the_listener_writes_what_is_read() {
    let fixture = Fixture::new();
    let said = listen(
        fixture.directory.path(),
        &format!(
            "{TELL}
assert get_listener_manager() is manager and len(manager.pm.plugins) == 1
manager.hook('on_dag_run_running', dag_run=run, msg='')
manager.hook('on_task_instance_failed', previous_state=None, task_instance=task, error=ValueError())
run.dag_id = 'x' * 5000
manager.hook('on_dag_run_failed', dag_run=run, msg='')
manager.hook('on_dag_run_failed', dag_run=None, msg='')
run.dag_id = '\\udc80'
manager.hook('on_dag_run_success', dag_run=run, msg='')
print(manager.has_listeners)
manager.pm.register(object())
print(manager.has_listeners)"
        ),
    );
    assert_eq!(said, "False\nTrue\n", "it does not count as a listener of the environment");
    assert_eq!(fixture.read().await, (vec!["one".to_owned(), "two".to_owned()], 3));
}

#[tokio::test]
async fn tasks_that_ended_with_their_scheduler_lose_no_attempt_and_those_that_had_begun_are_told_of() {
    let fixture = Fixture::new();
    let said = listen(
        fixture.directory.path(),
        "
import types
from podium_airflow.executors import LocalExecutor
def task(run, state):
    return types.SimpleNamespace(
        dag_id='daily', run_id=run, task_id='load', map_index=-1, try_number=1, max_tries=0, state=state
    )
tasks = [task('had_begun', 'running'), task('had_not', 'queued')]
lost = LocalExecutor().try_adopt_task_instances(tasks)
print(lost == tasks, [task.max_tries for task in tasks])",
    );
    assert_eq!(said, "True [1, 1]\n");
    let mut segments = fs::read_dir(fixture.directory.path()).unwrap();
    let text = fs::read_to_string(segments.next().unwrap().unwrap().path()).unwrap();
    assert!(text.contains("\"event\":\"task.interrupted\""), "{text}");
    assert_eq!(fixture.read().await, (vec!["had_begun".to_owned()], 0));
}

/// Tasks of workers: those of an hour and of a minute ago, by run.
const TASKS_OF_WORKERS: &str = "
import datetime, json, pathlib, os, time, types
from podium_airflow.celery_executor import CeleryExecutor
def task(run, state, seconds, queue='default', began=None):
    ago = lambda seconds: datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=seconds)
    sent = None if 'unsent' in run else run
    return types.SimpleNamespace(
        dag_id='daily', run_id=run, task_id='load', map_index=-1, try_number=1, max_tries=0, state=state, queue=queue,
        start_date=ago(began or seconds), queued_dttm=ago(seconds), updated_at=ago(seconds), external_executor_id=sent,
    )
def lost(workers, tasks):
    told = pathlib.Path(os.environ['PODIUM_SPOOL']) / 'workers'
    os.environ['PODIUM_DRAIN'] = str(told)
    from podium_airflow import signals
    signals._WORKERS = told
    told.write_text(workers if isinstance(workers, str) else json.dumps(workers))
    found = CeleryExecutor().try_adopt_task_instances(tasks)
    told.unlink()
    assert [one.max_tries for one in tasks] == [int(one in found) for one in tasks]
    return [one.run_id for one in found]
now = time.clock_gettime(time.CLOCK_BOOTTIME)
fresh, old = now - 600, now - 7200
def all_of_them():
    return [
        task('ran', 'running', 3600), task('waited', 'queued', 3600), task('unsent', 'queued', 3600),
        task('runs', 'running', 60), task('waits', 'queued', 60), task('elsewhere', 'running', 3600, 'other'),
        task('was_deferred', 'running', 60, began=3600),
    ]
";

#[tokio::test]
async fn tasks_that_no_worker_can_have_are_handed_back_and_the_others_adopted() {
    let fixture = Fixture::new();
    let said = |workers: &str| {
        let script = format!("{TASKS_OF_WORKERS}print(*lost({workers}, all_of_them()))");
        listen(fixture.directory.path(), &script)
    };
    let after_a_reboot = said("dict(workers=dict(default=fresh), broker=fresh)");
    assert_eq!(after_a_reboot, "ran waited unsent\n");
    assert_eq!(fixture.read().await, (vec!["ran".to_owned()], 0));
    let with_the_operators_broker = said("dict(workers=dict(default=fresh), broker=None)");
    assert_eq!(with_the_operators_broker, "ran unsent\n", "it may still have the message");
    let workers_went_on = said("dict(workers=dict(default=old), broker=fresh)");
    assert_eq!(workers_went_on, "unsent\n", "one of them may have it already");
    assert_eq!(said("dict(workers=dict(default=old), broker=old)"), "unsent\n");
    for nonsense in ["''", "'{'", "'[]'", "dict(workers=dict(default='x'))", "dict(workers=None)"] {
        assert_eq!(said(nonsense), "unsent\n", "{nonsense}");
    }
}

#[tokio::test]
async fn a_listener_whose_spool_is_full_or_gone_drops_and_breaks_nothing() {
    let fixture = Fixture::new();
    let tell = "for _ in range(3): manager.hook('on_dag_run_failed', dag_run=run, msg='')";
    for number in 1..=16 {
        let file = fs::File::create(fixture.path(&format!("{number:016}"))).unwrap();
        file.set_len(256 * 1024).unwrap();
    }
    listen(fixture.directory.path(), &format!("{TELL}{tell}"));
    assert_eq!(fs::read_dir(fixture.directory.path()).unwrap().count(), 17);
    assert_eq!(fs::read(fixture.path("dropped")).unwrap(), b"...");
    listen(Path::new("/nowhere"), &format!("{TELL}{tell}"));
    allow_blocking(|| fs::remove_dir_all(fixture.directory.path())).unwrap();
}
