//! The statements that one connection has prepared.

use std::collections::{HashMap, VecDeque};

use tokio::runtime::Runtime;

use super::Failure;
use super::wire::{Prepared, Wire};
use crate::Sql;

/// How many statements composed at run time are cached; the oldest is evicted first.
const MOST: usize = 512;

/// Prepared statements: those of the program by the address of their text, the others by the text.
#[derive(Default)]
pub(super) struct Cache {
    lasting: HashMap<(usize, usize), Prepared>,
    others: HashMap<String, Prepared>,
    oldest: VecDeque<String>,
}

impl Cache {
    /// The prepared statement, from here or from the server.
    pub(super) fn get(&mut self, wire: &mut Wire, runtime: &Runtime, sql: &Sql) -> Result<Prepared, Failure> {
        let key = sql.lasting().map(|text| (text.as_ptr().addr(), text.len()));
        let known = match key {
            Some(key) => self.lasting.get(&key),
            None => self.others.get(sql.text()),
        };
        if let Some(statement) = known {
            return Ok(statement.clone());
        }
        let old = if key.is_none() && self.oldest.len() == MOST { self.oldest.pop_front() } else { None };
        let old = old.and_then(|text| self.others.remove(&text));
        let statement = wire.prepare(runtime, sql.postgres(), old)?;
        if let Some(key) = key {
            self.lasting.insert(key, statement.clone());
        } else {
            self.others.insert(sql.text().to_owned(), statement.clone());
            self.oldest.push_back(sql.text().to_owned());
        }
        Ok(statement)
    }
}
