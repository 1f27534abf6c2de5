//! Brings a release from its archive to where it is live: unpacked, with its packages, and then current.
//!
//! Nothing of a new release is live before everything that it needs is there, so what ran before keeps serving if
//! something is wrong with it. If its packages or plugins are others, running tasks finish first: code and packages
//! change together.

use podium_airflow::requirements::Requirements;
use podium_airflow::settings::ProjectSettings;
use podium_domain::deployments::rollout::RolloutStep;
use podium_domain::{Reason, UserText};

use super::Supervisor;
use super::prepare::Prepared;
use crate::Environment;
use crate::blocking::blocking;
use crate::local::disk_space::SpaceCheckedArchives;
use crate::local::packages::InstallContext;
use crate::local::prepare_error::PrepareError;
use crate::local::project::{self, Project};
use crate::local::runtimes::Runtime;
use crate::local::{code, unused_runtimes};

/// What is shown while other environments install packages.
const WAITING: &str = "waiting for other environments that install packages";

/// What a rollout waits for while packages are resolved and installed.
const PACKAGES: &str = "packages";

impl Supervisor {
    /// Unpacks the DAGs and bundles of a release and installs the packages of its project, if it is one.
    pub(super) async fn prepare_release(
        &mut self,
        environment: &Environment,
        runtime: &Runtime,
    ) -> Result<Option<ProjectSettings>, PrepareError> {
        self.view.step(RolloutStep::Unpack, None, None);
        let version = environment.spec.release.dag_version.as_deref();
        code::unpack_dags(&self.archives(), self.id, &self.place, version).await?;
        let bundles = &environment.spec.release.bundles;
        code::unpack_bundles(&self.archives(), self.id, &self.place, bundles).await?;
        let root = code::version(&self.place, version);
        let Some(Project { requirements, plugins }) = blocking(move || project::read(&root)).await? else {
            return Ok(None);
        };
        let layer = match requirements {
            Some(requirements) => self.install_packages(runtime, &requirements).await?,
            None => None,
        };
        self.view.waited_for(PACKAGES);
        Ok(Some(ProjectSettings { layer, plugins }))
    }

    /// Installs what the runtime lacks of some requirements; returns its directory.
    async fn install_packages(
        &mut self,
        runtime: &Runtime,
        requirements: &Requirements,
    ) -> Result<Option<std::path::PathBuf>, PrepareError> {
        let plane = std::sync::Arc::clone(&self.plane);
        let host = plane.host().await.map_err(|why| (PACKAGES, why))?;
        let uv = plane.runtimes.installer(host).await.map_err(|why| (PACKAGES, why))?;
        let resolving = UserText::filled("resolving {} requirements", &[&requirements.count()]);
        self.tell_packages(resolving.clone());
        let waiting =
            |is_waiting| self.tell_packages(if is_waiting { WAITING.into() } else { resolving.clone() });
        let context = InstallContext { host, uv, runtime, waiting: &waiting };
        let pins = plane.packages.resolve(context, requirements, &self.place.pins()).await?;
        let Some(pins) = pins else { return Ok(None) };
        let installing = UserText::filled("installing {} packages", &[&pins.count()]);
        self.tell_packages(installing.clone());
        let broken = |error| (PACKAGES, Reason::of_io("the runtime cannot be read", &error));
        let key = pins.key(runtime).await.map_err(broken)?;
        // Known to be in use before it exists.
        self.state.layers.insert(key);
        self.save_state().await;
        unused_runtimes::make_room_for_layer(&plane).await;
        let waiting =
            |is_waiting| self.tell_packages(if is_waiting { WAITING.into() } else { installing.clone() });
        let context = InstallContext { host, uv, runtime, waiting: &waiting };
        Ok(Some(plane.packages.install(context, &pins).await?))
    }

    fn tell_packages(&self, message: UserText) {
        self.view.wait_for(PACKAGES, message.clone());
        self.view.step(RolloutStep::Packages, None, Some(message));
    }

    /// Drains running tasks if the release brings other packages or plugins, because code and packages change together; returns
    /// whether to continue.
    pub(super) async fn drain_for_packages(&mut self, prepared: &Prepared) -> bool {
        let Prepared { environment, project, .. } = prepared;
        self.state.live().dag_version == environment.spec.release.dag_version
            || self.state.project == *project
            || self.drain_before("changing the project's packages", environment).await
    }

    pub(super) async fn go_live(&mut self, prepared: &Prepared) -> Result<(), PrepareError> {
        let (before, environment) = (self.state.clone(), &prepared.environment);
        self.state.project.clone_from(&prepared.project);
        self.state.go_live(environment.running());
        // First of all: what may be live must be known after a crash.
        if self.state != before {
            self.save_state().await;
        }
        let release = &environment.spec.release;
        let placed = async {
            code::switch_bundles(&self.place, &release.bundles).await?;
            code::switch_dags(&self.place, release.dag_version.as_deref()).await
        };
        if let Err(error) = placed.await {
            if let PrepareError::Refused(_) = error {
                // Its DAGs are not live, and those that are shall be found again.
                self.state = before;
                self.save_state().await;
            }
            return Err(error);
        }
        Ok(())
    }

    /// Forgets the layers that nothing of the environment uses any more: everything has been replaced.
    pub(super) fn forget_other_layers(&mut self) {
        let layer = self.state.project.as_ref().and_then(|project| project.layer.as_deref());
        let used = layer.and_then(|site| site.parent()?.file_name()?.to_str()).map(str::to_owned);
        self.state.layers.retain(|key| Some(key) == used.as_ref());
    }

    fn archives(&self) -> SpaceCheckedArchives<'_> {
        SpaceCheckedArchives {
            archives: &*self.plane.services.archives,
            directory: self.place.root.clone(),
            reserve: self.plane.options.disk_reserve,
        }
    }
}
