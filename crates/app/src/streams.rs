//! Streams of server-sent events that are open: so many of one subject, of one organization and altogether.
//!
//! A stream that waits costs little, but it holds a connection. Without bounds one caller could hold those of everybody
//! else ([decision 65](../../../docs/decisions/0065-streams-cost-others-nothing.md)).

use podium_api::Id;
use podium_store::Scope;

use crate::cx::Cx;
use crate::error::{Error, Result, WhoseStreams};
use crate::shared_capacity::{CapacityPermit, SharedCapacity, Taken};

/// When to try again where there are too many.
const RETRY_AFTER: u64 = 5;

/// Room for streams of a kind; clones share it.
#[derive(Clone)]
pub(crate) struct Streams {
    room: SharedCapacity<Id>,
    of_organization: usize,
    of_subject: usize,
}

/// A stream that is open, until this is dropped.
pub(crate) type OpenStream = CapacityPermit<Id>;

impl Streams {
    /// Room for streams of events, of which every open page of the console has one.
    pub(crate) fn of_events() -> Self {
        Self { room: SharedCapacity::new(8192), of_organization: 2048, of_subject: 100 }
    }

    /// Room for streams of logs and operations.
    pub(crate) fn of_logs_and_operations() -> Self {
        Self { room: SharedCapacity::new(1024), of_organization: 512, of_subject: 10 }
    }

    pub(crate) fn open(&self, cx: &Cx<Scope>) -> Result<OpenStream> {
        let keys =
            [(cx.organization_id().id(), self.of_organization), (cx.subject_id().id(), self.of_subject)];
        let whose = match self.room.take_within(&keys) {
            Ok(permit) => return Ok(permit),
            Err(Taken::ByKey(1)) => WhoseStreams::Caller,
            Err(Taken::ByKey(_)) => WhoseStreams::Organization,
            Err(Taken::ByAll) => WhoseStreams::Everybody,
        };
        Err(Error::TooManyStreams { whose, retry_after: RETRY_AFTER })
    }
}
