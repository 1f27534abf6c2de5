//! The client against a served application, over a real connection, and against servers that misbehave.

mod misbehaving;

use std::sync::Arc;

use podium_api::path::{InOrganization, OfDeployment, OfWorkspace};
use podium_api::workspaces::{self, CreateWorkspaceRequest, ListWorkspaces};
use podium_api::{Nothing, deployment_logs, organizations, users};
use podium_client::{Call, Client, Error};
use podium_testkit::{Engine, TestApp};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// Serves an application for the length of a test, and gives a client of it.
async fn client(app: &TestApp, token: &str) -> Client {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(podium_http::serve(app.server.clone(), listener, std::future::pending()));
    Client::new(&url, Some(token.to_owned())).unwrap()
}

#[test]
fn endpoints_are_called_by_their_types() {
    podium_testkit::run(Engine::Sqlite, |app| async move {
        let client = client(&app, &app.owner.token).await;
        let organization = InOrganization { organization_id: app.organization_id };
        let body = CreateWorkspaceRequest { name: "Data & more".into(), ..Default::default() };
        let created = client.call::<workspaces::Create>(&organization, &Nothing, &body).await.unwrap();
        assert!(created.etag.unwrap().starts_with("\"1-"));
        let path = OfWorkspace { organization_id: app.organization_id, workspace_id: created.body.id };
        let read = client.call::<workspaces::Get>(&path, &Nothing, &Nothing).await.unwrap();
        assert_eq!(read.body.clone().into_value().unwrap().name, "Data & more");
        let query = serde_json::json!({ "names": ["data & MORE"], "limit": 5, "sorts": ["name:asc"] });
        let query: ListWorkspaces = serde_json::from_value(query).unwrap();
        let page = client.call::<workspaces::List>(&organization, &query, &Nothing).await.unwrap().body;
        assert_eq!((page.total_count, page.limit), (1, 5));
        client.call::<workspaces::Delete>(&path, &Nothing, &Nothing).await.unwrap();
    });
}

#[test]
fn a_refusal_carries_the_servers_message() {
    podium_testkit::run(Engine::Sqlite, |app| async move {
        let client = client(&app, "not a token").await;
        let query = users::GetSelfUser { create_if_not_exist: None };
        let refused = client.call::<users::GetSelf>(&(), &query, &Nothing).await.unwrap_err();
        let Error::Refused(body) = refused else { panic!("{refused}") };
        assert_eq!(body.status_code, 401);
        assert!(body.message.contains("malformed"), "{}", body.message);
    });
}

#[test]
fn a_call_that_is_sent_twice_takes_effect_once() {
    podium_testkit::run(Engine::Sqlite, |app| async move {
        let client = client(&app, &app.owner.token).await;
        let organization = InOrganization { organization_id: app.organization_id };
        let call = Call::to::<workspaces::Create>(&organization).body(&json!({ "name": "Once" })).unwrap();
        let first: Value = client.send(call.clone()).await.unwrap().body;
        let again: Value = client.send(call).await.unwrap().body;
        assert_eq!(first, again);
        let etag = Some("\"7-x\"".to_owned());
        let path =
            format!("/organizations/{}/workspaces/{}", app.organization_id, first["id"].as_str().unwrap());
        let stale = Call::raw("DELETE", &path).unwrap().if_match(etag);
        assert_eq!(client.send::<podium_api::Nothing>(stale).await.unwrap_err().status(), Some(412));
    });
}

#[test]
fn a_list_is_read_page_by_page_to_its_end() {
    podium_testkit::run(Engine::Sqlite, |app| async move {
        let client = client(&app, &app.owner.token).await;
        let organization = InOrganization { organization_id: app.organization_id };
        for number in 0..501 {
            let body = json!({ "name": format!("W{number:03}") });
            let call = Call::to::<workspaces::Create>(&organization).body(&body).unwrap();
            client.send::<Value>(call).await.unwrap();
        }
        let list = || {
            let sorted = json!({ "sorts": ["name:asc"] });
            Call::to::<workspaces::List>(&organization).query_params(&sorted).unwrap()
        };
        let mut pages = client.pages(list(), None);
        let mut names: Vec<String> = Vec::new();
        let mut sizes = Vec::new();
        while let Some(page) = pages.next().await.unwrap() {
            sizes.push(page.len());
            names.extend(page.iter().map(|item| item["name"].as_str().unwrap().to_owned()));
        }
        assert_eq!(sizes[0], 500);
        assert_eq!(pages.total(), Some(names.len() as u64));
        let mut distinct = names.clone();
        distinct.dedup();
        assert_eq!((distinct.len(), names.contains(&"W500".to_owned())), (names.len(), true));
        let mut few = client.pages(list(), Some(3));
        assert_eq!(few.next().await.unwrap().unwrap().len(), 3);
        assert!(few.next().await.unwrap().is_none());
    });
}

#[test]
fn lines_and_events_are_read_as_they_come() {
    podium_testkit::run(Engine::Sqlite, |app| async move {
        let client = client(&app, &app.owner.token).await;
        let organization = InOrganization { organization_id: app.organization_id };
        let call = Call::to::<workspaces::Create>(&organization).body(&json!({ "name": "Audited" })).unwrap();
        client.send::<Value>(call).await.unwrap();
        let mut lines = client.lines(&Call::to::<organizations::AuditLogs>(&organization)).await.unwrap();
        let mut actions = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            actions.push(serde_json::from_str::<Value>(&line).unwrap());
        }
        assert!(actions.iter().any(|record| record.to_string().contains("CreateWorkspace")), "{actions:?}");
        let nothing = OfDeployment {
            organization_id: app.organization_id,
            deployment_id: "c00000000000000000000000x".parse().unwrap(),
        };
        let call = Call::to::<deployment_logs::Follow>(&nothing);
        let call = call.query_params(&json!({ "sources": ["scheduler"] })).unwrap();
        assert_eq!(client.events(&call).await.err().unwrap().status(), Some(404));
    });
}

#[test]
fn an_observer_sees_no_secret() {
    podium_testkit::run(Engine::Sqlite, |app| async move {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(podium_http::serve(app.server.clone(), listener, std::future::pending()));
        let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
        let keep = Arc::clone(&seen);
        let observer: podium_client::Observer = Arc::new(move |sent| {
            keep.lock()
                .unwrap()
                .push(format!("{} {} {} {}", sent.method, sent.path, sent.outcome, sent.request_id));
        });
        let settings = podium_client::Settings {
            token: Some(app.owner.token.clone()),
            observer: Some(observer),
            ..Default::default()
        };
        let client = Client::with(&url, settings).unwrap();
        client.send::<Value>(Call::raw("GET", "/users/self").unwrap()).await.unwrap();
        let seen = seen.lock().unwrap().join("\n");
        assert!(seen.starts_with("GET /v1/users/self 200 OK ") && !seen.contains(&app.owner.token), "{seen}");
    });
}
