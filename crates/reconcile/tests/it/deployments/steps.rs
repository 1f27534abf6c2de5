//! Every call to the plane fails once, loses its response once, and is the last one before a process dies. The final
//! state is always the same.

use podium_api::enums::DeploymentStatus::{Healthy, Hibernating};
use podium_api::{DeploymentId, WorkspaceId};
use podium_dataplane::Fault;
use podium_dataplane::simulated::InjectedFault;
use podium_domain::deployments::HibernationOverride;
use podium_reconcile::{Loops, Options};
use podium_testkit::{TestApp, on_both_engines};

use super::{calls, come_to_rest, image, running_image, well};

/// Something that is asked of a deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scenario {
    Create,
    Update,
    Hibernate,
    Wake,
    Delete,
    DeleteBeforeItIsMade,
}

const ALL: [Scenario; 6] = [
    Scenario::Create,
    Scenario::Update,
    Scenario::Hibernate,
    Scenario::Wake,
    Scenario::Delete,
    Scenario::DeleteBeforeItIsMade,
];

fn rest(is_hibernating: bool) -> Option<HibernationOverride> {
    Some(HibernationOverride { is_hibernating, until: None })
}

impl Scenario {
    /// A deployment that has been asked for, and nothing has happened since.
    async fn begin(self, app: &TestApp, workspace: WorkspaceId) -> DeploymentId {
        let id = app
            .new_deployment_with(workspace, |spec| {
                spec.is_development_mode = true;
                spec.hibernation.override_ = rest(self == Self::Wake);
            })
            .await;
        if !matches!(self, Self::Create | Self::DeleteBeforeItIsMade) {
            come_to_rest(app, &app.loops).await;
        }
        match self {
            Self::Create => {}
            Self::Update => app.change_deployment(id, image("deploy-1")).await,
            Self::Hibernate => {
                app.change_deployment(id, |spec| spec.hibernation.override_ = rest(true)).await;
            }
            Self::Wake => app.change_deployment(id, |spec| spec.hibernation.override_ = rest(false)).await,
            Self::Delete | Self::DeleteBeforeItIsMade => app.delete_deployment(id).await,
        }
        id
    }

    /// What must be in the end.
    async fn check(self, app: &TestApp, id: DeploymentId, how: &str) {
        assert_eq!(app.pending_work().await, [], "{self:?}, {how}");
        let expected = match self {
            Self::Delete | Self::DeleteBeforeItIsMade => {
                assert!(!app.plane.environments().contains(&id), "{self:?}, {how}");
                return;
            }
            Self::Hibernate => Hibernating,
            Self::Create | Self::Update | Self::Wake => Healthy,
        };
        assert_eq!(app.status(id).await, well(expected), "{self:?}, {how}");
        let row = app.stored_deployment(id).await.expect("there is one");
        assert_eq!(row.observed_generation, row.generation, "{self:?}, {how}");
        let tag = if self == Self::Update { "deploy-1" } else { "3.3.2" };
        assert_eq!(running_image(app, id).await.as_deref(), Some(tag), "{self:?}, {how}");
        assert!(app.plane.environments().contains(&id));
    }

    /// How many calls to the plane it takes when nothing goes wrong.
    async fn length(self, app: &TestApp, workspace: WorkspaceId) -> u32 {
        let id = self.begin(app, workspace).await;
        calls(app, id);
        come_to_rest(app, &app.loops).await;
        self.check(app, id, "nothing goes wrong").await;
        u32::try_from(calls(app, id).len()).expect("a few")
    }
}

/// Another process: it holds nothing of what the first one held.
fn another_process(app: &TestApp) -> Loops {
    Loops::new(&app.app, app.system.steward(), &app.planes(), Options::default())
}

on_both_engines! {
    async fn every_call_may_fail(app) {
        app.plane.script().keep_journal();
        let workspace = app.workspace("Data").await;
        let injected = [
            InjectedFault::Fail(Fault::Failed("no room".into())),
            InjectedFault::Fail(Fault::Unreachable("no route to host".into())),
            InjectedFault::LoseResponse,
        ];
        for scenario in ALL {
            let length = scenario.length(&app, workspace).await;
            assert!(length > 0, "{scenario:?}");
            for (call, upset) in (0..length).flat_map(|call| injected.iter().map(move |upset| (call, upset))) {
                let id = scenario.begin(&app, workspace).await;
                app.plane.script().inject_after(id.id(), call, upset.clone());
                let how = format!("call {call} meets {upset:?}");
                app.settle().await;
                if app.pending_work().await.is_empty() {
                    scenario.check(&app, id, &how).await;
                }
                come_to_rest(&app, &app.loops).await;
                scenario.check(&app, id, &how).await;
            }
        }
    }

    async fn a_process_may_die_after_every_call(app) {
        app.plane.script().keep_journal();
        let workspace = app.workspace("Data").await;
        for scenario in ALL {
            let length = scenario.length(&app, workspace).await;
            for call in 0..length {
                let id = scenario.begin(&app, workspace).await;
                let before = app.plane.script().lock().hung;
                app.plane.script().inject_after(id.id(), call, InjectedFault::Hang);
                let died = async {
                    while app.plane.script().lock().hung == before {
                        tokio::task::yield_now().await;
                    }
                };
                let dying = another_process(&app);
                tokio::select! {
                    steps = dying.step_until_idle() => panic!("{scenario:?} {call}: {steps:?}"),
                    () = died => {}
                }
                drop(dying);
                let pending = app.pending_work().await;
                assert!(pending.len() == 1 && !pending[0].holder.is_empty(), "{pending:?}");
                assert_eq!(app.settle().await, 0, "nobody touches it while the lease lasts");
                app.world.set(pending[0].due_at);
                come_to_rest(&app, &app.loops).await;
                scenario.check(&app, id, &format!("the process dies after call {call}")).await;
            }
        }
    }

    async fn every_step_may_run_twice(app) {
        let system = app.system;
        app.plane.script().keep_journal();
        let workspace = app.workspace("Data").await;
        for scenario in ALL {
            let id = scenario.begin(&app, workspace).await;
            come_to_rest(&app, &app.loops).await;
            assert!(!calls(&app, id).is_empty());
            let changes = app.rows("changes").await;
            for _ in 0..2 {
                let now = app.world.now();
                let asked = app.app.db(&app.system).write(None, move |tx| {
                    podium_store::work::enqueue(tx, &system, podium_store::deployments::KIND, id.id(), now, now)
                });
                asked.await.expect("it is asked for");
                assert_eq!(app.settle().await, 1);
                scenario.check(&app, id, "it runs again").await;
                assert_eq!(calls(&app, id).len(), 1, "it looks, and there is nothing to do: {scenario:?}");
                assert_eq!(app.rows("changes").await, changes, "nothing changed: {scenario:?}");
            }
        }
    }
}
