//! The statements that one connection has prepared.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};

use tokio_postgres::{Client, Error, Statement};

use crate::Sql;

/// How many statements composed at run time are cached; the oldest is evicted first.
const MOST: usize = 512;

/// Prepared statements: those of the program by the address of their text, the others by the text.
#[derive(Default)]
pub(super) struct Cache {
    lasting: RefCell<HashMap<(usize, usize), Statement>>,
    others: RefCell<Others>,
}

#[derive(Default)]
struct Others {
    statements: HashMap<String, Statement>,
    oldest: VecDeque<String>,
}

impl Cache {
    /// The prepared statement, from here or from the server.
    pub(super) async fn get(&self, client: &Client, sql: &Sql) -> Result<Statement, Error> {
        let key = sql.lasting().map(|text| (text.as_ptr().addr(), text.len()));
        let known = match key {
            Some(key) => self.lasting.borrow().get(&key).cloned(),
            None => self.others.borrow().statements.get(sql.text()).cloned(),
        };
        if let Some(statement) = known {
            return Ok(statement);
        }
        let statement = client.prepare(sql.postgres()).await?;
        match key {
            Some(key) => drop(self.lasting.borrow_mut().insert(key, statement.clone())),
            None => self.others.borrow_mut().keep(sql.text(), &statement),
        }
        Ok(statement)
    }
}

impl Others {
    fn keep(&mut self, text: &str, statement: &Statement) {
        if self.oldest.len() == MOST
            && let Some(oldest) = self.oldest.pop_front()
        {
            self.statements.remove(&oldest);
        }
        self.statements.insert(text.to_owned(), statement.clone());
        self.oldest.push_back(text.to_owned());
    }
}
