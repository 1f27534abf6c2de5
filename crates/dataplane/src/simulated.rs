//! A data plane that runs nothing: for demonstrations, and for tests that inject faults.
//!
//! Every call takes effect immediately, unless its [`Script`] says otherwise. Its state is in memory, or in small files
//! that survive a restart, and never contains secrets. Time comes from the given clock.

mod lines;
mod script;
mod store;

use std::future::pending;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use podium_api::clusters::{ClusterHealthStatus, ClusterMetadata};
use podium_api::deploy_reports::RolloutReport;
use podium_api::enums::{Executor, HealthValue, PlaneKind};
use podium_api::{ClusterId, DeploymentId, Id, Timestamp};
use podium_domain::UserText;
use podium_domain::clusters::plan::Progress;
use podium_domain::deployments::Running;
use podium_domain::deployments::plan::{Component, Health, Observed, Rollout};
use serde::{Deserialize, Serialize};

pub use self::script::{Call, Entry, InjectedFault, Script, Told};
use self::store::Store;
use crate::{
    ChangeNotifier, Changes, CleanUp, CleanUpState, Clock, Cluster, ClusterLocation, DataPlane, Environment,
    EnvironmentMetrics, Fault, Location, LogLine, LogSink, Machine, ObservedCluster, PlaneFuture,
    RunningTasks, WebServer, socket_owners,
};

pub struct Simulated {
    environments: Store<DeploymentId, StoredEnvironment>,
    clusters: Store<ClusterId, StoredCluster>,
    script: Script,
    notifier: ChangeNotifier,
    clock: Clock,
    logs: LogSink,
    kind: PlaneKind,
    is_bound: bool,
}

/// The stored state of an environment, without secrets.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredEnvironment {
    namespace: String,
    generation: i64,
    is_hibernating: bool,
    components: Vec<String>,
    before: Running,
    after: Running,
    ready_at: i64,
    gone_at: Option<i64>,
    is_announced: bool,
    #[serde(default)]
    is_strict: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredCluster {
    generation: i64,
    region: String,
    ready_at: i64,
    gone_at: Option<i64>,
}

impl Simulated {
    pub fn in_memory(clock: Clock) -> Self {
        Self::new(Store::memory(), Store::memory(), clock)
    }

    /// A plane in a directory. Several processes may share it.
    pub fn in_directory(directory: impl Into<PathBuf>, clock: Clock) -> std::io::Result<Self> {
        let directory = directory.into();
        let environments = Store::files(directory.join("environments"))?;
        Ok(Self::new(environments, Store::files(directory.join("clusters"))?, clock))
    }

    fn new(
        environments: Store<DeploymentId, StoredEnvironment>,
        clusters: Store<ClusterId, StoredCluster>,
        clock: Clock,
    ) -> Self {
        let notifier = ChangeNotifier::default();
        let script = Script::new(notifier.clone());
        let (logs, kind) = (Arc::new(|_| {}), PlaneKind::Simulated);
        Self { environments, clusters, script, notifier, clock, logs, kind, is_bound: false }
    }

    /// The same plane, with a sink for the logs of its components.
    pub fn logging_to(mut self, logs: LogSink) -> Self {
        self.logs = logs;
        self
    }

    /// The same plane, which pretends that its environments run on this machine.
    pub fn bound_to_machine(mut self) -> Self {
        self.is_bound = true;
        self
    }

    /// The same plane, in the place of one of another kind.
    pub fn in_place_of(mut self, kind: PlaneKind) -> Self {
        self.kind = kind;
        self
    }

    /// The script: injected faults, and the journal of calls.
    pub fn script(&self) -> &Script {
        &self.script
    }

    pub fn environments(&self) -> Vec<DeploymentId> {
        self.environments.ids()
    }

    pub fn clusters(&self) -> Vec<ClusterId> {
        self.clusters.ids()
    }

    async fn perform<T>(
        &self,
        call: Call,
        id: Id,
        generation: Option<i64>,
        effect: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, Fault> {
        match self.script.begin(call, id, generation)? {
            None => effect.await,
            Some(InjectedFault::Fail(fault)) => Err(fault),
            Some(InjectedFault::LoseResponse) => {
                effect.await?;
                Err(Fault::Unreachable("the response was lost".into()))
            }
            Some(InjectedFault::Hang) => {
                effect.await?;
                pending().await
            }
        }
    }

    async fn put(&self, environment: &Environment) -> Result<(), Fault> {
        let stored = self.environments.get(environment.id).await?;
        let is_same = |stored: &StoredEnvironment| {
            stored.generation == environment.generation && stored.is_hibernating == environment.is_hibernating
        };
        if stored.as_ref().is_some_and(|stored| is_same(stored) || stored.generation > environment.generation)
        {
            return Ok(());
        }
        let now = (self.clock)();
        let is_refused = |stored: &StoredEnvironment| {
            self.script.why_refused(stored.after.dag_version.as_deref(), stored.is_strict).is_some()
        };
        let before = match &stored {
            Some(stored) if now.millis() >= stored.ready_at && !is_refused(stored) => stored.after.clone(),
            Some(stored) => stored.before.clone(),
            None => Running::default(),
        };
        let takes = self.script.lock().rollout;
        let next = StoredEnvironment {
            namespace: environment.namespace.clone(),
            generation: environment.generation,
            is_hibernating: environment.is_hibernating,
            components: if environment.is_hibernating { Vec::new() } else { components(environment) },
            // A release that has not gone live yet does so when it wakes up.
            after: if environment.is_hibernating { before.clone() } else { environment.running() },
            before,
            ready_at: (now + takes).millis(),
            gone_at: None,
            is_announced: takes.is_zero(),
            is_strict: environment.spec.release.is_strict,
        };
        let stopped = stored.map(|stored| stored.components).unwrap_or_default();
        let mut said = lines::stopping(environment.id, &stopped, now);
        said.extend(lines::starting(environment.id, &next.components, &next.after, now));
        if next.is_announced {
            said.extend(lines::started(environment.id, &next.components, &next.namespace, now));
        }
        self.environments.put(environment.id, &next).await?;
        self.say(said);
        Ok(())
    }

    async fn show(&self, id: DeploymentId) -> Result<Option<Observed>, Fault> {
        let Some(mut stored) = self.environments.get(id).await? else { return Ok(None) };
        let now = (self.clock)();
        if stored.gone_at.is_some_and(|gone_at| now.millis() >= gone_at) {
            self.environments.remove(id).await?;
            return Ok(None);
        }
        let is_ready = now.millis() >= stored.ready_at && stored.gone_at.is_none();
        if is_ready && !stored.is_announced {
            stored.is_announced = true;
            self.environments.put(id, &stored).await?;
            self.say(lines::started(id, &stored.components, &stored.namespace, now));
        }
        let health = |name: &str| match (is_ready, self.script.health(id, name)) {
            (_, Some(health)) => health,
            (true, None) => Health::Up,
            (false, None) => Health::Down("it is starting".into()),
        };
        let component = |name: &String| Component { name: name.clone(), health: health(name) };
        let waits_until = stored.gone_at.unwrap_or(stored.ready_at);
        let refused = self.script.why_refused(stored.after.dag_version.as_deref(), stored.is_strict);
        Ok(Some(Observed {
            generation: stored.generation,
            is_hibernating: stored.is_hibernating,
            components: stored.components.iter().map(component).collect(),
            running: if is_ready && refused.is_none() { stored.after } else { stored.before },
            rollout: match refused {
                Some(why) if is_ready => Rollout::Refused(why),
                None if is_ready => Rollout::Done,
                _ => Rollout::Underway,
            },
            note: None,
            look_again_at: (!is_ready).then(|| Timestamp::from_millis(waits_until)),
            progress: self.script.lock().progress.get(&id).cloned().filter(|_| !is_ready),
        }))
    }

    /// Ends the step that an environment reports, if it is a drain: nothing of its rollout or removal is left then.
    async fn go_on(&self, id: DeploymentId, generation: i64) -> Result<(), Fault> {
        let Some(mut stored) = self.environments.get(id).await? else { return Ok(()) };
        if stored.generation == generation && self.script.end_drain(id) {
            let now = (self.clock)().millis();
            stored.ready_at = stored.ready_at.min(now);
            stored.gone_at = stored.gone_at.map(|gone_at| gone_at.min(now));
            self.environments.put(id, &stored).await?;
        }
        Ok(())
    }

    async fn take(&self, id: DeploymentId) -> Result<(), Fault> {
        let Some(mut stored) = self.environments.get(id).await? else { return Ok(()) };
        let takes = self.script.lock().removal;
        if takes.is_zero() {
            return self.environments.remove(id).await;
        }
        stored.gone_at.get_or_insert(((self.clock)() + takes).millis());
        self.environments.put(id, &stored).await
    }

    async fn put_cluster(&self, wanted: &Cluster) -> Result<(), Fault> {
        let id = wanted.cluster.id;
        if self.clusters.get(id).await?.is_some_and(|stored| stored.generation >= wanted.generation) {
            return Ok(());
        }
        let region = wanted.region().to_owned();
        let ready_at = ((self.clock)() + self.script.lock().rollout).millis();
        let stored = StoredCluster { generation: wanted.generation, region, ready_at, gone_at: None };
        self.clusters.put(id, &stored).await
    }

    async fn show_cluster(&self, id: ClusterId) -> Result<Option<ObservedCluster>, Fault> {
        let Some(stored) = self.clusters.get(id).await? else { return Ok(None) };
        let now = (self.clock)().millis();
        if stored.gone_at.is_some_and(|gone_at| now >= gone_at) {
            self.clusters.remove(id).await?;
            return Ok(None);
        }
        let told = self.script.lock().clusters.get(&id).cloned();
        let progress = match told {
            Some(progress) => progress,
            None if now >= stored.ready_at && stored.gone_at.is_none() => {
                Progress::Ready(ClusterHealthStatus { value: HealthValue::Healthy, details: Vec::new() })
            }
            None => Progress::Working,
        };
        let metadata = ClusterMetadata {
            external_ips: vec!["192.0.2.10".into(), "192.0.2.11".into()],
            kube_dns_ip: Some("172.20.0.10".into()),
            oidc_issuer_url: Some(format!("https://oidc.{}.simulated.invalid/id/{id}", stored.region)),
        };
        Ok(Some(ObservedCluster { generation: stored.generation, progress, metadata }))
    }

    async fn take_cluster(&self, id: ClusterId) -> Result<(), Fault> {
        let Some(mut stored) = self.clusters.get(id).await? else { return Ok(()) };
        let takes = self.script.lock().removal;
        if takes.is_zero() {
            return self.clusters.remove(id).await;
        }
        stored.gone_at.get_or_insert(((self.clock)() + takes).millis());
        self.clusters.put(id, &stored).await
    }

    fn say(&self, lines: Vec<LogLine>) {
        if !lines.is_empty() {
            (self.logs)(lines);
        }
    }
}

impl DataPlane for Simulated {
    fn kind(&self) -> PlaneKind {
        self.kind
    }

    fn accepts(&self, _: &Cluster) -> Result<(), UserText> {
        self.script.lock().no_clusters.clone().map_or(Ok(()), Err)
    }

    fn runs_images(&self) -> bool {
        !self.script.lock().has_no_images
    }

    fn apply<'a>(&'a self, environment: &'a Environment) -> PlaneFuture<'a, ()> {
        let (id, generation) = (environment.id, Some(environment.generation));
        Box::pin(self.perform(Call::Apply, id.id(), generation, self.put(environment)))
    }

    fn observe<'a>(&'a self, at: &'a Location) -> PlaneFuture<'a, Option<Observed>> {
        Box::pin(self.perform(Call::Observe, at.id.id(), None, self.show(at.id)))
    }

    fn rollout_report<'a>(&'a self, at: &'a Location) -> PlaneFuture<'a, Option<(i64, RolloutReport)>> {
        Box::pin(async {
            let Some(stored) = self.environments.get(at.id).await? else { return Ok(None) };
            Ok(self.script.rollout_report().map(|report| (stored.generation, report)))
        })
    }

    fn remove<'a>(&'a self, at: &'a Location) -> PlaneFuture<'a, ()> {
        Box::pin(self.perform(Call::Remove, at.id.id(), None, self.take(at.id)))
    }

    fn drain_and_remove<'a>(&'a self, at: &'a Location, grace: Option<Duration>) -> PlaneFuture<'a, ()> {
        self.script.note_drained_removal(at.id, grace);
        self.remove(at)
    }

    fn end_drain<'a>(&'a self, at: &'a Location, generation: i64) -> PlaneFuture<'a, ()> {
        let goes_on = self.go_on(at.id, generation);
        Box::pin(self.perform(Call::EndDrain, at.id.id(), Some(generation), goes_on))
    }

    fn clean_up<'a>(&'a self, at: &'a Location, clean_up: CleanUp) -> PlaneFuture<'a, CleanUpState> {
        let state = async move { Ok(self.script.clean_up(at.id, clean_up)) };
        Box::pin(self.perform(Call::CleanUp, at.id.id(), None, state))
    }

    fn apply_cluster<'a>(&'a self, cluster: &'a Cluster) -> PlaneFuture<'a, ()> {
        let (id, generation) = (cluster.cluster.id, Some(cluster.generation));
        Box::pin(self.perform(Call::ApplyCluster, id.id(), generation, self.put_cluster(cluster)))
    }

    fn observe_cluster(&self, at: ClusterLocation) -> PlaneFuture<'_, Option<ObservedCluster>> {
        Box::pin(self.perform(Call::ObserveCluster, at.id.id(), None, self.show_cluster(at.id)))
    }

    fn remove_cluster(&self, at: ClusterLocation) -> PlaneFuture<'_, ()> {
        Box::pin(self.perform(Call::RemoveCluster, at.id.id(), None, self.take_cluster(at.id)))
    }

    fn web_server<'a>(&'a self, at: &'a Location) -> PlaneFuture<'a, Option<WebServer>> {
        Box::pin(async { Ok(self.script.lock().web_servers.get(&at.id).cloned()) })
    }

    fn changes(&self) -> Changes {
        self.notifier.subscribe()
    }

    fn metrics<'a>(&'a self, of: &'a [Location]) -> PlaneFuture<'a, Vec<EnvironmentMetrics>> {
        Box::pin(async {
            let forever = self.script.lock().measures_forever;
            if forever {
                pending::<()>().await;
            }
            let mut metrics = self.script.lock().metrics.clone();
            metrics.retain(|metrics| of.iter().any(|location| location.id == metrics.id));
            Ok(metrics)
        })
    }

    fn running_tasks<'a>(&'a self, at: &'a Location) -> PlaneFuture<'a, Option<RunningTasks>> {
        Box::pin(async { self.script.lock().running_tasks.get(&at.id).cloned().transpose() })
    }

    fn machine(&self) -> Option<&dyn Machine> {
        self.is_bound.then_some(self)
    }
}

impl Machine for Simulated {
    fn environments(&self) -> Vec<DeploymentId> {
        self.environments.ids()
    }

    fn runs_peer(&self, peer: SocketAddr, own: Option<SocketAddr>) -> PlaneFuture<'_, bool> {
        let users = self.script.lock().users.clone();
        Box::pin(async move { Ok(socket_owners::is_of(users, peer, own).await) })
    }

    fn all_metrics(&self) -> PlaneFuture<'_, Vec<EnvironmentMetrics>> {
        Box::pin(async { Ok(self.script.lock().metrics.clone()) })
    }

    fn set_aside(&self, id: DeploymentId) -> PlaneFuture<'_, ()> {
        Box::pin(self.perform(Call::Remove, id.id(), None, self.take(id)))
    }
}

/// The components of an environment, named like its log sources.
fn components(environment: &Environment) -> Vec<String> {
    let major =
        environment.spec.runtime_version.split('.').next().and_then(|number| number.parse::<u32>().ok());
    let mut names = match major {
        Some(..3) => vec!["scheduler", "triggerer", "webserver"],
        _ => vec!["apiserver", "dag-processor", "scheduler", "triggerer"],
    };
    // Other executors run tasks in pods, or remotely.
    if environment.spec.executor != Executor::Kubernetes && environment.spec.remote_execution.is_none() {
        names.push("worker");
    }
    names.into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests;
