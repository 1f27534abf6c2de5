//! Declarations: files that say what an organization consists of, compared with what it has, and turned into one plan of the server.
//!
//! Everything is compared in the form of the files, with names in the place of ids: resources of the server are brought into that
//! form ([`kinds`]), and a field that a file names must have that value ([`compare`]). What differs becomes calls ([`calls`]) with
//! the requests of the API, which the server plans as a whole; exactly that plan is applied, or nothing.
//!
//! Commands reach all of this through what is listed here.

mod calls;
mod changes;
mod compare;
mod existing;
mod files;
mod keys;
mod kinds;
mod planner;
mod printing;
mod references;
mod sets;
mod state;

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::ending::Outcome;
use super::session::Session;
use keys::Kind;
use sets::Sets;
use state::State;

pub(crate) use compare::has;
pub(crate) use files::Source;

/// A file of everything that there is, or of what a set owns.
pub(crate) async fn exported(session: &Session, set: Option<&str>) -> Outcome<Map<String, Value>> {
    let state = State::read(session, &BTreeSet::from(Kind::ALL), &|_| true).await?;
    let sets = Sets::read(session, set).await?;
    let Some(set) = set else { return Ok(state.exported(None)) };
    sets.is_there()?;
    let mut file = Map::from_iter([("set".to_owned(), set.into())]);
    file.extend(state.exported(Some(&sets.remembered())));
    Ok(file)
}
