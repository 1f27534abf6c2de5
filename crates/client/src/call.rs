//! Calls: what is sent, put together piece by piece.

use podium_api::path::PathParams;
use podium_api::{Access, Endpoint, Method, openapi::PREFIX};
use reqwest::Method as HttpMethod;
use serde::Serialize;
use serde_json::Value;

use crate::retry::new_key;
use crate::{Error, Result};

/// A request of the API that is not sent yet.
#[derive(Clone, Debug)]
pub struct Call {
    pub(crate) method: HttpMethod,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) body: Option<String>,
    pub(crate) if_match: Option<String>,
    pub(crate) idempotency_key: Option<String>,
    pub(crate) last_event_id: Option<String>,
}

impl Call {
    /// A call of an endpoint. One that changes something gets an `Idempotency-Key`, where the endpoint honours it.
    pub fn to<E: Endpoint>(path: &E::Path) -> Self {
        let description = E::DESCRIPTION;
        let method = match description.method {
            Method::Get => HttpMethod::GET,
            Method::Post => HttpMethod::POST,
            Method::Delete => HttpMethod::DELETE,
        };
        let is_repeated = description.access != Access::Public && !description.live;
        let path = format!("{PREFIX}{}", path.fill(description.path));
        Self::new(method, path, is_repeated)
    }

    /// A call of any path of the API, with or without the version in front.
    pub fn raw(method: &str, path: &str) -> Result<Self> {
        let invalid = |why: String| Error::Invalid(why);
        let method = HttpMethod::from_bytes(method.to_ascii_uppercase().as_bytes())
            .map_err(|_| invalid(format!("{method:?} is no method: use GET, POST or DELETE")))?;
        if !path.starts_with('/') || path.chars().any(|c| c.is_control() || c.is_whitespace() || c == '#') {
            return Err(invalid(format!(
                "{path:?} is no path of the API: it begins with /, such as /organizations"
            )));
        }
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let is_versioned = path == PREFIX || path.starts_with(&format!("{PREFIX}/"));
        let path = if is_versioned { path.to_owned() } else { format!("{PREFIX}{path}") };
        Ok(Self { query: query.to_owned(), ..Self::new(method, path, true) })
    }

    fn new(method: HttpMethod, path: String, is_repeated: bool) -> Self {
        let idempotency_key = (method == HttpMethod::POST && is_repeated).then(new_key);
        Self {
            method,
            path,
            query: String::new(),
            body: None,
            if_match: None,
            idempotency_key,
            last_event_id: None,
        }
    }

    /// Adds a query; a list is a repeated key, and what is absent is left out.
    pub fn query_params(mut self, query: &impl Serialize) -> Result<Self> {
        let added = query_string(query)?;
        if !self.query.is_empty() && !added.is_empty() {
            self.query.push('&');
        }
        self.query.push_str(&added);
        Ok(self)
    }

    /// Sets the body; nothing where it is `null`.
    pub fn body(mut self, body: &impl Serialize) -> Result<Self> {
        let value = to_value(body)?;
        self.body = (!value.is_null()).then(|| value.to_string());
        Ok(self)
    }

    /// Takes effect only on the version that was read.
    pub fn if_match(mut self, etag: Option<String>) -> Self {
        self.if_match = etag;
        self
    }

    /// Goes on after this event.
    pub fn after_event(mut self, id: Option<String>) -> Self {
        self.last_event_id = id;
        self
    }

    /// Whether it can be sent again without taking effect twice.
    pub(crate) fn is_repeatable(&self) -> bool {
        matches!(self.method, HttpMethod::GET | HttpMethod::HEAD) || self.idempotency_key.is_some()
    }

    /// Path and query.
    pub(crate) fn target(&self) -> String {
        match self.query.is_empty() {
            true => self.path.clone(),
            false => format!("{}?{}", self.path, self.query),
        }
    }
}

fn to_value(input: &impl Serialize) -> Result<Value> {
    serde_json::to_value(input).map_err(|error| Error::Invalid(error.to_string()))
}

/// Writes a query; a list is a repeated key.
fn query_string(query: &impl Serialize) -> Result<String> {
    let Value::Object(fields) = to_value(query)? else { return Ok(String::new()) };
    let mut pairs = form_urlencoded::Serializer::new(String::new());
    for (name, value) in fields {
        let values = if let Value::Array(list) = value { list } else { vec![value] };
        for value in values {
            match value {
                Value::Null => {}
                Value::String(text) => _ = pairs.append_pair(&name, &text),
                other => _ = pairs.append_pair(&name, &other.to_string()),
            }
        }
    }
    Ok(pairs.finish())
}

#[cfg(test)]
mod tests {
    use podium_api::path::InOrganization;
    use podium_api::{Nothing, auth, deployments, front_door, workspaces};
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_that_changes_something_can_be_sent_again_where_the_server_remembers_it() {
        let organization = InOrganization { organization_id: "c00000000000000000000000a".parse().unwrap() };
        let deployment = podium_api::path::OfDeployment {
            organization_id: organization.organization_id,
            deployment_id: "c00000000000000000000000d".parse().unwrap(),
        };
        let table = [
            (Call::to::<workspaces::List>(&organization), true, false),
            (Call::to::<workspaces::Create>(&organization), true, true),
            (Call::to::<deployments::Delete>(&deployment), false, false),
            (Call::to::<front_door::Open>(&deployment), false, false),
            (Call::to::<auth::SignIn>(&()), false, false),
            (Call::raw("post", "/organizations").unwrap(), true, true),
            (Call::raw("DELETE", "/v1/organizations").unwrap(), false, false),
        ];
        for (call, is_repeatable, has_key) in table {
            assert_eq!(
                (call.is_repeatable(), call.idempotency_key.is_some()),
                (is_repeatable, has_key),
                "{call:?}"
            );
        }
    }

    #[test]
    fn every_call_has_a_key_of_its_own() {
        let key = || Call::raw("POST", "/x").unwrap().idempotency_key.unwrap();
        assert_ne!(key(), key());
        assert_eq!(key().len(), 32);
    }

    #[test]
    fn a_target_is_written_from_parts() {
        let call = Call::raw("get", "/organizations?limit=1").unwrap();
        let call = call.query_params(&json!({ "names": ["a b", "c"], "none": null, "on": true })).unwrap();
        assert_eq!(call.target(), "/v1/organizations?limit=1&names=a+b&names=c&on=true");
        assert_eq!(call.body(&Nothing).unwrap().body, None);
        assert_eq!(Call::raw("GET", "/v1/users/self").unwrap().target(), "/v1/users/self");
        assert_eq!(Call::raw("GET", "/v1x").unwrap().target(), "/v1/v1x");
    }

    #[test]
    fn a_path_cannot_leave_the_server() {
        for bad in ["http://elsewhere.test/", "organizations", "", "/a b", "/a\r\nb", "/a#b"] {
            assert!(Call::raw("GET", bad).is_err(), "{bad:?}");
        }
        assert!(Call::raw("G T", "/x").is_err());
    }
}
