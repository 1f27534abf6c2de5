//! Calls: what is sent, put together piece by piece.

use podium_api::enums::PlannedMethod;
use podium_api::path::PathParams;
use podium_api::plans::PlannedCall;
use podium_api::{Access, Endpoint, Method, openapi::PREFIX};
use reqwest::Method as HttpMethod;
use serde::Serialize;
use serde_json::Value;
use url::Url;

use crate::retry::new_key;
use crate::{Error, Result};

/// A request of the API that is not sent yet.
#[derive(Clone, Debug, Default)]
pub struct Call {
    pub(crate) method: HttpMethod,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) body: Option<String>,
    pub(crate) if_match: Option<String>,
    pub(crate) idempotency_key: Option<String>,
    pub(crate) last_event_id: Option<String>,
    pub(crate) accept: Option<&'static str>,
    is_sent_once: bool,
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

    /// A call of the Airflow of an environment, through the front door. It is repeated only if it is a read.
    pub fn airflow(method: &str, namespace: &str, path: &[&str]) -> Result<Self> {
        let invalid = || Error::Invalid(format!("{method} {path:?} is no call of Airflow"));
        let method = HttpMethod::from_bytes(method.as_bytes()).map_err(|_| invalid())?;
        // What has only dots would be a step in the path.
        if path.iter().any(|part| part.is_empty() || part.chars().all(|c| c == '.')) {
            return Err(invalid());
        }
        let mut url = Url::parse("http://front.door").map_err(|_| invalid())?;
        url.path_segments_mut().map_err(|()| invalid())?.extend(["airflow", namespace]).extend(path);
        Ok(Self::new(method, url.path().to_owned(), false))
    }

    pub fn accept(mut self, media_type: &'static str) -> Self {
        self.accept = Some(media_type);
        self
    }

    /// Is not sent again if the server is not up: for what can be done without.
    pub fn once(mut self) -> Self {
        self.is_sent_once = true;
        self
    }

    fn new(method: HttpMethod, path: String, is_repeated: bool) -> Self {
        let idempotency_key = (method == HttpMethod::POST && is_repeated).then(new_key);
        Self { method, path, idempotency_key, ..Self::default() }
    }

    /// Adds a query, in the place of what has the same names; a list is a repeated key, and what is absent is left out.
    pub fn query_params(mut self, query: &impl Serialize) -> Result<Self> {
        let Value::Object(fields) = to_value(query)? else { return Ok(self) };
        let before = form_urlencoded::parse(self.query.as_bytes());
        let kept = before.filter(|(name, _)| fields.get(&**name).is_none_or(Value::is_null));
        let mut pairs = form_urlencoded::Serializer::new(String::new());
        pairs.extend_pairs(kept);
        for (name, value) in &fields {
            let values = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
            for value in values {
                match value {
                    Value::Null => {}
                    Value::String(text) => _ = pairs.append_pair(name, text),
                    other => _ = pairs.append_pair(name, &other.to_string()),
                }
            }
        }
        self.query = pairs.finish();
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

    pub fn after_event(mut self, id: Option<String>) -> Self {
        self.last_event_id = id;
        self
    }

    /// The call as part of a plan.
    pub fn planned(&self) -> PlannedCall {
        let is_removal = self.method == HttpMethod::DELETE;
        PlannedCall {
            method: if is_removal { PlannedMethod::Delete } else { PlannedMethod::Post },
            path: self.target(),
            body: self.body.as_deref().and_then(|body| serde_json::from_str(body).ok()),
            if_match: self.if_match.clone(),
        }
    }

    pub fn is_read(&self) -> bool {
        matches!(self.method, HttpMethod::GET | HttpMethod::HEAD)
    }

    /// Whether it can be sent again without taking effect twice, and is to be.
    pub(crate) fn is_repeatable(&self) -> bool {
        !self.is_sent_once && (self.is_read() || self.idempotency_key.is_some())
    }

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
    fn names_of_airflow_stay_in_their_place() {
        let run = "manual__2026-01-01T00:00:00+00:00/..?x#y";
        let call =
            Call::airflow("GET", "calm-comet-1", &["api", "v2", "dags", "a b", "dagRuns", run]).unwrap();
        assert_eq!(
            call.target(),
            "/airflow/calm-comet-1/api/v2/dags/a%20b/dagRuns/manual__2026-01-01T00:00:00+00:00%2F..%3Fx%23y"
        );
        assert!(call.is_repeatable());
        assert!(!Call::airflow("POST", "n", &["api"]).unwrap().is_repeatable());
        for bad in ["", ".", ".."] {
            assert!(Call::airflow("GET", "n", &["dags", bad]).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_path_cannot_leave_the_server() {
        for bad in ["http://elsewhere.test/", "organizations", "", "/a b", "/a\r\nb", "/a#b"] {
            assert!(Call::raw("GET", bad).is_err(), "{bad:?}");
        }
        assert!(Call::raw("G T", "/x").is_err());
    }
}
