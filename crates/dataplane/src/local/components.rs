//! The processes that an environment consists of on this machine, and where they find what they need here.

use std::path::Path;

use podium_airflow::components::{self, ComponentProgram};
use podium_airflow::files::Files;
use podium_airflow::settings::{MetadataDatabase, SettingsContext, WebServerAddress};

use super::broker::BROKER;
use super::code;
use super::layout::Place;
use super::network::is_network;
use super::program::Program;
use super::runtimes::Runtime;
use crate::Secret;

/// A web server that still serves while its replacement starts.
pub(super) const RETIRING: &str = "apiserver-retiring";

/// The address that web servers listen on.
const LOOPBACK: &str = "127.0.0.1";

/// Where the processes of an environment find its web server.
pub(super) fn web_server(port: u16) -> WebServerAddress {
    WebServerAddress { host: LOOPBACK.into(), port, url: web_url(port) }
}

/// The URL of the root of a web server on this machine.
pub(super) fn web_url(port: u16) -> String {
    format!("http://{LOOPBACK}:{port}")
}

pub(super) fn files(place: &Place, runtime: &Runtime, support: &Path) -> Files {
    Files {
        programs: runtime.programs(),
        support: support.to_owned(),
        user_home: place.user_home(),
        home: place.home(),
        temporary: place.temporary(),
        dags: code::dags(place),
        task_logs: place.task_logs(),
        parser_logs: place.parser_logs(),
        drain: place.drain(),
        status: place.status(),
        spool: place.spool(),
    }
}

/// A metadata database for the processes of an environment. They keep few idle connections, but may have many in total: a
/// request of the web server takes one connection and then another, so a small limit would deadlock concurrent requests.
pub(super) fn database(url: &Secret) -> MetadataDatabase<'_> {
    MetadataDatabase { url, kept_connections: 3, more_connections: 97 }
}

/// The programs of an environment, in the order in which they start.
pub(super) fn programs(
    context: &SettingsContext<'_>,
    place: &Place,
    own_broker: Option<Program>,
) -> Vec<Program> {
    let program = |ComponentProgram { name, arguments, variables, strategy }| Program {
        directory: place.user_home(),
        log: place.component_log(&name),
        name,
        arguments,
        variables,
        strategy,
    };
    own_broker.into_iter().chain(components::programs(context).into_iter().map(program)).collect()
}

/// Whether a component is a web server, which people and tasks connect to.
pub(super) fn is_web(component: &str) -> bool {
    components::is_web(component) || component == RETIRING
}

/// The log source of a component; `None` for what is not part of Airflow.
pub(super) fn source(component: &str) -> Option<&str> {
    match component {
        BROKER => None,
        network if is_network(network) => None,
        other => Some(components::source(other)),
    }
}

#[cfg(test)]
mod tests;
