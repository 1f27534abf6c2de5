//! A minimal valid call of every operation, on real things that are made for it.

use std::collections::BTreeMap;

use podium_api::enums::{ClusterStatus, OrganizationRole};
use podium_api::openapi::PREFIX;
use podium_api::{Access, DeploymentId, Description, ENDPOINTS, Id, WebhookId, WorkspaceId};
use podium_domain::deployments::rollout::{RolloutProgress, RolloutStep};
use podium_domain::{On, Permission, PermissionSet};
use podium_testkit::{Actor, Answer, Call, TestApp};
use serde_json::{Value, json};

use super::contract;

/// A password that must never be seen again.
pub(super) const PASSWORD: &str = "planted: the first password";
/// Another one.
pub(super) const NEW_PASSWORD: &str = "planted: the second password";

/// A value of a variable that must never be seen again.
pub(super) const VARIABLE: &str = "planted: the value of a variable";

/// A call that would succeed, if only the right one made it.
pub(super) struct Prepared {
    pub(super) endpoint: &'static Description,
    pub(super) path: String,
    pub(super) body: Option<Value>,
    /// The `ETag` of what the path names, where it names something.
    pub(super) etag: String,
    /// What the permission is needed on.
    pub(super) on: On,
    /// Where the permission is a gate: the rights that are asked for next, and what they are needed on.
    pub(super) behind_gate: Option<(PermissionSet, On)>,
    /// The only one who may call, where others may not whatever they hold: an agent, the maker of a plan, or whose
    /// session it is.
    only: Option<Actor>,
}

impl Prepared {
    pub(super) fn permission(&self) -> Option<Permission> {
        match self.endpoint.access {
            Access::Permission(name) => {
                Some(Permission::named(name).expect("operations name known permissions"))
            }
            Access::Public | Access::Token | Access::Member | Access::Agent => None,
        }
    }

    /// Who calls: this one, or the only one who may.
    pub(super) fn caller<'a>(&'a self, usual: &'a Actor) -> &'a Actor {
        self.only.as_ref().unwrap_or(usual)
    }

    /// An owner who is new, or the maker of what only its maker may see.
    pub(super) async fn owner(&self, app: &TestApp) -> Actor {
        match &self.only {
            Some(maker) if self.is_makers_own() => maker.clone(),
            _ => owner(app).await,
        }
    }

    /// Whether it is about something that only its maker may see.
    pub(super) fn is_makers_own(&self) -> bool {
        self.endpoint.access != Access::Agent && self.only.is_some()
    }

    /// The call, by nobody yet.
    pub(super) fn call<'a>(&self, app: &'a TestApp) -> Call<'a> {
        let call = app.call(self.endpoint.method.as_str(), &self.path);
        match &self.body {
            Some(body) => call.json(body),
            None => call,
        }
    }

    /// Sends the call; whatever the answer is, the document describes it.
    pub(super) async fn send(&self, call: Call<'_>) -> Answer {
        let answer = call.send().await;
        contract::describes(self.endpoint, &answer);
        answer
    }
}

/// An owner who is new, with a session like those of people who sign in.
pub(super) async fn owner(app: &TestApp) -> Actor {
    let actor = app.member_as(&fresh(app), OrganizationRole::Owner).await;
    app.session_of(&actor).await
}

/// A name that nothing has yet.
pub(super) fn fresh(app: &TestApp) -> String {
    app.world.id::<Id>().to_string()
}

/// Makes what a call of the operation needs.
pub(super) async fn prepare(app: &TestApp, endpoint: &'static Description) -> Prepared {
    let mut made = Made::new(app, endpoint);
    let (mut path, mut on) = (format!("{PREFIX}{}", endpoint.path), On::Organization);
    for param in endpoint.path_params {
        let id = made.thing(param).await;
        if endpoint.names_workspace() && *param == "workspaceId" {
            on = On::Workspace(id.parse().expect("an id"));
        }
        if let (true, Some((id, workspace_id))) = (endpoint.names_deployment(), made.deployment) {
            on = On::Deployment { id, workspace_id };
        }
        made.above.clone_from(&id);
        path = path.replace(&format!("{{{param}}}"), &id);
    }
    if ["GetDeploymentLogs", "CountDeploymentLogs"].contains(&endpoint.id) {
        path.push_str("?sources=scheduler");
    }
    if endpoint.id == "FollowDeploymentLogs" {
        path.push_str("?sources=scheduler&waitSeconds=0");
    }
    if ["FollowOperation", "FollowEvents"].contains(&endpoint.id) {
        path.push_str("?waitSeconds=0");
    }
    if endpoint.id == "GetClusterOptions" {
        path.push_str("?type=DEDICATED");
    }
    let body = made.body(endpoint.id).await;
    if endpoint.target_in_body == Some("workspaceId") {
        let id =
            body.as_ref().and_then(|body| body["workspaceId"].as_str()).expect("the body names its target");
        on = On::Workspace(id.parse().expect("an id"));
    }
    let behind_gate = made.behind_gate(endpoint);
    let only = if endpoint.access == Access::Agent { Some(made.agent().await) } else { made.maker };
    Prepared { endpoint, path, body, etag: made.etag, on, behind_gate, only }
}

/// One of everything that a path can name, by its parameter.
pub(super) async fn one_of_everything(app: &TestApp) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for endpoint in ENDPOINTS {
        if endpoint.path_params.iter().all(|param| all.contains_key(*param)) {
            continue;
        }
        let mut made = Made::new(app, endpoint);
        for param in endpoint.path_params {
            let id = made.thing(param).await;
            made.above.clone_from(&id);
            all.insert((*param).to_owned(), id);
        }
    }
    all
}

/// The same, for a call that changes something where the minimal valid call changes nothing.
pub(super) async fn prepare_change(app: &TestApp, endpoint: &'static Description) -> Prepared {
    let mut prepared = prepare(app, endpoint).await;
    match endpoint.id {
        "UpdateTeamRoles" | "UpdateUserRoles" => {
            prepared.body = Some(json!({ "organizationRole": "ORGANIZATION_BILLING_ADMIN" }));
        }
        "DeleteDeploymentHibernationOverride" => {
            app.post(&app.owner, &prepared.path, json!({ "isHibernating": true })).await.ok();
        }
        _ => {}
    }
    prepared
}

trait NamesWorkspace {
    fn names_workspace(&self) -> bool;
    fn names_deployment(&self) -> bool;
}

impl NamesWorkspace for Description {
    fn names_workspace(&self) -> bool {
        matches!(self.access, Access::Permission(name) if name.starts_with("workspace."))
    }

    fn names_deployment(&self) -> bool {
        matches!(self.access, Access::Permission(name) if name.starts_with("deployment."))
    }
}

struct Made<'a> {
    app: &'a TestApp,
    /// Who made it, if nobody else may act on it.
    maker: Option<Actor>,
    operation_id: &'static str,
    etag: String,
    member: String,
    deployment: Option<(DeploymentId, WorkspaceId)>,
    /// What the path names before.
    above: String,
}

impl<'a> Made<'a> {
    fn new(app: &'a TestApp, endpoint: &Description) -> Self {
        Self {
            app,
            operation_id: endpoint.id,
            etag: String::new(),
            member: String::new(),
            deployment: None,
            maker: None,
            above: String::new(),
        }
    }

    /// An alert that tells a webhook.
    async fn alert(&self, name: &str) -> Value {
        let path = self.app.path("/webhooks");
        let receiver = self.app.post(&self.app.owner, &path, webhook(&fresh(self.app))).await.id();
        json!({ "name": name, "kind": "DEPLOYMENT_UNHEALTHY", "webhookIds": [receiver] })
    }

    /// Makes the thing that a path parameter names.
    async fn thing(&mut self, param: &str) -> String {
        let name = fresh(self.app);
        match param {
            "organizationId" => {
                self.read("").await;
                self.app.organization_id.to_string()
            }
            "deployId" => self.deploy().await,
            "workspaceId" => self.post("/workspaces", json!({ "name": name }), "id").await,
            "teamId" => {
                self.member = self.app.member(&name).await.id.to_string();
                self.post("/teams", json!({ "name": name, "memberIds": [self.member] }), "id").await
            }
            "memberId" => self.member.clone(),
            "userId" => {
                let id = self.app.member(&name).await.id;
                self.read(&format!("/users/{id}")).await;
                id.to_string()
            }
            "inviteId" => {
                let email = format!("{name}@podium.test");
                let body = json!({ "inviteeEmail": email, "role": "ORGANIZATION_MEMBER" });
                self.post("/invites", body, "inviteId").await
            }
            "clusterId" => {
                let id = self.app.new_cluster(&name, json!({})).await;
                self.app.settle_cluster(id, ClusterStatus::Created).await;
                self.read(&format!("/clusters/{id}")).await;
                id.to_string()
            }
            "tokenId" => self.post("/tokens", organization_token(&name), "id").await,
            "roleId" => self.post("/roles", custom_role(&name), "id").await,
            "allowedIpAddressRangeId" => {
                self.allow_loopback().await;
                let range = self.range();
                self.post("/allowed-ip-address-ranges", json!({ "ipAddressRange": range }), "id").await
            }
            "deploymentId" => {
                let (id, _) = self.deployment().await;
                self.read(&format!("/deployments/{id}")).await;
                id.to_string()
            }
            "agentTokenId" => {
                let (id, _) = self.deployment.expect("the path names the deployment first");
                self.post(&format!("/deployments/{id}/agent-tokens"), json!({ "name": name }), "id").await
            }
            "operationId" => {
                let (id, workspace_id) = self.deployment().await;
                let body = update_of(&fresh(self.app), workspace_id);
                let path = self.app.path(&format!("/deployments/{id}"));
                let answer = self.app.post(&self.app.owner, &path, body).await;
                answer.ok();
                let operation = answer.header("podium-operation").to_owned();
                if self.operation_id == "ForceOperation" {
                    self.drain(id).await;
                }
                self.read(&format!("/operations/{operation}")).await;
                operation
            }
            "environmentObjectId" => {
                let (_, workspace_id) = self.deployment().await;
                self.post("/environment-objects", connection(&name, workspace_id), "id").await
            }
            "alertId" => {
                let body = self.alert(&name).await;
                self.post("/alerts", body, "id").await
            }
            "webhookId" => self.post("/webhooks", webhook(&name), "id").await,
            "deliveryId" => {
                let webhook: WebhookId = self.above.parse().expect("the path names the webhook first");
                let id = self.app.delivery(webhook).await;
                self.read(&format!("/webhooks/{webhook}/deliveries/{id}")).await;
                id.to_string()
            }
            "declaredSetId" => {
                self.post("/declared-sets", json!({ "name": name, "members": [] }), "id").await
            }
            "planId" => {
                let body = self.plan(&name).await;
                let maker = owner(self.app).await;
                let plan = self.app.post(&maker, &self.app.path("/plans"), body).await.ok();
                self.maker = Some(maker);
                plan["planId"].as_str().expect("a plan that can be applied").to_owned()
            }
            "sessionId" => {
                let maker = owner(self.app).await;
                self.app.session_of(&maker).await;
                let listed = self.app.get(&maker, "/v1/auth/sessions").await.ok();
                let sessions = listed["sessions"].as_array().expect("a list");
                let other = sessions.iter().find(|session| session["isCurrent"] == false);
                let id = other.expect("the other session")["id"].as_str().expect("an id").to_owned();
                self.maker = Some(maker);
                id
            }
            unknown => panic!("calls.rs does not know how to make what `{unknown}` names"),
        }
    }

    /// Lets a deployment wait for running tasks.
    async fn drain(&self, id: DeploymentId) {
        let script = self.app.plane.script();
        script.lock().rollout = std::time::Duration::from_mins(1);
        self.app.settle().await;
        let step = RolloutStep::Drain;
        let progress = RolloutProgress { step, done: None, message: None, waits_for: Vec::new() };
        script.set_progress(id, Some(progress));
        self.app.settle().await;
        script.lock().rollout = std::time::Duration::ZERO;
    }

    /// The rights behind the gate of an operation: to see the thing, and to do to it what the operation does.
    fn behind_gate(&self, endpoint: &Description) -> Option<(PermissionSet, On)> {
        if endpoint.path_params.contains(&"operationId") {
            // An operation is seen with its target, and cancelled by who may make the change.
            let rights =
                ["deployment.get", "deployment.update"].map(|name| Permission::named(name).expect("known"));
            return self.deployment.map(|(_, id)| (rights.into_iter().collect(), On::Workspace(id)));
        }
        let Access::Permission(gate) = endpoint.access else { return None };
        let things = gate.strip_prefix("organization.")?.strip_suffix(".access")?;
        let (scope, on) = match self.deployment {
            Some((_, workspace_id)) => ("workspace", On::Workspace(workspace_id)),
            None => ("organization", On::Organization),
        };
        let verb = ["create", "delete", "get", "list", "rotate"]
            .into_iter()
            .find(|verb| endpoint.id.to_lowercase().starts_with(verb))
            .unwrap_or("update");
        let rights: PermissionSet = ["get", verb]
            .into_iter()
            .filter_map(|verb| Permission::named(&format!("{scope}.{things}.{verb}")))
            .collect();
        (verb != "list" && !rights.is_empty()).then_some((rights, on))
    }

    /// The body of an operation; `None` where it takes none.
    async fn body(&mut self, operation_id: &str) -> Option<Value> {
        let name = fresh(self.app);
        Some(match operation_id {
            "UpdateOrganization" => json!({ "name": name, "billingEmail": "", "isScimEnabled": false }),
            "CreateAllowedIpAddressRange" => {
                self.allow_loopback().await;
                json!({ "ipAddressRange": self.range() })
            }
            "BulkCreateAllowedIpAddressRanges" => {
                self.allow_loopback().await;
                json!({ "allowedIpAddressRanges": [self.range(), self.range()] })
            }
            "BulkDeleteAllowedIpAddressRanges" => {
                json!({ "allowedIpAddressRangeIds": [self.thing("allowedIpAddressRangeId").await] })
            }
            "CreateCluster" => json!({
                "cloudProvider": "AWS", "name": name, "region": "us-east-1", "type": "DEDICATED",
                "vpcSubnetRange": "172.20.0.0/20",
            }),
            "UpdateCluster" => json!({ "clusterType": "DEDICATED", "name": name, "k8sTags": [] }),
            "CreateDeployment" => self.new_deployment(&name).await,
            "UpdateDeployment" => {
                let (_, workspace_id) = self.deployment.expect("the path names it");
                update_of(&name, workspace_id)
            }
            "UpdateDeploymentHibernationOverride" => json!({ "isHibernating": true }),
            "CreateAgentToken" => json!({ "name": name }),
            "SendAgentLogs" => {
                let line = json!({ "timestamp": self.app.world.now(), "source": "worker", "text": "hello" });
                json!({ "agent": name, "sequence": 1, "lines": [line] })
            }
            "CreateEnvironmentObject" => {
                let (_, workspace_id) = self.deployment().await;
                connection(&name, workspace_id)
            }
            "UpdateEnvironmentObject" => json!({ "description": name }),
            "ExcludeLinkingEnvironmentObject" => {
                let (id, _) = self.deployment.expect("the object's workspace has one");
                json!({ "scope": "DEPLOYMENT", "scopeEntityId": id })
            }
            "CreateUserInvite" => {
                json!({ "inviteeEmail": format!("{name}@podium.test"), "role": "ORGANIZATION_MEMBER" })
            }
            "CreateDeclaredSet" => json!({ "name": name, "members": [] }),
            "UpdateDeclaredSet" => {
                json!({ "members": [{ "kind": "TEAM", "id": fresh(self.app) }] })
            }
            "CreatePlan" => self.plan(&name).await,
            "CreateAlert" => self.alert(&name).await,
            "UpdateAlert" => json!({ "name": name }),
            "CreateWebhook" => webhook(&name),
            "UpdateWebhook" => json!({ "name": name }),
            "CreateCustomRole" => custom_role(&name),
            "UpdateCustomRole" => json!({ "name": name, "permissions": ["deployment.logs.get"] }),
            "CreateDeploy" => json!({ "type": "DAG_ONLY", "description": name }),
            "UpdateDeploy" | "DeployRollback" => json!({ "description": name }),
            "FinalizeDeploy" => json!({ "dagTarballVersion": "" }),
            "CreateTeam" | "UpdateTeam" | "CreateWorkspace" | "UpdateApiToken" => json!({ "name": name }),
            "AddTeamMembers" => json!({ "memberIds": [self.app.member(&name).await.id] }),
            "UpdateTeamRoles" | "UpdateUserRoles" => json!({ "organizationRole": "ORGANIZATION_MEMBER" }),
            "CreateApiToken" => organization_token(&name),
            "UpdateApiTokenRoles" => {
                let entity_id = self.app.organization_id;
                let role = "ORGANIZATION_BILLING_ADMIN";
                json!({ "roles": [{ "entityType": "ORGANIZATION", "entityId": entity_id, "role": role }] })
            }
            "UpdateWorkspace" => json!({ "name": name, "description": "", "cicdEnforcedDefault": true }),
            "AcceptInvite" => {
                let invite_id = self.thing("inviteId").await;
                let token = self.post(&format!("/invites/{invite_id}/link"), Value::Null, "token").await;
                json!({ "token": token, "fullName": "Grace", "password": PASSWORD })
            }
            "SignIn" => {
                let user = self.app.member(&name).await;
                let body = json!({ "currentPassword": "", "newPassword": PASSWORD });
                self.app.post(&user, "/v1/auth/change-password", body).await.ok();
                json!({ "username": format!("{name}@podium.test"), "password": PASSWORD })
            }
            "StartDeviceSignIn" => json!({ "clientName": name }),
            "FinishDeviceSignIn" => json!({ "deviceCode": self.device_sign_in("deviceCode").await }),
            "DecideDeviceSignIn" => {
                json!({ "userCode": self.device_sign_in("userCode").await, "decision": "APPROVE" })
            }
            "ChangePassword" => json!({ "currentPassword": "", "newPassword": NEW_PASSWORD }),
            _ => return None,
        })
    }

    /// A plan with a call that every member may make, because it changes nothing.
    async fn plan(&mut self, name: &str) -> Value {
        let team = self.post("/teams", json!({ "name": name }), "id").await;
        let path = format!("/organizations/{}/teams/{team}/roles", self.app.organization_id);
        let body = json!({ "organizationRole": "ORGANIZATION_MEMBER" });
        json!({ "calls": [{ "method": "POST", "path": path, "body": body }] })
    }

    /// A terminal that waits to be signed in, at an address of its own.
    async fn device_sign_in(&mut self, field: &str) -> String {
        let id = fresh(self.app);
        let number = id.bytes().fold(0_u16, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        let address = format!("198.18.{}.{}", number / 256, number % 256);
        let call = self.app.call("POST", "/v1/auth/device/start").from(&address);
        let started = call.json(&json!({})).send().await.ok();
        started[field].as_str().expect("a text").to_owned()
    }

    async fn agent(&mut self) -> Actor {
        let (id, _) = self.deployment.expect("the path names the deployment");
        let path = self.app.path(&format!("/deployments/{id}/agent-tokens"));
        let token = self.app.post(&self.app.owner, &path, json!({ "name": fresh(self.app) })).await.ok();
        let text = |field: &str| token[field].as_str().expect("a text").to_owned();
        Actor { id: text("id").parse().expect("an id"), token: text("token") }
    }

    /// A deploy that waits; for a rollback one that was finalized, and another after it.
    async fn deploy(&mut self) -> String {
        let (deployment_id, _) = self.deployment.expect("the path names the deployment first");
        let path = format!("/deployments/{deployment_id}/deploys");
        let body = json!({ "type": "IMAGE_ONLY" });
        if self.operation_id != "DeployRollback" {
            return self.post(&path, body, "id").await;
        }
        let (first, second) =
            (self.post(&path, body.clone(), "id").await, self.post(&path, body, "id").await);
        for id in [&second, &first, &second] {
            let finalized = self.post(&format!("{path}/{id}/finalize"), json!({}), "id").await;
            assert_eq!(&finalized, id);
        }
        second
    }

    /// A deployment in a workspace of its own, and running.
    async fn deployment(&mut self) -> (DeploymentId, WorkspaceId) {
        let body = self.new_deployment(&fresh(self.app)).await;
        let answer = self.app.post(&self.app.owner, &self.app.path("/deployments"), body).await.ok();
        let text = |field: &str| answer[field].as_str().expect("an id");
        let made: (DeploymentId, WorkspaceId) =
            (text("id").parse().expect("an id"), text("workspaceId").parse().expect("an id"));
        self.app.set_column("deployments", made.0, "status", "'HEALTHY'").await;
        self.deployment = Some(made);
        made
    }

    /// A deployment that can do everything: it may hibernate, and its tasks run elsewhere.
    async fn new_deployment(&self, name: &str) -> Value {
        json!({
            "name": name, "workspaceId": self.app.workspace(&fresh(self.app)).await,
            "clusterId": self.app.cluster(&[]).await, "executor": "PLATFORM", "isDevelopmentMode": true,
            "remoteExecution": { "enabled": true }, "environmentVariables": [variable()],
        })
    }

    async fn read(&mut self, path: &str) {
        let answer = self.app.get(&self.app.owner, &self.app.path(path)).await;
        answer.ok();
        self.etag = answer.header("etag").to_owned();
    }

    async fn post(&mut self, path: &str, body: Value, id: &str) -> String {
        let answer = self.app.post(&self.app.owner, &self.app.path(path), body).await;
        let made = answer.ok();
        self.etag = answer.header("etag").to_owned();
        made[id].as_str().expect("what was made says so").to_owned()
    }

    /// Ranges would lock the tests out of their own organization.
    async fn allow_loopback(&self) {
        let path = self.app.path("/allowed-ip-address-ranges");
        let body = json!({ "ipAddressRange": "127.0.0.0/8" });
        let code = self.app.post(&self.app.owner, &path, body).await.code();
        assert!(code == 200 || code == 409, "{code}");
    }

    /// A range that nothing has yet.
    fn range(&self) -> String {
        let counter = u32::from_str_radix(&fresh(self.app)[9..13], 36).expect("an id counts");
        format!("10.{}.{}.0/24", counter / 256 % 256, counter % 256)
    }
}

fn update_of(name: &str, workspace_id: WorkspaceId) -> Value {
    json!({
        "type": "DEDICATED", "name": name, "workspaceId": workspace_id, "executor": "PLATFORM",
        "isCicdEnforced": true, "isDagDeployEnabled": true, "isHighAvailability": false,
        "schedulerSize": "SMALL", "environmentVariables": [variable()],
    })
}

fn variable() -> Value {
    json!({ "key": "SECRET", "value": VARIABLE, "isSecret": true })
}

fn organization_token(name: &str) -> Value {
    json!({ "name": name, "scope": "ORGANIZATION", "role": "ORGANIZATION_MEMBER" })
}

pub(super) fn connection(key: &str, workspace_id: WorkspaceId) -> Value {
    json!({
        "objectKey": key, "objectType": "CONNECTION", "scope": "WORKSPACE", "scopeEntityId": workspace_id,
        "connection": { "type": "http", "host": "example.com", "password": PASSWORD },
    })
}

fn custom_role(name: &str) -> Value {
    json!({ "name": name, "scopeType": "DEPLOYMENT", "permissions": ["deployment.get"] })
}

/// A webhook whose receiver does not answer, and is told of hardly anything: a walk causes thousands of events.
fn webhook(name: &str) -> Value {
    json!({ "name": name, "url": "http://127.0.0.1:1024/hook", "eventTypes": ["podium.task.interrupted"] })
}
