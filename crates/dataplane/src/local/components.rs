//! The processes that an environment consists of.

use std::ffi::OsString;
use std::path::PathBuf;

use super::process::arguments;
use super::program::Program;
use super::settings::{self, Known, Variables};
use crate::Hidden;

/// The programs of an environment, in the order of their start.
pub(super) fn programs(known: &Known<'_>, broker_port: u16, broker_password: &Hidden) -> Vec<Program> {
    let platform = settings::platform(known);
    let chosen = settings::chosen(known.environment);
    let limits = settings::yielding(settings::limits(known), &chosen);
    let mut of_components = chosen.clone();
    of_components.retain(|key, _| !limits.contains_key(key));
    let metrics = settings::metrics(known.environment);
    // What people set never outranks what keeps the environment together.
    let of_tasks = layered(&[&metrics, &of_components, &settings::yielding(platform.clone(), &chosen)]);
    let of_scheduler = layered(&[&of_tasks, &limits]);
    let configuration: Variables = of_components
        .iter()
        .filter(|(key, _)| settings::is_configuration(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let web = settings::web(known);
    let of_web = layered(&[&metrics, &configuration, &settings::yielding(platform, &configuration), &web]);
    let airflow = known.runtime.program("airflow");
    let component = |name: &str, arguments: Vec<OsString>, variables: &Variables| Program {
        name: name.to_owned(),
        arguments,
        variables: variables.clone(),
        directory: known.place.user_home(),
        log: known.place.component_log(name),
    };
    let mut all = Vec::new();
    if let Some(program) = known.tasks.celery.as_ref().and_then(|celery| celery.own_broker.clone()) {
        all.push(broker(known, program, broker_port, broker_password));
    }
    if known.runtime.version.major() < 3 {
        let pid = known.place.temporary().join("webserver.pid");
        let mut webserver = arguments(airflow.clone(), ["webserver", "--pid"]);
        webserver.push(pid.into());
        all.push(component("webserver", webserver, &layered(&[&of_web, &of_tasks, &web])));
    } else {
        all.push(component("apiserver", arguments(airflow.clone(), ["api-server"]), &of_web));
    }
    let scheduler = arguments(airflow.clone(), ["scheduler", "--skip-serve-logs"]);
    all.push(component("scheduler", scheduler, &of_scheduler));
    if known.runtime.version.major() >= 3 {
        all.push(component("dag-processor", arguments(airflow.clone(), ["dag-processor"]), &of_tasks));
    }
    all.push(component(
        "triggerer",
        arguments(airflow.clone(), ["triggerer", "--skip-serve-logs"]),
        &of_tasks,
    ));
    for (queue, tasks) in known.tasks.celery.iter().flat_map(|celery| &celery.workers) {
        let pid = known.place.temporary().join(format!("worker-{queue}.pid"));
        let mut worker = arguments(
            airflow.clone(),
            [
                "celery",
                "worker",
                "--skip-serve-logs",
                "--queues",
                queue,
                "--concurrency",
                &tasks.to_string(),
                "--pid",
            ],
        );
        worker.push(pid.into());
        all.push(component(&format!("worker-{queue}"), worker, &of_tasks));
    }
    all
}

/// The broker of an environment's own workers. Its password is in a file of its own, not on the command line.
fn broker(known: &Known<'_>, program: PathBuf, port: u16, password: &Hidden) -> Program {
    let mut variables = Variables::new();
    let (name, value) = settings::mark(known.environment.id);
    variables.insert(name, Hidden::new(value));
    variables.insert("PODIUM_BROKER_PASSWORD".into(), password.clone());
    let script = "printf 'bind 127.0.0.1\\nport %s\\nsave \"\"\\nappendonly no\\nrequirepass %s\\n' \"$1\" \
                  \"$PODIUM_BROKER_PASSWORD\" | exec \"$0\" -";
    Program {
        name: "broker".into(),
        arguments: vec![
            "/bin/sh".into(),
            "-c".into(),
            script.into(),
            program.into_os_string(),
            port.to_string().into(),
        ],
        variables,
        directory: known.place.temporary(),
        log: known.place.component_log("broker"),
    }
}

/// Variables of several layers; the last one wins.
fn layered(layers: &[&Variables]) -> Variables {
    layers.iter().flat_map(|layer| layer.iter().map(|(key, value)| (key.clone(), value.clone()))).collect()
}

/// The source of logs that a component writes as; none for what is no part of Airflow.
pub(super) fn source(component: &str) -> Option<&str> {
    match component {
        "broker" => None,
        worker if worker.starts_with("worker-") => Some("worker"),
        other => Some(other),
    }
}
