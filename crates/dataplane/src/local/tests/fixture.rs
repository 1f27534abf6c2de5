//! A plane with fake runtimes, and what can be observed from outside.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use podium_api::enums::DeploymentType;
use podium_api::{DeploymentId, Id, OrganizationId, Timestamp, WorkspaceId};
use podium_domain::Reason;
use podium_domain::deployments::Spec;
use podium_domain::deployments::plan::{Health, Observed, Rollout};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use tempfile::TempDir;

use super::services::{ArchiveFixture, KeptLines, NoClaims, key};
use crate::blocking::allow_blocking;
use crate::local::cgroups::Cgroups;
use crate::local::host::Python;
use crate::local::identity::Identity;
use crate::local::layout::Place;
use crate::local::orphans::OrphanProcesses;
use crate::local::process::{group_of, pids};
use crate::local::runtimes::{READY, TEMPLATE, lock_of, seal};
use crate::local::state::State;
use crate::local::timing::Timing;
use crate::local::view::metrics_of;
use crate::local::{Local, Options};
use crate::{DataPlane as _, Environment, EnvironmentMetrics, Location, Logs, Objects, Secret, Services};

/// Long enough that only a hang exceeds it.
const PATIENCE: Duration = Duration::from_secs(120);

/// A unique id on this machine: processes are recognised by it.
pub(crate) fn fresh_id() -> DeploymentId {
    let random = RandomState::new().build_hasher().finish();
    DeploymentId::from_raw(Id::from_parts(
        u64::from(std::process::id()),
        u32::try_from(random >> 40).unwrap(),
        random,
    ))
}

/// What a program was started with.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Start {
    pub(crate) pid: i32,
    pub(crate) version: String,
    pub(crate) arguments: String,
    pub(crate) parallelism: String,
    pub(crate) umask: String,
    pub(crate) open_files: String,
}

/// The directory of a plane, with scripts for its programs and their journal.
pub(crate) struct Fixture {
    directory: TempDir,
    pub(crate) id: DeploymentId,
    /// Shared by all followers of logs.
    pub(crate) logs: Arc<KeptLines>,
}

impl Fixture {
    pub(crate) fn at(&self) -> Location {
        Location::unknown(self.id)
    }

    pub(crate) fn new() -> Self {
        // As the control plane does.
        rustix::process::umask(rustix::fs::Mode::from_bits_truncate(0o077));
        let fixture = Self { directory: tempfile::tempdir().unwrap(), id: fresh_id(), logs: Arc::default() };
        fs::create_dir(fixture.path("told")).unwrap();
        fs::write(fixture.path("server.py"), include_str!("fake_server.py")).unwrap();
        let python = fixture.python();
        program(&python, &format!("#!/bin/sh\nprintf '3.12\\n%s\\n' '{}'\n", python.display()));
        fixture
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn plane(&self) -> PathBuf {
        self.path("data/local")
    }

    fn python(&self) -> PathBuf {
        self.path("python")
    }

    pub(crate) fn place(&self) -> Place {
        Place { root: fs::canonicalize(self.plane()).unwrap().join("environments").join(self.id.as_str()) }
    }

    /// Installs a fake runtime of this version.
    pub(crate) fn with_runtime(self, version: &str) -> Self {
        let runtime = self.plane().join("runtimes").join(version);
        fs::create_dir_all(runtime.join("bin")).unwrap();
        fs::write(runtime.join(TEMPLATE), "a migrated database\n").unwrap();
        let real = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output();
        let real = String::from_utf8(real.expect("these tests need python3").stdout).unwrap();
        let script = include_str!("fake_airflow.sh")
            .replace("@JOURNAL@", self.path("journal").to_str().unwrap())
            .replace("@TOLD@", self.path("told").to_str().unwrap())
            .replace("@VERSION@", version)
            .replace("@PYTHON@", real.trim())
            .replace("@SERVER@", self.path("server.py").to_str().unwrap());
        program(&self.airflow(version), &script);
        program(&self.airflow(version).with_file_name("python"), &script);
        let python = Python { path: self.python(), version: (3, 12), home: self.path("") };
        fs::write(runtime.join(READY), seal(lock_of(version).unwrap(), &python)).unwrap();
        self
    }

    /// Makes a broker that runs a shell script and then answers.
    pub(crate) fn broker(&self, name: &str, script: &str) -> PathBuf {
        let (journal, told) = (self.path("journal"), self.path("told"));
        let text = format!(
            r#"#!/bin/sh
# It is started by a shell, which is the one that is kept.
echo "$PPID|-|broker|||" >>'{}'
told='{}'
socket=$(sed -n 's/^unixsocket "\(.*\)"$/\1/p')
{script}
exec python3 -I -S -c '
import os, socket, sys
if os.path.lexists(sys.argv[1]): os.unlink(sys.argv[1])
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen()
while True: listener.accept()[0].close()
' "$socket"
"#,
            journal.display(),
            told.display()
        );
        let path = self.path(name);
        program(&path, &text);
        path
    }

    pub(crate) fn airflow(&self, version: &str) -> PathBuf {
        self.plane().join("runtimes").join(version).join("bin/airflow")
    }

    /// Sets a shell script that a program runs before its usual behaviour.
    pub(crate) fn set_script(&self, program: &str, script: &str) {
        fs::write(self.path("told").join(program), format!("{script}\n")).unwrap();
    }

    /// Removes the script of a program.
    pub(crate) fn clear_script(&self, program: &str) {
        fs::remove_file(self.path("told").join(program)).unwrap();
    }

    pub(crate) fn open(&self) -> Local {
        self.open_with(|_, _| {})
    }

    pub(crate) fn open_with(&self, change: impl FnOnce(&mut Options, &mut Timing)) -> Local {
        let mut options = Options {
            directory: self.plane(),
            public_url: "https://podium.example".into(),
            python: Some(self.python()),
            ..Options::default()
        };
        let millis = Duration::from_millis;
        let mut timing = Timing {
            grace: PATIENCE,
            drain: PATIENCE,
            short_grace: PATIENCE,
            retry: millis(20),
            longest_retry: millis(100),
            startup_timeout: PATIENCE,
            startup_poll: millis(20),
            steady_poll: millis(50),
            response_timeout: PATIENCE,
            hang_timeout: PATIENCE,
            stable_after: PATIENCE,
            first_pause: millis(10),
            longest_pause: millis(100),
            parse_settles: Duration::ZERO,
            disk_poll: millis(20),
            disk_pause: Duration::ZERO,
        };
        change(&mut options, &mut timing);
        let services = Services {
            archives: Arc::new(ArchiveFixture),
            logs: Arc::clone(&self.logs) as Arc<dyn Logs>,
            claims: Arc::new(NoClaims),
            keys: Arc::new(|id, purpose| Secret::new(key(id, purpose))),
            clock: Arc::new(|| Timestamp::from_millis(0)),
        };
        allow_blocking(|| Local::open_at(timing, options, services)).unwrap()
    }

    /// The initial desired state.
    pub(crate) fn environment(&self, generation: i64) -> Environment {
        let mut spec = Spec::new(DeploymentType::Standard, "3.3.2");
        spec.release.image_tag = "image".into();
        Environment {
            id: self.id,
            organization_id: OrganizationId::from_raw(Id::from_parts(1, 1, 1)),
            workspace_id: WorkspaceId::from_raw(Id::from_parts(1, 1, 2)),
            cluster_id: None,
            name: "Reports".into(),
            namespace: "calm-river-1234".into(),
            generation,
            is_hibernating: false,
            spec,
            variables: Vec::new(),
            objects: Objects::default(),
        }
    }

    /// All starts of a program, in order, by its first argument.
    pub(crate) fn starts(&self, program: &str) -> Vec<Start> {
        let is_meant = |start: &Start| start.arguments.split(' ').next() == Some(program);
        self.all_starts().into_iter().filter(is_meant).collect()
    }

    fn all_starts(&self) -> Vec<Start> {
        let journal = fs::read_to_string(self.path("journal")).unwrap_or_default();
        let start = |line: &str| {
            let fields: Vec<String> = line.split('|').map(str::to_owned).collect();
            let Ok([pid, version, arguments, parallelism, umask, open_files]) =
                <[String; 6]>::try_from(fields)
            else {
                panic!("not a start: {line}");
            };
            Start { pid: pid.parse().unwrap(), version, arguments, parallelism, umask, open_files }
        };
        journal.lines().map(start).collect()
    }

    /// The saved state.
    pub(crate) fn state(&self) -> State {
        allow_blocking(|| State::read(&self.place().state())).unwrap().unwrap()
    }

    /// What runs, by component.
    pub(crate) fn processes(&self) -> BTreeMap<String, Identity> {
        self.state().processes.into_iter().map(|(name, started)| (name, started.identity)).collect()
    }

    /// How many process group leaders a component has.
    pub(crate) fn leaders(&self, component: &str) -> usize {
        let marks = [format!("PODIUM_ENVIRONMENT={}", self.id), format!("PODIUM_COMPONENT={component}")];
        let carries_all = |pid: i32| {
            let told = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            marks.iter().all(|mark| told.split(|byte| *byte == 0).any(|pair| pair == mark.as_bytes()))
        };
        allow_blocking(pids).filter(|pid| group_of(*pid) == Some(*pid) && carries_all(*pid)).count()
    }

    /// Waits until the observed environment fulfils a condition.
    pub(crate) async fn until(&self, plane: &Local, what: impl Fn(&Observed) -> bool) -> Observed {
        let mut changes = plane.changes();
        loop {
            let seen = plane.observe(&self.at()).await.unwrap();
            match seen {
                Some(seen) if what(&seen) => return seen,
                _ => {}
            }
            let change = tokio::time::timeout(PATIENCE, changes.next()).await;
            change.unwrap_or_else(|_| panic!("in vain: {seen:?}"));
        }
    }

    /// Applies an environment, and waits until it is up.
    pub(crate) async fn bring_up(&self, plane: &Local, environment: &Environment) -> Observed {
        plane.apply(environment).await.unwrap();
        let is_up = |seen: &Observed| {
            let are_up = seen.components.iter().all(|component| component.health == Health::Up);
            seen.generation == environment.generation && seen.rollout == Rollout::Done && are_up
        };
        let seen = self.until(plane, is_up).await;
        // Running programs have written their start to the journal, or are about to.
        let has_noted = |identity: &Identity| self.all_starts().iter().any(|start| start.pid == identity.pid);
        eventually(|| self.processes().values().all(has_noted)).await;
        seen
    }

    /// Waits until nothing is left of the environment.
    pub(crate) async fn until_gone(&self, plane: &Local) {
        let mut changes = plane.changes();
        while let Some(seen) = plane.observe(&self.at()).await.unwrap() {
            let change = tokio::time::timeout(PATIENCE, changes.next()).await;
            change.unwrap_or_else(|_| panic!("in vain: {seen:?}"));
        }
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let orphans = OrphanProcesses::of(self.id, None, &Cgroups::None);
        while allow_blocking(|| orphans.kill(|_| true)) > 0 {
            std::thread::yield_now();
        }
        let started: Vec<Pid> =
            self.all_starts().iter().filter_map(|start| Pid::from_raw(start.pid)).collect();
        for _ in 0..500 {
            // Children of this process have to be reaped here.
            started.iter().for_each(|pid| _ = waitpid(Some(*pid), WaitOptions::NOHANG));
            if allow_blocking(|| Cgroups::find().forget(self.id)) {
                break;
            }
            std::thread::sleep(Duration::from_millis(4));
        }
    }
}

/// Why a component is down, for users.
pub(crate) fn trouble(seen: &Observed, component: &str) -> Option<String> {
    reason(seen, component).map(|why| why.user_text().to_string())
}

/// Why a component is down, for operators.
pub(crate) fn detail(seen: &Observed, component: &str) -> Option<String> {
    reason(seen, component).map(|why| why.detail().to_owned())
}

fn reason(seen: &Observed, component: &str) -> Option<Reason> {
    seen.components.iter().find(|known| known.name == component).and_then(|known| match &known.health {
        Health::Down(why) => Some(why.clone()),
        _ => None,
    })
}

pub(crate) fn metrics(plane: &Local) -> Vec<EnvironmentMetrics> {
    allow_blocking(|| metrics_of(&plane.plane))
}

/// Polls until a condition holds.
pub(crate) async fn eventually(what: impl Fn() -> bool) {
    let waiting = async {
        while !what() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.expect("in vain");
}

/// Writes a program. Under another name first: one that is open for writing cannot be run.
pub(crate) fn program(path: &Path, text: &str) {
    let draft = path.with_extension("draft");
    fs::write(&draft, text).unwrap();
    fs::set_permissions(&draft, fs::Permissions::from_mode(0o755)).unwrap();
    fs::rename(&draft, path).unwrap();
}

/// Polls until there is a value.
pub(crate) async fn eventually_some<T>(mut what: impl FnMut() -> Option<T>) -> T {
    let waiting = async {
        loop {
            if let Some(value) = what() {
                return value;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.expect("in vain")
}

/// Kills a process as a crash would.
pub(crate) fn kill(identity: &Identity) {
    kill_process(Pid::from_raw(identity.pid).unwrap(), Signal::KILL).unwrap();
}
