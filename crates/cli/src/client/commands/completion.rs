//! `podium completion`: scripts that complete commands in a shell.

use clap::{Args, ValueEnum};
use clap_complete::env::Shells;

use super::Outcome;
use crate::client::completing::VARIABLE;

/// Print a script that completes commands, flags and names in a shell.
///
/// Names of deployments, workspaces, DAGs and so on come from the server of the current context, or of the context that is
/// typed.
#[derive(Args)]
#[command(after_help = "\
Examples:
  podium completion bash > ~/.local/share/bash-completion/completions/podium
  podium completion zsh > ~/.zfunc/_podium
  podium completion fish > ~/.config/fish/completions/podium.fish")]
pub(crate) struct Completion {
    shell: Shell,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
    Elvish,
}

impl Completion {
    pub(crate) fn run(self) -> Outcome {
        let name = self.shell.to_possible_value().map(|value| value.get_name().to_owned());
        let shells = Shells::builtins();
        let mut script = Vec::new();
        if let Some(shell) = name.and_then(|name| shells.completer(&name)) {
            shell.write_registration(VARIABLE, "podium", "podium", "podium", &mut script)?;
        }
        Ok(std::io::Write::write_all(&mut std::io::stdout(), &script)?)
    }
}
