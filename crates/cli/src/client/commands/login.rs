//! `podium login` and `podium logout`.

mod device;
mod invited;
mod whoami;

use std::io::{IsTerminal as _, Read as _};
use std::path::PathBuf;

use clap::Args;
use podium_api::enums::ErrorCode;
use podium_api::{Nothing, OrganizationId, auth, organizations, users};
use podium_client::{Call, Client};
use podium_terminal as terminal;

use super::{Called, Exit, Failed, Outcome, Target, one_line, read};
use crate::client::browser;
use crate::client::contexts::{Context, Contexts};
use crate::client::operator;

pub(crate) use self::whoami::Whoami;

use self::invited::Link;
use self::whoami::{API_TOKEN, own_token};

/// Sign in to a server and make it the current context.
///
/// On a terminal with a browser, the command opens a page of the server where you approve the sign-in; with --no-browser it
/// prints the link, which works on any machine. On a terminal without a browser it asks for a token, or an e-mail address
/// and a password. Otherwise it reads a token from standard input. Invited users sign in for the first time with
/// --invite and the link of the invite. The token is stored in a file that only you can read.
#[derive(Args)]
#[command(after_help = "\
Examples:
  podium login https://podium.example.com
  podium login https://podium.example.com --no-browser
  podium login https://podium.example.com --email ada@example.com
  podium login --invite
  podium login http://127.0.0.1:8080 --token-file ./podium-data/owner-token
  podium login https://podium.example.com --name production < token.txt")]
pub(crate) struct Login {
    /// URL of the server; the default is that of the current context.
    server: Option<String>,
    /// Name of the context; the default is the server's host.
    #[arg(long)]
    name: Option<String>,
    /// E-mail address to sign in with; the password is asked for, or read from standard input.
    #[arg(long, conflicts_with = "token_file")]
    email: Option<String>,
    /// File that holds a token.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Print the link to approve the sign-in with a browser, here or on another machine.
    #[arg(long, conflicts_with_all = ["email", "token_file"])]
    no_browser: bool,
    /// Accept an invite and set a password; its link is asked for, or read from standard input.
    #[arg(long, conflicts_with_all = ["email", "token_file", "no_browser", "context"])]
    invite: bool,
    #[command(flatten)]
    target: Target,
}

/// Forget the token of a context; a session that `podium login` started is ended.
#[derive(Args)]
#[command(after_help = "Example: podium logout")]
pub(crate) struct Logout {
    #[command(flatten)]
    target: Target,
}

impl Login {
    pub(crate) async fn run(self) -> Outcome {
        let server = self.server.as_deref().or(self.target.url());
        if self.invite && server.is_some_and(|server| Link::read(server).is_some()) {
            return Err(Failed::usage(
                "do not give the link of the invite as an argument, where others can read it",
            )
            .hint("Type podium login --invite: it asks for the link, or reads it from standard input."));
        }
        let link = self.invite.then(|| Link::ask(server)).transpose()?;
        let url = match &link {
            Some(link) => link.url.clone(),
            None => self.url()?,
        };
        let anonymous = self.target.client(&url, None, self.target.ca_certificate.as_deref())?;
        let url = anonymous.base().to_owned();
        if url.starts_with("http://") && !is_loopback(&url) {
            eprintln!("Warning: the connection to {url} is not encrypted.");
        }
        let ca_certificate = self.target.ca_certificate.as_deref().map(std::fs::canonicalize).transpose()?;
        let (token, is_session) = match link {
            Some(link) => {
                eprintln!("Accepting an invite to {url}.");
                (link.accept(&anonymous).await?, true)
            }
            None => self.credential(&anonymous).await?,
        };
        let client = self.target.client(&url, Some(token.clone()), ca_certificate.as_deref())?;
        let (subject, organization_id) = identify(&client).await.map_err(|failed| match self.invite {
            true => {
                failed.hint(format!("Your account was created. Sign in: podium login {url} --email ADDRESS"))
            }
            false => failed,
        })?;
        let name = self.name.clone().unwrap_or_else(|| context_name(&url));
        let context = Context {
            url: url.clone(),
            token,
            subject: Some(subject.clone()),
            organization_id,
            ca_certificate,
            is_session,
        };
        Contexts::change(|all| {
            all.contexts.insert(name.clone(), context);
            all.current = Some(name.clone());
            Ok(())
        })?;
        eprintln!("Signed in to {url} as {subject} (context {name}).");
        Ok(())
    }

    /// A token, and whether it is that of a session.
    async fn credential(&self, client: &Client) -> Outcome<(String, bool)> {
        if let Some(token) = self.by_browser(client).await? {
            return Ok((token, true));
        }
        match self.token()? {
            Some(token) => Ok((token, false)),
            None => Ok((self.session_token(client).await?, true)),
        }
    }

    fn url(&self) -> Outcome<String> {
        if let Some(url) = &self.server {
            // Others on this machine can read what is typed after a command.
            return match Link::read(url) {
                None => Ok(url.clone()),
                Some(_) => Err(Failed::usage("that is the link of an invite, which nobody else may see")
                    .hint("Type podium login --invite, and paste the link when you are asked for it.")),
            };
        }
        let contexts = Contexts::read()?;
        match self.target.find(&contexts)? {
            Some(context) => Ok(context.url.clone()),
            None => Err(Failed::usage("name the server: podium login URL")
                .hint("A server on this machine is at http://127.0.0.1:8080 unless configured otherwise.")),
        }
    }

    /// Signs in with a browser, where that is wanted or there is one.
    async fn by_browser(&self, client: &Client) -> Outcome<Option<String>> {
        if self.no_browser {
            let token = device::session_token(client, false).await?;
            return token.map(Some).ok_or_else(|| {
                Failed::new(Exit::Refused, format!("browsers cannot sign in to {}", client.base()))
                    .hint("Use --email for a password, or --token-file FILE.")
            });
        }
        let is_told = self.email.is_some() || self.token_file.is_some();
        if is_told || !terminal::is_interactive() || !browser::is_there() {
            return Ok(None);
        }
        device::session_token(client, true).await
    }

    /// A token from a file or standard input; none if a password is to be used.
    fn token(&self) -> Outcome<Option<String>> {
        let token = match &self.token_file {
            Some(path) => std::fs::read_to_string(path)
                .map_err(|error| Failed::usage(format!("{} cannot be read: {error}", path.display())))?,
            None if self.email.is_some() => return Ok(None),
            None if std::io::stdin().is_terminal() => {
                let token = terminal::ask_secret("Token (empty to use a password): ")?;
                if token.trim().is_empty() {
                    return Ok(None);
                }
                token
            }
            None => {
                let mut token = String::new();
                std::io::stdin().take(1 << 16).read_to_string(&mut token)?;
                token
            }
        };
        match token.trim() {
            "" => Err(Failed::usage("there is no token on standard input")
                .hint("Pipe one in, or give --token-file FILE, or --email for a password.")),
            token => Ok(Some(token.to_owned())),
        }
    }

    async fn session_token(&self, client: &Client) -> Outcome<String> {
        let is_interactive = std::io::stdin().is_terminal();
        let username = match &self.email {
            Some(email) => email.clone(),
            None => terminal::ask("E-mail address: ")?,
        };
        let password = if is_interactive { terminal::ask_secret("Password: ")? } else { terminal::line()? };
        let body = auth::SignInRequest { username, password };
        Ok(client.call::<auth::SignIn>(&(), &Nothing, &body).await?.body.token)
    }
}

/// Who holds the token, and the only organization, if there is only one.
async fn identify(client: &Client) -> Outcome<(String, Option<OrganizationId>)> {
    let mut pages = client.pages(Call::to::<organizations::List>(&()), Some(2));
    let only = match pages.next().await?.unwrap_or_default().as_slice() {
        [only] => Some(OrganizationId::from_raw(read::<Called>(only)?.id)),
        _ => None,
    };
    let subject = match client.send::<Called>(Call::to::<users::GetSelf>(&())).await {
        Ok(user) => user.body.name,
        // An API token is no user.
        Err(error) if error.code() == Some(ErrorCode::Forbidden) => match only {
            Some(organization_id) => match own_token(client, organization_id).await? {
                Some(token) => format!("the token {}", one_line(&read::<Called>(&token)?.name)),
                None => API_TOKEN.into(),
            },
            None => API_TOKEN.into(),
        },
        Err(error) => return Err(error.into()),
    };
    Ok((subject, only))
}

impl Logout {
    pub(crate) async fn run(self) -> Outcome {
        let contexts = Contexts::read()?;
        let Some(name) = self.target.context_name(&contexts) else {
            return Err(Failed::usage("there is no current context").hint("See podium context list."));
        };
        let context = contexts.named(&name)?;
        if context.is_session {
            let ca = context.ca_certificate.clone();
            let client = self.target.client(&context.url, Some(context.token.clone()), ca.as_deref())?;
            if let Err(error) = client.call::<auth::SignOut>(&(), &Nothing, &Nothing).await {
                eprintln!("Warning: the session could not be ended: {error}");
            }
        }
        forget(&name)?;
        eprintln!("Signed out of {name}.");
        if Contexts::read()?.contexts.is_empty() && operator::socket_in(&operator::directory())?.is_some() {
            eprintln!(
                "You are no longer signed in: in this folder, podium acts as the operator of its server."
            );
        }
        Ok(())
    }
}

/// Removes a context with its token.
pub(crate) fn forget(name: &str) -> Outcome {
    Contexts::change(|all| {
        all.named(name)?;
        all.contexts.remove(name);
        if all.current.as_deref() == Some(name) {
            all.current = None;
        }
        Ok(())
    })
}

fn context_name(url: &str) -> String {
    let host = url.split_once("://").map_or(url, |(_, rest)| rest);
    host.split('/').next().unwrap_or(host).to_owned()
}

fn is_loopback(url: &str) -> bool {
    let name = context_name(url);
    let host = name.rsplit_once(':').map_or(name.as_str(), |(host, _)| host);
    host == "localhost" || host == "[::1]" || host.starts_with("127.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_is_named_after_its_host() {
        assert_eq!(context_name("https://podium.example.com"), "podium.example.com");
        assert_eq!(context_name("http://127.0.0.1:8080/below"), "127.0.0.1:8080");
    }

    #[test]
    fn this_machine_needs_no_encryption() {
        assert!(is_loopback("http://127.0.0.1:8080") && is_loopback("http://localhost"));
        assert!(is_loopback("http://[::1]:80"));
        assert!(!is_loopback("http://podium.example.com:8080"));
    }
}
