//! A scope is good for its own organization: with that of another one nothing is found, changed or removed.

use std::collections::BTreeSet;

use podium_api::enums::OrganizationRole;
use podium_api::{CredentialId, Timestamp, TokenId};
use podium_domain::{Held, On};
use podium_store::{
    Paging, Scope, clusters, credentials, deployments, deploys, environment_objects, front_door, grants,
    organizations, roles, subjects, team_members, teams, users, workspaces,
};
use podium_testkit::{TestApp, on_both_engines, role};
use serde_json::json;

/// A scope in an organization that has nothing.
fn elsewhere(app: &TestApp) -> Scope {
    app.system.scope(app.world.id())
}

async fn write<T: Send + 'static>(
    app: &TestApp,
    unit: impl Fn(&podium_db::Tx) -> podium_db::Result<T> + Send + 'static,
) -> podium_db::Result<T> {
    app.app.db(&app.system).write(None, unit).await
}

on_both_engines! {
    async fn another_organizations_scope_reads_nothing(app) {
        let workspace_id = app.workspace("Data").await;
        let cluster_id = app.cluster(&[]).await;
        let id = app.deployment(workspace_id).await;
        app.set_column("deployments", id, "cluster_id", &format!("'{cluster_id}'")).await;
        let role_id = app.custom_role("Tuner", "DEPLOYMENT", &["deployment.get"]).await;
        let member = app.member("member").await;
        let held = Held::Custom { id: role_id, name: "Tuner".into(), permissions: Default::default() };
        let on = On::Deployment { id, workspace_id };
        app.set_grants(grants::Subject::User, member.id, vec![podium_domain::Grant { on, held }]).await;
        let team_id = app.team("Team", &[&member]).await;
        let found = async |scope: Scope| {
            let read = app.app.db(&app.system).scan(None, move |conn| {
                let paging = Paging { limit: 10, offset: 0, sorts: Vec::new() };
                Ok::<_, podium_db::Error>((
                    clusters::count_deployments(conn, &scope, cluster_id)?,
                    clusters::in_use_by(conn, &scope, cluster_id)?,
                    clusters::deployments_on(conn, &scope, cluster_id)?.len(),
                    deployments::workspace_of(conn, &scope, id)?,
                    grants::holders(conn, &scope, role_id)?.len(),
                    grants::workspaces_of_custom_role(conn, &scope, role_id)?,
                    team_members::list(conn, &scope, team_id, &paging)?.1,
                ))
            });
            read.await.unwrap()
        };
        let all = (1, BTreeSet::from([workspace_id]), 1, Some(workspace_id), 1, vec![workspace_id], 1);
        assert_eq!(found(app.scope()).await, all);
        assert_eq!(found(elsewhere(&app)).await, (0, BTreeSet::new(), 0, None, 0, vec![], 0));
    }

    async fn another_organizations_scope_removes_nothing(app) {
        let workspace_id = app.workspace("Data").await;
        app.cluster(&[workspace_id]).await;
        let restricted = json!({
            "name": "Tuner", "scopeType": "DEPLOYMENT", "permissions": ["deployment.get"],
            "restrictedWorkspaceIds": [workspace_id],
        });
        app.post(&app.owner, &app.path("/roles"), restricted).await.ok();
        let id = app.new_deployment(workspace_id).await;
        let token = app.token("token", "DEPLOYMENT", id, "DEPLOYMENT_ADMIN").await;
        let token_id = CredentialId::from(TokenId::from_raw(token.id.id()));
        let on = On::Deployment { id, workspace_id };
        app.user_with("admin", vec![role(on, "DEPLOYMENT_ADMIN"), role(On::Workspace(workspace_id), "WORKSPACE_MEMBER")]).await;
        app.post(&app.owner, &app.path(&format!("/deployments/{id}/open")), json!({})).await.ok();
        app.post(&app.owner, &app.path(&format!("/deployments/{id}/deploys")), json!({ "type": "DAG_ONLY" })).await.ok();
        let tables =
            ["cluster_workspaces", "custom_role_workspaces", "credentials", "grants", "door_codes", "deploys"];
        let counted = async || {
            let mut rows = Vec::new();
            for table in tables {
                rows.push(app.rows(table).await);
            }
            rows
        };
        let remove = async |scope: Scope| {
            let removed = write(&app, move |tx| {
                clusters::forget_workspace(tx, &scope, workspace_id)?;
                roles::forget_workspace(tx, &scope, workspace_id)?;
                credentials::delete(tx, &scope, token_id)?;
                grants::leave_workspace(tx, &scope, id, workspace_id)?;
                grants::delete_deployment(tx, &scope, id)?;
                grants::delete_workspace(tx, &scope, workspace_id)?;
                environment_objects::leave_workspace(tx, &scope, id)?;
                front_door::delete_of_deployment(tx, &scope, id, Timestamp::from_millis(0))?;
                deploys::delete_of_deployment(tx, &scope, id)
            });
            removed.await.unwrap();
        };
        let before = counted().await;
        remove(elsewhere(&app)).await;
        assert_eq!(counted().await, before);
        remove(app.scope()).await;
        for ((table, before), after) in tables.iter().zip(before).zip(counted().await) {
            assert!(after < before, "{table}: {after} of {before} are left");
        }
    }

    async fn another_organizations_scope_changes_nothing(app) {
        let workspace_id = app.workspace("Data").await;
        let other_id = app.workspace("Other").await;
        let team_id = app.team("Team", &[]).await;
        let id = app.deployment(workspace_id).await;
        let update = async |scope: Scope| {
            let own = app.scope();
            let updated = write(&app, move |tx| {
                let mut team = teams::get(tx, &own, team_id)?.expect("the team");
                team.stamp.version += 1;
                let mut deployment = deployments::get(tx, &own, id)?.expect("the deployment");
                deployment.stamp.version += 1;
                let workspace = workspaces::get(tx, &own, workspace_id)?.expect("the workspace");
                let mut organization = organizations::get(tx, &own)?.expect("the organization");
                organization.stamp.version += 1;
                Ok([
                    teams::update(tx, &scope, &team, "team"),
                    deployments::update(tx, &scope, &deployment, &deployment.name),
                    workspaces::update(tx, &scope, &workspace.body, "data", workspace.version),
                    organizations::update(tx, &scope, &organization, "org"),
                    deployments::count_move(tx, &scope, id, workspace_id, other_id),
                ])
            });
            updated.await.unwrap()
        };
        assert!(update(elsewhere(&app)).await.iter().all(|updated| *updated == Err(podium_db::Error::Lost)));
        assert!(update(app.scope()).await.iter().all(Result::is_ok));
    }

    async fn another_organizations_scope_changes_no_profile(app) {
        let token = app.token("ci", "ORGANIZATION", app.organization_id, "ORGANIZATION_MEMBER").await;
        let token_id = TokenId::from_raw(token.id.id());
        app.set_column("subjects", token_id, "api_token_name", "'earlier'").await;
        let name = async || app.column("subjects", token_id, "api_token_name").await;
        for (scope, expected) in [(elsewhere(&app), "earlier"), (app.scope(), "ci")] {
            write(&app, move |tx| subjects::put_token(tx, &scope, token_id)).await.unwrap();
            assert_eq!(name().await, expected);
        }
    }

    async fn an_invite_leaves_the_account_and_its_profile_as_they_are(app) {
        let ada = app.member("ada").await;
        let (scope, id, now) = (elsewhere(&app), app.world.id(), app.world.now());
        let username = app.column("users", ada.id, "username").await;
        let keys = (username.clone(), podium_domain::names::fold(&username));
        let found = write(&app, move |tx| {
            users::find_or_make_invitee(tx, &scope, (&keys.0.to_uppercase(), &keys.1), id, now)
        });
        let found = found.await.unwrap();
        assert_eq!((found.id, found.username.as_str(), found.full_name.as_str()), (ada.user_id(), &*username, "ada"));
        assert_eq!(app.column("subjects", ada.id, "full_name").await, "ada");
    }

    async fn only_members_are_authorized(app) {
        let member = app.member_as("member", OrganizationRole::Member).await;
        let authority = async |organization_id| {
            app.app.authority(&member.token, Some(organization_id), app.world.now()).await.unwrap()
        };
        let own = authority(app.organization_id).await;
        let membership = &own.member.as_ref().expect("it is a member").membership;
        assert_eq!(membership.scope().organization_id(), app.organization_id);
        let permission = podium_domain::Permission::known("organization.settings.update");
        let refused = membership.authorize(permission, podium_domain::Target::Organization);
        assert_eq!(refused.unwrap_err().status(), 403);
        let permission = podium_domain::Permission::known("organization.get");
        let proven = membership.authorize(permission, podium_domain::Target::Organization).unwrap();
        assert_eq!((proven.organization_id(), proven.permission()), (app.organization_id, Some(permission)));
        assert!(authority(app.world.id()).await.member.is_none());
    }
}
