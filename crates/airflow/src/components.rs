//! The processes that an environment consists of, and which of Airflow's executors runs its tasks: each plane chooses for
//! itself.

use std::ffi::OsString;
use std::path::Path;

use podium_domain::deployments::Queue;
use serde::{Deserialize, Serialize};

use crate::Secret;
use crate::files::PLUGINS;
use crate::settings::{self, SettingsContext, Variables};

#[derive(Clone, Debug, PartialEq)]
pub struct ComponentProgram {
    /// The component, named like its log.
    pub name: String,
    /// The command line. Never a secret.
    pub arguments: Vec<OsString>,
    /// Its environment variables, all of them.
    pub variables: Variables,
    /// How it is replaced by a new version.
    pub strategy: ReplaceStrategy,
}

/// How a running program is replaced by a new version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ReplaceStrategy {
    /// It is stopped, and then the new one starts.
    #[default]
    Restart,
    /// The new one starts on the same socket while it is still running; it is stopped once the new one serves.
    Overlap,
    /// It is drained first: it accepts no further tasks and is stopped once none is running.
    Drain,
    /// On SIGTERM it finishes its tasks and accepts no further ones.
    Finish,
}

/// The programs of an environment, in the order in which they start.
pub fn programs(context: &SettingsContext<'_>) -> Vec<ComponentProgram> {
    let platform = settings::platform(context);
    let chosen = settings::user_variables(context.environment);
    let limits = settings::with_overrides(settings::limits(context), &chosen);
    let mut of_components = chosen.clone();
    of_components.retain(|key, _| !limits.contains_key(key));
    let metrics = settings::metrics(context.environment);
    // Settings of users never override those that the environment depends on.
    let of_tasks = layered(&[
        &metrics,
        &of_components,
        &settings::with_overrides(platform.clone(), &chosen),
        &settings::links(context),
    ]);
    let of_scheduler = layered(&[&of_tasks, &limits]);
    let configuration: Variables = of_components
        .iter()
        .filter(|(key, _)| settings::is_configuration(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let web = settings::web(context);
    let of_web = layered(&[
        &metrics,
        &configuration,
        &settings::with_overrides(platform, &configuration),
        &settings::base_path_of_web_server(context),
        &web,
    ]);
    let launch = |rest: &[&str]| -> Vec<OsString> {
        let program = [context.files.program("python"), context.files.module("podium_launch.py")];
        program.into_iter().map(OsString::from).chain(rest.iter().map(OsString::from)).collect()
    };
    let component =
        |name: &str, strategy: ReplaceStrategy, arguments: Vec<OsString>, variables: &Variables| {
            let (name, variables) = (name.to_owned(), variables.clone());
            ComponentProgram { name, arguments, variables, strategy }
        };
    let mut all = Vec::new();
    if context.version.major() < 3 {
        let pid = context.files.temporary.join("webserver.pid");
        let mut webserver = launch(&["webserver", "--pid"]);
        webserver.push(pid.into());
        // It also reads DAGs, and gets its address in another way.
        let told = layered(&[&of_web, &of_tasks, &settings::base_path_of_web_server(context), &web]);
        all.push(component("webserver", ReplaceStrategy::Restart, webserver, &told));
    } else {
        all.push(component("apiserver", ReplaceStrategy::Overlap, launch(&["api-server"]), &of_web));
    }
    // Tasks of the local executors are the scheduler's children.
    let strategy =
        if context.tasks.celery.is_none() { ReplaceStrategy::Drain } else { ReplaceStrategy::Restart };
    let scheduler = launch(&["scheduler", "--skip-serve-logs"]);
    all.push(component("scheduler", strategy, scheduler, &of_scheduler));
    if context.version.major() >= 3 {
        all.push(component("dag-processor", ReplaceStrategy::Restart, launch(&["dag-processor"]), &of_tasks));
    }
    let triggerer = launch(&["triggerer", "--skip-serve-logs"]);
    all.push(component("triggerer", ReplaceStrategy::Restart, triggerer, &of_tasks));
    for (queue, tasks) in context.tasks.celery.iter().flat_map(|celery| &celery.workers) {
        let pid = context.files.temporary.join(format!("worker-{queue}.pid"));
        let mut worker = launch(&[
            "celery",
            "worker",
            "--skip-serve-logs",
            "--queues",
            queue,
            "--concurrency",
            &tasks.to_string(),
            "--pid",
        ]);
        worker.push(pid.into());
        all.push(component(&format!("worker-{queue}"), ReplaceStrategy::Finish, worker, &of_tasks));
    }
    all
}

/// The variables of a process that parses a version of the DAGs before it is live: those of the component that parses,
/// with the folders of this version in place of the current ones.
pub fn parser_variables(context: &SettingsContext<'_>, root: &Path, folder: &Path) -> Variables {
    let name = parser(context.version.major());
    let parser = programs(context).into_iter().find(|program| program.name == name);
    let mut variables = parser.map(|program| program.variables).unwrap_or_default();
    let text = |path: &Path| path.display().to_string();
    let current = text(&context.files.project());
    let moved = |value: &Secret| {
        let entry = |entry: &str| if entry == current { text(root) } else { entry.to_owned() };
        Secret::new(value.reveal().split(':').map(entry).collect::<Vec<_>>().join(":"))
    };
    if let Some(path) = variables.get_mut("PYTHONPATH") {
        *path = moved(path);
    }
    if let Some(plugins) = variables.get_mut("AIRFLOW__CORE__PLUGINS_FOLDER") {
        *plugins = Secret::new(text(&root.join(PLUGINS)));
    }
    variables.insert("AIRFLOW__CORE__DAGS_FOLDER".into(), Secret::new(text(folder)));
    variables
}

/// Variables of several layers; the last one wins.
fn layered(layers: &[&Variables]) -> Variables {
    layers.iter().flat_map(|layer| layer.iter().map(|(key, value)| (key.clone(), value.clone()))).collect()
}

/// Whether a component is a web server, which people and tasks connect to.
pub fn is_web(component: &str) -> bool {
    matches!(component, "apiserver" | "webserver")
}

/// The queue that a component serves, if it is a worker.
pub fn queue_of(component: &str) -> Option<&str> {
    component.strip_prefix("worker-")
}

pub fn is_worker(component: &str) -> bool {
    queue_of(component).is_some()
}

/// Whether a component starts tasks or runs them. Triggerers run no tasks, and ask nobody but the database.
pub fn runs_tasks(component: &str) -> bool {
    component == "scheduler" || is_worker(component)
}

/// The component that parses DAGs in this line of Airflow.
pub fn parser(major: u32) -> &'static str {
    if major < 3 { "scheduler" } else { "dag-processor" }
}

pub fn source(component: &str) -> &str {
    if is_worker(component) { "worker" } else { component }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Tasks {
    /// The total number of parallel tasks.
    pub parallelism: u32,
    /// Workers of queues, if Celery is used.
    pub celery: Option<Celery>,
    /// Whether tasks run one at a time, inside the scheduler.
    pub is_sequential: bool,
}

/// Workers of queues, and their broker.
#[derive(Clone, Debug, PartialEq)]
pub struct Celery {
    pub broker: Secret,
    /// The URL of what keeps results.
    pub results: Secret,
    /// Whether the broker listens on a Unix socket, which Airflow does not recognise in its URL.
    pub is_on_socket: bool,
    /// A worker for each queue, with its number of parallel tasks.
    pub workers: Vec<(String, u32)>,
}

impl Tasks {
    pub fn executor(&self) -> &'static str {
        match (&self.celery, self.is_sequential) {
            (Some(_), _) => "CeleryExecutor",
            (None, true) => "SequentialExecutor",
            (None, false) => "LocalExecutor",
        }
    }
}

/// How many tasks of a queue may run at once where no more than so many can.
pub fn limit(queue: &Queue, most: u32) -> u32 {
    queue.concurrency.saturating_mul(queue.max_workers.max(1)).clamp(1, most)
}
