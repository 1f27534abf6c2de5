//! The processes that an environment consists of.

use std::ffi::OsString;
use std::path::Path;

use super::broker::OwnBroker;
use super::code;
use super::network::is_network;
use super::program::{Program, ReplaceStrategy};
use super::project::PLUGINS;
use super::settings::{self, SettingsContext, Variables};
use crate::Secret;

/// The programs of an environment, in the order in which they start.
pub(super) fn programs(context: &SettingsContext<'_>, own_broker: &OwnBroker) -> Vec<Program> {
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
        &settings::place(context),
        &web,
    ]);
    let launch = |rest: &[&str]| -> Vec<OsString> {
        let program = [context.runtime.program("python"), context.support.join("podium_launch.py")];
        program.into_iter().map(OsString::from).chain(rest.iter().map(OsString::from)).collect()
    };
    let component =
        |name: &str, strategy: ReplaceStrategy, arguments: Vec<OsString>, variables: &Variables| Program {
            name: name.to_owned(),
            arguments,
            variables: variables.clone(),
            directory: context.place.user_home(),
            log: context.place.component_log(name),
            strategy,
        };
    let mut all = Vec::new();
    if let Some(program) = context.tasks.celery.as_ref().and_then(|celery| celery.own_broker.clone()) {
        all.push(own_broker.program(context, program));
    }
    if context.runtime.version.major() < 3 {
        let pid = context.place.temporary().join("webserver.pid");
        let mut webserver = launch(&["webserver", "--pid"]);
        webserver.push(pid.into());
        // It also reads DAGs, and gets its address in another way.
        let told = layered(&[&of_web, &of_tasks, &settings::place(context), &web]);
        all.push(component("webserver", ReplaceStrategy::Restart, webserver, &told));
    } else {
        all.push(component("apiserver", ReplaceStrategy::Overlap, launch(&["api-server"]), &of_web));
    }
    // Tasks of the local executors are the scheduler's children.
    let strategy =
        if context.tasks.celery.is_none() { ReplaceStrategy::Drain } else { ReplaceStrategy::Restart };
    let scheduler = launch(&["scheduler", "--skip-serve-logs"]);
    all.push(component("scheduler", strategy, scheduler, &of_scheduler));
    if context.runtime.version.major() >= 3 {
        all.push(component("dag-processor", ReplaceStrategy::Restart, launch(&["dag-processor"]), &of_tasks));
    }
    let triggerer = launch(&["triggerer", "--skip-serve-logs"]);
    all.push(component("triggerer", ReplaceStrategy::Restart, triggerer, &of_tasks));
    for (queue, tasks) in context.tasks.celery.iter().flat_map(|celery| &celery.workers) {
        let pid = context.place.temporary().join(format!("worker-{queue}.pid"));
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
pub(super) fn parser_variables(
    context: &SettingsContext<'_>,
    own_broker: &OwnBroker,
    root: &Path,
    folder: &Path,
) -> Variables {
    let parser = if context.runtime.version.major() < 3 { "scheduler" } else { "dag-processor" };
    let programs = programs(context, own_broker);
    let parser = programs.into_iter().find(|program| program.name == parser);
    let mut variables = parser.map(|program| program.variables).unwrap_or_default();
    let text = |path: &Path| path.display().to_string();
    let current = text(&code::project(context.place));
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
pub(super) fn is_web(component: &str) -> bool {
    matches!(component, "apiserver" | "webserver" | RETIRING)
}

/// A web server that still serves while its replacement starts.
pub(super) const RETIRING: &str = "apiserver-retiring";

/// The log source of a component; `None` for what is not part of Airflow.
pub(super) fn source(component: &str) -> Option<&str> {
    match component {
        "broker" => None,
        network if is_network(network) => None,
        worker if worker.starts_with("worker-") => Some("worker"),
        other => Some(other),
    }
}

#[cfg(test)]
mod tests;
