//! What requests are checked against: made from the schemas that the document shows, once in a process.

use std::sync::{LazyLock, OnceLock};

use podium_api::decode::{Check, UnsupportedSchema};
use podium_api::openapi::{Document, EndpointSchemas};
use podium_api::{Description, ENDPOINTS};

/// How the query and the body of an endpoint are checked.
#[cfg_attr(test, derive(Debug))]
pub(crate) struct Checks {
    pub(crate) query: Option<Check>,
    pub(crate) body: Option<Check>,
    /// The field of the body that names the target of the permission.
    pub(crate) target: Option<&'static str>,
}

/// The checks of each endpoint, in the order of [`ENDPOINTS`], as far as they are made.
static MADE: LazyLock<Vec<OnceLock<Checks>>> =
    LazyLock::new(|| ENDPOINTS.iter().map(|_| OnceLock::new()).collect());

/// Makes the checks of all endpoints. A server whose schemas it cannot check does not start.
pub(crate) fn make_all() {
    let document = Document::of_requests(ENDPOINTS);
    for ((endpoint, schemas), made) in ENDPOINTS.iter().zip(&document.endpoints).zip(MADE.iter()) {
        made.get_or_init(|| make(endpoint, schemas, &document));
    }
}

/// The checks of one endpoint, which are made when they are first needed.
#[derive(Clone, Copy)]
pub(crate) struct LazyChecks(usize);

impl LazyChecks {
    pub(crate) fn of(endpoint: &Description) -> Self {
        let index = ENDPOINTS.iter().position(|listed| listed.id == endpoint.id);
        Self(index.unwrap_or_else(|| panic!("ENDPOINTS does not list {}", endpoint.id)))
    }

    pub(crate) fn get(self) -> &'static Checks {
        MADE[self.0].get_or_init(|| {
            let document = Document::of_requests(&ENDPOINTS[self.0..=self.0]);
            make(&ENDPOINTS[self.0], &document.endpoints[0], &document)
        })
    }
}

fn make(endpoint: &Description, schemas: &EndpointSchemas, document: &Document) -> Checks {
    let query = schemas.query.as_ref().map(|query| Check::compile_query(query, &document.schemas));
    let body = schemas.body.as_ref().map(|body| Check::compile(body, &document.schemas));
    let understood = |checked: Result<Check, UnsupportedSchema>| {
        checked.unwrap_or_else(|error| panic!("{}: {error}", endpoint.id))
    };
    Checks { query: query.map(understood), body: body.map(understood), target: endpoint.target_in_body }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schema_can_be_checked_and_alone_as_beside_the_others() {
        make_all();
        for (endpoint, together) in ENDPOINTS.iter().zip(MADE.iter()) {
            let document = Document::of_requests(std::slice::from_ref(endpoint));
            let alone = make(endpoint, &document.endpoints[0], &document);
            assert_eq!(format!("{:?}", Some(&alone)), format!("{:?}", together.get()), "{}", endpoint.id);
        }
    }
}
