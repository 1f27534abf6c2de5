//! The settings of an environment's processes, all passed as environment variables: none appears on a command line or
//! is stored in a file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE};
use podium_domain::deployments::variables;
use podium_domain::options::Version;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::components::Tasks;
use crate::database_url::{self, percent_encoded};
use crate::files::{Files, PLUGINS};
use crate::{Environment, Secret, Setting};

pub type Variables = BTreeMap<String, Secret>;

#[derive(Clone)]
pub struct SettingsContext<'a> {
    pub environment: &'a Environment,
    pub version: Version,
    pub files: &'a Files,
    pub web_server: WebServerAddress,
    /// The URL under which people reach the control plane.
    pub public_url: &'a str,
    pub database: MetadataDatabase<'a>,
    /// What its DAGs are read from: Airflow's list of bundles.
    pub bundles: Value,
    pub tasks: &'a Tasks,
    pub keys: EnvironmentKeys,
    /// The project, if its DAGs are in one.
    pub project: Option<&'a ProjectSettings>,
}

/// Where a web server listens, and where the other processes of its environment reach it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebServerAddress {
    pub host: String,
    pub port: u16,
    /// The URL of its root for the other processes, without a slash at its end.
    pub url: String,
}

/// A metadata database, and how many connections a process may have.
#[derive(Clone, Copy, Debug)]
pub struct MetadataDatabase<'a> {
    pub url: &'a Secret,
    /// How many connections a process keeps, if it is on a server.
    pub kept_connections: u32,
    /// How many more it may open.
    pub more_connections: u32,
}

/// What the processes of a project's environment are told of it. It changes only if they have to restart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProjectSettings {
    pub layer: Option<PathBuf>,
    /// A hash of its plugins, if it has any.
    pub plugins: Option<String>,
}

#[derive(Clone)]
pub struct EnvironmentKeys {
    /// Encrypts secrets in Airflow's database: 32 bytes in URL-safe base64.
    pub fernet: Secret,
    /// Signs the tokens that its web server accepts.
    pub token_signing: Secret,
    /// Signs sessions of its web server.
    pub session: Secret,
}

impl EnvironmentKeys {
    /// Derives them; `key` returns at least 32 bytes of text for a purpose.
    pub fn new(key: impl Fn(&str) -> Secret) -> Self {
        let fernet = key("fernet");
        let bytes = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, fernet.reveal().as_bytes());
        let long = |purpose: &str| {
            let halves = [1, 2].map(|half| key(&format!("{purpose}-{half}")));
            Secret::new(format!("{}{}", halves[0].reveal(), halves[1].reveal()))
        };
        Self {
            fernet: Secret::new(BASE64_URL_SAFE.encode(bytes.as_ref())),
            token_signing: long("door"),
            session: long("session"),
        }
    }
}

/// The base path of an environment's web server, here and at the front door.
pub fn base_path(namespace: &str) -> String {
    format!("/airflow/{namespace}")
}

/// The environment variable that marks every descendant of an environment.
pub fn marker(id: podium_api::DeploymentId) -> (String, String) {
    ("PODIUM_ENVIRONMENT".into(), id.to_string())
}

pub fn platform(context: &SettingsContext<'_>) -> Variables {
    let SettingsContext { environment, version, files, web_server, database, .. } = context;
    let base_path = base_path(&environment.namespace);
    let mut all = VariablesBuilder::default();
    let (name, value) = marker(environment.id);
    all.set(&name, value);
    let layer = context.project.and_then(|project| project.layer.as_deref());
    let scripts = layer.map(|layer| format!(":{}", layer.join("bin").display())).unwrap_or_default();
    all.set("PATH", format!("{}{scripts}:/usr/local/bin:/usr/bin:/bin", files.programs.display()));
    all.set("HOME", text(&files.user_home));
    // Its user has no entry in /etc/passwd.
    all.set("USER", "airflow");
    all.set("LOGNAME", "airflow");
    all.set("TMPDIR", text(&files.temporary));
    all.set("PODIUM_DRAIN", text(&files.drain));
    all.set("PODIUM_STATUS", text(&files.status));
    all.set("PODIUM_SPOOL", text(&files.spool));
    all.set("LANG", "C.UTF-8");
    let mut modules = vec![files.support.clone()];
    if context.project.is_some() {
        modules.push(files.project());
    }
    modules.extend(layer.map(Path::to_owned));
    all.set("PYTHONPATH", modules.iter().map(|path| text(path)).collect::<Vec<_>>().join(":"));
    if let Some(plugins) = context.project.and_then(|project| project.plugins.as_ref()) {
        // Components load plugins when they start: other plugins restart them.
        all.set("PODIUM_PLUGINS", plugins.clone());
        all.airflow("core", "plugins_folder", text(&files.project().join(PLUGINS)));
    }
    all.set("PYTHONUNBUFFERED", "1");
    all.set("PYTHONDONTWRITEBYTECODE", "1");
    // Halves the memory of many small threads.
    all.set("MALLOC_ARENA_MAX", "2");
    all.set("AIRFLOW_HOME", text(&files.home));
    // Airflow writes its default configuration at the first start, and may not write to its home.
    all.set("AIRFLOW_CONFIG", text(&files.temporary.join("airflow.cfg")));
    all.airflow("core", "load_examples", "False");
    // Ours take their places: they can be drained, and know what a restart has interrupted.
    let module = if context.tasks.celery.is_some() { "celery_executor" } else { "executors" };
    all.airflow("core", "executor", format!("podium_airflow.{module}.{}", context.tasks.executor()));
    all.secret("core", "fernet_key", &context.keys.fernet);
    all.airflow("core", "dags_folder", text(&files.current_dags()));
    // Deep enough to name the file of the DAG, which says where to look and of which version the error is.
    all.airflow("core", "dagbag_import_error_traceback_depth", "20");
    all.secret("database", "sql_alchemy_conn", database.url);
    all.airflow("database", "load_default_connections", "False");
    if database.url.reveal().starts_with("postgresql") {
        all.airflow("database", "sql_alchemy_pool_size", database.kept_connections.to_string());
        all.airflow("database", "sql_alchemy_max_overflow", database.more_connections.to_string());
    }
    if let Some(url) = database_url::asynchronous(database.url.reveal()) {
        all.airflow("database", "sql_alchemy_conn_async", url);
    }
    all.airflow("logging", "base_log_folder", text(&files.task_logs));
    // There is one scheduler: what an earlier one left behind is soon started again.
    all.airflow("scheduler", "orphaned_tasks_check_interval", "30");
    all.airflow("usage_data_collection", "enabled", "False");
    if let Some(celery) = &context.tasks.celery {
        all.secret("celery", "broker_url", &celery.broker);
        all.secret("celery", "result_backend", &celery.results);
        all.airflow("operators", "default_queue", "default");
        if celery.is_on_socket {
            // Without this Celery would run long tasks twice.
            all.airflow("celery", "celery_config_options", "podium_airflow.broker.CONFIG");
        }
    }
    if version.major() < 3 {
        all.airflow("webserver", "web_server_host", &web_server.host);
        all.airflow("webserver", "web_server_port", web_server.port.to_string());
        all.airflow("webserver", "workers", "1");
        all.airflow("webserver", "config_file", text(&files.module("webserver_config.py")));
        all.airflow("webserver", "enable_proxy_fix", "True");
        all.secret("webserver", "secret_key", &context.keys.session);
        all.airflow("api", "auth_backends", "airflow.api.auth.backend.session");
        all.airflow("logging", "dag_processor_log_target", "stdout");
        let manager_log = files.parser_logs.join("manager.log");
        all.airflow("logging", "dag_processor_manager_log_location", text(&manager_log));
        all.airflow("scheduler", "child_process_log_directory", text(&files.parser_logs));
        all.airflow("scheduler", "dag_dir_list_interval", "5");
        all.airflow("scheduler", "min_file_process_interval", "5");
    } else {
        all.airflow("api", "host", &web_server.host);
        all.airflow("api", "port", web_server.port.to_string());
        all.airflow("api", "workers", "1");
        all.secret("api", "secret_key", &context.keys.session);
        all.secret("api_auth", "jwt_secret", &context.keys.token_signing);
        all.airflow("core", "auth_manager", "podium_airflow.auth.DoorAuthManager");
        let tasks = format!("{}{base_path}/execution/", web_server.url);
        all.airflow("core", "execution_api_server_url", tasks);
        all.airflow("logging", "json_logs", "True");
        all.airflow("logging", "dag_processor_child_process_log_directory", text(&files.parser_logs));
        all.airflow("dag_processor", "dag_bundle_config_list", context.bundles.to_string());
        all.airflow("dag_processor", "dag_bundle_storage_path", text(&files.temporary.join("bundles")));
        all.airflow("dag_processor", "refresh_interval", "5");
        all.airflow("dag_processor", "min_file_process_interval", "5");
        all.airflow("workers", "min_heartbeat_interval", "1");
        // Tasks wait for a web server that is being replaced: connections wait in its socket, and those that are lost or
        // refused are tried again for five minutes at least. Its tasks are not given up meanwhile.
        all.airflow("workers", "execution_api_timeout", "120");
        all.airflow("workers", "execution_api_retries", "60");
        all.airflow("workers", "execution_api_retry_wait_max", "10");
        all.airflow("scheduler", "task_instance_heartbeat_timeout", "600");
    }
    all.0
}

/// Airflow's list of bundles for versions of DAGs in a folder: see [`Files::dags`].
pub fn bundles_in(dags: &Path) -> Value {
    json!([{
        "name": "dags",
        "classpath": "podium_bundle.VersionedBundle",
        "kwargs": { "folder": text(dags) },
    }])
}

/// The base path for a web server. The public URL is not part of it, and may change.
pub(crate) fn base_path_of_web_server(context: &SettingsContext<'_>) -> Variables {
    base_url(context, base_path(&context.environment.namespace))
}

/// The public URL for processes that run tasks, for the links that tasks create.
pub(crate) fn links(context: &SettingsContext<'_>) -> Variables {
    base_url(context, format!("{}{}", context.public_url, base_path(&context.environment.namespace)))
}

fn base_url(context: &SettingsContext<'_>, url: String) -> Variables {
    let mut all = VariablesBuilder::default();
    let section = if context.version.major() < 3 { "webserver" } else { "api" };
    all.airflow(section, "base_url", url);
    all.0
}

/// Variables of the scheduler only: other processes do not depend on the limits.
pub(crate) fn limits(context: &SettingsContext<'_>) -> Variables {
    let mut all = VariablesBuilder::default();
    all.airflow("core", "parallelism", context.tasks.parallelism.to_string());
    all.0
}

/// Variables of the web server only: the key that authenticates the front door.
pub(crate) fn web(context: &SettingsContext<'_>) -> Variables {
    let mut all = VariablesBuilder::default();
    if context.version.major() < 3 {
        all.set("PODIUM_DOOR_KEY", context.keys.token_signing.reveal());
    }
    all.0
}

/// Variables for processes that run or read DAGs: those set by the deployment and its environment objects, with a list
/// of the secret ones.
pub(crate) fn user_variables(environment: &Environment) -> Variables {
    let objects = &environment.objects;
    let mut all = Variables::new();
    let mut secret = BTreeSet::new();
    let mut set = |name: String, setting: &Setting| {
        if setting.is_secret {
            secret.insert(name.clone())
        } else {
            secret.remove(&name)
        };
        all.insert(name, setting.value.clone());
    };
    for setting in objects.variables.iter().chain(&environment.variables) {
        set(setting.key.clone(), setting);
    }
    for setting in &objects.connections {
        set(format!("AIRFLOW_CONN_{}", setting.key.to_uppercase()), setting);
    }
    for setting in &objects.airflow_variables {
        set(format!("AIRFLOW_VAR_{}", setting.key.to_uppercase()), setting);
    }
    if !secret.is_empty() {
        let names: Vec<&str> = secret.iter().map(String::as_str).collect();
        all.insert("PODIUM_SECRET_VARIABLES".into(), Secret::new(names.join(",")));
    }
    all
}

/// The platform's variables, with those that users may override replaced by theirs.
pub(crate) fn with_overrides(told: Variables, chosen: &Variables) -> Variables {
    let heard = |(name, ours): (String, Secret)| {
        let theirs = chosen.get(&name).filter(|_| variables::refused(&name).is_none());
        let value = match theirs {
            Some(theirs) if name == "PYTHONPATH" => {
                Secret::new(format!("{}:{}", ours.reveal(), theirs.reveal()))
            }
            Some(theirs) => theirs.clone(),
            None => ours,
        };
        (name, value)
    };
    told.into_iter().map(heard).collect()
}

/// The metrics export, as standard OpenTelemetry variables, which Airflow supports.
pub(crate) fn metrics(environment: &Environment) -> Variables {
    let mut all = VariablesBuilder::default();
    // Airflow exports to one endpoint.
    let Some(Setting { value, .. }) = environment.objects.metrics_exports.first() else { return all.0 };
    let export: Value = serde_json::from_str(value.reveal()).unwrap_or_default();
    let member = |name: &str| export.get(name).and_then(Value::as_str).unwrap_or_default();
    let pairs = |name: &str| {
        let members = export.get(name).and_then(Value::as_object).into_iter().flatten();
        members.map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned()))
    };
    let mut headers: Vec<(String, String)> = pairs("headers").collect();
    match member("authType") {
        "BASIC" => {
            let user = format!("{}:{}", member("username"), member("password"));
            headers.push(("Authorization".into(), format!("Basic {}", BASE64_STANDARD.encode(user))));
        }
        "AUTH_TOKEN" => headers.push(("Authorization".into(), format!("Bearer {}", member("basicToken")))),
        _ => {}
    }
    let mut labels: Vec<(String, String)> = pairs("labels").collect();
    labels.push(("podium.deployment".into(), environment.id.to_string()));
    labels.push(("podium.namespace".into(), environment.namespace.clone()));
    all.airflow("metrics", "otel_on", "True");
    all.set("OTEL_SERVICE_NAME", "airflow");
    all.set("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf");
    all.set("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", member("endpoint"));
    all.set("OTEL_EXPORTER_OTLP_METRICS_HEADERS", list(&headers));
    all.set("OTEL_RESOURCE_ATTRIBUTES", list(&labels));
    all.0
}

/// Pairs in OpenTelemetry's format.
fn list(pairs: &[(String, String)]) -> String {
    let pair = |(key, value): &(String, String)| format!("{key}={}", percent_encoded(value));
    pairs.iter().map(pair).collect::<Vec<_>>().join(",")
}

/// Whether a variable configures Airflow itself, which all its processes need.
pub(crate) fn is_configuration(key: &str) -> bool {
    key.starts_with("AIRFLOW__")
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

#[derive(Default)]
struct VariablesBuilder(Variables);

impl VariablesBuilder {
    fn set(&mut self, name: &str, value: impl Into<String>) {
        self.0.insert(name.to_owned(), Secret::new(value.into()));
    }

    fn airflow(&mut self, section: &str, key: &str, value: impl Into<String>) {
        self.set(&format!("AIRFLOW__{}__{}", section.to_uppercase(), key.to_uppercase()), value);
    }

    fn secret(&mut self, section: &str, key: &str, value: &Secret) {
        self.airflow(section, key, value.reveal());
    }
}

#[cfg(test)]
mod tests;
