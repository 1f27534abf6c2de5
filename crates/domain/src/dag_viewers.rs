//! What those read of a deployment who hold roles on some of its DAGs, and none on the deployment: that it is there, its
//! status, and what is under way. Texts about all of it are withheld, because they may name other DAGs and say what is
//! wrong with them.

use podium_api::deployment_processes::DeploymentProcesses;
use podium_api::deployments::Deployment;
use podium_api::events::EventData;
use podium_api::operations::{Operation, OperationFailure};

use crate::grants::{Grants, On};
use crate::permissions::Permission;

/// What stands in the place of a reason.
const WITHHELD: &str = "The reason is shown to those with a role on the whole deployment.";
const WHOM_TO_ASK: &str = "Ask somebody who has one.";
const SEE_TASKS: Permission = Permission::known("dag.airflow.taskInstance.get");

/// Withholds what a viewer may not read of a deployment.
pub fn narrow_deployment(viewer: &Grants, deployment: &mut Deployment) {
    if viewer.sees_only_dags_of(deployment.id) {
        withhold(&mut deployment.status_reason);
    }
}

/// Withholds what a viewer may not read of an operation on a deployment.
pub fn narrow_operation(viewer: &Grants, operation: &mut Operation) {
    let Some(id) = operation.target.deployment_id.filter(|id| viewer.sees_only_dags_of(*id)) else { return };
    operation.summary = None;
    if operation.failure.is_some() {
        operation.failure = Some(OperationFailure { reason: WITHHELD.into(), hint: WHOM_TO_ASK.into() });
    }
    if let Some(progress) = &mut operation.progress {
        progress.message = None;
        let own: Vec<String> = viewer
            .on_dags_of(id)
            .filter(|(_, held)| held.contains(SEE_TASKS))
            .filter_map(|(on, _)| match on {
                On::Dag { dag_id, .. } => Some(format!("{dag_id}/")),
                _ => None,
            })
            .collect();
        progress.waits_for.retain(|task| own.iter().any(|dag| task.starts_with(dag)));
    }
}

/// Withholds what a viewer may not read of an event.
pub fn narrow_event(viewer: &Grants, event: &mut EventData) {
    if event.deployment_id.is_some_and(|id| viewer.sees_only_dags_of(id)) {
        withhold(&mut event.status_reason);
    }
}

/// Withholds what a viewer may not read of the processes of a deployment.
pub fn narrow_processes(viewer: &Grants, of: &mut DeploymentProcesses) {
    if viewer.sees_only_dags_of(of.deployment_id) {
        of.processes.iter_mut().for_each(|process| withhold(&mut process.reason));
    }
}

fn withhold(reason: &mut Option<String>) {
    if reason.as_ref().is_some_and(|reason| !reason.is_empty()) {
        *reason = Some(WITHHELD.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use podium_api::{Id, Timestamp};
    use serde_json::json;

    use super::*;
    use crate::fixtures::{d1, d2, in_workspace, on_dag, on_tag, w1};

    const SECRET: &str = "payroll";

    fn viewer() -> Grants {
        Grants::new([on_dag(d1(), "etl", "DAG_VIEWER"), on_tag(d1(), "daily", "DAG_AUTHOR")])
    }

    fn operation() -> Operation {
        let at = Timestamp::from_millis(1);
        let operation = json!({
            "id": Id::from_parts(1, 2, 3), "kind": "DEPLOY", "cause": "CALL", "state": "FAILED", "summary": SECRET,
            "target": { "type": "DEPLOYMENT", "id": d1(), "name": "Nightly", "workspaceId": w1(), "deploymentId": d1() },
            "steps": [{ "name": "DRAIN", "startedAt": at }], "failure": { "reason": SECRET, "hint": SECRET },
            "progress": {
                "done": 1, "total": 2, "message": SECRET,
                "waitsFor": ["etl/r/t", "etl2/r/t", "payroll/r/t", "etl"],
            },
            "isCancellable": false, "pointOfNoReturn": "", "createdAt": at,
        });
        serde_json::from_value(operation).expect("an operation")
    }

    fn processes() -> DeploymentProcesses {
        let process = json!({ "name": "scheduler", "isUp": false, "reason": SECRET, "restarts": 3 });
        let processes = json!({ "deploymentId": d1(), "processes": [process] });
        serde_json::from_value(processes).expect("processes")
    }

    #[test]
    fn what_is_said_about_all_of_a_deployment_is_withheld() {
        let (mut narrowed, mut seen) = (operation(), processes());
        narrow_operation(&viewer(), &mut narrowed);
        narrow_processes(&viewer(), &mut seen);
        assert!(!format!("{narrowed:?} {seen:?}").contains(SECRET), "{narrowed:?} {seen:?}");
        let progress = narrowed.progress.expect("that it goes on is told");
        assert_eq!((progress.done, progress.total), (Some(1), Some(2)));
        assert_eq!(
            progress.waits_for,
            ["etl/r/t"],
            "tasks of other DAGs are not named, however alike the names"
        );
        assert_eq!(narrowed.failure.expect("that it failed is told").reason, WITHHELD);
        assert_eq!((narrowed.steps.len(), seen.processes[0].restarts), (1, 3));
    }

    #[test]
    fn who_has_more_reads_everything() {
        let member = || in_workspace(w1(), "WORKSPACE_MEMBER");
        for grants in [
            Grants::new([on_dag(d1(), "etl", "DAG_VIEWER"), member()]),
            Grants::new([member()]),
            Grants::new([on_dag(d2(), "etl", "DAG_VIEWER")]),
        ] {
            let (mut same, mut seen) = (operation(), processes());
            narrow_operation(&grants, &mut same);
            narrow_processes(&grants, &mut seen);
            assert_eq!(same, operation());
            assert_eq!(seen.processes[0].reason.as_deref(), Some(SECRET));
        }
    }
}
