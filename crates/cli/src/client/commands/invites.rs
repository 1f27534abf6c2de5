//! `podium invite`.

use clap::Subcommand;
use podium_api::path::OfInvite;
use podium_api::{Nothing, auth, invites as api};
use podium_terminal as terminal;

use super::{Failed, Outcome, Session, Verbs, View, id};
use crate::client::grants::organization_role;

pub(crate) const EXAMPLES: &str = "\
Examples:
  podium invite create ada@example.com --role member
  podium invite link c1234567890abcdefghijklmn
  podium invite accept < secret.txt
  podium invite delete c1234567890abcdefghijklmn --yes";

#[derive(Subcommand)]
pub(crate) enum Verb {
    /// Invite somebody to the organization.
    Create {
        /// E-mail address.
        email: String,
        /// Role in the organization.
        #[arg(long, default_value = "member")]
        role: String,
    },
    /// Print a new link that accepts an invite.
    Link {
        /// Id of the invite.
        invite: String,
    },
    /// Accept an invite as the current user; a new user runs podium login --invite, or opens the link in a browser.
    ///
    /// The secret of the link is asked for, or read from standard input.
    Accept,
    /// Withdraw an invite.
    Delete {
        /// Id of the invite.
        invite: String,
    },
}

const VIEW: View = View::plain("inviteId", "INVITE inviteId, USER invitee.username, EXPIRES expiresAt");

const ACCEPTED: View = View::plain("userId", "ORGANIZATION organizationId, USER userId");

impl Verbs for Verb {
    async fn run(self, session: &Session) -> Outcome {
        let of = async |invite: &str| {
            let hint =
                "podium invite create shows the id. To invite somebody again: podium invite create EMAIL";
            let invite_id = id(invite, "an invite", hint)?;
            Ok::<_, Failed>(OfInvite { organization_id: session.organization().await?, invite_id })
        };
        match self {
            Self::Create { email, role } => {
                let path = session.in_organization().await?;
                let role = organization_role(&role)?;
                let body = api::CreateUserInviteRequest { invitee_email: email.clone(), role };
                let made = session.post::<api::Create>(&path, &body).await?;
                let invite = made.body()?.invite_id;
                eprintln!("Invited {email}. For a link to hand out: podium invite link {invite}");
                session.show(&made.raw, &VIEW)
            }
            Self::Link { invite } => {
                let link = session.post::<api::CreateLink>(&of(&invite).await?, &Nothing).await?;
                eprintln!("Give this link to the invited person and nobody else:");
                session.show_secret(&link, |link| Some(link.url), &VIEW)
            }
            Self::Accept => {
                let token = terminal::ask_secret("Secret of the link: ")?;
                if token.is_empty() {
                    return Err(Failed::usage("no secret was given").hint(
                        "The secret follows token= in the link. Type it, or pass it on standard input.",
                    ));
                }
                let body = auth::AcceptInviteRequest { token, full_name: None, password: None };
                let accepted = session.post::<auth::AcceptInvite>(&(), &body).await?;
                eprintln!("Accepted the invite.");
                session.show(&accepted.raw, &ACCEPTED)
            }
            Self::Delete { invite } => {
                let path = of(&invite).await?;
                session.agree(&format!("Withdraw the invite {invite}?"))?;
                session.post::<api::Delete>(&path, &Nothing).await?;
                eprintln!("Withdrew the invite {invite}.");
                Ok(())
            }
        }
    }
}
