//! A visit: who looks at which page, and what they sent.

use std::net::IpAddr;

use podium_api::json::BodyOf;
use podium_api::path::{InOrganization, OfDeployment};
use podium_api::{
    DeploymentId, Endpoint, Id, Nothing, OrganizationId, SubjectId, Timestamp, TypedId, WorkspaceId,
};

use crate::ROOT;
use crate::answer::{Answer, Result};
use crate::calls::{Calls, Problem};
use crate::params::Params;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VisitMethod {
    Read,
    /// A form is sent.
    Send,
}

pub struct Visit<'a> {
    pub calls: &'a dyn Calls,
    pub method: VisitMethod,
    /// The path below [`ROOT`].
    pub path: &'a str,
    pub query: Params,
    /// The form; empty for a page that is read.
    pub form: Params,
    /// What a form of the console has to send along.
    pub form_token: String,
    pub person: String,
    pub person_id: SubjectId,
    pub address: IpAddr,
    pub now: Timestamp,
}

pub(crate) struct OrganizationVisit<'a> {
    pub(crate) visit: &'a Visit<'a>,
    pub(crate) organization_id: OrganizationId,
    /// The last event that happened before the page was read: what the page shows is as new as that, or newer.
    pub(crate) seen: Option<String>,
    /// What was wrong with the form that was sent. Its page shows it, with what was sent.
    pub(crate) problem: Option<Problem>,
}

impl Visit<'_> {
    pub(crate) fn segments(&self) -> Vec<&str> {
        self.path.split('/').filter(|part| !part.is_empty()).collect()
    }
}

impl OrganizationVisit<'_> {
    pub(crate) fn calls(&self) -> &dyn Calls {
        self.visit.calls
    }

    /// The path of the organization in the API.
    pub(crate) fn here(&self) -> InOrganization {
        InOrganization { organization_id: self.organization_id }
    }

    /// The path of something in the organization.
    pub(crate) fn at<I, P: From<(OrganizationId, I)>>(&self, id: I) -> P {
        (self.organization_id, id).into()
    }

    /// The path of a deployment in the API.
    pub(crate) fn deployment(&self, deployment_id: DeploymentId) -> OfDeployment {
        OfDeployment { organization_id: self.organization_id, deployment_id }
    }

    pub(crate) fn link(&self, to: &str) -> String {
        format!("{ROOT}/{}{to}", self.organization_id)
    }

    pub(crate) fn go(&self, to: impl AsRef<str>) -> Result {
        Answer::redirect(self.link(to.as_ref()))
    }

    /// Changes the version of something that the form was made for, if it names one.
    pub(crate) async fn change<E: Endpoint>(&self, path: E::Path, body: E::Body) -> Result<BodyOf<E>> {
        self.calls().change::<E>(path, body, self.form().filled("version").map(str::to_owned)).await
    }

    /// Deletes something, and leads to the list that it was in.
    pub(crate) async fn delete<E, I: TypedId>(&self, of: &str, list: &str) -> Result
    where
        E: Endpoint<Path: From<(OrganizationId, I)>, Body = Nothing>,
    {
        self.calls().act::<E>(self.at(id::<I>(of)?)).await?;
        self.go(format!("{list}?done=deleted"))
    }

    pub(crate) async fn holds(&self, permission: &'static str, workspace_id: WorkspaceId) -> bool {
        self.visit.calls.holds(self.organization_id, permission, workspace_id).await
    }

    pub(crate) async fn is_owner(&self) -> bool {
        self.visit.calls.is_owner(self.organization_id).await
    }

    pub(crate) fn form(&self) -> &Params {
        &self.visit.form
    }

    pub(crate) fn query(&self) -> &Params {
        &self.visit.query
    }
}

/// An id of a path; one that is none is not found, like any other that is unknown.
pub(crate) fn id<I: TypedId>(text: &str) -> Result<I> {
    text.parse::<Id>().map(I::from_raw).map_err(|_| Problem::new(404, "There is no page at this address."))
}
