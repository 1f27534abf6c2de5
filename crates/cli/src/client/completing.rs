//! Completes what is typed in a shell, with the names that there are on the server.
//!
//! A shell waits for this: it takes a moment at most, asks nothing, says nothing if it fails, and starts no server. Names are
//! chosen by whoever creates things, so those that a shell could take for something else are quoted or left out.

use std::ffi::{OsStr, OsString};
use std::time::Duration;

use clap::{ArgMatches, Command, CommandFactory as _, FromArgMatches as _};
use clap_complete::CompleteEnv;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use podium_api::{
    Nothing, alerts, allowed_ip_address_ranges, clusters, deployments, environment_objects, organizations,
    roles, teams, tokens, users, webhooks, workspaces,
};
use podium_terminal::typed::quoted;

use super::airflow::Airflow;
use super::contexts::Contexts;
use super::ending::Outcome;
use super::project::DeploymentFlags;
use super::session::{Session, Target};

/// The variable that scripts of `podium completion` set; it names the shell.
pub(crate) const VARIABLE: &str = "PODIUM_COMPLETE";
/// How long names are waited for.
const PATIENCE: Duration = Duration::from_millis(1_500);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Named {
    Alert,
    Cluster,
    Context,
    Dag,
    Deployment,
    Object,
    Organization,
    Range,
    Role,
    Team,
    Token,
    User,
    Webhook,
    Workspace,
}

/// Answers a shell, if one asks; whether it did.
pub(crate) fn answer() -> bool {
    let Some(shell) = std::env::var_os(VARIABLE) else { return false };
    let quotes = shell == "bash";
    let factory = || with_names(crate::Cli::command(), &[], quotes);
    let folder = std::env::current_dir().ok();
    let asked = CompleteEnv::with_factory(factory).var(VARIABLE).bin("podium").completer("podium");
    // An error is the shell's: it asked for something else.
    asked.try_complete(std::env::args_os(), folder.as_deref()).unwrap_or(true)
}

/// A command whose arguments know the names that they take.
fn with_names(command: Command, path: &[&str], quotes: bool) -> Command {
    let command = command.mut_args(|arg| match what(path, arg.get_id().as_str()) {
        Some(named) => arg.add(ArgValueCompleter::new(move |typed: &OsStr| candidates(named, typed, quotes))),
        None => arg,
    });
    let below: Vec<String> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    below.iter().fold(command, |command, name| {
        let path = [path, &[name.as_str()]].concat();
        command.mut_subcommand(name, |sub| with_names(sub, &path, quotes))
    })
}

/// What an argument of a command names; nothing if it is a new name, or no name.
fn what(path: &[&str], id: &str) -> Option<Named> {
    Some(match (path, id) {
        (["init", ..] | ["serve", ..], "token" | "workspace") => return None,
        (["token", "agent", ..], "one" | "several") => return None,
        (["init", ..], "deployment") => return None,
        (["context", "use" | "remove"], "name") | (_, "context") => Named::Context,
        (["context", ..], _) => return None,
        (["deployment", "transfer"], "to") => Named::Workspace,
        (["env", "create"], "key") => return None,
        (["env", "exclude"], "excluded") => Named::Deployment,
        (["env", ..], "key" | "keys") => Named::Object,
        (["ip-range", "delete"], "ranges") => Named::Range,
        ([noun, ..], "one" | "several") => return what(&[], noun),
        (["role", ..] | [], "role") => Named::Role,
        (_, "alert") => Named::Alert,
        (_, "cluster") => Named::Cluster,
        (_, "dag" | "dags") => Named::Dag,
        (_, "deployment" | "deployments" | "remove_deployment_role") => Named::Deployment,
        (_, "organization") => Named::Organization,
        (_, "team") => Named::Team,
        (_, "token") => Named::Token,
        (_, "user" | "users" | "member") => Named::User,
        (_, "webhook" | "webhooks") => Named::Webhook,
        (_, "workspace" | "workspaces" | "remove_workspace_role") => Named::Workspace,
        _ => return None,
    })
}

/// The names that begin as what is typed, as the shell takes them.
fn candidates(named: Named, typed: &OsStr, quotes: bool) -> Vec<CompletionCandidate> {
    let Some(typed) = typed.to_str() else { return Vec::new() };
    let typed = unquoted(typed);
    let mut found = names_of(named).unwrap_or_default();
    found.sort_unstable();
    found.dedup();
    let fits = |name: &&String| {
        let begins = name.to_lowercase().starts_with(&typed.to_lowercase());
        begins && !name.starts_with('-') && !name.chars().any(char::is_control) && !name.is_empty()
    };
    let shown = |name: &String| if quotes { quoted(name) } else { name.clone() };
    found.iter().filter(fits).map(|name| CompletionCandidate::new(shown(name))).collect()
}

/// A word of a shell without its quotes.
fn unquoted(word: &str) -> String {
    let (mut text, mut chars, mut quote) = (String::new(), word.chars(), None);
    while let Some(c) = chars.next() {
        match (quote, c) {
            (None | Some('"'), '\\') => text.extend(chars.next()),
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            (_, c) => text.push(c),
        }
    }
    text
}

/// The names that there are, as far as they can be had in a moment.
fn names_of(named: Named) -> Option<Vec<String>> {
    if named == Named::Context {
        return Some(Contexts::read().ok()?.contexts.into_keys().collect());
    }
    let typed = typed()?;
    let session = session(&typed)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let asked = async { tokio::time::timeout(PATIENCE, ask(&session, named, &typed)).await };
    let names = runtime.block_on(asked);
    runtime.shutdown_background();
    names.ok()?.ok()
}

/// What is typed in front of the word that is completed.
fn typed() -> Option<ArgMatches> {
    let words: Vec<OsString> = std::env::args_os().skip_while(|word| word != "--").skip(1).collect();
    let place = std::env::var("_CLAP_COMPLETE_INDEX").ok().and_then(|text| text.parse().ok());
    let before = words.get(..place.unwrap_or(words.len().saturating_sub(1)))?;
    // Shells pass words as they are typed.
    let before =
        before.iter().map(|word| word.to_str().map_or_else(|| word.clone(), |text| unquoted(text).into()));
    let command = crate::Cli::command().ignore_errors(true);
    let mut matches = command.try_get_matches_from(before).ok()?;
    while let Some((_, below)) = matches.remove_subcommand() {
        matches = below;
    }
    Some(matches)
}

/// A session with the server that the command would call.
fn session(typed: &ArgMatches) -> Option<Session> {
    typed.try_contains_id("context").ok()?;
    let target = Target::from_arg_matches(typed).ok()?;
    target.open_quietly().ok()
}

async fn ask(session: &Session, named: Named, typed: &ArgMatches) -> Outcome<Vec<String>> {
    if named == Named::Organization {
        return session.names_of::<organizations::Get>(&(), &Nothing).await;
    }
    let path = session.in_organization().await?;
    match named {
        Named::Alert => session.names_of::<alerts::Get>(&path, &Nothing).await,
        Named::Cluster => session.names_of::<clusters::Get>(&path, &Nothing).await,
        Named::Deployment => session.names_of::<deployments::Get>(&path, &Nothing).await,
        Named::Object => session.names_of::<environment_objects::Get>(&path, &Nothing).await,
        Named::Range => session.names_of::<allowed_ip_address_ranges::Delete>(&path, &Nothing).await,
        Named::Role => session.names_of::<roles::Get>(&path, &Nothing).await,
        Named::Team => session.names_of::<teams::Get>(&path, &Nothing).await,
        Named::Token => session.names_of::<tokens::Get>(&path, &Nothing).await,
        Named::User => session.names_of::<users::Get>(&path, &Nothing).await,
        Named::Webhook => session.names_of::<webhooks::Get>(&path, &Nothing).await,
        Named::Workspace => session.names_of::<workspaces::Get>(&path, &Nothing).await,
        Named::Dag => {
            let deployment = typed.try_get_one::<String>("deployment").ok().flatten();
            let here = std::path::Path::new(".");
            let workspace = typed.try_get_one::<String>("workspace").ok().flatten().cloned();
            let flags = DeploymentFlags { workspace };
            let path = flags.find(session, deployment.map(String::as_str), here).await?;
            Airflow::of(session, &path).await?.dag_names().await
        }
        Named::Context | Named::Organization => Ok(Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_quoted_for_a_shell_and_read_again() {
        let table = [
            ("nightly", "nightly"),
            ("My reports", "My\\ reports"),
            ("$(reboot)", "\\$\\(reboot\\)"),
            ("a;b|c&d`e`", "a\\;b\\|c\\&d\\`e\\`"),
            ("10.0.0.0/8", "10.0.0.0/8"),
            ("ada@example.com", "ada@example.com"),
            ("it's", "it\\'s"),
        ];
        for (name, word) in table {
            assert_eq!(quoted(name), word);
            assert_eq!(unquoted(word), name);
        }
        assert_eq!(unquoted("\"My rep"), "My rep");
        assert_eq!(unquoted("'My rep"), "My rep");
        assert_eq!(unquoted("My\\"), "My");
    }

    /// What each argument names, by the words of its command.
    fn all(command: &Command, path: &[&str], found: &mut Vec<(String, Named)>) {
        for arg in command.get_arguments() {
            if let Some(named) = what(path, arg.get_id().as_str()) {
                found.push((format!("{} {}", path.join(" "), arg.get_id()), named));
            }
        }
        for sub in command.get_subcommands() {
            all(sub, &[path, &[sub.get_name()]].concat(), found);
        }
    }

    #[test]
    fn arguments_know_what_they_name() {
        let mut found = Vec::new();
        all(&crate::Cli::command(), &[], &mut found);
        let of = |arg: &str| found.iter().find(|(known, _)| known == arg).map(|(_, named)| *named);
        for (arg, named) in [
            ("deployment get deployment", Some(Named::Deployment)),
            ("deployment delete deployments", Some(Named::Deployment)),
            ("deployment create name", None),
            ("deployment create workspace", Some(Named::Workspace)),
            ("deployment create cluster", Some(Named::Cluster)),
            ("deployment transfer to", Some(Named::Workspace)),
            ("workspace delete several", Some(Named::Workspace)),
            ("team get one", Some(Named::Team)),
            ("team member add users", Some(Named::User)),
            ("user get user", Some(Named::User)),
            ("user update role", None),
            ("role get one", Some(Named::Role)),
            ("token get one", Some(Named::Token)),
            ("token agent get one", None),
            ("cluster get one", Some(Named::Cluster)),
            ("context use name", Some(Named::Context)),
            ("workspace context", Some(Named::Context)),
            ("dag trigger dag", Some(Named::Dag)),
            ("run logs dag", Some(Named::Dag)),
            ("env get key", Some(Named::Object)),
            ("env create key", None),
            ("env exclude excluded", Some(Named::Deployment)),
            ("open deployment", Some(Named::Deployment)),
            ("init deployment", None),
            ("ip-range delete ranges", Some(Named::Range)),
            ("ip-range create ranges", None),
            ("webhook get one", Some(Named::Webhook)),
            ("alert get one", Some(Named::Alert)),
        ] {
            assert_eq!(of(arg), named, "{arg}");
        }
    }
}
