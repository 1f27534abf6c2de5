use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use podium_api::{Id, Timestamp};

use super::super::isolation::Isolation;
use super::*;
use crate::blocking::allow_blocking;
use crate::{Fault, PlaneFuture};

#[derive(Default)]
struct Taken {
    lines: Mutex<Vec<LogLine>>,
    refuses: Mutex<bool>,
    panics: AtomicBool,
}

impl Logs for Taken {
    fn append(&self, lines: Vec<LogLine>) -> PlaneFuture<'_, ()> {
        Box::pin(async move {
            if *self.refuses.lock().unwrap() {
                return Err(Fault::Failed("the disk is full".into()));
            }
            assert!(!self.panics.swap(false, Ordering::SeqCst), "the store has a fault");
            self.lines.lock().unwrap().extend(lines);
            Ok(())
        })
    }
}

struct Fixture {
    _directory: tempfile::TempDir,
    place: Place,
    taken: Arc<Taken>,
}

impl Fixture {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let place = Place { root: directory.path().join("environment") };
        allow_blocking(|| place.make(&Isolation::NONE)).unwrap();
        Self { _directory: directory, place, taken: Arc::default() }
    }

    fn tail(&self) -> Tail {
        let logs: Arc<dyn Logs> = Arc::clone(&self.taken) as Arc<dyn Logs>;
        let clock: Clock = Arc::new(|| Timestamp::from_millis(7));
        let id = DeploymentId::from_raw(Id::from_parts(1, 2, 3));
        allow_blocking(|| Tail::new(id, &self.place, logs, clock)).unwrap()
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.place.logs().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        OpenOptions::new().append(true).create(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
    }

    /// What was taken since the last time.
    fn taken(&self) -> Vec<(String, String)> {
        std::mem::take(&mut *self.taken.lines.lock().unwrap())
            .into_iter()
            .map(|line| (line.source, line.text))
            .collect()
    }
}

fn pair(source: &str, text: &str) -> (String, String) {
    (source.to_owned(), text.to_owned())
}

const TASK: &str = "tasks/dag_id=d/run_id=r/task_id=t/attempt=1.log";

#[tokio::test]
async fn complete_lines_are_read_once_even_after_a_restart() {
    let fixture = Fixture::new();
    fixture.write("scheduler.log", "one\ntw");
    let (tail, is_all) = fixture.tail().step().await;
    assert!(is_all);
    assert_eq!(fixture.taken(), [pair("scheduler", "one")]);
    fixture.write("scheduler.log", "o\nthree\n");
    let (tail, _) = tail.step().await;
    assert_eq!(fixture.taken(), [pair("scheduler", "two"), pair("scheduler", "three")]);
    drop(tail);
    fixture.write("scheduler.log", "four\n");
    fixture.tail().step().await;
    assert_eq!(fixture.taken(), [pair("scheduler", "four")]);
}

#[tokio::test]
async fn logs_of_tasks_are_found_in_new_and_in_old_runs() {
    let fixture = Fixture::new();
    fixture.write(TASK, "{\"event\":\"hello\",\"level\":\"info\",\"logger\":\"task.stdout\"}\n");
    fixture.write("scheduler.log", "{\"event\":\"hello\",\"level\":\"info\",\"logger\":\"task.stdout\"}\n");
    let (tail, _) = fixture.tail().step().await;
    assert_eq!(
        fixture.taken(),
        [pair("worker", "INFO hello logger=task.stdout dag_id=d run_id=r task_id=t try_number=1")],
        "and not twice"
    );
    fixture.write("tasks/dag_id=d/run_id=r2/task_id=t/map_index=0/attempt=1.log", "mapped\n");
    let (tail, _) = tail.step().await;
    assert_eq!(
        fixture.taken(),
        [pair("worker", "mapped dag_id=d run_id=r2 task_id=t map_index=0 try_number=1")]
    );
    fixture.write("tasks/dag_id=d/run_id=r/task_id=t/attempt=2.log", "again\n");
    tail.step().await;
    assert_eq!(fixture.taken(), [pair("worker", "again dag_id=d run_id=r task_id=t try_number=2")]);
}

#[tokio::test]
async fn trigger_logs_belong_to_the_attempt_that_waits_for_them() {
    let fixture = Fixture::new();
    let of_task = |name: &str| TASK.replace("attempt=1.log", name);
    fixture.write(&of_task("attempt=1.log.trigger.5.log"), "waiting\n");
    fixture.write(&of_task("attempt=2.log.trigger"), "waiting still\n");
    fixture.write(&of_task("attempt=3.log.bak"), "something else\n");
    fixture.tail().step().await;
    let mut taken = fixture.taken();
    taken.sort();
    let said = |text: &str| pair("worker", &format!("{text} dag_id=d run_id=r task_id=t try_number=1"));
    let still = pair("worker", "waiting still dag_id=d run_id=r task_id=t try_number=2");
    assert_eq!(taken, [said("waiting"), still]);
}

#[tokio::test]
async fn lines_that_the_store_rejected_are_sent_again() {
    let fixture = Fixture::new();
    fixture.write("triggerer.log", "one\n");
    *fixture.taken.refuses.lock().unwrap() = true;
    let (tail, _) = fixture.tail().step().await;
    *fixture.taken.refuses.lock().unwrap() = false;
    tail.step().await;
    assert_eq!(fixture.taken(), [pair("triggerer", "one")]);
}

#[tokio::test]
async fn a_panic_does_not_end_following() {
    let fixture = Fixture::new();
    fixture.write("triggerer.log", "one\n");
    fixture.taken.panics.store(true, Ordering::SeqCst);
    let logs: Arc<dyn Logs> = Arc::clone(&fixture.taken) as Arc<dyn Logs>;
    let clock: Clock = Arc::new(|| Timestamp::from_millis(7));
    let mut following = JoinSet::new();
    following.spawn(Tail::follow(
        DeploymentId::from_raw(Id::from_parts(1, 2, 3)),
        fixture.place.clone(),
        logs,
        clock,
    ));
    while fixture.taken.lines.lock().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(fixture.taken(), [pair("triggerer", "one")]);
}

#[tokio::test]
async fn a_link_is_not_followed_out_of_the_logs() {
    let fixture = Fixture::new();
    let secret = fixture.place.root.parent().unwrap().join("secret-key");
    fs::write(&secret, "the key of everything\n").unwrap();
    let target = fixture.place.logs().join(TASK);
    fs::create_dir_all(target.parent().unwrap()).unwrap();
    symlink(&secret, &target).unwrap();
    fs::hard_link(&secret, target.with_file_name("attempt=2.log")).unwrap();
    let outside = fixture.place.root.parent().unwrap().join("outside");
    fs::create_dir_all(outside.join("task_id=t")).unwrap();
    fs::write(outside.join("task_id=t/attempt=1.log"), "not theirs\n").unwrap();
    symlink(&outside, fixture.place.task_logs().join("dag_id=d/run_id=r2")).unwrap();
    fixture.tail().step().await;
    assert_eq!(fixture.taken(), []);
}

#[tokio::test]
async fn much_output_is_read_in_parts_and_released_from_disk() {
    let fixture = Fixture::new();
    let line = format!("{}\n", "x".repeat(99));
    fixture.write("scheduler.log", &line.repeat(200_000));
    let (mut tail, mut is_all) = (fixture.tail(), false);
    while !is_all {
        (tail, is_all) = tail.step().await;
    }
    assert_eq!(fixture.taken().len(), 200_000);
    let metadata = fs::metadata(fixture.place.component_log("scheduler")).unwrap();
    let on_disk = std::os::unix::fs::MetadataExt::blocks(&metadata) * 512;
    assert!(on_disk < metadata.len() / 2, "{on_disk} of {} bytes are still there", metadata.len());
}

/// What was found: a file of a terabyte with nothing in it kept a processor busy.
#[tokio::test]
async fn holes_in_files_are_skipped() {
    let fixture = Fixture::new();
    fixture.write(TASK, "first\n");
    let path = fixture.place.logs().join(TASK);
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(1 << 40).unwrap();
    fixture.write(TASK, "last\n");
    let (mut tail, mut steps) = (fixture.tail(), 0);
    while fixture.taken.lines.lock().unwrap().len() < 2 {
        (tail, _) = tail.step().await;
        steps += 1;
        assert!(steps < 10, "it looks at all of it");
    }
    let texts: Vec<String> =
        fixture.taken().into_iter().map(|(_, text)| text.chars().take(6).collect()).collect();
    assert_eq!(texts, ["first ", "last d"]);
}

#[test]
fn restarts_wait_longer_each_time_until_one_lasts() {
    let mut restarts = Restarts { wait: PACE };
    let mut after = |ran| restarts.wait_after(Duration::from_secs(ran)).as_secs();
    assert_eq!([0; 8].map(&mut after), [1, 2, 4, 8, 16, 32, 60, 60]);
    assert_eq!([59, 60, 3, 3600, 0].map(&mut after), [60, 1, 2, 1, 2]);
}
