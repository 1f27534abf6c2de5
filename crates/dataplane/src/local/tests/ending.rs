//! What ends is started again, later each time, and the reason is shown.

use std::fs;

use podium_domain::deployments::plan::{Health, Rollout};
use rustix::process::{Pid, Signal, kill_process};

use super::bed::{Bed, detail, eventually, eventually_some, kill, trouble};
use crate::DataPlane as _;

#[tokio::test]
async fn what_ends_is_started_again_and_its_last_words_are_for_operators() {
    let bed = Bed::new().with_runtime("3.3.2");
    bed.tell("scheduler", "echo no such pool >&2; exit 3");
    let plane = bed.open();
    plane.apply(&bed.environment(1)).await.unwrap();
    let mut longest = 0.0;
    for times in [1, 2, 3] {
        // Whoever looks later sees more of them.
        let seen = bed.until(&plane, |seen| ends(seen).is_some_and(|(ended, _)| ended >= times)).await;
        let why = trouble(&seen, "scheduler").unwrap();
        assert!(why.starts_with("it ended, and its log says why; that happened "), "{why}");
        assert_eq!(detail(&seen, "scheduler").as_deref(), Some("no such pool"));
        let (ended, pause) = ends(&seen).unwrap();
        let expected = (0.01 * f64::from(1 << (ended - 1).min(16))).min(0.1);
        assert!((pause - expected).abs() < 1e-6 && pause >= longest, "{why}");
        longest = pause;
    }
    bed.untell("scheduler");
    eventually(|| bed.starts("scheduler").len() > 3).await;
    bed.bring_up(&plane, &bed.environment(1)).await;
    assert!(bed.starts("triggerer").len() <= 1, "the others are not disturbed");
}

/// How often the scheduler ended, and how long it waits.
fn ends(seen: &podium_domain::deployments::plan::Observed) -> Option<(u32, f64)> {
    let why = trouble(seen, "scheduler")?;
    let (_, rest) = why.split_once("that happened ")?;
    let (times, rest) = rest.split_once(", and it starts again ")?;
    let times = if times == "once" { 1 } else { times.strip_suffix(" times")?.parse().ok()? };
    Some((times, rest.strip_suffix(" s later")?.parse().ok()?))
}

#[tokio::test]
async fn what_cannot_start_says_why() {
    let bed = Bed::new().with_runtime("3.3.2");
    fs::remove_file(bed.airflow("3.3.2").with_file_name("python")).unwrap();
    let plane = bed.open();
    plane.apply(&bed.environment(1)).await.unwrap();
    let seen = bed.until(&plane, |seen| trouble(seen, "triggerer").is_some()).await;
    let why = trouble(&seen, "triggerer").unwrap();
    assert!(!why.contains("bin/python"), "users are not told where things are: {why}");
    let why = detail(&seen, "triggerer").unwrap();
    assert!(why.contains("bin/python") && why.contains("not found"), "{why}");
}

#[tokio::test]
async fn an_end_is_noticed_while_the_web_server_takes_its_time_to_answer() {
    let bed = Bed::new().with_runtime("3.3.2");
    let plane = bed.open();
    bed.bring_up(&plane, &bed.environment(1)).await;
    fs::write(bed.path("told").join("hang"), "").unwrap();
    eventually(|| bed.path("told").join("hanging").exists()).await;
    let scheduler = bed.processes()["scheduler"].clone();
    kill_process(Pid::from_raw(scheduler.pid).unwrap(), Signal::KILL).unwrap();
    let seen = bed.until(&plane, |seen| trouble(seen, "scheduler").is_some()).await;
    let web = seen.components.iter().find(|component| component.name == "apiserver").unwrap();
    assert_eq!(web.health, Health::Up, "nobody has given up on it yet");
    eventually(|| bed.starts("scheduler").len() == 2).await;
    bed.untell("hang");
    let seen = bed.until(&plane, |seen| trouble(seen, "scheduler").is_none()).await;
    assert_eq!(seen.rollout, Rollout::Done);
}

#[tokio::test]
async fn a_web_server_that_ended_has_no_door() {
    let bed = Bed::new().with_runtime("3.3.2");
    let plane = bed.open();
    bed.bring_up(&plane, &bed.environment(1)).await;
    bed.tell("api-server", "echo later; exit 1");
    let web = bed.processes()["apiserver"].clone();
    kill_process(Pid::from_raw(web.pid).unwrap(), Signal::TERM).unwrap();
    bed.until(&plane, |seen| trouble(seen, "apiserver").is_some()).await;
    assert_eq!(plane.door(bed.id).await, Ok(None));
}

#[tokio::test]
async fn what_ends_is_started_again_also_while_something_else_cannot_be_made() {
    let bed = Bed::new().with_runtime("3.3.2");
    let plane = bed.open();
    bed.bring_up(&plane, &bed.environment(1)).await;
    // What is in the way of any other code.
    let in_the_way = bed.place().code().join("dags/current.draft");
    fs::create_dir(&in_the_way).unwrap();
    let mut environment = bed.environment(2);
    environment.release.dag_version = Some("second".into());
    plane.apply(&environment).await.unwrap();
    bed.until(&plane, |seen| trouble(seen, "code").is_some()).await;
    for times in 2..4 {
        // One that has noted its start may not be remembered yet.
        kill(&eventually_some(|| bed.processes().get("scheduler").cloned()).await);
        eventually(|| bed.starts("scheduler").len() == times).await;
    }
    let seen = plane.observe(bed.id).await.unwrap().unwrap();
    assert_eq!((seen.generation, seen.rollout), (2, Rollout::Underway), "it still waits");
    fs::remove_dir(in_the_way).unwrap();
    bed.bring_up(&plane, &environment).await;
}

#[tokio::test]
async fn nothing_starts_that_could_not_be_found_again() {
    let bed = Bed::new().with_runtime("3.3.2");
    let plane = bed.open();
    bed.bring_up(&plane, &bed.environment(1)).await;
    let in_the_way = bed.place().state().with_extension("draft");
    fs::create_dir(&in_the_way).unwrap();
    kill(&bed.processes()["scheduler"]);
    let is_said = |why: String| why.starts_with("it cannot be started: is a directory");
    let seen = bed.until(&plane, |seen| trouble(seen, "scheduler").is_some_and(is_said)).await;
    assert!(detail(&seen, "scheduler").unwrap().starts_with("Is a directory"), "{seen:?}");
    assert_eq!((bed.starts("scheduler").len(), bed.leaders("scheduler")), (1, 0));
    fs::remove_dir(in_the_way).unwrap();
    eventually(|| bed.starts("scheduler").len() == 2).await;
    bed.bring_up(&plane, &bed.environment(1)).await;
    assert_eq!(bed.leaders("scheduler"), 1);
}

#[tokio::test]
async fn who_is_wanted_again_while_it_goes_to_sleep_comes_back_whole() {
    let bed = Bed::new().with_runtime("3.3.2");
    bed.tell("scheduler", "trap 'touch \"$told/asked\"' TERM");
    let plane = bed.open();
    bed.bring_up(&plane, &bed.environment(1)).await;
    let scheduler = bed.processes()["scheduler"].clone();
    let mut asleep = bed.environment(2);
    asleep.is_hibernating = true;
    plane.apply(&asleep).await.unwrap();
    eventually(|| bed.path("told").join("asked").exists()).await;
    let seen = bed.bring_up(&plane, &bed.environment(3)).await;
    assert!(!seen.is_hibernating && !bed.state().is_hibernating);
    assert_eq!(bed.processes()["scheduler"], scheduler, "it did not end, so it is not started again");
    assert_eq!(bed.leaders("scheduler"), 1);
    assert!(plane.door(bed.id).await.unwrap().is_some());
}
