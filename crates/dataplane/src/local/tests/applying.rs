//! What is wanted becomes so, and nothing is disturbed that need not be.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use podium_domain::deployments::plan::Rollout;

use super::bed::Bed;
use super::services::key;
use crate::blocking::here;
use crate::local::components;
use crate::local::identity::Identity;
use crate::local::process::numbers;
use crate::local::settings::EnvironmentKeys;
use crate::local::tasks::tests::queue;
use crate::{DataPlane as _, Environment, Hidden, Line, Setting};

fn setting(key: &str, value: &str) -> Setting {
    Setting { key: key.into(), value: Hidden::new(value.into()), is_secret: false }
}

/// The components that run in other processes than before.
fn restarted(bed: &Bed, before: &BTreeMap<String, Identity>) -> BTreeSet<String> {
    let now = bed.processes();
    now.into_iter()
        .filter(|(name, identity)| before.get(name) != Some(identity))
        .map(|(name, _)| name)
        .collect()
}

#[tokio::test]
async fn an_environment_comes_up_and_shows_the_way_to_its_web_server() {
    let bed = Bed::new().with_runtime("3.3.2");
    let plane = bed.open();
    assert_eq!(plane.observe(bed.id).await, Ok(None));
    let seen = bed.bring_up(&plane, &bed.environment(1)).await;
    let names: Vec<&str> = seen.components.iter().map(|component| component.name.as_str()).collect();
    assert_eq!(names, ["apiserver", "scheduler", "dag-processor", "triggerer"]);
    assert_eq!(seen.running.runtime_version.as_deref(), Some("3.3.2"));
    let note = "Tasks run with Airflow's LocalExecutor on this machine instead of CELERY: it has one queue, which needs \
                no workers of its own.";
    assert_eq!(seen.note, Some(note.into()));
    assert!(!seen.is_hibernating);
    let door = plane.door(bed.id).await.unwrap().unwrap();
    assert!(door.address.ip().is_loopback());
    assert_eq!(door.line, Line::Three);
    std::net::TcpStream::connect(door.address).unwrap();
    assert!(bed.processes().values().all(Identity::is_alive));
    assert!(names.iter().all(|name| components::source(name) == Some(name)));
}

#[tokio::test]
async fn processes_start_with_what_is_usual_and_not_with_what_the_control_plane_keeps_to() {
    let bed = Bed::new().with_runtime("3.3.2");
    let plane = bed.open();
    bed.bring_up(&plane, &bed.environment(1)).await;
    let hard = rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum;
    let open_files = hard.unwrap_or(u64::MAX).min(65536).to_string();
    for program in ["api-server", "scheduler", "dag-processor", "triggerer"] {
        let [start] = &bed.starts(program)[..] else { panic!("{program} is not started once") };
        assert_eq!(start.umask, "0022", "{program}");
        assert_eq!(start.open_files, open_files, "{program}");
    }
}

#[tokio::test]
async fn no_secret_is_on_the_disk_or_on_a_command_line() {
    let bed = Bed::new().with_runtime("3.3.2");
    let plane = bed.open();
    let mut environment = bed.environment(1);
    let planted = |what: &str| format!("planted-{what}-{}", bed.id);
    environment.variables = vec![setting("TOKEN", &planted("variable"))];
    environment.objects.variables = vec![setting("OTHER", &planted("object"))];
    environment.objects.connections = vec![setting("warehouse", &planted("connection"))];
    environment.objects.airflow_variables = vec![setting("limit", &planted("airflow-variable"))];
    environment.objects.metrics_exports = vec![setting(
        "metrics",
        &format!(r#"{{"authType":"AUTH_TOKEN","basicToken":"{}"}}"#, planted("metrics")),
    )];
    bed.bring_up(&plane, &environment).await;
    let keys = EnvironmentKeys::new(|purpose| Hidden::new(key(bed.id, purpose)));
    let mut secrets: Vec<String> = ["variable", "object", "connection", "airflow-variable", "metrics"]
        .iter()
        .map(|what| planted(what))
        .collect();
    secrets.extend([format!("planted-key-database-{}", bed.id), format!("planted-key-broker-{}", bed.id)]);
    secrets.extend([keys.fernet, keys.door, keys.session].iter().map(|key| key.reveal().to_owned()));
    let holds = |bytes: &[u8]| {
        secrets
            .iter()
            .find(|secret| bytes.windows(secret.len()).any(|window| window == secret.as_bytes()))
            .cloned()
    };
    let told = fs::read(format!("/proc/{}/environ", bed.processes()["scheduler"].pid)).unwrap();
    assert!(holds(&told).is_some(), "it must have been told");
    let mut files = 0;
    visit(&bed.plane(), &mut |path| {
        files += 1;
        assert_eq!(holds(&fs::read(path).unwrap()), None, "{}", path.display());
    });
    assert!(files > 10, "{files}");
    for pid in here(numbers) {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        assert_eq!(holds(&line), None, "{}", String::from_utf8_lossy(&line));
    }
}

fn visit(directory: &Path, see: &mut impl FnMut(&Path)) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let kind = fs::symlink_metadata(&path).unwrap().file_type();
        if kind.is_dir() {
            visit(&path, see);
        } else if kind.is_file() {
            see(&path);
        }
    }
}

#[tokio::test]
async fn what_is_applied_again_disturbs_nothing_and_neither_does_new_code() {
    let bed = Bed::new().with_runtime("3.3.2");
    let plane = bed.open();
    let release = |generation, version: &str| {
        let mut environment = bed.environment(generation);
        environment.release.dag_version = Some(version.into());
        environment
    };
    bed.bring_up(&plane, &release(1, "v1")).await;
    let before = bed.processes();
    let current = bed.place().code().join("dags/current");
    assert_eq!(fs::read_to_string(current.join("dag.py")).unwrap(), "v1");
    bed.bring_up(&plane, &release(1, "v1")).await;
    let seen = bed.bring_up(&plane, &release(2, "v2")).await;
    assert_eq!(seen.running.dag_version.as_deref(), Some("v2"));
    assert_eq!(fs::read_to_string(current.join("dag.py")).unwrap(), "v2");
    assert_eq!(bed.processes(), before);
    assert_eq!(bed.starts("scheduler").len(), 1);
}

#[tokio::test]
async fn a_change_restarts_those_who_must_hear_of_it() {
    let bed = Bed::new().with_runtime("3.3.2");
    let plane = bed.open();
    let mut environment = bed.environment(1);
    let change = |environment: &Environment, change: &dyn Fn(&mut Environment)| {
        let mut changed = environment.clone();
        changed.generation += 1;
        change(&mut changed);
        changed
    };
    environment.worker_queues = vec![queue("default", 1)];
    bed.bring_up(&plane, &environment).await;
    let before = bed.processes();
    let environment = change(&environment, &|wanted| {
        wanted.objects.connections = vec![setting("warehouse", r#"{"conn_type":"http"}"#)];
    });
    bed.bring_up(&plane, &environment).await;
    let readers = ["dag-processor", "scheduler", "triggerer"].map(str::to_owned);
    assert_eq!(
        restarted(&bed, &before),
        BTreeSet::from(readers),
        "the web server shows no connections of code"
    );
    assert!(!before["scheduler"].is_alive());
    let before = bed.processes();
    let environment = change(&environment, &|wanted| wanted.worker_queues[0].concurrency = 2);
    bed.bring_up(&plane, &environment).await;
    assert_eq!(restarted(&bed, &before), BTreeSet::from(["scheduler".to_owned()]));
    let limits: Vec<String> = bed.starts("scheduler").into_iter().map(|start| start.parallelism).collect();
    assert_eq!(limits, ["1", "1", "2"]);
}

impl crate::conformance::Reopened for Bed {
    type Plane = crate::local::Local;

    fn open(&self) -> Self::Plane {
        Self::open(self)
    }

    fn environment(&self, generation: i64) -> Environment {
        Self::environment(self, generation)
    }
}

#[tokio::test]
async fn it_does_what_every_plane_must() {
    crate::conformance::conforms(&Bed::new().with_runtime("3.3.2")).await;
}

#[tokio::test]
async fn whoever_was_overtaken_changes_nothing() {
    let bed = Bed::new().with_runtime("3.3.2");
    let plane = bed.open();
    bed.bring_up(&plane, &bed.environment(5)).await;
    let before = bed.processes();
    let mut older = bed.environment(4);
    older.is_hibernating = true;
    plane.apply(&older).await.unwrap();
    let seen = plane.observe(bed.id).await.unwrap().unwrap();
    assert_eq!((seen.generation, seen.is_hibernating, seen.rollout), (5, false, Rollout::Done));
    drop(plane);
    let plane = bed.open();
    plane.apply(&older).await.unwrap();
    let seen = plane.observe(bed.id).await.unwrap().unwrap();
    assert_eq!((seen.generation, seen.is_hibernating), (-1, false), "not after a restart either");
    bed.bring_up(&plane, &bed.environment(5)).await;
    assert_eq!(bed.processes(), before);
}

#[tokio::test]
async fn an_environment_of_the_older_line_says_what_it_cannot_do() {
    let bed = Bed::new().with_runtime("2.11.2");
    let plane = bed.open();
    let mut environment = bed.environment(1);
    environment.runtime_version = "2.11.2".into();
    let seen = bed.bring_up(&plane, &environment).await;
    let names: Vec<&str> = seen.components.iter().map(|component| component.name.as_str()).collect();
    assert_eq!(names, ["webserver", "scheduler", "triggerer"]);
    assert!(seen.note.unwrap().as_str().contains("one after the other"));
    assert_eq!(plane.door(bed.id).await.unwrap().unwrap().line, Line::Two);
}
