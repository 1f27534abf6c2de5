//! The client against a served application, over a real connection.

use podium_api::path::{InOrganization, OfWorkspace};
use podium_api::workspaces::{self, CreateWorkspaceRequest, ListWorkspaces};
use podium_api::{Nothing, users};
use podium_client::{Client, Error};
use podium_testkit::{Engine, TestApp};
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
