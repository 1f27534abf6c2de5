//! Signing in for the first time, with the link of an invite.

use std::io::IsTerminal as _;

use podium_api::{Nothing, auth as api};
use podium_client::Client;
use podium_terminal as terminal;

use crate::client::commands::{Exit, Failed, Outcome};
use crate::client::session::is_same;

const PAGE: &str = "/accept-invite?token=";

/// How many characters a password has at least.
const SHORTEST: usize = 12;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) url: String,
    secret: String,
}

impl Link {
    /// Asks for a link, or reads it from standard input; what follows token= in it is enough where the server was named.
    pub(super) fn ask(server: Option<&str>) -> Outcome<Self> {
        let typed = terminal::ask_secret("Link of the invite: ")?;
        Self::of(&typed, server)
    }

    fn of(typed: &str, server: Option<&str>) -> Outcome<Self> {
        match (Self::read(typed), server) {
            (Some(link), Some(server)) if !is_same(&link.url, server) => Err(Failed::usage(format!(
                "the link is for another server, not {server}"
            ))
            .hint(
                "To use the server of the link, leave the URL out (--url, PODIUM_URL): podium login --invite",
            )),
            (Some(link), _) => Ok(link),
            (None, Some(server)) if is_secret(typed.trim()) => {
                Ok(Self { url: server.to_owned(), secret: typed.trim().to_owned() })
            }
            (None, _) => Err(Failed::usage("that is not the link of an invite").hint(
                "It ends in /accept-invite?token=…, and whoever invited you has it: podium invite link",
            )),
        }
    }

    pub(super) fn read(text: &str) -> Option<Self> {
        let (url, secret) = text.trim().split_once(PAGE)?;
        let is_whole = url.contains("://") && !secret.is_empty();
        is_whole.then(|| Self { url: url.to_owned(), secret: secret.to_owned() })
    }

    /// Makes the account that the invite is for, and gives its session.
    pub(super) async fn accept(&self, client: &Client) -> Outcome<String> {
        let (full_name, password) = match std::io::stdin().is_terminal() {
            true => (terminal::ask("Your name: ")?, new_password()?),
            false => (terminal::line()?, terminal::line()?),
        };
        if full_name.trim().is_empty() || password.is_empty() {
            return Err(Failed::usage("a name and a password are needed").hint(
                "Without a terminal, standard input holds the link, your name and a new password, a line each.",
            ));
        }
        let (full_name, password) = (Some(full_name), Some(password));
        let body = api::AcceptInviteRequest { token: self.secret.clone(), full_name, password };
        match client.call::<api::AcceptInvite>(&(), &Nothing, &body).await {
            Ok(accepted) => Ok(accepted.body.session.map(|session| session.token).unwrap_or_default()),
            Err(error) => {
                let failed = Failed::from(error);
                Err(match failed.exit {
                    Exit::Refused => failed.hint(format!(
                        "If you have an account, sign in with it and accept the invite: podium login {}, then podium invite accept",
                        self.url
                    )),
                    Exit::NotFound => failed.hint("A link works once, and until the invite expires: ask for another one."),
                    _ => failed,
                })
            }
        }
    }
}

/// Whether a text can be what follows token= in a link.
fn is_secret(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

fn new_password() -> Outcome<String> {
    let password = loop {
        let password = terminal::ask_secret("New password (at least 12 characters): ")?;
        if password.is_empty() || password.chars().count() >= SHORTEST {
            break password;
        }
        eprintln!("That is too short.");
    };
    match terminal::ask_secret("Once more: ")? == password {
        true => Ok(password),
        false => Err(Failed::usage("the passwords differ").hint("Nothing was sent: the link still works.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_was_named_is_that_of_the_link() {
        let link = "http://127.0.0.1:8080/accept-invite?token=s3cret";
        let read =
            |typed: &str, server: &str| Link::of(typed, Some(server)).map(|link| (link.url, link.secret));
        let server = "http://127.0.0.1:8080".to_owned();
        assert_eq!(read(link, "http://127.0.0.1:8080/").unwrap(), (server.clone(), "s3cret".into()));
        assert_eq!(read("s3cret\n", &server).unwrap(), (server.clone(), "s3cret".into()));
        assert!(read(link, "http://127.0.0.1:9090").unwrap_err().reason().contains("another server"));
        assert!(read("", &server).is_err() && Link::of("s3cret", None).is_err());
    }

    #[test]
    fn a_link_names_the_server_and_holds_a_secret() {
        let link = Link { url: "https://podium.example.com/below".into(), secret: "s3cret".into() };
        assert_eq!(Link::read(" https://podium.example.com/below/accept-invite?token=s3cret\n"), Some(link));
        for wrong in [
            "",
            "s3cret",
            "https://podium.example.com",
            "/accept-invite?token=x",
            "https://p/accept-invite?token=",
        ] {
            assert_eq!(Link::read(wrong), None, "{wrong}");
        }
    }
}
