//! `podium context`: the servers that you signed in to.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::login;
use super::{Failed, Format, Outcome, View};
use crate::client::contexts::Contexts as Stored;

/// Servers that you signed in to.
#[derive(Args)]
#[command(after_help = "\
Examples:
  podium context list
  podium context use production
  podium context use production --organization c1234567890abcdefghijklmn
  podium context remove production")]
pub(crate) struct Contexts {
    #[command(flatten)]
    format: Format,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// List contexts; the current one has a star.
    List,
    /// Make a context the current one.
    Use {
        /// Name of the context.
        name: String,
        /// Id of the organization to use unless another one is named.
        #[arg(long, value_name = "ID")]
        organization: Option<String>,
    },
    /// Forget a context and its token.
    #[command(alias = "delete")]
    Remove {
        /// Name of the context.
        name: String,
    },
}

const VIEW: View =
    View::plain("name", "CURRENT current, NAME name, SERVER url, AS subject, ORGANIZATION organizationId");

impl Contexts {
    pub(crate) fn run(self) -> Outcome {
        match self.verb {
            Verb::List => {
                let all = Stored::read()?;
                let shown = |(name, context): (&String, &crate::client::contexts::Context)| {
                    json!({
                        "name": name,
                        "current": if all.current.as_ref() == Some(name) { "*" } else { "" },
                        "url": context.url,
                        "subject": context.subject,
                        "organizationId": context.organization_id,
                    })
                };
                let items: Vec<Value> = all.contexts.iter().map(shown).collect();
                let mut printer = self.format.printer(&VIEW)?;
                printer.page(&items)?;
                Ok(printer.finish()?)
            }
            Verb::Use { name, organization } => {
                let id = organization.map(|id| id.parse()).transpose();
                let id = id.map_err(|_| {
                    Failed::usage("give the organization's id, not its name: podium organization list")
                })?;
                Stored::change(|all| {
                    all.named(&name)?;
                    if let (Some(id), Some(context)) = (id, all.contexts.get_mut(&name)) {
                        context.organization_id = Some(id);
                    }
                    all.current = Some(name.clone());
                    Ok(())
                })?;
                eprintln!("{name} is the current context.");
                Ok(())
            }
            Verb::Remove { name } => {
                login::forget(&name)?;
                eprintln!("Removed context {name}.");
                Ok(())
            }
        }
    }
}
