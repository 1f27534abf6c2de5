//! Names wherever ids are: what is called so, candidates where several are, and a suggestion where none is.

use podium_api::path::{InOrganization, OfCluster, OfDeployment, OfWorkspace, PathParams};
use podium_api::{
    DeploymentId, Endpoint, Id, Nothing, OrganizationId, TypedId, WorkspaceId, clusters, deployments,
    organizations, workspaces,
};
use podium_client::Call;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::answer::read;
use super::ending::{Exit, Failed, Outcome};
use super::output::{Listing, View};
use super::session::Session;
use super::table::cell;

/// How many names are looked at for a suggestion.
pub(crate) const MOST_NAMES: u64 = 2_000;
/// How much alike a suggestion must be.
const LIKENESS: f64 = 0.8;

/// What has a name, by the endpoint that reads one of them.
pub(crate) trait Noun: Endpoint {
    type List: Endpoint;
    const KIND: Kind;
    const VIEW: &'static View;
}

pub(crate) trait OrganizationNoun: Noun<List: Endpoint<Path = InOrganization>> {}

impl<N: Noun<List: Endpoint<Path = InOrganization>>> OrganizationNoun for N {}

pub(crate) struct Kind {
    pub(crate) noun: &'static str,
    command: &'static str,
    /// The parameter of the list that looks for a name.
    filter: Option<&'static str>,
    /// A column that tells two of the same name apart.
    telling: &'static str,
}

impl Kind {
    /// Things whose list is searched.
    pub(crate) const fn listed(noun: &'static str, command: &'static str, telling: &'static str) -> Self {
        Self { noun, command, filter: None, telling }
    }

    /// Things whose list can be asked for a name, with this parameter.
    pub(crate) const fn asked(self, filter: &'static str) -> Self {
        Self { filter: Some(filter), ..self }
    }
}

/// Anything with a name, as lists show it.
#[derive(Debug, Deserialize)]
pub(crate) struct Called {
    pub(crate) id: Id,
    #[serde(alias = "username", alias = "objectKey", alias = "ipAddressRange")]
    pub(crate) name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Pools {
    pub(crate) node_pools: Vec<Called>,
}

impl Session {
    pub(crate) async fn find<G: Noun>(
        &self,
        place: &<G::List as Endpoint>::Path,
        query: &impl Serialize,
        text: &str,
    ) -> Outcome<G::Path> {
        let of = |id| G::Path::from_ids(&[place.ids(), vec![id]].concat());
        if let Ok(id) = text.parse::<Id>() {
            return Ok(of(id));
        }
        let noun = G::KIND.noun;
        let call = Call::to::<G::List>(place).query_params(query)?;
        let call = match G::KIND.filter {
            Some(filter) => call.query_params(&json!({ filter: text }))?,
            None => call,
        };
        let (mut found, mut pages) = (Vec::new(), self.client.pages(call, None));
        let is_called = |called: &Called| called.name.to_lowercase() == text.to_lowercase();
        while let Some(page) = pages.next().await? {
            let called = page.into_iter().filter_map(|item| Some((read::<Called>(&item).ok()?, item)));
            found.extend(called.filter(|(called, _)| is_called(called)));
        }
        match found.as_slice() {
            [(only, _)] => Ok(of(only.id)),
            [] => {
                let names = self.names_of::<G>(place, query).await?;
                let otherwise = format!("List them: podium {}", G::KIND.command);
                Err(Failed::missing(noun, text).suggest(&names, text, otherwise))
            }
            several => {
                let line = |(called, item): &(Called, Value)| {
                    format!("{}  {}", called.id, cell(item, G::KIND.telling))
                };
                Err(Failed::usage(format!("{} {noun}s are called {text:?}", several.len()))
                    .details(several.iter().map(line))
                    .hint("Give the id of the one that you mean."))
            }
        }
    }

    /// The names of a list, up to a number of them.
    pub(crate) async fn names_of<G: Noun>(
        &self,
        place: &<G::List as Endpoint>::Path,
        query: &impl Serialize,
    ) -> Outcome<Vec<String>> {
        let all = self.all::<G::List, Called>(place, query, Some(MOST_NAMES)).await?;
        Ok(all.into_iter().map(|called| called.name).collect())
    }

    pub(crate) async fn named<G: OrganizationNoun>(&self, text: &str) -> Outcome<G::Path> {
        self.find::<G>(&self.in_organization().await?, &Nothing, text).await
    }

    /// Shows what is called so.
    pub(crate) async fn show_named<G: OrganizationNoun>(&self, name: &str) -> Outcome {
        self.show_at::<G>(&self.named::<G>(name).await?, G::VIEW).await
    }

    /// Shows all of a kind.
    pub(crate) async fn list_named<G: OrganizationNoun>(&self, listing: &Listing) -> Outcome {
        self.list::<G::List>(&self.in_organization().await?, G::VIEW, listing).await
    }

    /// The organization that is named, or the only one.
    pub(super) async fn find_organization(&self) -> Outcome<OrganizationId> {
        if let Some(wanted) = &self.wanted_organization {
            let found = self.find::<organizations::Get>(&(), &Nothing, wanted).await?;
            return Ok(found.organization_id);
        }
        let found: Vec<Called> = self.all::<organizations::List, _>(&(), &Nothing, Some(20)).await?;
        match found.as_slice() {
            [] => Err(Failed::new(Exit::NotFound, "you belong to no organization")
                .hint("Ask an owner for an invite, or accept the invite that you received.")),
            [only] => Ok(OrganizationId::from_raw(only.id)),
            several => {
                Err(Failed::usage("you belong to several organizations: choose one with --organization")
                    .details(several.iter().map(|item| format!("{}  {}", item.id, item.name)))
                    .hint("To keep the choice: podium context use CONTEXT --organization ID"))
            }
        }
    }

    /// The ids of what is called so in the organization.
    pub(crate) async fn ids_of<G: OrganizationNoun, I: TypedId>(&self, names: &[String]) -> Outcome<Vec<I>> {
        let mut ids = Vec::new();
        for name in names {
            ids.extend(self.named::<G>(name).await?.ids().pop().map(I::from_raw));
        }
        Ok(ids)
    }

    /// The same, where any are named.
    pub(crate) async fn some_ids_of<G: OrganizationNoun, I: TypedId>(
        &self,
        names: &[String],
    ) -> Outcome<Option<Vec<I>>> {
        Ok(Some(self.ids_of::<G, I>(names).await?).filter(|ids| !ids.is_empty()))
    }

    pub(crate) async fn workspace(&self, text: &str) -> Outcome<OfWorkspace> {
        self.named::<workspaces::Get>(text).await
    }

    pub(crate) async fn deployment(&self, text: &str, workspace: Option<&str>) -> Outcome<OfDeployment> {
        let mut query = deployments::ListDeployments::default();
        if let Some(name) = workspace {
            query.workspace_ids.push(self.workspace(name).await?.workspace_id.into());
        }
        self.find::<deployments::Get>(&self.in_organization().await?, &query, text).await
    }

    pub(crate) async fn cluster(&self, text: &str) -> Outcome<OfCluster> {
        self.named::<clusters::Get>(text).await
    }

    pub(crate) async fn ids_in(
        &self,
        workspace: Option<&str>,
        deployment: Option<&str>,
    ) -> Outcome<(Option<WorkspaceId>, Option<DeploymentId>)> {
        let workspace_id = match workspace {
            Some(name) => Some(self.workspace(name).await?.workspace_id),
            None => None,
        };
        let deployment_id = match deployment {
            Some(name) => Some(self.deployment(name, None).await?.deployment_id),
            None => None,
        };
        Ok((workspace_id, deployment_id))
    }
}

impl Failed {
    /// Suggests the name that is most like what was meant, or else says something else.
    pub(crate) fn suggest(self, names: &[String], meant: &str, otherwise: impl Into<String>) -> Self {
        match most_alike(names, meant) {
            Some(name) => self.hint(format!("Did you mean {name:?}?")),
            None => self.hint(otherwise),
        }
    }
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
