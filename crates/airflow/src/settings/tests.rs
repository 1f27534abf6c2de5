mod between_planes;
mod keys;

use podium_api::enums::DeploymentType;
use podium_api::{DeploymentId, Id, OrganizationId, WorkspaceId};
use podium_domain::deployments::Spec;

use super::*;
use crate::Objects;
use crate::components::Celery;
use crate::components::{ComponentProgram, programs};

fn secret(text: &str) -> Secret {
    Secret::new(text.into())
}

fn settings(pairs: &[(&str, &str)]) -> Vec<Setting> {
    let setting =
        |(key, value): &(&str, &str)| Setting { key: (*key).into(), value: secret(value), is_secret: false };
    pairs.iter().map(setting).collect()
}

fn environment() -> Environment {
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

/// The programs of an environment with this runtime.
fn told(environment: &Environment, version: &str) -> Vec<ComponentProgram> {
    told_by(environment, version, None)
}

fn told_by(environment: &Environment, version: &str, celery: Option<Celery>) -> Vec<ComponentProgram> {
    told_of(environment, version, celery, None)
}

fn files() -> Files {
    let own = |name: &str| Path::new("/plane/environments/e").join(name);
    Files {
        programs: "/plane/runtimes/x/bin".into(),
        support: "/plane/support".into(),
        user_home: own("user"),
        home: own("home"),
        temporary: own("tmp"),
        dags: own("code/dags"),
        task_logs: own("logs/tasks"),
        parser_logs: own("logs/dag-processor"),
        drain: own("control/drain"),
        status: own("status"),
        spool: own("spool"),
    }
}

fn told_of(
    environment: &Environment,
    version: &str,
    celery: Option<Celery>,
    project: Option<&ProjectSettings>,
) -> Vec<ComponentProgram> {
    let files = files();
    let address =
        WebServerAddress { host: "127.0.0.1".into(), port: 4001, url: "http://127.0.0.1:4001".into() };
    let url = secret("postgresql+psycopg2://x:pw@/x?host=/run/pg");
    let database = MetadataDatabase { url: &url, kept_connections: 3, more_connections: 97 };
    let tasks = Tasks { parallelism: 2, celery, is_sequential: false };
    let context = SettingsContext {
        environment,
        version: version.parse().unwrap(),
        files: &files,
        web_server: address,
        public_url: "https://podium.example",
        database,
        bundles: bundles_in(&files.dags),
        tasks: &tasks,
        keys: EnvironmentKeys::new(|purpose| secret(&format!("key-{purpose}"))),
        project,
    };
    programs(&context)
}

/// Workers of two queues.
fn workers() -> Option<Celery> {
    let broker = secret("redis://broker/0");
    let workers = ["default", "heavy"].map(|name| (name.to_owned(), 1)).into();
    Some(Celery { results: broker.clone(), broker, is_on_socket: false, workers })
}

fn program<'a>(programs: &'a [ComponentProgram], name: &str) -> &'a Variables {
    &programs.iter().find(|program| program.name == name).unwrap().variables
}

fn names(variables: &Variables) -> Vec<&str> {
    variables.keys().map(String::as_str).collect()
}

fn value<'a>(variables: &'a Variables, name: &str) -> Option<&'a str> {
    variables.get(name).map(Secret::reveal)
}

/// What processes of both lines are told.
const BOTH: &[&str] = &[
    "AIRFLOW_CONFIG",
    "AIRFLOW_HOME",
    "AIRFLOW__CORE__DAGBAG_IMPORT_ERROR_TRACEBACK_DEPTH",
    "AIRFLOW__CORE__DAGS_FOLDER",
    "AIRFLOW__CORE__EXECUTOR",
    "AIRFLOW__CORE__FERNET_KEY",
    "AIRFLOW__CORE__LOAD_EXAMPLES",
    "AIRFLOW__DATABASE__LOAD_DEFAULT_CONNECTIONS",
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN",
    "AIRFLOW__DATABASE__SQL_ALCHEMY_MAX_OVERFLOW",
    "AIRFLOW__DATABASE__SQL_ALCHEMY_POOL_SIZE",
    "AIRFLOW__LOGGING__BASE_LOG_FOLDER",
    "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL",
    "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED",
    "HOME",
    "LANG",
    "LOGNAME",
    "MALLOC_ARENA_MAX",
    "PATH",
    "PODIUM_DRAIN",
    "PODIUM_ENVIRONMENT",
    "PODIUM_SPOOL",
    "PODIUM_STATUS",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONPATH",
    "PYTHONUNBUFFERED",
    "TMPDIR",
    "USER",
];

/// What those of the 3.x line are told beside that.
const THREE: &[&str] = &[
    "AIRFLOW__API_AUTH__JWT_SECRET",
    "AIRFLOW__API__BASE_URL",
    "AIRFLOW__API__HOST",
    "AIRFLOW__API__PORT",
    "AIRFLOW__API__SECRET_KEY",
    "AIRFLOW__API__WORKERS",
    "AIRFLOW__CORE__AUTH_MANAGER",
    "AIRFLOW__CORE__EXECUTION_API_SERVER_URL",
    "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST",
    "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_STORAGE_PATH",
    "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL",
    "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL",
    "AIRFLOW__LOGGING__DAG_PROCESSOR_CHILD_PROCESS_LOG_DIRECTORY",
    "AIRFLOW__LOGGING__JSON_LOGS",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT",
    "AIRFLOW__WORKERS__EXECUTION_API_RETRIES",
    "AIRFLOW__WORKERS__EXECUTION_API_RETRY_WAIT_MAX",
    "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT",
    "AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL",
];

/// What those of the 2.x line are told beside that.
const TWO: &[&str] = &[
    "AIRFLOW__API__AUTH_BACKENDS",
    "AIRFLOW__LOGGING__DAG_PROCESSOR_LOG_TARGET",
    "AIRFLOW__LOGGING__DAG_PROCESSOR_MANAGER_LOG_LOCATION",
    "AIRFLOW__SCHEDULER__CHILD_PROCESS_LOG_DIRECTORY",
    "AIRFLOW__SCHEDULER__DAG_DIR_LIST_INTERVAL",
    "AIRFLOW__SCHEDULER__MIN_FILE_PROCESS_INTERVAL",
    "AIRFLOW__WEBSERVER__BASE_URL",
    "AIRFLOW__WEBSERVER__CONFIG_FILE",
    "AIRFLOW__WEBSERVER__ENABLE_PROXY_FIX",
    "AIRFLOW__WEBSERVER__SECRET_KEY",
    "AIRFLOW__WEBSERVER__WEB_SERVER_HOST",
    "AIRFLOW__WEBSERVER__WEB_SERVER_PORT",
    "AIRFLOW__WEBSERVER__WORKERS",
];

#[test]
fn processes_get_exactly_these_variables() {
    let sorted = |lists: &[&[&'static str]]| {
        let mut all: Vec<&str> = lists.concat();
        all.sort_unstable();
        all
    };
    let three = told(&environment(), "3.3.2");
    for name in ["apiserver", "dag-processor", "triggerer"] {
        assert_eq!(names(program(&three, name)), sorted(&[BOTH, THREE]), "{name}");
    }
    let limits = ["AIRFLOW__CORE__PARALLELISM"];
    assert_eq!(names(program(&three, "scheduler")), sorted(&[BOTH, THREE, &limits]));
    let two = told(&environment(), "2.11.2");
    assert_eq!(names(program(&two, "triggerer")), sorted(&[BOTH, TWO]));
    assert_eq!(names(program(&two, "scheduler")), sorted(&[BOTH, TWO, &limits]));
    let web = sorted(&[BOTH, TWO, &["PODIUM_DOOR_KEY"]]);
    assert_eq!(names(program(&two, "webserver")), web, "it alone must know whom it is sent");
}

#[test]
fn the_web_server_listens_where_it_is_told_and_serves_below_its_public_path() {
    let three = told(&environment(), "3.3.2");
    let web = program(&three, "apiserver");
    assert_eq!(value(web, "AIRFLOW__API__HOST"), Some("127.0.0.1"));
    assert_eq!(value(web, "AIRFLOW__API__PORT"), Some("4001"));
    let (path, public) =
        (Some("/airflow/calm-river-1234"), Some("https://podium.example/airflow/calm-river-1234"));
    assert_eq!(value(web, "AIRFLOW__API__BASE_URL"), path, "another public URL is nothing to it");
    assert_eq!(value(program(&three, "scheduler"), "AIRFLOW__API__BASE_URL"), public, "links of tasks");
    let tasks = Some("http://127.0.0.1:4001/airflow/calm-river-1234/execution/");
    assert_eq!(value(web, "AIRFLOW__CORE__EXECUTION_API_SERVER_URL"), tasks);
    let two = told(&environment(), "2.11.2");
    let web = program(&two, "webserver");
    assert_eq!(value(web, "AIRFLOW__WEBSERVER__WEB_SERVER_HOST"), Some("127.0.0.1"));
    assert_eq!(value(web, "AIRFLOW__WEBSERVER__BASE_URL"), path);
    assert_eq!(value(program(&two, "scheduler"), "AIRFLOW__WEBSERVER__BASE_URL"), public);
}

#[test]
fn processes_that_run_code_get_connections_and_variables_and_all_get_configuration() {
    let mut wanted = environment();
    wanted.variables = settings(&[("REGION", "own"), ("AIRFLOW__CORE__MAX_ACTIVE_TASKS_PER_DAG", "7")]);
    wanted.objects.variables = settings(&[("REGION", "linked"), ("STAGE", "test")]);
    wanted.objects.connections = settings(&[("warehouse_eu", r#"{"conn_type":"http"}"#)]);
    wanted.objects.airflow_variables = settings(&[("limit", "5")]);
    let programs = told(&wanted, "3.3.2");
    for name in ["scheduler", "dag-processor", "triggerer"] {
        let told = program(&programs, name);
        assert_eq!(value(told, "AIRFLOW_CONN_WAREHOUSE_EU"), Some(r#"{"conn_type":"http"}"#), "{name}");
        assert_eq!(value(told, "AIRFLOW_VAR_LIMIT"), Some("5"), "{name}");
        assert_eq!(value(told, "REGION"), Some("own"), "{name}: the deployment's own value counts");
        assert_eq!(value(told, "STAGE"), Some("test"), "{name}");
        assert_eq!(value(told, "AIRFLOW__CORE__MAX_ACTIVE_TASKS_PER_DAG"), Some("7"), "{name}");
    }
    let web = program(&programs, "apiserver");
    for name in ["AIRFLOW_CONN_WAREHOUSE_EU", "AIRFLOW_VAR_LIMIT", "REGION", "STAGE"] {
        assert_eq!(value(web, name), None, "{name}");
    }
    assert_eq!(value(web, "AIRFLOW__CORE__MAX_ACTIVE_TASKS_PER_DAG"), Some("7"));
}

/// What people may set although the platform sets it, too.
const HONOURED: &[&str] = &[
    "AIRFLOW__CORE__DAGBAG_IMPORT_ERROR_TRACEBACK_DEPTH",
    "AIRFLOW__CORE__LOAD_EXAMPLES",
    "AIRFLOW__CORE__PARALLELISM",
    "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL",
    "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL",
    "AIRFLOW__METRICS__OTEL_ON",
    "AIRFLOW__SCHEDULER__DAG_DIR_LIST_INTERVAL",
    "AIRFLOW__SCHEDULER__MIN_FILE_PROCESS_INTERVAL",
    "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT",
    "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED",
    "AIRFLOW__WORKERS__EXECUTION_API_RETRIES",
    "AIRFLOW__WORKERS__EXECUTION_API_RETRY_WAIT_MAX",
    "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT",
    "AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL",
    "LANG",
    "MALLOC_ARENA_MAX",
    "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
    "OTEL_EXPORTER_OTLP_METRICS_HEADERS",
    "OTEL_EXPORTER_OTLP_PROTOCOL",
    "OTEL_RESOURCE_ATTRIBUTES",
    "OTEL_SERVICE_NAME",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONPATH",
    "PYTHONUNBUFFERED",
];

/// Walks everything that any process is told: nothing of it is accepted from people and then replaced.
#[test]
fn settings_that_users_may_change_are_honoured_and_the_rest_is_refused() {
    let mut wanted = environment();
    wanted.objects.metrics_exports = settings(&[("metrics", r#"{"endpoint":"e","authType":"AUTH_TOKEN"}"#)]);
    let mut honoured = BTreeSet::new();
    for version in ["3.3.2", "2.11.2"] {
        let plain = told_by(&wanted, version, workers());
        let names: BTreeSet<&str> = plain.iter().flat_map(|program| names(&program.variables)).collect();
        let theirs: Vec<(&str, &str)> = names.iter().map(|name| (*name, "mine")).collect();
        let chosen = Environment { variables: settings(&theirs), ..wanted.clone() };
        let after = told_by(&chosen, version, workers());
        for ComponentProgram { name: component, variables: after, .. } in &after {
            for (name, ours) in program(&plain, component) {
                let expected = match (variables::refused(name), name.as_str()) {
                    (Some(_), _) => ours.reveal().to_owned(),
                    (None, "PYTHONPATH") if component == "apiserver" => ours.reveal().to_owned(),
                    (None, "PYTHONPATH") => format!("{}:mine", ours.reveal()),
                    // The web server of this line runs no code of DAGs: it hears of configuration only.
                    (None, plain) if component == "apiserver" && !is_configuration(plain) => {
                        ours.reveal().to_owned()
                    }
                    (None, _) => "mine".to_owned(),
                };
                assert_eq!(value(after, name), Some(expected.as_str()), "{name} of {component} in {version}");
            }
        }
        honoured
            .extend(names.into_iter().filter(|name| variables::refused(name).is_none()).map(str::to_owned));
    }
    assert_eq!(honoured.iter().map(String::as_str).collect::<Vec<_>>(), HONOURED);
    let mut wanted = environment();
    wanted.variables = settings(&[("PODIUM_DOOR_KEY", "mine")]);
    let two = told(&wanted, "2.11.2");
    assert_eq!(value(program(&two, "webserver"), "PODIUM_DOOR_KEY"), Some("key-door-1key-door-2"));
}

#[test]
fn users_may_set_the_number_of_parallel_tasks() {
    let mut wanted = environment();
    wanted.variables = settings(&[("AIRFLOW__CORE__PARALLELISM", "9"), ("PYTHONPATH", "/a:/b")]);
    let programs = told(&wanted, "3.3.2");
    assert_eq!(value(program(&programs, "scheduler"), "AIRFLOW__CORE__PARALLELISM"), Some("9"));
    assert_eq!(value(program(&programs, "triggerer"), "AIRFLOW__CORE__PARALLELISM"), None);
    assert_eq!(value(program(&programs, "scheduler"), "PYTHONPATH"), Some("/plane/support:/a:/b"));
}

#[test]
fn airflow_gets_the_list_of_secret_variables() {
    let mut wanted = environment();
    let secret = |mut settings: Vec<Setting>| {
        settings.iter_mut().for_each(|setting| setting.is_secret = true);
        settings
    };
    let names = |wanted: &Environment| {
        let programs = told(wanted, "3.3.2");
        assert_eq!(value(program(&programs, "apiserver"), "PODIUM_SECRET_VARIABLES"), None);
        value(program(&programs, "scheduler"), "PODIUM_SECRET_VARIABLES").map(str::to_owned)
    };
    wanted.variables = settings(&[("PLAIN", "1")]);
    assert_eq!(names(&wanted), None);
    wanted.objects.variables = secret(settings(&[("PLAIN", "2"), ("LINKED", "3")]));
    wanted.objects.airflow_variables = secret(settings(&[("limit", "4")]));
    assert_eq!(
        names(&wanted).as_deref(),
        Some("AIRFLOW_VAR_LIMIT,LINKED"),
        "the deployment's own value counts"
    );
}

#[test]
fn metrics_go_where_they_should_with_headers_as_they_are_read() {
    let mut wanted = environment();
    let export = |text: &str| settings(&[("metrics", text)]);
    assert_eq!(names(&metrics(&wanted)), Vec::<&str>::new());
    wanted.objects.metrics_exports = export(
        r#"{"endpoint":"https://metrics.example/v1","authType":"BASIC","username":"ada","password":"p:w",
            "headers":{"X-Tenant":"a,b=c"},"labels":{"team":"données"}}"#,
    );
    let told = metrics(&wanted);
    assert_eq!(value(&told, "AIRFLOW__METRICS__OTEL_ON"), Some("True"));
    assert_eq!(value(&told, "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"), Some("https://metrics.example/v1"));
    let headers = Some("X-Tenant=a%2Cb%3Dc,Authorization=Basic%20YWRhOnA6dw%3D%3D");
    assert_eq!(value(&told, "OTEL_EXPORTER_OTLP_METRICS_HEADERS"), headers);
    let labels = value(&told, "OTEL_RESOURCE_ATTRIBUTES").unwrap();
    assert!(labels.starts_with("team=donn%C3%A9es,podium.deployment="), "{labels}");
    assert!(labels.ends_with(",podium.namespace=calm-river-1234"), "{labels}");
    wanted.objects.metrics_exports = export(r#"{"endpoint":"e","authType":"AUTH_TOKEN","basicToken":"t/1"}"#);
    let told = metrics(&wanted);
    assert_eq!(value(&told, "OTEL_EXPORTER_OTLP_METRICS_HEADERS"), Some("Authorization=Bearer%20t%2F1"));
}

#[test]
fn a_project_is_importable_and_its_packages_come_after_it() {
    let mut wanted = environment();
    wanted.variables = settings(&[("PYTHONPATH", "/mine")]);
    let mut project = ProjectSettings::default();
    for version in ["3.3.2", "2.11.2"] {
        let programs = told_of(&wanted, version, None, Some(&project));
        let scheduler = program(&programs, "scheduler");
        let root = "/plane/environments/e/code/dags/project";
        assert_eq!(value(scheduler, "PYTHONPATH"), Some(format!("/plane/support:{root}:/mine").as_str()));
        assert_eq!(value(scheduler, "AIRFLOW__CORE__PLUGINS_FOLDER"), None);
    }
    project = ProjectSettings { layer: Some("/plane/layer/site".into()), plugins: Some("hash".into()) };
    for version in ["3.3.2", "2.11.2"] {
        for told in told_of(&wanted, version, None, Some(&project)) {
            let root = "/plane/environments/e/code/dags/project";
            let modules = value(&told.variables, "PYTHONPATH").unwrap();
            assert!(
                modules.starts_with(&format!("/plane/support:{root}:/plane/layer/site")),
                "{}",
                told.name
            );
            let folder = value(&told.variables, "AIRFLOW__CORE__PLUGINS_FOLDER").unwrap();
            assert_eq!(folder, format!("{root}/plugins"));
            let programs = "/plane/runtimes/x/bin:/plane/layer/site/bin:/usr/local/bin:/usr/bin:/bin";
            assert_eq!(value(&told.variables, "PATH"), Some(programs), "{}", told.name);
        }
    }
}
