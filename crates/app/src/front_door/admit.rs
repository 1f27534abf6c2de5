//! Authenticates callers of the front door, by a token or a pass, again on every request.

use std::net::IpAddr;
use std::sync::Arc;

use podium_api::{Method, Timestamp, unhex};
use podium_domain::Refusal;
use podium_domain::airflow::Rights;
use podium_store::InScope;
use podium_store::front_door::{self, DeploymentRef, DoorRow};

use super::db;
use super::system;
use crate::authority::{Authority, Member};
use crate::error::{Error, Result, Unauthenticated};
use crate::request::OpenSession;
use crate::secrets::{sha256, sha256_hex};
use crate::{App, audit};

/// How often a caller is read again because its rights changed in the meantime.
const ATTEMPTS: usize = 4;

/// How much of a token's name is sent to Airflow; its columns are short.
const LONGEST_NAME: usize = 100;

#[derive(Clone, Copy, Debug)]
pub enum PresentedCredential<'a> {
    /// A token of the control plane: an API token, or a session.
    Token(&'a str),
    Pass(&'a str),
    /// A browser's session at the console.
    Session(&'a str),
}

/// An authenticated caller who is a member of the deployment's organization.
pub struct AdmittedCaller {
    pub authority: Arc<Authority>,
    /// The deployment, which it may see.
    pub at: InScope<DoorRow>,
    /// The browser's session that it came with, or that its pass came from.
    pub session: Option<OpenSession>,
}

impl AdmittedCaller {
    pub const fn deployment(&self) -> &DeploymentRef {
        self.at.get().deployment()
    }

    /// What it may do on the deployment and its DAGs.
    pub fn rights(&self) -> Rights<'_> {
        let member: &Member = self.authority.member.as_ref().expect("a visitor is a member");
        let (deployment_id, workspace_id) = (self.deployment().id(), self.at.get().workspace_id());
        Rights { grants: member.grants(), deployment_id, workspace_id }
    }

    /// What Airflow calls it: a user by its e-mail address, a token by its id and its name. No address of a user has a
    /// colon, so that no token passes for one, whatever it is named.
    pub fn name(&self) -> String {
        let profile = &self.authority.profile;
        let name = audit::shown_name(profile);
        if !self.authority.is_api_token() {
            return name.to_owned();
        }
        let name: String = name.chars().take(LONGEST_NAME).collect();
        format!("token:{}:{name}", profile.id)
    }
}

impl App {
    /// Authenticates a caller of a deployment's environment. A caller who may not see the deployment gets the same
    /// response as if there were none; `counts_as` is the method that the rate limits count, if any.
    pub async fn admit(
        &self,
        shown: PresentedCredential<'_>,
        deployment: Option<DeploymentRef>,
        address: IpAddr,
        counts_as: Option<Method>,
        now: Timestamp,
    ) -> Result<AdmittedCaller> {
        let (hash, session) = self.credential_behind(shown, deployment.as_ref(), now).await?;
        let organization_id = deployment.as_ref().map(DeploymentRef::organization_id);
        let unseen = || Error::from(Refusal::not_found("deployment"));
        for attempt in 0..ATTEMPTS {
            let authority = match shown {
                PresentedCredential::Token(token) => self.authority(token, organization_id, now).await?,
                PresentedCredential::Pass(_) | PresentedCredential::Session(_) => {
                    self.authority_by_hash(hash, organization_id, now).await?
                }
            };
            let is_first = attempt == 0;
            if let Some(method) = counts_as.filter(|_| is_first) {
                self.rate_limits.count(authority.credential.subject_id, method)?;
            }
            let (caller, whose) = (Arc::clone(&authority), deployment.clone());
            let system = system(self);
            let guard = is_first.then(|| authority.guard());
            let found = db(self).read(guard, move |conn| {
                if !is_first {
                    caller.confirm(conn)?;
                }
                Ok::<_, Error>(front_door::at_door(conn, &system, whose.as_ref())?)
            });
            let found = match found.await {
                Err(error) if error.is_stale() => {
                    self.forget_caller_by_hash(hash, organization_id);
                    continue;
                }
                found => found?,
            };
            if deployment.is_none() {
                return Err(unseen());
            }
            let member = authority.member.as_ref().ok_or_else(unseen)?;
            member.admit_address(address)?;
            let at = found.and_then(|found| found.seen_by(&member.membership)).ok_or_else(unseen)?;
            return Ok(AdmittedCaller { authority, at, session });
        }
        Err(Error::STALE)
    }

    /// The hash of the presented token, or of the token that a pass or a session refers to, and that session.
    async fn credential_behind(
        &self,
        shown: PresentedCredential<'_>,
        deployment: Option<&DeploymentRef>,
        now: Timestamp,
    ) -> Result<([u8; 32], Option<OpenSession>)> {
        let pass = match shown {
            PresentedCredential::Token(token) => return Ok((sha256(token.as_bytes()), None)),
            PresentedCredential::Session(cookie) => {
                let session = self.open_session(cookie, now).await?;
                return Ok((session.credential_hash, Some(session)));
            }
            PresentedCredential::Pass(pass) => sha256_hex(pass.as_bytes()),
        };
        let (system, generation) = (system(self), self.rights_generation());
        let unauthenticated = |why| Err(Error::Unauthenticated(why));
        let Some((access, session_id)) =
            db(self).read(None, move |conn| front_door::pass(conn, &system, &pass)).await?
        else {
            return unauthenticated(Unauthenticated::Revoked);
        };
        if deployment.is_none_or(|deployment| deployment.id() != access.deployment_id) {
            return unauthenticated(Unauthenticated::Revoked);
        }
        if access.expires_at <= now {
            return unauthenticated(Unauthenticated::Expired);
        }
        let hash = |text: &str| {
            let hash = unhex(text).and_then(|bytes| bytes.try_into().ok());
            hash.ok_or_else(|| Error::Internal("a stored pass has no valid hash".into()))
        };
        let credential_hash = hash(&access.credential_hash)?;
        let session = match session_id.zip(access.session_hash) {
            Some((id, session_hash)) => {
                self.note_session_use(id, now);
                let (hash, expires_at) = (hash(&session_hash)?, access.expires_at);
                Some(OpenSession { id, hash, credential_hash, expires_at, generation })
            }
            None => None,
        };
        Ok((credential_hash, session))
    }
}
