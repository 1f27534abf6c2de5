//! An operation ends as its target does, whatever happens on the way: every call to the plane fails once, loses its
//! response once, and is the last one before a process dies.

use podium_api::{DeploymentId, Id, WorkspaceId};
use podium_dataplane::Fault;
use podium_dataplane::simulated::InjectedFault;
use podium_reconcile::{Loops, Options};
use podium_testkit::{Answer, TestApp, on_both_engines};
use serde_json::{Value, json};

use crate::deployments::come_to_rest;

/// Something that is asked of a deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scenario {
    Create,
    Update,
    Hibernate,
    Delete,
}

const ALL: [Scenario; 4] = [Scenario::Create, Scenario::Update, Scenario::Hibernate, Scenario::Delete];

impl Scenario {
    /// A deployment that has been asked for, and the operation.
    async fn begin(self, app: &TestApp, workspace: WorkspaceId) -> (DeploymentId, String) {
        let body =
            json!({ "name": app.world.id::<Id>(), "workspaceId": workspace, "isDevelopmentMode": true });
        let made = app.post(&app.owner, &app.path("/deployments"), body).await;
        let id: DeploymentId = made.id().parse().expect("an id");
        if self == Self::Create {
            return (id, started(&made));
        }
        come_to_rest(app, &app.loops).await;
        let path = app.path(&format!("/deployments/{id}"));
        let answer = match self {
            Self::Update => {
                let read = app.get(&app.owner, &path).await.ok();
                let mut body = json!({ "description": "More" });
                for field in [
                    "type",
                    "name",
                    "workspaceId",
                    "executor",
                    "isCicdEnforced",
                    "isDagDeployEnabled",
                    "environmentVariables",
                    "schedulerSize",
                    "isHighAvailability",
                ] {
                    body[field] = read[field].clone();
                }
                app.post(&app.owner, &path, body).await
            }
            Self::Hibernate => {
                let path = format!("{path}/hibernation-override");
                app.post(&app.owner, &path, json!({ "isHibernating": true })).await
            }
            Self::Create | Self::Delete => app.delete(&app.owner, &path).await,
        };
        (id, started(&answer))
    }

    async fn check(self, app: &TestApp, operation: &str, how: &str) {
        assert_eq!(app.pending_work().await, [], "{self:?}, {how}");
        let shown = read(app, operation).await;
        assert_eq!(shown["state"], "SUCCEEDED", "{self:?}, {how}: {shown}");
        let steps = shown["steps"].as_array().expect("a list");
        assert!(steps.iter().all(|step| step["endedAt"].is_string()), "{self:?}, {how}: {shown}");
        assert_eq!(app.rows("operations WHERE ended_at IS NULL").await, 0, "{self:?}, {how}");
    }

    /// How many calls to the plane it takes when nothing goes wrong.
    async fn length(self, app: &TestApp, workspace: WorkspaceId) -> u32 {
        let (id, operation) = self.begin(app, workspace).await;
        app.plane.script().journal();
        come_to_rest(app, &app.loops).await;
        self.check(app, &operation, "nothing goes wrong").await;
        let journal = app.plane.script().journal();
        u32::try_from(journal.iter().filter(|entry| entry.id == id.id()).count()).expect("a few")
    }
}

/// Runs the loops of another process, which dies after so many calls about a deployment.
async fn die_after(app: &TestApp, id: DeploymentId, call: u32) {
    let before = app.plane.script().lock().hung;
    app.plane.script().inject_after(id.id(), call, InjectedFault::Hang);
    let died = async {
        while app.plane.script().lock().hung == before {
            tokio::task::yield_now().await;
        }
    };
    let dying = Loops::new(&app.app, app.system.steward(), &app.planes(), Options::default());
    tokio::select! {
        steps = dying.step_until_idle() => panic!("{call}: {steps:?}"),
        () = died => {}
    }
}

fn started(answer: &Answer) -> String {
    answer.ok();
    answer.header("podium-operation").to_owned()
}

async fn read(app: &TestApp, operation: &str) -> Value {
    app.get(&app.owner, &app.path(&format!("/operations/{operation}"))).await.ok()
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
            for (call, upset) in (0..scenario.length(&app, workspace).await)
                .flat_map(|call| injected.iter().map(move |upset| (call, upset)))
            {
                let (id, operation) = scenario.begin(&app, workspace).await;
                app.plane.script().inject_after(id.id(), call, upset.clone());
                come_to_rest(&app, &app.loops).await;
                scenario.check(&app, &operation, &format!("call {call} meets {upset:?}")).await;
            }
        }
    }

    async fn a_process_may_die_after_every_call(app) {
        app.plane.script().keep_journal();
        let workspace = app.workspace("Data").await;
        for scenario in ALL {
            for call in 0..scenario.length(&app, workspace).await {
                let (id, operation) = scenario.begin(&app, workspace).await;
                die_after(&app, id, call).await;
                app.world.set(app.pending_work().await[0].due_at);
                come_to_rest(&app, &app.loops).await;
                scenario.check(&app, &operation, &format!("the process dies after call {call}")).await;
            }
        }
    }

    async fn every_step_may_run_twice(app) {
        let system = app.system;
        let workspace = app.workspace("Data").await;
        for scenario in ALL {
            let (id, operation) = scenario.begin(&app, workspace).await;
            come_to_rest(&app, &app.loops).await;
            let (ended, rows) = (read(&app, &operation).await, app.rows("operations").await);
            let now = app.world.now();
            let asked = app.app.db(&app.system).write(None, move |tx| {
                podium_store::work::enqueue(tx, &system, podium_store::deployments::KIND, id.id(), now, now)
            });
            asked.await.expect("it is asked for");
            come_to_rest(&app, &app.loops).await;
            assert_eq!((read(&app, &operation).await, app.rows("operations").await), (ended, rows), "{scenario:?}");
        }
    }

    async fn a_scheduled_operation_survives_a_process_that_dies(app) {
        let workspace = app.workspace("Data").await;
        let nightly = json!({ "hibernateAtCron": "0 20 * * *", "wakeAtCron": "0 6 * * *", "isEnabled": true });
        let body = json!({
            "name": "Reports", "workspaceId": workspace, "isDevelopmentMode": true,
            "scalingSpec": { "hibernationSpec": { "schedules": [nightly] } },
        });
        let made = app.post(&app.owner, &app.path("/deployments"), body).await;
        let id: DeploymentId = made.id().parse().expect("an id");
        app.settle().await;
        for call in 0..3 {
            app.world.set(app.pending_work().await[0].due_at);
            die_after(&app, id, call).await;
            app.world.set(app.pending_work().await[0].due_at);
            app.settle().await;
            let list = app.get(&app.owner, &app.path("/operations?states=SUCCEEDED")).await.ok();
            assert_eq!(list["totalCount"], 2 + call, "one for each event: {list}");
            assert_eq!(list["operations"][0]["cause"], "SCHEDULE");
        }
        assert_eq!(app.rows("operations").await, 4);
    }
}
