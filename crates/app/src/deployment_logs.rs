//! Logs of deployments.

use podium_api::Many;
use podium_api::deployment_logs::{
    self as api, DeploymentLog, DeploymentLogCount, DeploymentLogCounts, DeploymentLogEntry,
};
use podium_domain::{Refusal, deployment_logs as rules};
use podium_logs::{Counts, Entry, Page, Query, Search};
use podium_store::{Scope, deployments};

use crate::cx::{Call, Cx};
use crate::error::{Error, Result};

pub use crate::log_events::follow;

/// Searches the logs of a deployment; all pages of a search see the same snapshot.
pub async fn get(cx: Cx<Scope>, call: Call<api::Get>) -> Result<Many<DeploymentLog>> {
    let (deployment_id, query) = (call.path.deployment_id, call.query);
    let window = rules::window(&query, cx.now())?;
    let found = cx.read(move |cx, conn| Ok(deployments::proven(conn, cx.scope(), deployment_id)?)).await?;
    let (proof, deployment) = found.ok_or_else(|| Refusal::not_found("deployment"))?;
    cx.app().require_local(deployment_id).await?;
    let logs = cx.app().logs_of(proof);
    let named = query.search_id.as_ref().and_then(|id| id.parse().ok());
    let resumed = named.and_then(|id| logs.resume(id, cx.subject_id(), cx.now()));
    let snapshot = match resumed {
        Some(snapshot) => snapshot,
        None => {
            let search = Search {
                deployment_id,
                window,
                sources: rules::present(&query.sources, &deployment.spec.runtime_version),
                query: Query::parse(query.search_text.as_deref().unwrap_or_default()),
                max_results: query.max_num_results,
            };
            logs.snapshot(cx.new_id(), cx.subject_id(), search, cx.now())
        }
    };
    let search_id = snapshot.id;
    let page = Page { offset: query.offset, limit: query.limit };
    let entries = logs.page(snapshot, page).await.map_err(unreadable)?;
    Ok(Many(DeploymentLog {
        result_count: entries.len() as u64,
        results: entries.into_iter().map(on_the_wire).collect(),
        search_id,
        limit: query.limit,
        offset: query.offset,
        max_num_results: query.max_num_results,
    }))
}

/// Counts the lines of a deployment over time.
pub async fn count(cx: Cx<Scope>, call: Call<api::Count>) -> Result<Many<DeploymentLogCounts>> {
    let (deployment_id, query) = (call.path.deployment_id, call.query);
    let window = rules::counted_window(&query, cx.now())?;
    let found = cx.read(move |cx, conn| Ok(deployments::proven(conn, cx.scope(), deployment_id)?)).await?;
    let (proof, deployment) = found.ok_or_else(|| Refusal::not_found("deployment"))?;
    cx.app().require_local(deployment_id).await?;
    let search = Search {
        deployment_id,
        window: window.clone(),
        sources: rules::present(&query.sources, &deployment.spec.runtime_version),
        query: Query::parse(query.search_text.as_deref().unwrap_or_default()),
        max_results: 0,
    };
    let parts = usize::try_from(query.buckets).unwrap_or(1);
    let Counts { buckets, complete_from } =
        cx.app().logs_of(proof).count(search, parts).await.map_err(unreadable)?;
    let bucket = |(at, [error_count, warning_count, other_count]): (usize, [u64; 3])| DeploymentLogCount {
        start_date: rules::bucket_start(&window, at, parts),
        error_count,
        warning_count,
        other_count,
    };
    Ok(Many(DeploymentLogCounts {
        buckets: buckets.into_iter().enumerate().map(bucket).collect(),
        start_date: query.start_date.unwrap_or_else(|| window.start.into()),
        end_date: query.end_date.unwrap_or_else(|| window.end.into()),
        complete_from,
    }))
}

fn on_the_wire(entry: Entry) -> DeploymentLogEntry {
    DeploymentLogEntry { raw: entry.text, source: entry.source, timestamp: entry.timestamp.millis() }
}

#[expect(clippy::needless_pass_by_value, reason = "it is made for map_err")]
fn unreadable(error: std::io::Error) -> Error {
    Error::Internal(format!("logs cannot be read: {error}"))
}
