//! What lists show equals what the policy says, item by item, whatever anybody holds: by itself, through
//! teams, or as an API token.

use std::collections::{BTreeMap, BTreeSet};

use podium_api::enums::{OperationCause, OperationKind, OrganizationRole, WorkspaceRoleName};
use podium_api::{ClusterId, DeploymentId, EntityId, Id, OperationId, RoleId, WorkspaceId};
use podium_domain::environment_objects;
use podium_domain::roles::{DagRoleName, DeploymentRoleName};
use podium_domain::tokens::{Verb, may};
use podium_domain::{Grant, Grants, Held, On, Permission, PermissionSet, Target};
use podium_store::grants::Subject;
use podium_store::operations::{NewOperation, OperationTarget};
use podium_testkit::{Actor, Engine, TestApp, run};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use super::calls::fresh;
use super::for_all;

const WORKSPACES: usize = 4;
const DEPLOYMENTS: usize = 2 * WORKSPACES;
const CUSTOM: [&str; 4] = [
    "deployment.apiTokens.get",
    "deployment.logs.get",
    "deployment.apiTokens.rotate",
    "deployment.envObjects.get",
];

/// What somebody holds, by number of workspace, deployment and role.
#[derive(Clone, Debug)]
struct Holding {
    organization: OrganizationRole,
    workspaces: Vec<(usize, WorkspaceRoleName)>,
    deployments: Vec<(usize, usize)>,
    dags: Vec<(usize, bool, bool)>,
}

/// Who asks, and how large the pages are.
#[derive(Clone, Debug)]
struct Case {
    own: Holding,
    teams: Vec<Holding>,
    is_token: bool,
    page: usize,
}

fn holding() -> impl Strategy<Value = Holding> {
    let organization = prop_oneof![
        9 => Just(OrganizationRole::Member),
        1 => select(OrganizationRole::ALL),
    ];
    let workspaces = vec((0..WORKSPACES, select(WorkspaceRoleName::ALL)), 0..3);
    let deployments = vec((0..DEPLOYMENTS, 0..DeploymentRoleName::ALL.len() + CUSTOM.len()), 0..3);
    let dags = vec((0..DEPLOYMENTS, any::<bool>(), any::<bool>()), 0..2);
    (organization, workspaces, deployments, dags).prop_map(|(organization, workspaces, deployments, dags)| {
        Holding { organization, workspaces, deployments, dags }
    })
}

fn case() -> impl Strategy<Value = Case> {
    (holding(), vec(holding(), 0..3), prop::bool::weighted(0.3), 1..8usize)
        .prop_map(|(own, teams, is_token, page)| Case { own, teams, is_token, page })
}

#[test]
fn every_list_shows_what_the_policy_allows_on_sqlite() {
    run(Engine::Sqlite, |app| holds_for(app, 24));
}

#[test]
fn every_list_shows_what_the_policy_allows_on_postgres() {
    run(Engine::Postgres, |app| holds_for(app, 6));
}

async fn holds_for(app: TestApp, cases: u32) {
    let place = Place::make(&app).await;
    for_all(cases, &case(), |case| place.shows_what_is_allowed(case));
}

/// Whether the one who asks may see an item of a list.
type Policy<'a> = &'a dyn Fn(&Id) -> bool;

/// An organization with something to see.
struct Place<'a> {
    app: &'a TestApp,
    workspaces: Vec<WorkspaceId>,
    deployments: Vec<(DeploymentId, WorkspaceId)>,
    custom_roles: Vec<RoleId>,
    /// The only workspace that each cluster takes; those that are not here take all.
    clusters: BTreeMap<ClusterId, WorkspaceId>,
    /// What each API token belongs to; those that are not here belong to the organization.
    tokens: BTreeMap<String, Target>,
    /// What each environment object belongs to.
    objects: BTreeMap<String, Target>,
    /// The deployment of each operation; one of a cluster has the id of the cluster.
    operations: BTreeMap<Id, Option<DeploymentId>>,
}

impl<'a> Place<'a> {
    async fn make(app: &'a TestApp) -> Self {
        let (mut workspaces, mut deployments) = (Vec::new(), Vec::new());
        let (mut tokens, mut objects) = (BTreeMap::new(), BTreeMap::new());
        let mut clusters = BTreeMap::new();
        let open = app.cluster(&[]).await;
        for _ in 0..WORKSPACES {
            let workspace_id = app.workspace(&fresh(app)).await;
            workspaces.push(workspace_id);
            clusters.insert(app.cluster(&[workspace_id]).await, workspace_id);
            let token = app.token("ci", "WORKSPACE", workspace_id, "WORKSPACE_MEMBER").await;
            tokens.insert(token.id.to_string(), Target::Workspace(workspace_id));
            objects.insert(
                variable(app, "WORKSPACE", workspace_id.into()).await,
                Target::Workspace(workspace_id),
            );
            for _ in 0..DEPLOYMENTS / WORKSPACES {
                let id = app.deployment(workspace_id).await;
                deployments.push((id, workspace_id));
                let token = app.token("ci", "DEPLOYMENT", id, "DEPLOYMENT_ADMIN").await;
                tokens.insert(token.id.to_string(), Target::Deployment { id, workspace_id });
                objects.insert(
                    variable(app, "DEPLOYMENT", id.into()).await,
                    Target::Deployment { id, workspace_id },
                );
            }
        }
        let mut custom_roles = Vec::new();
        for permission in CUSTOM {
            custom_roles.push(app.custom_role(permission, "DEPLOYMENT", &[permission]).await);
        }
        let operations = operations(app, clusters.keys().copied().chain([open])).await;
        Self { app, workspaces, deployments, custom_roles, clusters, tokens, objects, operations }
    }

    fn grants(&self, holding: &Holding) -> Vec<Grant> {
        let mut grants = vec![Grant { on: On::Organization, held: Held::Organization(holding.organization) }];
        let mut seen = BTreeSet::new();
        for (index, role) in &holding.workspaces {
            let on = On::Workspace(self.workspaces[*index]);
            grants.push(Grant { on, held: Held::Workspace(*role) });
        }
        for (index, role) in &holding.deployments {
            let (id, workspace_id) = self.deployments[*index];
            grants.push(Grant { on: On::Deployment { id, workspace_id }, held: self.deployment_role(*role) });
        }
        for (index, by_tag, is_author) in &holding.dags {
            let (deployment_id, workspace_id) = self.deployments[*index];
            let on = match by_tag {
                true => On::DagTag { deployment_id, workspace_id, tag: "daily".into() },
                false => On::Dag { deployment_id, workspace_id, dag_id: "etl".into() },
            };
            let role = if *is_author { DagRoleName::Author } else { DagRoleName::Viewer };
            grants.push(Grant { on, held: Held::Dag(role) });
        }
        grants.retain(|grant| seen.insert(grant.on.clone()));
        grants
    }

    fn deployment_role(&self, number: usize) -> Held {
        match DeploymentRoleName::ALL.get(number) {
            Some(role) => Held::Deployment(*role),
            None => {
                let number = number - DeploymentRoleName::ALL.len();
                let permissions = PermissionSet::EMPTY.with(Permission::named(CUSTOM[number]).unwrap());
                Held::Custom { id: self.custom_roles[number], name: CUSTOM[number].into(), permissions }
            }
        }
    }

    /// Makes the one who asks; says what the policy lets it do.
    async fn caller(&self, case: &Case) -> (Actor, Grants) {
        let (app, own) = (self.app, self.grants(&case.own));
        if case.is_token {
            let token =
                app.token(&fresh(app), "ORGANIZATION", app.organization_id, "ORGANIZATION_MEMBER").await;
            app.set_grants(Subject::Token, token.id, own.clone()).await;
            return (token, Grants::for_token(own));
        }
        let user = app.user_with(&fresh(app), own.clone()).await;
        let mut all = own;
        for holding in &case.teams {
            let team_id = app.team(&fresh(app), &[&user]).await;
            let held = self.grants(holding);
            app.set_grants(Subject::Team, team_id, held.clone()).await;
            all.extend(held);
        }
        (user, Grants::new(all))
    }

    async fn shows_what_is_allowed(&self, case: Case) {
        let (caller, grants) = self.caller(&case).await;
        let holds = |name: &str| grants.on_organization().contains(Permission::named(name).unwrap());
        let sees_workspace = Permission::known("workspace.get");
        let reads_deployment = Permission::known("deployment.get");
        let sees_cluster = |id: &Id| {
            let only = self.clusters.get(&ClusterId::from_raw(*id));
            only.is_none_or(|workspace| grants.on_workspace(*workspace).contains(sees_workspace))
        };
        let known = |id: &Id| *self.deployments.iter().find(|(known, _)| known.id() == *id).expect("known");
        let lists: [(&str, &str, Policy<'_>); 9] = [
            ("/workspaces", "workspaces", &|id| {
                grants.on_workspace(WorkspaceId::from_raw(*id)).contains(sees_workspace)
            }),
            ("/clusters", "clusters", &sees_cluster),
            ("/deployments", "deployments", &|id| {
                let (id, workspace_id) = known(id);
                grants.on_deployment(id, workspace_id).contains(reads_deployment)
            }),
            ("/operations", "operations", &|id| match self.operations[id] {
                Some(id) => {
                    let (id, workspace_id) = known(&id.id());
                    grants.on_deployment(id, workspace_id).contains(reads_deployment)
                }
                None => sees_cluster(id),
            }),
            ("/tokens", "tokens", &|id| self.sees_token(&grants, *id)),
            ("/environment-objects", "environmentObjects", &|id| self.sees_object(&grants, *id)),
            ("/teams", "teams", &|_| holds("organization.teams.get")),
            ("/users", "users", &|_| holds("organization.users.get")),
            ("/roles", "roles", &|_| holds("organization.customRoles.get")),
        ];
        for (path, name, is_allowed) in lists {
            let path = self.app.path(path);
            let all = self.listed(&self.app.owner, &path, name, "limit=1000").await;
            let allowed: Vec<Id> = all.iter().copied().filter(is_allowed).collect();
            let shown = self.listed(&caller, &path, name, "limit=1000").await;
            assert_eq!(shown, allowed, "{path}");
            let mut in_pages = Vec::new();
            for offset in (0..=shown.len()).step_by(case.page) {
                let page = format!("limit={}&offset={offset}", case.page);
                in_pages.extend(self.listed_of(&caller, &path, name, &page, shown.len()).await);
            }
            assert_eq!(in_pages, shown, "{path} in pages of {}", case.page);
            // One who holds some other right on a deployment may know of it, and not read it.
            let is_known = |id: &Id| {
                name == "deployments" && {
                    let (id, workspace_id) = known(id);
                    grants.sees_deployment(id, workspace_id)
                }
            };
            if ["workspaces", "clusters", "deployments", "operations", "tokens", "environmentObjects"]
                .contains(&name)
            {
                for id in all {
                    let code = self.app.get(&caller, &format!("{path}/{id}")).await.code();
                    // A token reads itself, whatever it may see.
                    let is_itself = caller.id.to_string() == id.as_str();
                    let expected = match (shown.contains(&id) || is_itself, is_known(&id)) {
                        (true, _) => 200,
                        (false, true) => 403,
                        (false, false) => 404,
                    };
                    assert_eq!(code, expected, "{path}/{id}");
                }
            }
        }
        let own = self.listed(&caller, "/v1/organizations", "organizations", "limit=1000").await;
        assert_eq!(own, [self.app.organization_id.id()]);
    }

    fn sees_token(&self, grants: &Grants, id: Id) -> bool {
        let target = self.tokens.get(id.as_str()).copied().unwrap_or(Target::Organization);
        may(grants, Verb::Get, target).is_ok()
    }

    fn sees_object(&self, grants: &Grants, id: Id) -> bool {
        let target = self.objects[id.as_str()];
        environment_objects::may(grants, environment_objects::Verb::Get, target).is_ok()
    }

    /// The ids of a list that is shown whole.
    async fn listed(&self, caller: &Actor, path: &str, name: &str, query: &str) -> Vec<Id> {
        let answer = self.app.get(caller, &format!("{path}?{query}")).await.ok();
        let ids = ids(&answer, name);
        assert_eq!(answer["totalCount"], ids.len(), "{path}");
        ids
    }

    /// The ids of a page of a list of so many.
    async fn listed_of(&self, caller: &Actor, path: &str, name: &str, query: &str, total: usize) -> Vec<Id> {
        let answer = self.app.get(caller, &format!("{path}?{query}")).await.ok();
        assert_eq!(answer["totalCount"], total, "{path}");
        ids(&answer, name)
    }
}

/// Starts an operation of each cluster; the environment objects have started those of the deployments. Returns the
/// deployment of each operation.
async fn operations(
    app: &TestApp,
    clusters: impl Iterator<Item = ClusterId>,
) -> BTreeMap<Id, Option<DeploymentId>> {
    let (scope, created_at) = (app.scope(), app.world.now());
    let clusters: Vec<ClusterId> = clusters.collect();
    let begun = app.app.db(&app.system).write(None, move |tx| {
        clusters.iter().try_for_each(|id| {
            let operation = NewOperation {
                id: OperationId::from_raw(id.id()),
                kind: OperationKind::Update,
                cause: OperationCause::Loop,
                target: OperationTarget::Cluster(*id, id.to_string()),
                subject_id: None,
                undo: None,
                details: podium_domain::operations::Details::default(),
                created_at,
            };
            podium_store::operations::begin(tx, &scope, &operation)
        })
    });
    begun.await.unwrap_or_else(|error: podium_db::Error| panic!("{error}"));
    let all = app.get(&app.owner, &app.path("/operations?limit=1000")).await.ok();
    let of = |operation: &Value| {
        let id = |value: &Value| value.as_str().map(|id| id.parse::<Id>().expect("an id"));
        let deployment = id(&operation["target"]["deploymentId"]).map(DeploymentId::from_raw);
        (id(&operation["id"]).expect("an id"), deployment)
    };
    let operations: BTreeMap<_, _> = all["operations"].as_array().expect("a list").iter().map(of).collect();
    assert!(operations.values().any(Option::is_some) && operations.values().any(Option::is_none));
    operations
}

/// An environment object, made by the owner.
async fn variable(app: &TestApp, scope: &str, entity_id: EntityId) -> String {
    let body = json!({
        "objectKey": "KEY", "objectType": "ENVIRONMENT_VARIABLE", "scope": scope, "scopeEntityId": entity_id,
        "environmentVariable": { "value": "v" },
    });
    app.post(&app.owner, &app.path("/environment-objects"), body).await.id()
}

fn ids(answer: &Value, name: &str) -> Vec<Id> {
    let items = answer[name].as_array().expect("a list names its items").iter();
    items.map(|item| item["id"].as_str().and_then(|id| id.parse().ok()).expect("an id")).collect()
}
