//! `podium owner-password`: sets a user's password, the first one or a replacement for a forgotten one.

use std::io::{IsTerminal as _, Write as _};

use clap::Args;
use podium_app::{Config, Started};

use crate::failure::Failure;
use crate::settings::Installation;
use podium_terminal::{ask_secret, line};

/// Set the password of the owner, or of another user, to sign in with a browser.
///
/// The command prompts for it on a terminal, and otherwise reads it from standard input. All sessions of the user end;
/// tokens stay valid. With the embedded database, stop the server first.
#[derive(Args)]
#[command(after_help = "\
Examples:
  podium owner-password --data-dir ./podium-data
  podium owner-password --generate
  podium owner-password --email ada@example.com < password.txt")]
pub struct OwnerPassword {
    #[command(flatten)]
    installation: Installation,
    /// E-mail address of the user; the default is the oldest owner.
    #[arg(long)]
    email: Option<String>,
    /// Generate a password and print it.
    #[arg(long)]
    generate: bool,
}

impl OwnerPassword {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        // No link is created here, so the URL does not matter.
        let Started { app, system, .. } =
            self.installation.open_existing(Config::new("http://127.0.0.1:8080")).await?;
        let found = app.account_to_reset(&system, self.email.as_deref()).await?;
        let account = found.ok_or_else(|| match &self.email {
            Some(email) => format!("there is no user with the e-mail address {email}"),
            None => "there is no active owner who holds the role directly".to_owned(),
        })?;
        let username = account.username.clone();
        let given = if self.generate { None } else { read(&username)? };
        let password = given.clone().unwrap_or_else(|| app.new_password());
        if let Some(objection) = app.password_problem(&account, &password) {
            return Err(format!("the password {objection}").into());
        }
        app.reset_password(&system, account, password.clone()).await?;
        app.close().await;
        eprintln!(
            "The password of {username} is set: sign in at /sign-in with it. Earlier sessions have ended."
        );
        if given.is_none() {
            let written = writeln!(std::io::stdout(), "{password}");
            written.map_err(|error| format!("the password cannot be shown: {error}"))?;
        }
        Ok(())
    }
}

/// The password that a person types twice, or the first line of standard input; `None` if one is to be generated.
fn read(username: &str) -> Result<Option<String>, Failure> {
    if !std::io::stdin().is_terminal() {
        return match line().map_err(|error| unreadable(&error))? {
            password if password.is_empty() => {
                Err("there is no password on standard input: give one, or use --generate".into())
            }
            password => Ok(Some(password)),
        };
    }
    let ask = |prompt: &str| ask_secret(prompt).map_err(|error| unreadable(&error));
    let password = ask(&format!("New password for {username} (empty to generate one): "))?;
    if password.is_empty() {
        return Ok(None);
    }
    if ask("Repeat it: ")? != password {
        return Err("the two passwords differ: nothing was changed".into());
    }
    Ok(Some(password))
}

fn unreadable(error: &std::io::Error) -> Failure {
    format!("the password cannot be read: {error}").into()
}
