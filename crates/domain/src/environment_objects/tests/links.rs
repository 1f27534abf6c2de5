//! Links: whom an object reaches, and what is different there.

use serde_json::{Value, json};

use super::{changed, made, neighbours, read, refused, request, with};
use crate::environment_objects::change::affected;
use crate::environment_objects::create;
use crate::fixtures::{d1, d1b, d2, told};
use podium_api::DeploymentId;

fn to(id: DeploymentId) -> Value {
    json!({ "scope": "DEPLOYMENT", "scopeEntityId": id })
}

fn link(id: DeploymentId, overrides: Value) -> Value {
    let mut link = to(id);
    link["overrides"] = overrides;
    link
}

fn variable(more: Value) -> Value {
    with(json!({ "environmentVariable": { "value": "v" } }), more)
}

#[test]
fn links_and_exclusions_name_deployments_of_the_workspace_once() {
    let table = [
        (json!({ "links": [to(d1())], "excludeLinks": [to(d1b())] }), &[][..]),
        (json!({ "links": [to(d2())] }), &["links[0].scopeEntityId unknown"]),
        (json!({ "excludeLinks": [to(d1()), to(d2())] }), &["excludeLinks[1].scopeEntityId unknown"]),
        (json!({ "links": [to(d1()), to(d1())] }), &["links[1].scopeEntityId duplicate"]),
        (json!({ "links": [to(d1())], "excludeLinks": [to(d1())] }), &["links[0].scopeEntityId conflict"]),
        (
            json!({ "links": [link(d1(), json!({ "connection": { "host": "h" } }))] }),
            &["links[0].overrides.connection excluded"],
        ),
    ];
    for (more, wrong) in table {
        let answer = create(&request("ENVIRONMENT_VARIABLE", variable(more.clone())), &neighbours());
        let told: Vec<String> = answer.err().iter().flat_map(told).collect();
        assert_eq!(told, wrong, "{more}");
    }
}

#[test]
fn an_object_of_a_deployment_has_no_links() {
    let mut own = variable(json!({ "scope": "DEPLOYMENT", "scopeEntityId": d1() }));
    let object = made("ENVIRONMENT_VARIABLE", own.clone());
    assert_eq!(object.clone().exclude(d1b()).unwrap_err().status(), 405);
    let nothing = json!({ "links": [], "excludeLinks": [], "autoLinkDeployments": false });
    assert_eq!(changed(&object, nothing).unwrap(), object);
    own["links"] = json!([to(d1b())]);
    own["excludeLinks"] = json!([to(d1b())]);
    own["autoLinkDeployments"] = true.into();
    let refusal = create(&request("ENVIRONMENT_VARIABLE", own), &neighbours()).unwrap_err();
    assert_eq!(told(&refusal), ["links excluded", "excludeLinks excluded", "autoLinkDeployments excluded"]);
}

#[test]
fn an_update_replaces_the_lists_that_it_gives() {
    let object = made(
        "ENVIRONMENT_VARIABLE",
        variable(json!({
            "links": [link(d1(), json!({ "environmentVariable": { "value": "one" } }))],
            "excludeLinks": [to(d1b())],
        })),
    );
    let both = json!({ "links": [to(d1()), to(d1b())] });
    refused(changed(&object, both), &["links[1].scopeEntityId conflict"]);
    refused(
        changed(&object, json!({ "excludeLinks": [to(d1())] })),
        &["excludeLinks[0].scopeEntityId conflict"],
    );
    let after = changed(&object, json!({ "links": [to(d1()), to(d1b())], "excludeLinks": [] })).unwrap();
    assert_eq!(after.links[&d1()].plain["value"], "one", "overrides that are not mentioned are kept");
    assert!(after.links[&d1b()].is_empty());
    let after = changed(&after, json!({ "links": [] })).unwrap();
    assert!(after.links.is_empty());
}

#[test]
fn overrides_are_set_and_unset_by_name() {
    let connection = json!({ "type": "http", "password": "base", "extra": { "a": "1" } });
    let overrides =
        json!({ "connection": { "host": "h", "password": "own", "extra": { "a": "2", "b": "3" } } });
    let object = made("CONNECTION", json!({ "connection": connection, "links": [link(d1(), overrides)] }));
    let shown = read(&object.hidden());
    assert_eq!(
        shown["links"],
        json!([{
            "scope": "DEPLOYMENT", "scopeEntityId": d1(),
            "setFields": ["host", "password", "extra.a", "extra.b"],
            "connectionOverrides": { "host": "h", "password": "", "extra": { "a": "", "b": "" } },
        }])
    );
    let change = |overrides: Value| changed(&object, json!({ "links": [link(d1(), overrides)] }));
    let after = change(json!({ "unsetFields": ["host", "extra.a"] })).unwrap();
    assert_eq!(read(&after.hidden())["links"][0]["setFields"], json!(["password", "extra.b"]));
    let after =
        change(json!({ "unsetFields": ["extra"], "connection": { "password": "", "login": "l" } })).unwrap();
    assert_eq!(read(&after.hidden())["links"][0]["setFields"], json!(["host", "login", "password"]));
    assert_eq!(after.links[&d1()].secret["password"], "own");
    let after = change(json!({ "connection": { "extra": { "c": "4" } } })).unwrap();
    assert_eq!(after.links[&d1()].secret.len(), 4, "what is different adds up");
    for (overrides, wrong) in [
        (
            json!({ "unsetFields": ["host"], "connection": { "host": "x" } }),
            "links[0].overrides.unsetFields[0] conflict",
        ),
        (
            json!({ "unsetFields": ["extra"], "connection": { "extra": { "a": "x" } } }),
            "links[0].overrides.unsetFields[0] conflict",
        ),
        (json!({ "unsetFields": ["host", "color"] }), "links[0].overrides.unsetFields[1] unknown"),
        (json!({ "unsetFields": ["host.name"] }), "links[0].overrides.unsetFields[0] unknown"),
        (json!({ "connection": { "type": "" } }), "links[0].overrides.connection.type required"),
    ] {
        refused(change(overrides), &[wrong]);
    }
}

#[test]
fn overrides_of_a_metrics_export_must_work_with_the_rest() {
    let export = json!({ "endpoint": "https://m", "exporterType": "PROMETHEUS", "username": "u" });
    let overridden = |overrides: Value| {
        let more =
            json!({ "metricsExport": export, "links": [link(d1(), json!({ "metricsExport": overrides }))] });
        create(&request("METRICS_EXPORT", more), &neighbours())
    };
    let refusal = overridden(json!({ "authType": "BASIC" })).unwrap_err();
    assert_eq!(told(&refusal), ["links[0].overrides.metricsExport.password required"]);
    overridden(json!({ "authType": "BASIC", "password": "p" })).unwrap();
}

#[test]
fn excluding_is_idempotent_and_drops_a_link() {
    let mut object = made("ENVIRONMENT_VARIABLE", variable(json!({ "links": [to(d1())] })));
    assert_eq!(object.exclude(d1()), Ok(true));
    assert!(object.links.is_empty() && object.exclusions.contains(&d1()));
    assert_eq!(object.exclude(d1()), Ok(false));
}

#[test]
fn a_change_affects_the_deployments_whose_values_change() {
    let all = [d1(), d1b()];
    let auto = made("ENVIRONMENT_VARIABLE", variable(json!({ "autoLinkDeployments": true })));
    assert_eq!(affected(None, Some(&auto), &all), all);
    assert_eq!(affected(Some(&auto), None, &all), all);
    let described = changed(&auto, json!({ "description": "d" })).unwrap();
    assert_eq!(affected(Some(&auto), Some(&described), &all), []);
    let mut excluded = auto.clone();
    excluded.exclude(d1()).unwrap();
    assert_eq!(affected(Some(&auto), Some(&excluded), &all), [d1()]);
    let explicit = changed(&auto, json!({ "links": [to(d1())] })).unwrap();
    assert_eq!(
        affected(Some(&auto), Some(&explicit), &all),
        [],
        "a link that changes nothing changes nothing"
    );
    let other = json!({ "links": [link(d1(), json!({ "environmentVariable": { "value": "x" } }))] });
    let overridden = changed(&auto, other).unwrap();
    assert_eq!(affected(Some(&auto), Some(&overridden), &all), [d1()]);
    let value = changed(&overridden, json!({ "environmentVariable": { "value": "y" } })).unwrap();
    assert_eq!(affected(Some(&overridden), Some(&value), &all), [d1b()]);
}
