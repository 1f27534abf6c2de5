//! Supervisors with a fake runtime: real processes, real sockets, no Airflow.

mod applying;
mod aside;
mod attacks;
mod bounding;
mod cleaning;
mod counting;
mod ending;
mod fixture;
mod forcing;
mod halting;
mod hanging;
mod loopback;
mod moving;
mod ordering;
mod projects;
mod releases;
mod removing;
mod replacing;
mod returning;
pub(super) mod services;
mod strict;
mod waiting;

pub(super) use self::bounding::BOMB;
pub(super) use self::fixture::{eventually, eventually_some, fresh_id};
