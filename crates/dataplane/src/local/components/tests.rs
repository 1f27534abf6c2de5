//! What the processes of environments are started with, in full: a process whose fingerprint changes is restarted by the
//! next start of the control plane, so that a change of these files restarts every environment at an upgrade.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use podium_airflow::components::Tasks;
use podium_airflow::components::parser_variables;
use podium_airflow::settings::{EnvironmentKeys, ProjectSettings, Variables, bundles_in};
use podium_api::enums::{DeploymentType, Executor};
use podium_api::{DeploymentId, Id, OrganizationId, WorkspaceId};
use podium_domain::deployments::Spec;

use super::super::options::Broker;
use super::super::tasks::choose;
use super::super::tasks::tests::{own_broker, queue};
use super::*;
use crate::{Environment, Objects, Setting};

/// A database on a socket of this machine.
const SOCKET: &str = "postgresql+psycopg2://x:pw@/x?host=/run/pg";

fn secret(text: &str) -> Secret {
    Secret::new(text.into())
}

fn setting(key: &str, value: &str, is_secret: bool) -> Setting {
    Setting { key: key.into(), value: secret(value), is_secret }
}

/// An environment with nothing of its own.
fn plain() -> Environment {
    let id = Id::from_parts(1, 2, 3);
    let spec = Spec::new(DeploymentType::Standard, "3.3.2");
    Environment {
        id: DeploymentId::from_raw(id),
        organization_id: OrganizationId::from_raw(id),
        workspace_id: WorkspaceId::from_raw(id),
        cluster_id: None,
        name: "Reports".into(),
        namespace: "calm-river-1234".into(),
        generation: 1,
        is_hibernating: false,
        spec,
        variables: Vec::new(),
        objects: Objects::default(),
    }
}

/// An environment with workers and everything that can be set.
fn full() -> Environment {
    let mut wanted = plain();
    wanted.spec.executor = Executor::Celery;
    wanted.spec.worker_queues = ["default", "heavy"].map(|name| queue(name, 1)).into();
    wanted.variables = vec![
        setting("REGION", "north", false),
        setting("TOKEN", "hidden", true),
        setting("PYTHONPATH", "/mine:/yours", false),
        setting("AIRFLOW__CORE__PARALLELISM", "9", false),
        setting("AIRFLOW__CORE__LOAD_EXAMPLES", "True", false),
    ];
    wanted.objects.variables = vec![setting("STAGE", "test", false)];
    wanted.objects.connections = vec![setting("warehouse_eu", r#"{"conn_type":"http"}"#, true)];
    wanted.objects.airflow_variables = vec![setting("limit", "5", false)];
    let export = r#"{"endpoint":"https://metrics.example/v1","authType":"AUTH_TOKEN","basicToken":"t/1",
        "labels":{"team":"data"}}"#;
    wanted.objects.metrics_exports = vec![setting("metrics", export, true)];
    wanted
}

/// What decides what the processes of an environment are told.
struct Case {
    name: &'static str,
    version: &'static str,
    environment: Environment,
    broker: Broker,
    database: &'static str,
    project: Option<ProjectSettings>,
}

fn cases() -> Vec<Case> {
    let case = |name, version, environment, broker, database, project| Case {
        name,
        version,
        environment,
        broker,
        database,
        project,
    };
    let own = || Broker::Own("/usr/bin/redis-server".into());
    let given = || Broker::Given(secret("redis://broker/0"));
    let tls = "postgresql+psycopg2://x:pw@db/x?sslmode=verify-full&sslrootcert=/ca.pem";
    let sqlite = "sqlite:////plane/environments/e/database/airflow.db";
    let bare = Some(ProjectSettings::default());
    let project =
        Some(ProjectSettings { layer: Some("/plane/layer/site".into()), plugins: Some("hash".into()) });
    vec![
        case("plain 3", "3.3.2", plain(), Broker::None, SOCKET, None),
        case("plain 2", "2.11.2", plain(), Broker::None, SOCKET, None),
        case("sqlite 3", "3.0.6", plain(), Broker::None, sqlite, bare.clone()),
        case("sqlite 2", "2.9.0", plain(), Broker::None, sqlite, bare),
        case("full 3", "3.3.2", full(), own(), SOCKET, project.clone()),
        case("full 2", "2.11.2", full(), own(), tls, project.clone()),
        case("given 3", "3.1.0", full(), given(), tls, None),
        case("given 2", "2.10.5", full(), given(), SOCKET, project),
    ]
}

/// The programs of a case, and the variables of a process that parses another version.
fn told(case: &Case) -> (Vec<Program>, Variables) {
    let version: podium_domain::options::Version = case.version.parse().unwrap();
    let runtime = Runtime::at(version, "/plane/runtimes/x".into());
    let is_sqlite = case.database.starts_with("sqlite");
    let chosen = choose(&case.environment, version.major(), is_sqlite, &case.broker, &own_broker());
    // Not of this machine.
    let tasks = Tasks { parallelism: chosen.tasks.parallelism.min(2), ..chosen.tasks };
    let place = Place { root: "/plane/environments/e".into() };
    let files = files(&place, &runtime, Path::new("/plane/support"));
    let url = secret(case.database);
    let context = SettingsContext {
        environment: &case.environment,
        version,
        files: &files,
        web_server: web_server(4001),
        public_url: "https://podium.example",
        database: database(&url),
        bundles: bundles_in(&files.dags),
        tasks: &tasks,
        keys: EnvironmentKeys::new(|purpose| secret(&format!("key-{purpose}"))),
        project: case.project.as_ref(),
    };
    let root = Path::new("/plane/environments/e/code/dags/versions/v2");
    let parser = parser_variables(&context, root, &root.join("dags"));
    let broker = chosen.own_broker.map(|program| own_broker().program(case.environment.id, &place, program));
    (programs(&context, &place, broker), parser)
}

/// Variables of one process that another one is not told in the same way.
fn written(text: &mut String, variables: &Variables, known: &Variables) {
    for (name, value) in variables {
        if known.get(name) != Some(value) {
            writeln!(text, "  {name}={}", value.reveal()).unwrap();
        }
    }
    for name in known.keys().filter(|name| !variables.contains_key(*name)) {
        writeln!(text, "  without {name}").unwrap();
    }
}

#[test]
fn processes_are_started_with_exactly_this() {
    let mut text = String::new();
    for case in cases() {
        let (programs, parser) = told(&case);
        let scheduler = programs.iter().find(|program| program.name == "scheduler").unwrap();
        let common = &scheduler.variables;
        writeln!(text, "# {}: the scheduler's variables", case.name).unwrap();
        written(&mut text, common, &BTreeMap::new());
        for program in &programs {
            let Program { name, arguments, variables, directory, log, strategy } = program;
            let fingerprint = program.fingerprint(&secret("key"), &["--bounds".into()]);
            writeln!(text, "## {name} {strategy:?} {fingerprint}").unwrap();
            writeln!(text, "  in {}, log {}", directory.display(), log.display()).unwrap();
            writeln!(text, "  {arguments:?}").unwrap();
            let nothing = BTreeMap::new();
            written(&mut text, variables, if name == "broker" { &nothing } else { common });
        }
        writeln!(text, "## a parser of another version").unwrap();
        written(&mut text, &parser, common);
        writeln!(text).unwrap();
    }
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/local/components/started_with.txt");
    // Written anew where that is meant.
    if std::env::var_os("PODIUM_WRITE_GOLDEN").is_some() {
        std::fs::write(&golden, &text).unwrap();
    }
    let expected = std::fs::read_to_string(&golden).unwrap();
    let differs = text.lines().zip(expected.lines()).find(|(is, was)| is != was);
    assert_eq!(differs, None, "what is told, and what was");
    assert_eq!(text, expected);
}
