//! Lists, page by page: one page is in memory at a time.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::{Call, Client, Error, Result};

const PAGE: u64 = 500;

pub struct Pages {
    client: Client,
    call: Call,
    offset: u64,
    /// How many items are still wanted.
    left: u64,
    total: Option<u64>,
    is_done: bool,
    /// Ids of the page before: what is created meanwhile moves the last ones to the next page.
    before: HashSet<String>,
}

impl Client {
    /// The pages of a list, up to a number of items; the call holds every parameter but the page.
    pub fn pages(&self, call: Call, most: Option<u64>) -> Pages {
        Pages {
            client: self.clone(),
            call,
            offset: 0,
            left: most.unwrap_or(u64::MAX),
            total: None,
            is_done: false,
            before: HashSet::new(),
        }
    }
}

impl Pages {
    /// How many items there are in all, once the first page was read.
    pub fn total(&self) -> Option<u64> {
        self.total
    }

    /// The items of the next page; none at the end.
    pub async fn next(&mut self) -> Result<Option<Vec<Value>>> {
        if self.is_done || self.left == 0 {
            return Ok(None);
        }
        let asked = self.left.min(PAGE);
        let call = self.call.clone().query_params(&json!({ "offset": self.offset, "limit": asked }))?;
        let body: Value = self.client.send(call).await?.body;
        let (items, total) = items_of(body)
            .ok_or_else(|| Error::Unexpected(format!("{} does not answer with a list", self.call.path)))?;
        let count = items.len() as u64;
        self.offset += count;
        self.total = total.or(self.total);
        // A list without a total is not paged: this was all of it.
        self.is_done = count < asked || total.is_none_or(|total| self.offset >= total);
        let mut ids = HashSet::new();
        let mut fresh = Vec::with_capacity(items.len());
        for item in items {
            if let Some(id) = item.get("id").and_then(Value::as_str) {
                ids.insert(id.to_owned());
                if self.before.contains(id) {
                    continue;
                }
            }
            fresh.push(item);
        }
        self.before = ids;
        fresh.truncate(usize::try_from(self.left).unwrap_or(usize::MAX));
        self.left -= fresh.len() as u64;
        Ok(Some(fresh))
    }
}

/// The items of a page, which are its first list, and the total; a bare list is one page.
fn items_of(body: Value) -> Option<(Vec<Value>, Option<u64>)> {
    match body {
        Value::Array(items) => Some((items, None)),
        Value::Object(mut fields) => {
            let total = fields.get("totalCount").and_then(Value::as_u64);
            let name = fields.iter().find(|(_, value)| value.is_array()).map(|(name, _)| name.clone())?;
            match fields.swap_remove(&name)? {
                Value::Array(items) => Some((items, total)),
                _ => None,
            }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_items_are_the_first_list() {
        let page = json!({ "roles": [1], "defaultRoles": [2, 3], "totalCount": 7 });
        assert_eq!(items_of(page), Some((vec![json!(1)], Some(7))));
        assert_eq!(items_of(json!([1, 2])), Some((vec![json!(1), json!(2)], None)));
        assert_eq!(items_of(json!({ "id": 1 })), None);
        assert_eq!(items_of(json!("text")), None);
    }
}
