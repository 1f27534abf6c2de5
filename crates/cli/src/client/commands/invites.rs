//! `podium invite`.

use clap::{Args, Subcommand};
use podium_api::path::OfInvite;
use podium_api::{auth, invites as api};
use podium_client::Call;
use serde_json::{Value, json};

use crate::client::ending::{Failed, Outcome};
use crate::client::grants::full_name;
use crate::client::output::{View, column};
use crate::client::session::{Setup, text};
use crate::terminal;

/// Invites to the organization.
#[derive(Args)]
#[command(after_help = "\
Examples:
  podium invite create ada@example.com --role member
  podium invite link c1234567890abcdefghijklmn
  podium invite accept < secret.txt
  podium invite delete c1234567890abcdefghijklmn --yes")]
pub(crate) struct Invites {
    #[command(flatten)]
    setup: Setup,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
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

const VIEW: View = View {
    name: "inviteId",
    columns: &[
        column("INVITE", "inviteId"),
        column("USER", "invitee.username"),
        column("EXPIRES", "expiresAt"),
    ],
};

const ACCEPTED: View =
    View { name: "userId", columns: &[column("ORGANIZATION", "organizationId"), column("USER", "userId")] };

impl Invites {
    pub(crate) async fn run(self) -> Outcome {
        let session = self.setup.open()?;
        let of = async |invite: &str| {
            let invite_id = invite.parse().map_err(|_| {
                Failed::usage(format!("{invite:?} is not the id of an invite")).hint(
                    "podium invite create shows the id. To invite somebody again: podium invite create EMAIL",
                )
            })?;
            Ok::<_, Failed>(OfInvite { organization_id: session.organization().await?, invite_id })
        };
        match self.verb {
            Verb::Create { email, role } => {
                let path = session.in_organization().await?;
                let body = json!({ "inviteeEmail": email, "role": full_name("ORGANIZATION", &role) });
                let made = session.post::<api::Create>(&path, &body).await?;
                eprintln!(
                    "Invited {email}. For a link to hand out: podium invite link {}",
                    text(&made["inviteId"])
                );
                session.show(&made, &VIEW)
            }
            Verb::Link { invite } => {
                let link = session.post::<api::CreateLink>(&of(&invite).await?, &Value::Null).await?;
                eprintln!("Give this link to the invited person and nobody else:");
                session.show_secret(&link, "url", &VIEW)
            }
            Verb::Accept => {
                let secret = terminal::ask_secret("Secret of the link: ")?;
                if secret.is_empty() {
                    return Err(Failed::usage("no secret was given").hint(
                        "The secret follows token= in the link. Type it, or pass it on standard input.",
                    ));
                }
                let body = json!({ "token": secret });
                let accepted = session.post::<auth::AcceptInvite>(&(), &body).await?;
                eprintln!("Accepted the invite.");
                session.show(&accepted, &ACCEPTED)
            }
            Verb::Delete { invite } => {
                let path = of(&invite).await?;
                session.agree(&format!("Withdraw the invite {invite}?"))?;
                session.change(Call::to::<api::Delete>(&path)).await?;
                eprintln!("Withdrew the invite {invite}.");
                Ok(())
            }
        }
    }
}
