use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use podium_api::{Id, Timestamp};

use super::super::isolation::Isolation;
use super::*;
use crate::blocking::here;
use crate::{Answer, Fault};

#[derive(Default)]
struct Taken {
    lines: Mutex<Vec<LogLine>>,
    refuses: Mutex<bool>,
    panics: AtomicBool,
}

impl Logs for Taken {
    fn append(&self, lines: Vec<LogLine>) -> Answer<'_, ()> {
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

struct Bed {
    _directory: tempfile::TempDir,
    place: Place,
    taken: Arc<Taken>,
}

impl Bed {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let place = Place { root: directory.path().join("environment") };
        here(|| place.make(&Isolation::NONE)).unwrap();
        Self { _directory: directory, place, taken: Arc::default() }
    }

    fn tail(&self) -> Tail {
        let logs: Arc<dyn Logs> = Arc::clone(&self.taken) as Arc<dyn Logs>;
        let clock: Clock = Arc::new(|| Timestamp::from_millis(7));
        let id = DeploymentId::from_raw(Id::from_parts(1, 2, 3));
        here(|| Tail::new(id, &self.place, logs, clock)).unwrap()
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
async fn whole_lines_are_taken_once_also_after_a_restart() {
    let bed = Bed::new();
    bed.write("scheduler.log", "one\ntw");
    let (tail, is_all) = bed.tail().step().await;
    assert!(is_all);
    assert_eq!(bed.taken(), [pair("scheduler", "one")]);
    bed.write("scheduler.log", "o\nthree\n");
    let (tail, _) = tail.step().await;
    assert_eq!(bed.taken(), [pair("scheduler", "two"), pair("scheduler", "three")]);
    drop(tail);
    bed.write("scheduler.log", "four\n");
    bed.tail().step().await;
    assert_eq!(bed.taken(), [pair("scheduler", "four")]);
}

#[tokio::test]
async fn logs_of_tasks_are_found_in_new_and_in_old_runs() {
    let bed = Bed::new();
    bed.write(TASK, "{\"event\":\"hello\",\"level\":\"info\",\"logger\":\"task.stdout\"}\n");
    bed.write("scheduler.log", "{\"event\":\"hello\",\"level\":\"info\",\"logger\":\"task.stdout\"}\n");
    let (tail, _) = bed.tail().step().await;
    assert_eq!(
        bed.taken(),
        [pair("worker", "INFO hello dag_id=d run_id=r task_id=t try_number=1")],
        "and not twice"
    );
    bed.write("tasks/dag_id=d/run_id=r2/task_id=t/map_index=0/attempt=1.log", "mapped\n");
    let (tail, _) = tail.step().await;
    assert_eq!(bed.taken(), [pair("worker", "mapped dag_id=d run_id=r2 task_id=t map_index=0 try_number=1")]);
    bed.write("tasks/dag_id=d/run_id=r/task_id=t/attempt=2.log", "again\n");
    tail.step().await;
    assert_eq!(bed.taken(), [pair("worker", "again dag_id=d run_id=r task_id=t try_number=2")]);
}

#[tokio::test]
async fn what_triggers_write_belongs_to_the_attempt_that_waits_for_them() {
    let bed = Bed::new();
    let of_task = |name: &str| TASK.replace("attempt=1.log", name);
    bed.write(&of_task("attempt=1.log.trigger.5.log"), "waiting\n");
    bed.write(&of_task("attempt=2.log.trigger"), "waiting still\n");
    bed.write(&of_task("attempt=3.log.bak"), "something else\n");
    bed.tail().step().await;
    let mut taken = bed.taken();
    taken.sort();
    let said = |text: &str| pair("worker", &format!("{text} dag_id=d run_id=r task_id=t try_number=1"));
    let still = pair("worker", "waiting still dag_id=d run_id=r task_id=t try_number=2");
    assert_eq!(taken, [said("waiting"), still]);
}

#[tokio::test]
async fn what_the_store_did_not_take_is_offered_again() {
    let bed = Bed::new();
    bed.write("triggerer.log", "one\n");
    *bed.taken.refuses.lock().unwrap() = true;
    let (tail, _) = bed.tail().step().await;
    *bed.taken.refuses.lock().unwrap() = false;
    tail.step().await;
    assert_eq!(bed.taken(), [pair("triggerer", "one")]);
}

#[tokio::test]
async fn a_panic_does_not_end_it() {
    let bed = Bed::new();
    bed.write("triggerer.log", "one\n");
    bed.taken.panics.store(true, Ordering::SeqCst);
    let logs: Arc<dyn Logs> = Arc::clone(&bed.taken) as Arc<dyn Logs>;
    let clock: Clock = Arc::new(|| Timestamp::from_millis(7));
    let mut following = JoinSet::new();
    following.spawn(Tail::follow(
        DeploymentId::from_raw(Id::from_parts(1, 2, 3)),
        bed.place.clone(),
        logs,
        clock,
    ));
    while bed.taken.lines.lock().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(bed.taken(), [pair("triggerer", "one")]);
}

#[tokio::test]
async fn a_link_leads_nowhere() {
    let bed = Bed::new();
    let secret = bed.place.root.parent().unwrap().join("secret-key");
    fs::write(&secret, "the key of everything\n").unwrap();
    let target = bed.place.logs().join(TASK);
    fs::create_dir_all(target.parent().unwrap()).unwrap();
    symlink(&secret, &target).unwrap();
    fs::hard_link(&secret, target.with_file_name("attempt=2.log")).unwrap();
    let outside = bed.place.root.parent().unwrap().join("outside");
    fs::create_dir_all(outside.join("task_id=t")).unwrap();
    fs::write(outside.join("task_id=t/attempt=1.log"), "not theirs\n").unwrap();
    symlink(&outside, bed.place.task_logs().join("dag_id=d/run_id=r2")).unwrap();
    bed.tail().step().await;
    assert_eq!(bed.taken(), []);
}

#[tokio::test]
async fn much_is_taken_in_parts_and_the_disk_gets_it_back() {
    let bed = Bed::new();
    let line = format!("{}\n", "x".repeat(99));
    bed.write("scheduler.log", &line.repeat(200_000));
    let (mut tail, mut is_all) = (bed.tail(), false);
    while !is_all {
        (tail, is_all) = tail.step().await;
    }
    assert_eq!(bed.taken().len(), 200_000);
    let metadata = fs::metadata(bed.place.component_log("scheduler")).unwrap();
    let on_disk = std::os::unix::fs::MetadataExt::blocks(&metadata) * 512;
    assert!(on_disk < metadata.len() / 2, "{on_disk} of {} bytes are still there", metadata.len());
}

/// What was found: a file of a terabyte with nothing in it kept a processor busy.
#[tokio::test]
async fn what_was_never_written_is_passed_over() {
    let bed = Bed::new();
    bed.write(TASK, "first\n");
    let path = bed.place.logs().join(TASK);
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(1 << 40).unwrap();
    bed.write(TASK, "last\n");
    let (mut tail, mut steps) = (bed.tail(), 0);
    while bed.taken.lines.lock().unwrap().len() < 2 {
        (tail, _) = tail.step().await;
        steps += 1;
        assert!(steps < 10, "it looks at all of it");
    }
    let texts: Vec<String> =
        bed.taken().into_iter().map(|(_, text)| text.chars().take(6).collect()).collect();
    assert_eq!(texts, ["first ", "last d"]);
}

#[test]
fn restarts_wait_longer_each_time_until_one_lasts() {
    let mut restarts = Restarts { wait: PACE };
    let mut after = |ran| restarts.wait_after(Duration::from_secs(ran)).as_secs();
    assert_eq!([0; 8].map(&mut after), [1, 2, 4, 8, 16, 32, 60, 60]);
    assert_eq!([59, 60, 3, 3600, 0].map(&mut after), [60, 1, 2, 1, 2]);
}
