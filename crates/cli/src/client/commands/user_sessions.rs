//! `podium session`.

use clap::{Args, Subcommand};
use podium_api::SessionId;
use podium_api::path::OfSession;
use podium_api::user_sessions as api;
use podium_client::Call;

use crate::client::ending::{Failed, Outcome};
use crate::client::output::{Listing, View, column, wide};
use crate::client::session::Setup;

/// Your sessions.
#[derive(Args)]
#[command(after_help = "\
Examples:
  podium session list --output wide
  podium session end cm5v8x1k20000abcdefghijkl
  podium session end --others")]
pub(crate) struct Sessions {
    #[command(flatten)]
    setup: Setup,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// List your sessions: browsers, terminals and tokens that act as you.
    List(Listing),
    /// End some of your sessions: they stop working at once.
    End {
        /// Ids of the sessions.
        #[arg(required_unless_present = "others", conflicts_with = "others")]
        sessions: Vec<String>,
        /// End all sessions except the one that this command uses. Tokens that never expire are kept.
        #[arg(long)]
        others: bool,
    },
}

const VIEW: View = View {
    name: "id",
    columns: &[
        column("ID", "id"),
        column("KIND", "kind"),
        column("CURRENT", "isCurrent"),
        column("NAME", "clientName"),
        column("ADDRESS", "address"),
        column("LAST USED", "lastUsedAt"),
        wide("BEGAN", "createdAt"),
        wide("EXPIRES", "expiresAt"),
        wide("USER AGENT", "userAgent"),
    ],
};

impl Sessions {
    pub(crate) async fn run(self) -> Outcome {
        let session = self.setup.open()?;
        match self.verb {
            Verb::List(listing) => session.list(Call::to::<api::List>(&()), &VIEW, &listing).await,
            Verb::End { others: true, .. } => {
                let call = Call::to::<api::EndOthers>(&());
                if session.is_planned(&call).await? {
                    return Ok(());
                }
                session.client.send_for_nothing(call).await?;
                eprintln!("Ended all other sessions.");
                Ok(())
            }
            Verb::End { sessions, .. } => {
                let mut ids: Vec<SessionId> = Vec::new();
                for text in &sessions {
                    let wrong = |_| {
                        Failed::usage(format!("{text:?} is not the id of a session"))
                            .hint("List sessions: podium session list")
                    };
                    ids.push(text.parse().map_err(wrong)?);
                }
                session.hold_plan();
                for session_id in ids {
                    let call = Call::to::<api::End>(&OfSession { session_id });
                    if session.is_planned(&call).await? {
                        continue;
                    }
                    session.client.send_for_nothing(call).await?;
                    eprintln!("Ended session {session_id}.");
                }
                session.show_plan().await
            }
        }
    }
}
