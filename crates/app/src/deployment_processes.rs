//! The processes of deployments.

use std::collections::HashMap;

use podium_api::deployment_processes::{self as api, DeploymentProcesses, DeploymentProcessesPaginated};
use podium_api::{DeploymentId, Id, Many, Named};
use podium_db::Conn;
use podium_domain::{UserText, dag_viewers};
use podium_store::deployments::{self, DeploymentRow};
use podium_store::{LazyRow, Paging, Render, Scope};

use crate::cx::{Call, Cx};
use crate::error::Result;

const OTHER_NODE: &str = "The deployment runs on another node: ask that node.";

/// Lists the processes of the deployments that the caller may see. What cannot be observed says why.
pub async fn list(cx: Cx<Scope>, call: Call<api::List>) -> Result<Many<DeploymentProcessesPaginated>> {
    let (mut query, observed_at) = (call.query, cx.now());
    query.deployment_ids.retain(Named::is_given);
    query.workspace_ids.retain(Named::is_given);
    let paging = Paging::from(&query.page);
    let (limit, offset) = (paging.limit, paging.offset);
    let page = cx.scan(move |cx, conn| {
        let reach = cx.grants().visible_deployments();
        let (ids, workspace_ids) = (&query.deployment_ids, &query.workspace_ids);
        let listed = deployments::ListFilter { reach: &reach, ids, name_keys: &[], workspace_ids };
        let landmarks = &cx.app().landmarks;
        Ok(deployments::list(conn, cx.scope(), &listed, &paging, landmarks, true, &OnlyId)?)
    });
    let (ids, total_count) = page.await?.unwrap_or_default();
    let app = cx.app();
    let elsewhere = app.on_other_nodes(&ids).await?;
    let observed = match app.observer.get() {
        Some(observer) if !ids.is_empty() => {
            let here: Vec<_> = ids.iter().filter(|id| !elsewhere.contains(id)).copied().collect();
            let located = cx.read(move |cx, conn| Ok(deployments::located(conn, cx.scope(), &here)?));
            observer.processes(&located.await?).await
        }
        _ => Ok((Vec::new(), None)),
    };
    let (mut observed, problem): (HashMap<_, _>, _) = match observed {
        Ok((observed, problem)) => (observed.into_iter().map(|it| (it.deployment_id, it)).collect(), problem),
        Err(why) => (HashMap::new(), Some(why)),
    };
    let one = |id: DeploymentId| {
        let mut of = observed.remove(&id).unwrap_or_else(|| {
            let is_elsewhere = elsewhere.contains(&id);
            not_observed(id, if is_elsewhere { Some(OTHER_NODE.into()) } else { problem.clone() })
        });
        dag_viewers::narrow_processes(cx.grants(), &mut of);
        of
    };
    let deployment_processes = ids.into_iter().map(one).collect();
    Ok(Many(DeploymentProcessesPaginated { deployment_processes, observed_at, limit, offset, total_count }))
}

fn not_observed(deployment_id: DeploymentId, reason: Option<UserText>) -> DeploymentProcesses {
    let reason = reason.map(|reason| reason.to_string());
    DeploymentProcesses { deployment_id, processes: Vec::new(), memory_bytes: None, disk_bytes: None, reason }
}

/// Reads nothing but the id of a deployment.
struct OnlyId;

impl Render<DeploymentRow, DeploymentId> for OnlyId {
    fn cached(&self, _: &Conn, _: Id) -> Option<DeploymentId> {
        None
    }

    fn render(&self, row: &LazyRow<'_, DeploymentRow>) -> podium_db::Result<DeploymentId> {
        row.id().map(DeploymentId::from_raw)
    }
}
