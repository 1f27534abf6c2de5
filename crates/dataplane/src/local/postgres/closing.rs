//! Closes the databases of a running server that belong to no environment.

use std::sync::Arc;

use super::{Cluster, Programs};
use crate::local::psql::run_sql;

impl Cluster {
    /// Lets environments connect to no database but their own, with new servers and with those of earlier versions:
    /// whoever is connected to a template keeps others from getting a copy of it.
    pub(super) async fn close_to_environments(self: &Arc<Self>, programs: &Programs) {
        let closed = async {
            let url = self.url().await.map_err(|why| why.to_string())?;
            run_sql(&programs.program("psql"), url.reveal(), include_str!("closing.sql"))
                .await
                .map_err(|error| error.to_string())
        };
        if let Err(why) = closed.await {
            tracing::warn!(%why, "databases of the environments' server that belong to none of them stay open to them");
        }
    }
}
