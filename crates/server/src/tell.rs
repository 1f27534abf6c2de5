//! What the start says about what deployments run on.

use podium_api::enums::PlaneKind;
use podium_app::App;
use podium_dataplane::Planes;
use podium_store::{System, clusters};

use crate::failure::Failure;

/// Says that nothing real runs, or that clusters are only names.
pub(crate) async fn what_runs(app: &App, system: &System, planes: &Planes) -> Result<(), Failure> {
    match planes.own().kind() {
        PlaneKind::Simulated => {
            eprintln!("Nothing real runs: deployments are simulated (--data-plane simulated).");
        }
        PlaneKind::Local => {
            let system = *system;
            let named =
                app.db(&system).read(None, move |conn| clusters::names_for_machine(conn, &system)).await?;
            if !named.is_empty() {
                let names = named.join(", ");
                tracing::warn!(names, "these clusters are only names: their deployments run on this machine");
            }
        }
        PlaneKind::Kubernetes => {}
    }
    Ok(())
}
