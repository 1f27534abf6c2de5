//! Names wherever ids are: what is called so, candidates where several are, and a suggestion where none is.

use podium_api::path::{
    OfAgentToken, OfAlert, OfAllowedIpAddressRange, OfCluster, OfDeployment, OfEnvironmentObject, OfRole,
    OfTeam, OfToken, OfUser, OfWebhook, OfWorkspace, PathParams,
};
use podium_api::{
    Endpoint, Id, TypedId, agent_tokens, alerts, allowed_ip_address_ranges, clusters, deployments,
    environment_objects, roles, teams, tokens, users, webhooks, workspaces,
};
use podium_client::Call;
use serde_json::{Value, json};

use super::ending::{Exit, Failed, Outcome};
use super::session::Session;
use super::table::cell;

/// How many names are looked at for a suggestion.
pub(crate) const MOST_NAMES: u64 = 2_000;
/// How much alike a suggestion must be.
const LIKENESS: f64 = 0.8;

/// A kind of things with names.
pub(crate) struct Kind {
    /// One of them.
    pub(crate) noun: &'static str,
    /// The field that holds the name.
    name: &'static str,
    /// The parameter of the list that looks for a name.
    filter: Option<&'static str>,
    /// A field that tells two of the same name apart.
    telling: &'static str,
}

const fn kind(
    noun: &'static str,
    name: &'static str,
    filter: Option<&'static str>,
    telling: &'static str,
) -> Kind {
    Kind { noun, name, filter, telling }
}

impl Kind {
    /// The command that shows them.
    fn command(&self) -> String {
        let command = match self.noun {
            "address range" => "ip-range list",
            "agent token" => "token agent list --deployment NAME",
            "environment object" => "env list",
            _ => return format!("{} list", self.noun),
        };
        command.to_owned()
    }
}

pub(crate) const ORGANIZATION: Kind = kind("organization", "name", None, "createdAt");
pub(crate) const WORKSPACE: Kind = kind("workspace", "name", Some("names"), "createdAt");
pub(crate) const DEPLOYMENT: Kind = kind("deployment", "name", Some("names"), "workspaceName");
pub(crate) const CLUSTER: Kind = kind("cluster", "name", Some("names"), "region");
pub(crate) const TEAM: Kind = kind("team", "name", Some("names"), "createdAt");
pub(crate) const USER: Kind = kind("user", "username", None, "fullName");
pub(crate) const ROLE: Kind = kind("role", "name", None, "scopeType");
pub(crate) const TOKEN: Kind = kind("token", "name", None, "scope");
const AGENT_TOKEN: Kind = kind("agent token", "name", None, "createdAt");
pub(crate) const RANGE: Kind = kind("address range", "ipAddressRange", None, "createdAt");
pub(crate) const ALERT: Kind = kind("alert", "name", None, "kind");
pub(crate) const WEBHOOK: Kind = kind("webhook", "name", None, "url");
pub(crate) const OBJECT: Kind = kind("environment object", "objectKey", Some("objectKey"), "objectType");

impl Session {
    /// The id of what is called so in a list.
    pub(crate) async fn find<T: TypedId, L: Endpoint>(
        &self,
        kind: &Kind,
        path: &L::Path,
        params: &Value,
        text: &str,
    ) -> Outcome<T> {
        if let Ok(id) = text.parse::<Id>() {
            return Ok(T::from_raw(id));
        }
        let list = || Call::to::<L>(path).query_params(params);
        let call = match kind.filter {
            Some(filter) => list()?.query_params(&json!({ filter: text }))?,
            None => list()?,
        };
        let mut found = Vec::new();
        let mut pages = self.client.pages(call, None);
        while let Some(page) = pages.next().await? {
            found.extend(page.into_iter().filter(|item| is_called(item, kind, text)));
        }
        match found.as_slice() {
            [only] => match only["id"].as_str().and_then(|id| id.parse::<Id>().ok()) {
                Some(id) => Ok(T::from_raw(id)),
                None => Err(Failed::because(format!("the {} {text:?} has no id", kind.noun))),
            },
            [] => Err(self.unknown(kind, list()?, text).await?),
            several => {
                let line = |item: &Value| format!("{}  {}", cell(item, "id"), cell(item, kind.telling));
                Err(Failed::usage(format!("{} {}s are called {text:?}", several.len(), kind.noun))
                    .details(several.iter().map(line))
                    .hint("Give the id of the one that you mean."))
            }
        }
    }

    /// There is no such name: says which one is most like it.
    async fn unknown(&self, kind: &Kind, call: Call, text: &str) -> Outcome<Failed> {
        let mut names = Vec::new();
        let mut pages = self.client.pages(call, Some(MOST_NAMES));
        while let Some(page) = pages.next().await? {
            names.extend(page.iter().map(|item| cell(item, kind.name)));
        }
        let failed = Failed::new(Exit::NotFound, format!("there is no {} called {text:?}", kind.noun));
        Ok(match most_alike(&names, text) {
            Some(name) => failed.hint(format!("Did you mean {name:?}?")),
            None => failed.hint(format!("List them: podium {}", kind.command())),
        })
    }

    /// The names of a list, up to a number of them.
    pub(crate) async fn some_names<L: Endpoint>(&self, kind: &Kind, path: &L::Path) -> Outcome<Vec<String>> {
        let mut names = Vec::new();
        let mut pages = self.client.pages(Call::to::<L>(path), Some(MOST_NAMES));
        while let Some(page) = pages.next().await? {
            names.extend(page.iter().filter_map(|item| item[kind.name].as_str().map(str::to_owned)));
        }
        Ok(names)
    }

    pub(crate) async fn workspace(&self, text: &str) -> Outcome<OfWorkspace> {
        let path = self.in_organization().await?;
        let workspace_id = self.find::<_, workspaces::List>(&WORKSPACE, &path, &json!({}), text).await?;
        Ok(OfWorkspace { organization_id: path.organization_id, workspace_id })
    }

    /// A deployment, in a workspace if one is named.
    pub(crate) async fn deployment(&self, text: &str, workspace: Option<&str>) -> Outcome<OfDeployment> {
        let path = self.in_organization().await?;
        let params = match workspace {
            Some(workspace) => json!({ "workspaceIds": [self.workspace(workspace).await?.workspace_id] }),
            None => json!({}),
        };
        let deployment_id = self.find::<_, deployments::List>(&DEPLOYMENT, &path, &params, text).await?;
        Ok(OfDeployment { organization_id: path.organization_id, deployment_id })
    }

    pub(crate) async fn cluster(&self, text: &str) -> Outcome<OfCluster> {
        let path = self.in_organization().await?;
        let cluster_id = self.find::<_, clusters::List>(&CLUSTER, &path, &json!({}), text).await?;
        Ok(OfCluster { organization_id: path.organization_id, cluster_id })
    }

    pub(crate) async fn team(&self, text: &str) -> Outcome<OfTeam> {
        let path = self.in_organization().await?;
        let team_id = self.find::<_, teams::List>(&TEAM, &path, &json!({}), text).await?;
        Ok(OfTeam { organization_id: path.organization_id, team_id })
    }

    pub(crate) async fn user(&self, text: &str) -> Outcome<OfUser> {
        let path = self.in_organization().await?;
        let user_id = self.find::<_, users::List>(&USER, &path, &json!({}), text).await?;
        Ok(OfUser { organization_id: path.organization_id, user_id })
    }

    pub(crate) async fn role(&self, text: &str) -> Outcome<OfRole> {
        let path = self.in_organization().await?;
        let role_id = self.find::<_, roles::List>(&ROLE, &path, &json!({}), text).await?;
        Ok(OfRole { organization_id: path.organization_id, role_id })
    }

    pub(crate) async fn token(&self, text: &str) -> Outcome<OfToken> {
        let path = self.in_organization().await?;
        let token_id = self.find::<_, tokens::List>(&TOKEN, &path, &json!({}), text).await?;
        Ok(OfToken { organization_id: path.organization_id, token_id })
    }

    pub(crate) async fn agent_token(&self, of: OfDeployment, text: &str) -> Outcome<OfAgentToken> {
        let agent_token_id = self.find::<Id, agent_tokens::List>(&AGENT_TOKEN, &of, &json!({}), text).await?;
        let mut ids = of.ids();
        ids.push(agent_token_id);
        Ok(OfAgentToken::from_ids(&ids))
    }

    pub(crate) async fn ip_range(&self, text: &str) -> Outcome<OfAllowedIpAddressRange> {
        let path = self.in_organization().await?;
        let id = self.find::<_, allowed_ip_address_ranges::List>(&RANGE, &path, &json!({}), text).await?;
        Ok(OfAllowedIpAddressRange { organization_id: path.organization_id, allowed_ip_address_range_id: id })
    }

    pub(crate) async fn alert(&self, text: &str) -> Outcome<OfAlert> {
        let path = self.in_organization().await?;
        let alert_id = self.find::<_, alerts::List>(&ALERT, &path, &json!({}), text).await?;
        Ok(OfAlert { organization_id: path.organization_id, alert_id })
    }

    pub(crate) async fn webhook(&self, text: &str) -> Outcome<OfWebhook> {
        let path = self.in_organization().await?;
        let webhook_id = self.find::<_, webhooks::List>(&WEBHOOK, &path, &json!({}), text).await?;
        Ok(OfWebhook { organization_id: path.organization_id, webhook_id })
    }

    /// An environment object, among those that the parameters describe.
    pub(crate) async fn object(&self, params: &Value, text: &str) -> Outcome<OfEnvironmentObject> {
        let path = self.in_organization().await?;
        let id = self.find::<_, environment_objects::List>(&OBJECT, &path, params, text).await?;
        Ok(OfEnvironmentObject { organization_id: path.organization_id, environment_object_id: id })
    }
}

fn is_called(item: &Value, kind: &Kind, text: &str) -> bool {
    item[kind.name].as_str().is_some_and(|name| name.to_lowercase() == text.to_lowercase())
}

/// The name that is most like a text, if any is.
pub(crate) fn most_alike<'a>(names: &'a [String], text: &str) -> Option<&'a str> {
    let likeness = |name: &String| strsim::jaro_winkler(&name.to_lowercase(), &text.to_lowercase());
    let best = names.iter().map(|name| (likeness(name), name)).max_by(|one, other| one.0.total_cmp(&other.0));
    best.filter(|(likeness, _)| *likeness >= LIKENESS).map(|(_, name)| name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_name_is_suggested() {
        let names = ["Reports", "Nightly", "Default"].map(str::to_owned);
        assert_eq!(most_alike(&names, "nighly"), Some("Nightly"));
        assert_eq!(most_alike(&names, "Repots"), Some("Reports"));
        assert_eq!(most_alike(&names, "xyz"), None);
        assert_eq!(most_alike(&[], "xyz"), None);
    }
}
