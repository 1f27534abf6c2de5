//! Keepers at work with a runtime that only pretends: real processes, real sockets, no Airflow.

mod applying;
mod bed;
mod ending;
mod moving;
mod removing;
mod returning;
pub(super) mod services;
mod waiting;

pub(super) use self::bed::fresh_id;
