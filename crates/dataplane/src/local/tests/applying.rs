//! Environments reach the desired state, and nothing is restarted without need.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use podium_airflow::settings::EnvironmentKeys;
use podium_domain::deployments::plan::Rollout;

use super::fixture::Fixture;
use super::services::key;
use crate::blocking::allow_blocking;
use crate::local::components;
use crate::local::identity::Identity;
use crate::local::process::pids;
use crate::local::tasks::tests::queue;
use crate::{DataPlane as _, Environment, Line, Secret, Setting};

fn setting(key: &str, value: &str) -> Setting {
    Setting { key: key.into(), value: Secret::new(value.into()), is_secret: false }
}

/// The components that run in other processes than before.
fn restarted(fixture: &Fixture, before: &BTreeMap<String, Identity>) -> BTreeSet<String> {
    let now = fixture.processes();
    now.into_iter()
        .filter(|(name, identity)| before.get(name) != Some(identity))
        .map(|(name, _)| name)
        .collect()
}

#[tokio::test]
async fn an_environment_starts_and_publishes_its_web_server() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let plane = fixture.open();
    assert_eq!(plane.observe(&fixture.at()).await, Ok(None));
    let seen = fixture.bring_up(&plane, &fixture.environment(1)).await;
    let names: Vec<&str> = seen.components.iter().map(|component| component.name.as_str()).collect();
    assert_eq!(names, ["apiserver", "scheduler", "dag-processor", "triggerer"]);
    assert_eq!(seen.running.runtime_version.as_deref(), Some("3.3.2"));
    let note = "Tasks run with Airflow's LocalExecutor on this machine instead of CELERY: it has one queue, which needs no separate workers.";
    assert_eq!(seen.note, Some(note.into()));
    assert!(!seen.is_hibernating);
    let web_server = plane.web_server(&fixture.at()).await.unwrap().unwrap();
    assert_eq!(web_server.upstream.host, "127.0.0.1");
    assert_eq!(web_server.line, Line::Three);
    std::net::TcpStream::connect(web_server.upstream.to_string()).unwrap();
    assert!(fixture.processes().values().all(Identity::is_alive));
    assert!(names.iter().all(|name| components::source(name) == Some(name)));
}

#[tokio::test]
async fn processes_start_with_usual_limits_and_not_those_of_the_control_plane() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let plane = fixture.open();
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    let hard = rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum;
    let open_files = hard.unwrap_or(u64::MAX).min(65536).to_string();
    for program in ["api-server", "scheduler", "dag-processor", "triggerer"] {
        let [start] = &fixture.starts(program)[..] else { panic!("{program} is not started once") };
        assert_eq!(start.umask, "0022", "{program}");
        assert_eq!(start.open_files, open_files, "{program}");
    }
}

#[tokio::test]
async fn no_secret_is_on_the_disk_or_on_a_command_line() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let plane = fixture.open();
    let mut environment = fixture.environment(1);
    let planted = |what: &str| format!("planted-{what}-{}", fixture.id);
    environment.variables = vec![setting("TOKEN", &planted("variable"))];
    environment.objects.variables = vec![setting("OTHER", &planted("object"))];
    environment.objects.connections = vec![setting("warehouse", &planted("connection"))];
    environment.objects.airflow_variables = vec![setting("limit", &planted("airflow-variable"))];
    environment.objects.metrics_exports = vec![setting(
        "metrics",
        &format!(r#"{{"authType":"AUTH_TOKEN","basicToken":"{}"}}"#, planted("metrics")),
    )];
    fixture.bring_up(&plane, &environment).await;
    let keys = EnvironmentKeys::new(|purpose| Secret::new(key(fixture.id, purpose)));
    let mut secrets: Vec<String> = ["variable", "object", "connection", "airflow-variable", "metrics"]
        .iter()
        .map(|what| planted(what))
        .collect();
    secrets.extend([
        format!("planted-key-database-{}", fixture.id),
        format!("planted-key-broker-{}", fixture.id),
    ]);
    secrets.extend([keys.fernet, keys.token_signing, keys.session].iter().map(|key| key.reveal().to_owned()));
    let holds = |bytes: &[u8]| {
        secrets
            .iter()
            .find(|secret| bytes.windows(secret.len()).any(|window| window == secret.as_bytes()))
            .cloned()
    };
    let told = fs::read(format!("/proc/{}/environ", fixture.processes()["scheduler"].pid)).unwrap();
    assert!(holds(&told).is_some(), "it must have been told");
    let mut files = 0;
    visit(&fixture.plane(), &mut |path| {
        files += 1;
        assert_eq!(holds(&fs::read(path).unwrap()), None, "{}", path.display());
    });
    assert!(files > 10, "{files}");
    for pid in allow_blocking(pids) {
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
async fn applying_again_or_deploying_code_restarts_nothing() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let plane = fixture.open();
    let release = |generation, version: &str| {
        let mut environment = fixture.environment(generation);
        environment.spec.release.dag_version = Some(version.into());
        environment
    };
    fixture.bring_up(&plane, &release(1, "v1")).await;
    let before = fixture.processes();
    let current = fixture.place().code().join("dags/current");
    assert_eq!(fs::read_to_string(current.join("dag.py")).unwrap(), "v1");
    fixture.bring_up(&plane, &release(1, "v1")).await;
    let seen = fixture.bring_up(&plane, &release(2, "v2")).await;
    assert_eq!(seen.running.dag_version.as_deref(), Some("v2"));
    assert_eq!(fs::read_to_string(current.join("dag.py")).unwrap(), "v2");
    assert_eq!(fixture.processes(), before);
    assert_eq!(fixture.starts("scheduler").len(), 1);
}

#[tokio::test]
async fn a_change_restarts_only_the_components_that_it_affects() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let plane = fixture.open();
    let mut environment = fixture.environment(1);
    let change = |environment: &Environment, change: &dyn Fn(&mut Environment)| {
        let mut changed = environment.clone();
        changed.generation += 1;
        change(&mut changed);
        changed
    };
    environment.spec.worker_queues = vec![queue("default", 1)];
    fixture.bring_up(&plane, &environment).await;
    let before = fixture.processes();
    let environment = change(&environment, &|wanted| {
        wanted.objects.connections = vec![setting("warehouse", r#"{"conn_type":"http"}"#)];
    });
    fixture.bring_up(&plane, &environment).await;
    let readers = ["dag-processor", "scheduler", "triggerer"].map(str::to_owned);
    assert_eq!(
        restarted(&fixture, &before),
        BTreeSet::from(readers),
        "the web server shows no connections of code"
    );
    assert!(!before["scheduler"].is_alive());
    let before = fixture.processes();
    let environment = change(&environment, &|wanted| wanted.spec.worker_queues[0].concurrency = 2);
    fixture.bring_up(&plane, &environment).await;
    assert_eq!(restarted(&fixture, &before), BTreeSet::from(["scheduler".to_owned()]));
    let limits: Vec<String> =
        fixture.starts("scheduler").into_iter().map(|start| start.parallelism).collect();
    assert_eq!(limits, ["1", "1", "2"]);
}

impl crate::conformance::Reopened for Fixture {
    type Plane = crate::local::Local;

    fn open(&self) -> Self::Plane {
        Self::open(self)
    }

    fn environment(&self, generation: i64) -> Environment {
        Self::environment(self, generation)
    }
}

#[tokio::test]
async fn it_passes_the_conformance_test() {
    crate::conformance::conforms(&Fixture::new().with_runtime("3.3.2")).await;
}

#[tokio::test]
async fn an_overtaken_caller_changes_nothing() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let plane = fixture.open();
    fixture.bring_up(&plane, &fixture.environment(5)).await;
    let before = fixture.processes();
    let mut older = fixture.environment(4);
    older.is_hibernating = true;
    plane.apply(&older).await.unwrap();
    let seen = plane.observe(&fixture.at()).await.unwrap().unwrap();
    assert_eq!((seen.generation, seen.is_hibernating, seen.rollout), (5, false, Rollout::Done));
    drop(plane);
    let plane = fixture.open();
    plane.apply(&older).await.unwrap();
    let seen = plane.observe(&fixture.at()).await.unwrap().unwrap();
    assert_eq!((seen.generation, seen.is_hibernating), (-1, false), "not after a restart either");
    fixture.bring_up(&plane, &fixture.environment(5)).await;
    assert_eq!(fixture.processes(), before);
}

#[tokio::test]
async fn an_environment_of_the_2_x_line_reports_its_limitations() {
    let fixture = Fixture::new().with_runtime("2.11.2");
    let plane = fixture.open();
    let mut environment = fixture.environment(1);
    environment.spec.runtime_version = "2.11.2".into();
    let seen = fixture.bring_up(&plane, &environment).await;
    let names: Vec<&str> = seen.components.iter().map(|component| component.name.as_str()).collect();
    assert_eq!(names, ["webserver", "scheduler", "triggerer"]);
    assert!(seen.note.unwrap().as_str().contains("one at a time"));
    assert_eq!(plane.web_server(&fixture.at()).await.unwrap().unwrap().line, Line::Two);
}
