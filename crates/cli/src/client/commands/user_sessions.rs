//! `podium session`.

use clap::Subcommand;
use podium_api::path::OfSession;
use podium_api::user_sessions as api;
use podium_api::{Nothing, SessionId};

use super::{Listing, Outcome, Session, Verbs, View, id};

pub(crate) const EXAMPLES: &str = "\
Examples:
  podium session list --output wide
  podium session end cm5v8x1k20000abcdefghijkl
  podium session end --others";

#[derive(Subcommand)]
pub(crate) enum Verb {
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
    columns: "ID id, KIND kind, CURRENT isCurrent, NAME clientName, ADDRESS address, LAST USED lastUsedAt",
    wide: "BEGAN createdAt, EXPIRES expiresAt, USER AGENT userAgent",
};

impl Verbs for Verb {
    async fn run(self, session: &Session) -> Outcome {
        match self {
            Self::List(listing) => session.list::<api::List>(&(), &VIEW, &listing).await,
            Self::End { others: true, .. } => {
                session.post::<api::EndOthers>(&(), &Nothing).await?;
                eprintln!("Ended all other sessions.");
                Ok(())
            }
            Self::End { sessions, .. } => {
                let mut ids: Vec<SessionId> = Vec::new();
                for text in &sessions {
                    ids.push(id(text, "a session", "List sessions: podium session list")?);
                }
                session.hold_plan();
                for session_id in ids {
                    session.post::<api::End>(&OfSession { session_id }, &Nothing).await?;
                    if !session.is_planning() {
                        eprintln!("Ended session {session_id}.");
                    }
                }
                session.show_plan().await
            }
        }
    }
}
